"""Reference lists in ten styles as PDFs, whose records are known: what is found, and what is read right.

`python tests/reference_lists.py [--held-out] [--text] [--wrong N] [--bib FILE ...]` makes 30 lists, reads them, and
prints a table by style. A third of the lists is held out: other papers, fonts, sizes and widths. `--text` reads the
references without a PDF, `--wrong N` prints what was read wrong, `--bib` takes the records of other bibliographies.
"""

import argparse
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from citerec.ground.files import shipped
from citerec.ground.identity import title_key, unaccented
from citerec.markup.formats import OTHERS, Entry, Name, name_parts
from citerec.markup.references import read_references

VENUES = {  # the short name of a sample's venue: as a conference prints it, and as a publisher does
    "NeurIPS": ("Advances in Neural Information Processing Systems",
                "Advances in Neural Information Processing Systems"),
    "ICML": ("Proceedings of the {n}th International Conference on Machine Learning",
             "International Conference on Machine Learning"),
    "ICLR": ("International Conference on Learning Representations",
             "International Conference on Learning Representations"),
    "CVPR": ("Proceedings of the IEEE/CVF Conference on Computer Vision and Pattern Recognition",
             "Conference on Computer Vision and Pattern Recognition (CVPR)"),
    "ICCV": ("{y} IEEE International Conference on Computer Vision",
             "IEEE International Conference on Computer Vision (ICCV)"),
    "ECCV": ("Computer Vision – ECCV {y}", "European Conference on Computer Vision"),
    "ACL": ("Proceedings of the {n}th Annual Meeting of the Association for Computational Linguistics "
            "(Volume 1: Long Papers)",
            "Annual Meeting of the Association for Computational Linguistics"),
    "EMNLP": ("Proceedings of the {y} Conference on Empirical Methods in Natural Language Processing",
              "Empirical Methods in Natural Language Processing"),
    "NAACL": ("Proceedings of the {y} Conference of the North American Chapter of the Association for Computational "
              "Linguistics: Human Language Technologies",
              "Conference of the North American Chapter of the ACL"),
    "AISTATS": ("Artificial Intelligence and Statistics",
                "International Conference on Artificial Intelligence and Statistics"),
    "AAAI": ("Proceedings of the AAAI Conference on Artificial Intelligence",
             "AAAI Conference on Artificial Intelligence"),
    "KDD": ("Proceedings of the {n}th ACM SIGKDD International Conference on Knowledge Discovery and Data Mining",
            "ACM SIGKDD Conference"),
    "COLT": ("Conference on Learning Theory", "Conference on Learning Theory"),
          "JMLR": ("Journal of Machine Learning Research",) * 2,
    "IEEE TPAMI": ("IEEE Transactions on Pattern Analysis and Machine Intelligence",) * 2,
          "TMLR": ("Transactions on Machine Learning Research",) * 2,
    "PNAS": ("Proceedings of the National Academy of Sciences",) * 2,
          "IJCV": ("International Journal of Computer Vision",) * 2,
    "JAIR": ("Journal of Artificial Intelligence Research",) * 2,
    "TACL": ("Transactions of the Association for Computational Linguistics",) * 2}
JOURNALS = re.compile(r"journal|transactions|letters|nature|science|annals|review|surveys|pnas|jmlr|machine learning$"
                      r"|proceedings of the (?:national|ieee$)|neural (?:networks|computation)|foundations|jair|tacl"
                      r"|ijcv|tmlr|tpami|programming|optimization", re.I)
BOOKS = re.compile(r"press|springer|wiley|elsevier", re.I)


@dataclass(frozen=True)
class Record:
    """What a reference says."""
    title: str
    names: tuple[Name, ...]
    year: str
    venue: str  # as printed; "" for a preprint
    kind: str  # "conference", "journal", "preprint" or "book"
    volume: str = ""
    number: str = ""
    pages: str = ""
    doi: str = ""
    arxiv: str = ""
    url: str = ""


def record_of(paper: dict, dice: random.Random) -> Record:
    venue, year = paper["venue"] or "arXiv", paper["year"]
    long = VENUES.get(venue, (venue, venue))[dice.random() < .35].format(n=dice.choice([24, 29, 34, 37, 58]), y=year)
    kinds = {"preprint": venue == "arXiv", "book": BOOKS.search(venue), "journal": JOURNALS.search(venue)}
    kind = next((kind for kind, fits in kinds.items() if fits), "conference")
    first = dice.randrange(1, 2400)
    return Record(paper["title"], tuple(n for n in map(name_parts, paper["authors"]) if n != OTHERS), str(year), ""
                  if kind == "preprint" else long, kind,
                  str(dice.randrange(2, 60)) if kind == "journal" else "", str(dice.randrange(1, 12))
                  if kind == "journal" and dice.random() < .6 else "",
                  f"{first}–{first + dice.randrange(5, 30)}" if kind in ("conference", "journal")
                  and dice.random() < .8 else "",
                  (paper.get("doi") or "") if dice.random() < .7 else "", (paper.get("arxiv_id") or "")
                  if kind == "preprint" else "")


# --- How names are written --------------------------------------------------------------------------------------------


def initials(name: Name, space: str = " ", dot: str = ".") -> str:
    parts = re.split(r"[\s]+", name.given)
    return space.join("-".join(p[0] + dot for p in part.split("-") if p) for part in parts if part)


def family(name: Name) -> str: return f"{name.particle} {name.family}".strip()
def plain(name: Name) -> str: return str(name)
def short(name: Name) -> str: return ", ".join(filter(None, [f"{initials(name)} {family(name)}".strip(), name.suffix]))
def turned(name: Name) -> str: return family(name) + (f", {initials(name)}" if name.given else "")
def tight(name: Name) -> str: return family(name) + (f", {initials(name, '')}" if name.given else "")
def bare(name: Name) -> str: return family(name) + (f" {initials(name, '', '').replace('-', '')}" if name.given else "")
def inverted(name: Name) -> str: return family(name) + (f", {name.given}" if name.given else "")


def joined(names: Sequence[str], last: str = " and ", three: str = ", and ", between: str = ", ") -> str:
    if len(names) < 2: return "".join(names)
    return between.join(names[:-1]) + (last if len(names) == 2 else three) + names[-1]


def cut(names: Sequence[Name], most: int, kept: int) -> tuple[Sequence[Name], bool]:
    return (names[:kept], True) if len(names) > most else (names, False)


# --- Ten styles: \1 begins and ends italics ---------------------------------------------------------------------------


def neurips(r: Record, dice: random.Random) -> str:
    names, more = cut(r.names, 12, 6)
    who = ", ".join(map(plain, names)) + ", et al" if more else joined([*map(plain, names)])
    tail = {"conference": f"In \1{r.venue}\1" + (f", pages {r.pages}" if r.pages else "") + f", {r.year}.",
            "journal": f"\1{r.venue}\1, {r.volume}" + (f"({r.number})" if r.number else "")
            + (f":{r.pages}" if r.pages else "") + f", {r.year}.",
            "book": f"{r.venue}, {r.year}.", "preprint": f"\1arXiv preprint arXiv:{r.arxiv}\1, {r.year}."}[r.kind]
    title = f"\1{r.title}\1" if r.kind == "book" else r.title
    return f"{who}. {stopped(title)} {tail}" + (f" doi: {r.doi}." if r.doi else "") + (f" URL {r.url}." if r.url
                                                                                       else "")


def stopped(title: str) -> str: return title if title.rstrip("\1")[-1] in "?!." else f"{title}."


def ieee(r: Record, dice: random.Random) -> str:
    names, more = cut(r.names, 6, 1)
    who = f"{short(names[0])} \1et al.\1" if more else joined([*map(short, names)])
    city = dice.choice(["Berlin", "New York, NY, USA", "Cambridge"])
    if r.kind == "book": return f"{who}, \1{r.title}\1. {city}: {r.venue}, {r.year}."
    title = f"“{r.title}{'' if r.title[-1] in '?!' else ','}”"
    month = dice.choice(["", "Jun. ", "Dec. "])
    tail = {"conference": f"in \1{r.venue}\1, {month}{r.year}" + (f", pp. {r.pages}" if r.pages else ""),
            "journal": f"\1{r.venue}\1, vol. {r.volume}" + (f", no. {r.number}" if r.number else "")
            + (f", pp. {r.pages}" if r.pages else "") + f", {month}{r.year}",
            "preprint": f"\1arXiv preprint arXiv:{r.arxiv}\1, {r.year}"}[r.kind]
    return f"{who}, {title} {tail}" + (f", doi: {r.doi}" if r.doi else "") + "."


def acm(r: Record, dice: random.Random) -> str:
    who = joined([*map(plain, r.names)])
    tail = {"conference": f"In \1{r.venue}\1" + dice.choice(["", f" \1(Maps ’{r.year[2:]})\1"])
            + dice.choice([". ACM, New York, NY, USA", ". PMLR", ""])
            + (f", {r.pages}." if r.pages else "."),
            "journal": f"\1{r.venue}\1 {r.volume}, {r.number or 1} ({r.year})" + (f", {r.pages}." if r.pages else "."),
            "book": f"{r.venue}, New York.", "preprint": f"arXiv:{r.arxiv} [cs.LG]"
            + (f" https://arxiv.org/abs/{r.arxiv}" if dice.random() < .5 else "")}[r.kind]
    title = f"\1{r.title}\1" if r.kind == "book" else r.title
    return f"{who}. {r.year}. {stopped(title)} {tail}" + (f" https://doi.org/{r.doi}" if r.doi else "")


def acl(r: Record, dice: random.Random) -> str:
    who = joined([*map(plain, r.names)])
    tail = {"conference": f"In \1{r.venue}\1" + (f", pages {r.pages}" if r.pages else "")
            + dice.choice(["", ", Online", ", Berlin, Germany"])
            + dice.choice([".", ". Association for Computational Linguistics."]),
            "journal": f"\1{r.venue}\1, {r.volume}" + (f"({r.number})" if r.number else "")
            + (f":{r.pages}." if r.pages else "."),
            "book": f"{r.venue}.",
            "preprint": dice.choice([f"\1Preprint\1, arXiv:{r.arxiv}.",
                                     f"\1arXiv preprint arXiv:{r.arxiv}\1."])}[r.kind]
    title = f"\1{r.title}\1" if r.kind == "book" else r.title
    return f"{who}. {r.year}. {stopped(title)} {tail}"


def apa(r: Record, dice: random.Random) -> str:
    if len(r.names) > 20: who = ", ".join(map(turned, r.names[:19])) + f", … {turned(r.names[-1])}"
    else: who = joined([*map(turned, r.names)], ", & ", ", & ")
    tail = {"conference": f"\1{r.venue}\1" + (f", {r.pages}." if r.pages else ".") if dice.random() < .5 else
            f"In \1{r.venue}\1" + (f" (pp. {r.pages})." if r.pages else "."),
            "journal": f"\1{r.venue}\1, \1{r.volume}\1" + (f"({r.number})" if r.number else "")
            + (f", {r.pages}." if r.pages else "."),
            "book": f"{r.venue}.",
            "preprint": dice.choice([f"arXiv. https://arxiv.org/abs/{r.arxiv}",
                                     f"\1arXiv preprint arXiv:{r.arxiv}\1."])}[r.kind]
    title = f"\1{r.title}\1" if r.kind == "book" else r.title
    who = who if who.endswith(".") else f"{who}."
    return f"{who} ({r.year}). {stopped(title)} {tail}" + (f" https://doi.org/{r.doi}" if r.doi else "")


def lncs(r: Record, dice: random.Random) -> str:
    names, more = cut(r.names, 9, 3)
    who = ", ".join(map(tight, names)) + (", et al." if more else "")
    tail = {"conference": f"In: {dice.choice(['', 'Navab, N., Hornegger, J. (eds.) '])}{r.venue}. "
            + (f"pp. {r.pages}. " if r.pages else "")
            + dice.choice([f"Springer ({r.year})", f"({r.year})", f"Springer, Cham ({r.year})"]),
            "journal": f"{r.venue} \2{r.volume}\2" + (f"({r.number})" if r.number else "")
            + (f", {r.pages}" if r.pages else "") + f" ({r.year})",
            "book": f"{r.venue}, Heidelberg ({r.year})",
            "preprint": f"arXiv preprint arXiv:{r.arxiv} ({r.year})"}[r.kind]
    return f"{who}: {stopped(r.title)} {tail}" + (f". https://doi.org/{r.doi}" if r.doi else "")


def nature(r: Record, dice: random.Random) -> str:
    who = f"{turned(r.names[0])} \1et al.\1" if len(r.names) > 5 else joined([*map(turned, r.names)], " & ", " & ")
    who = who.rstrip("\1")
    who = who + ("\1" if who.count("\1") % 2 else "")
    who = who if who.rstrip("\1").endswith(".") else f"{who}."
    tail = {"conference": f"In \1{r.venue}\1" + (f", {r.pages}" if r.pages else "")
            + f" ({dice.choice(['', 'PMLR, ', 'Curran, '])}{r.year}).",
            "journal": f"\1{r.venue}\1 \2{r.volume}\2" + (f", {r.pages}" if r.pages else "") + f" ({r.year}).",
            "book": f"({r.venue}, {r.year}).",
            "preprint": f"Preprint at https://arxiv.org/abs/{r.arxiv} ({r.year})."}[r.kind]
    title = f"\1{r.title}\1" if r.kind == "book" else stopped(r.title)
    return f"{who} {title} {tail}" + (f" https://doi.org/{r.doi}" if r.doi and dice.random() < .4 else "")


def vancouver(r: Record, dice: random.Random) -> str:
    names, more = cut(r.names, 6, 6)
    who = ", ".join(map(bare, names)) + (", et al" if more else "")
    tail = {"conference": f"In: {r.venue}" + (f"; {r.year}. p. {r.pages}." if r.pages else f"; {r.year}."),
            "journal": f"{r.venue}. {r.year}{dice.choice(['', ' May', ' Jan 12'])};{r.volume}"
            + (f"({r.number})" if r.number else "") + (f":{r.pages.replace('–', '-')}." if r.pages else "."),
            "book": f"{r.venue}; {r.year}.",
            "preprint": f"arXiv [Preprint]. {r.year}. Available from: https://arxiv.org/abs/{r.arxiv}"}[r.kind]
    return f"{who}. {stopped(r.title)} {tail}" + (f" doi: {r.doi}." if r.doi else "")


def chicago(r: Record, dice: random.Random) -> str:
    names, more = cut(r.names, 10, 7)
    who = joined([inverted(names[0]), *map(plain, names[1:])],
                 ", and ") if not more else ", ".join([inverted(names[0]), *map(plain, names[1:])]) + ", et al."
    who = who if who.endswith(".") else f"{who}."
    if r.kind == "book": return f"{who} {r.year}. \1{r.title}\1. {r.venue}."
    tail = {"conference": f"In \1{r.venue}\1" + (f", {r.pages}" if r.pages else "") + dice.choice([".", ". PMLR."]),
            "journal": f"\1{r.venue}\1 {r.volume}" + (f" ({r.number})" if r.number else "")
            + (f": {r.pages}." if r.pages else "."),
            "preprint": f"\1arXiv Preprint arXiv:{r.arxiv}\1."}[r.kind]
    return f"{who} {r.year}. “{stopped(r.title)}” {tail}" + (f" https://doi.org/{r.doi}." if r.doi else "")


def mla(r: Record, dice: random.Random) -> str:
    who = f"{inverted(r.names[0])}, et al." if len(r.names) > 2 else joined([inverted(r.names[0]),
                                                                             *map(plain, r.names[1:])], ", and ")
    who = who if who.endswith(".") else f"{who}."
    if r.kind == "book": return f"{who} \1{r.title}\1. {r.venue}, {r.year}."
    tail = {"conference": f"\1{r.venue}\1, {r.year}" + (f", pp. {r.pages}." if r.pages else "."),
            "journal": f"\1{r.venue}\1, vol. {r.volume}" + (f", no. {r.number}" if r.number else "") + f", {r.year}"
            + (f", pp. {r.pages}." if r.pages else "."),
            "preprint": f"\1arXiv preprint arXiv:{r.arxiv}\1, {r.year}."}[r.kind]
    return f"{who} “{stopped(r.title)}” {tail}" + (f" https://doi.org/{r.doi}." if r.doi else "")


Style = Callable[[Record, random.Random], str]
STYLES: dict[str,
             tuple[Style,
                   str]] = {  # a style, and how its list is numbered: "[1]", "1.", "1" or by hanging indents ("")
    "NeurIPS": (neurips, "[1]"), "IEEE": (ieee, "[1]"), "ACM": (acm, "[1]"), "ACL": (acl, ""), "APA": (apa, ""),
    "LNCS": (lncs, "1."), "Nature": (nature, "1."), "Vancouver": (vancouver, "1."), "Chicago": (chicago, ""),
                            "MLA": (mla, "")}
LIST = 40  # references of a list


@dataclass(frozen=True)
class Listing:
    """A list of references, and how it is set."""
    style: str
    records: tuple[Record, ...]
    texts: tuple[str, ...]  # with \1 and \2 around italics and bold
    label: str
    seed: int
    held_out: bool


def shown(text: str) -> str: return re.sub("[\1\2]", "", text)


def listings(papers: Sequence[dict], held_out: bool) -> Iterator[Listing]:
    """Two lists of every style, or the held-out one."""
    for n, (name, (style, label)) in enumerate(STYLES.items()):
        for seed in (2,) if held_out else (0, 1):
            dice = random.Random(1000 * n + seed)
            chosen = [p for i, p in enumerate(papers) if (i % 3 == 2) == held_out and p["authors"]]
            records = [record_of(p, dice) if isinstance(p, dict) else p for p in dice.sample(chosen, LIST)]
            if not label: records.sort(key=lambda r: unaccented(family(r.names[0])))
            if name == "NeurIPS" and seed: label, records = "", sorted(records,
                                                                       key=lambda r: unaccented(family(r.names[0])))
            if name == "ACM" and seed == 2: label = ""
            if name == "Nature" and seed == 1: label = "1"
            yield Listing(name, tuple(records), tuple(style(r, dice) for r in records), label, seed, held_out)


# --- What was read right ----------------------------------------------------------------------------------------------

ASKED = ("title", "first author", "all authors", "year", "venue", "DOI, arXiv")


def letters(text: str) -> str: return title_key(text).replace(" ", "")


def printed_names(record: Record, text: str) -> list[str]:
    """The family names that a reference prints."""
    left, found = letters(shown(text).partition(record.title[:30])[0]), []
    for name in map(letters, map(family, record.names)):
        if name in left: found.append(name)
        left = left.replace(name, "", 1)
    return found


def right(record: Record, text: str, entry: Entry) -> dict[str, bool]:
    """What an entry has right of a record."""
    fields = entry.fields
    read = [letters(f"{n.particle} {n.family}") for n in entry.people.get("author", ()) if str(n) != "others"]
    names = printed_names(record, text)
    place = letters(fields.get("booktitle") or fields.get("journal") or fields.get("publisher")
                    or fields.get("howpublished") or "")
    venue = letters(record.venue)
    out = {"title": letters(fields.get("title", "")) == letters(record.title), "first author": read[:1] == names[:1],
           "all authors": read == names, "year": fields.get("year", "") == record.year}
    if venue: out["venue"] = bool(place) and (place in venue and 2 * len(place) > len(venue) or venue in place
                                              and len(place) < 1.5 * len(venue) + 10)
    if record.arxiv or record.doi and record.doi.lower() in shown(text).lower():
        doi = fields.get("doi") == record.doi.lower()
        out["DOI, arXiv"] = fields.get("eprint") == record.arxiv if record.arxiv else doi
    return out


def matched(listing: Listing, texts: Sequence[str]) -> list[int | None]:
    """For each record, which of the read texts is its reference: exactly its letters."""
    places: dict[str, list[int]] = defaultdict(list)
    for i, text in enumerate(texts): places[letters(re.sub(r"^\s*(?:\[\d+\]|\d+\.?(?=\s))", "", text))].append(i)
    out = list[int | None]()
    for text in listing.texts:
        found = places.get(letters(shown(text)))
        out.append(found.pop(0) if found else None)
    return out


def papers_of(bibs: Sequence[str]) -> list[dict]:
    if not bibs:
        with (shipped("sample") / "papers.jsonl").open(encoding="utf-8") as f: return [json.loads(line) for line in f]
    from citerec.sources.bibliographies import paper_of_entry, read_bibliography
    papers = [p for bib in bibs for e in read_bibliography(bib)[1] if (p := paper_of_entry(e))]
    def venue(name: str | None) -> str: return "arXiv" if "arxiv" in (name or "arXiv").lower() else name or ""
    return [{"title": p.title, "authors": list(p.authors), "year": p.year, "venue": venue(p.venue), "doi": p.doi,
             "arxiv_id": p.arxiv_id or "2001.01234"}
            for p in papers if p.year and p.authors and 3 < len(p.title.split()) < 30 and len(p.venue or "") < 150
            and not p.more_authors]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--held-out", action="store_true")
    asked.add_argument("--text", action="store_true")
    asked.add_argument("--wrong", type=int, default=0)
    asked.add_argument("--only", default="")
    asked.add_argument("--keep", default="", help="a folder for the PDFs")
    asked.add_argument("--bib", nargs="*", default=[])
    options = asked.parse_args()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for listing in listings(papers_of(options.bib), options.held_out):
        if options.only and options.only != listing.style: continue
        if options.text:
            texts = [shown(t) for t in listing.texts]
            entries = read_references(texts)
        else:
            from reference_pdfs import listed
            texts, entries = listed(listing, options.keep)
        where = matched(listing, texts)
        count, left = counts[listing.style], options.wrong
        count["lists"] += 1
        count["listed"] += len(where)
        count["read"] += len(texts)
        for record, text, i in zip(listing.records, listing.texts, where, strict=True):
            if i is None:
                if left: print("NOT FOUND", listing.style, listing.seed, shown(text)[:150])
                left -= bool(left)
                continue
            count["found"] += 1
            for name, is_right in right(record, text, entries[i]).items():
                count[f"of {name}"] += 1
                count[name] += is_right
                if not is_right and left:
                    left -= 1
                    print(f"{listing.style} {name}: {shown(text)}\n    {entries[i].fields} {entries[i].authors}")
        if left and len(texts) > len(where):
            for i in sorted(set(range(len(texts))) - set(where)): print("TOO MUCH", listing.style, listing.seed,
                                                                        texts[i][:200])
    print(f"{'style':10} {'lists':>5} {'refs':>5} {'read':>5} {'found':>6}", *(f"{name:>12}" for name in ASKED))
    counts["all"] = sum(counts.values(), Counter())
    for style, count in counts.items():
        shares = (f"{count[name] / max(count[f'of {name}'], 1):12.3f}" for name in ASKED)
        found = count["found"] / count["listed"]
        print(f"{style:10} {count['lists']:5} {count['listed']:5} {count['read']:5} {found:6.3f}", *shares)


if __name__ == "__main__":
    sys.exit(main())
