"""Check the sample corpus: `python data/check_sample.py [--against FOLDER]`.

Reads data/sample and looks for what must not be there: records that break the schema, the same paper twice, citations
that point to the future, papers without any citation, summaries that are too short or too long, vectors out of step,
sentences of ours that lack a paper, occur twice, or give away its title, its name, its authors or who made it.
With --against, a folder that holds papers.jsonl.gz and edges.jsonl.gz of another corpus, it also reports which share of
the sample that corpus knows, where the two disagree, and which summaries and sentences share eight words in a row with
an abstract.
"""

import argparse
import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from citerec.ground.errors import InputError
from citerec.ground.schema import OURS, CitationContext, CitationEdge, Paper
from citerec.sources.source import JsonlSource

SAMPLE, NAMES = Path(__file__).parent / "sample", Path(__file__).parent / "names" / "names.jsonl"
MIN_PAPERS, MIN_EDGES = 2_000, 10_000
YEARS = range(1940, 2026)
SUMMARY_WORDS = range(45, 141)
MOST_ALONE = .02  # share of papers that neither cite another one nor are cited
RUN = 8  # words in a row that no summary shares with an abstract
SLACK = 1  # years by which a cited paper may be younger: preprints are cited before they are published
SENTENCES, SENTENCE_WORDS = 2, range(8, 33)  # of ours for each paper
TITLE_RUN = 4  # words in a row that no sentence shares with its paper's title
MAKERS = re.compile(r"\b(?:Google|DeepMind|OpenAI|Meta(?!-)|Facebook|Microsoft|NVIDIA|Nvidia|Anthropic|Stanford"
                    r"|Berkeley|Apple|IBM|Alibaba|Baidu|Tencent|ByteDance|DeepSeek|Uber|Toronto|Princeton)\b")
LISTED = 12  # references that another corpus must know of a paper before its silence on one more means anything


def normalised(title: str) -> str:
    """A title without case, accents and punctuation."""
    return re.sub(r"[^a-z0-9]", "", unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower())


def names_of(papers: Iterable[Paper]) -> dict[str, set[str]]:
    """Id -> what a paper is called in one word: what is before the colon of its title, and the names that ship."""
    listed: dict[str, set[str]] = {}
    for row in map(json.loads, NAMES.read_text(encoding="utf-8").splitlines()):
        listed.setdefault(normalised(row["title"]), set()).update(row["names"])
    def called(paper: Paper) -> set[str]:
        head, colon, _ = paper.title.partition(": ")
        written = {name for name in listed.get(normalised(paper.title), ()) if re.search(r"\w[A-Z@\d]", name)}
        return {name for name in {*written, head if colon else ""} if name and " " not in name}
    return {p.paper_id: called(p) for p in papers}


def gives_away(text: str, paper: Paper, names: Iterable[str]) -> str:
    """What a sentence on a paper says that it must not say; "" where it is clean."""
    said, title = re.findall(r"\w+", text.lower()), re.findall(r"\w+", paper.title.lower())
    size = min(TITLE_RUN, max(len(title), 2))
    shared = {tuple(title[i : i + size]) for i in range(len(title) - size + 1)}
    if any(tuple(said[i : i + size]) in shared for i in range(len(said) - size + 1)): return "has words of the title"
    named = [*names, *(author.split()[-1] for author in paper.authors if len(author.split()[-1]) > 2)]
    found = next((n for n in named if re.search(rf"(?<![\w-]){re.escape(n)}(?![\w-])", text)), "")
    if found: return f"names {found}"
    return f"names {maker[0]}" if (maker := MAKERS.search(text)) else ""


def fault_of_sentence(context: CitationContext, paper: Paper | None, names: Iterable[str]) -> str:
    """What is wrong with one sentence; "" where nothing is."""
    text = " ".join(context.text.replace("[CITATION]", "").split())
    if paper is None: return "is on no paper of the sample"
    if context.citing_id != f"{OURS}{context.cited_id}": return "is not told apart as ours"
    if context.text.count("[CITATION]") != 1: return "has not one marker"
    if (words := len(re.findall(r"\S*\w\S*", text))) not in SENTENCE_WORDS: return f"has {words} words"
    return gives_away(text, paper, names)


def faults_of_sentences(source: JsonlSource, papers: dict[str, Paper]) -> list[str]:
    """What is wrong with the sentences that say what the papers can be cited for."""
    contexts: list[CitationContext] = list(source.contexts())
    often, texts = Counter(c.cited_id for c in contexts), Counter(c.text for c in contexts)
    found = [f"{i}: {often[i]} sentences, and not {SENTENCES}" for i in papers if often[i] != SENTENCES]
    found += [f"twice: {text}" for text, n in texts.items() if n > 1]
    names = names_of([*papers.values()])
    found += [f"{c.context_id} {fault}: {c.text}" for c in contexts
              if (fault := fault_of_sentence(c, papers.get(c.cited_id), names.get(c.cited_id, ())))]
    if source.context_vectors is None: found.append("there are no ready vectors of the sentences")
    elif (shape := np.load(source.context_vectors, mmap_mode="r").shape)[0] != len(contexts):
        found.append(f"{shape[0]} vectors for {len(contexts)} sentences")
    return found


def faults(folder: Path = SAMPLE) -> list[str]:
    """Everything that is wrong with a sample, a sentence each."""
    try:
        source = JsonlSource(folder)
        source.check()
    except InputError as e:
        return [str(e)]
    papers = {p.paper_id: p for p in source.papers()}
    edges = list(source.edges())
    found = []
    if len(papers) < MIN_PAPERS or len(edges) < MIN_EDGES:
        found.append(f"{len(papers)} papers and {len(edges)} citations are fewer than {MIN_PAPERS} and {MIN_EDGES}")
    titles = Counter(normalised(p.title) for p in papers.values())
    found += [f"duplicate title: {p.title}" for p in papers.values() if titles[normalised(p.title)] > 1]
    for kind in ("doi", "arxiv_id"):
        ids = Counter(v.lower() for p in papers.values() if (v := getattr(p, kind)))
        found += [f"duplicate {kind}: {value}" for value, n in ids.items() if n > 1]
    for p in papers.values():
        words = len(p.abstract.split())
        if words not in SUMMARY_WORDS:
            found.append(f"{p.paper_id}: the summary has {words} words")
        if p.year not in YEARS:
            found.append(f"{p.paper_id}: the year is {p.year}")
        if not p.authors or not p.venue or not p.concepts:
            found.append(f"{p.paper_id}: no authors, venue or concepts")
        if p.arxiv_id and not re.fullmatch(r"\d{4}\.\d{4,5}|[a-z-]+(\.[A-Z]{2})?/\d{7}", p.arxiv_id):
            found.append(f"{p.paper_id}: {p.arxiv_id} is not an arXiv id")
        if p.doi and not re.fullmatch(r"10\.\d{4,9}/\S+", p.doi):
            found.append(f"{p.paper_id}: {p.doi} is not a DOI")
    found += [f"listed twice: {e.source_id} cites {e.target_id}" for e, n in Counter(edges).items() if n > 1]
    for e in edges:
        if e.source_id not in papers or e.target_id not in papers:
            found.append(f"{e.source_id} cites {e.target_id}: not both are in the sample")
        elif (papers[e.target_id].year or 0) > (papers[e.source_id].year or 0) + SLACK:
            later, earlier = papers[e.target_id].year, papers[e.source_id].year
            found.append(f"{e.source_id} ({earlier}) cites the future: {e.target_id} ({later})")
    linked = {i for e in edges for i in (e.source_id, e.target_id)}
    alone = [i for i in papers if i not in linked]
    if len(alone) > MOST_ALONE * len(papers): found.append(f"{len(alone)} papers neither cite nor are cited")
    if source.vectors is None:
        found.append("there are no ready vectors")
    elif (shape := np.load(source.vectors, mmap_mode="r").shape)[0] != len(papers):
        found.append(f"{shape[0]} vectors for {len(papers)} papers")
    return found + faults_of_sentences(source, papers)


def compare(other: JsonlSource, folder: Path = SAMPLE) -> tuple[str, list[str]]:
    """What another corpus says of the sample: a line of shares, and the disagreements."""
    source = JsonlSource(folder)
    papers: dict[str, Paper] = {p.paper_id: p for p in source.papers()}
    edges: set[CitationEdge] = set(source.edges())
    by_title = {normalised(p.title): p.paper_id for p in papers.values()}
    same: dict[str, str] = {}
    differ = []
    for theirs in other.papers():
        ours = papers.get(by_title.get(normalised(theirs.title), ""))
        if ours is None:
            continue
        same[theirs.paper_id] = ours.paper_id
        if theirs.year and ours.year and abs(theirs.year - ours.year) > SLACK:
            differ.append(f"year of {ours.title!r}: {ours.year} here, {theirs.year} there")
        if theirs.arxiv_id and ours.arxiv_id and theirs.arxiv_id != ours.arxiv_id:
            differ.append(f"arXiv id of {ours.title!r}: {ours.arxiv_id} here, {theirs.arxiv_id} there")
    listed: Counter[str] = Counter()
    known = set()
    for e in other.edges():
        if e.source_id in same:
            listed[same[e.source_id]] += 1
            if e.target_id in same and same[e.source_id] != same[e.target_id]:
                known.add(CitationEdge(source_id=same[e.source_id], target_id=same[e.target_id]))
    there = set(same.values())
    covered = {e for e in edges if listed[e.source_id] >= LISTED and e.target_id in there}
    differ += [f"only here: {papers[e.source_id].title!r} cites {papers[e.target_id].title!r}" for e in covered - known]
    differ += [f"only there: {papers[e.source_id].title!r} cites {papers[e.target_id].title!r}" for e in known - edges]
    line = (f"known there: {len(there)} of {len(papers)} papers ({len(there) / len(papers):.0%}); "
            f"of {len(edges)} citations {len(edges & known)} are confirmed, "
            f"{len(covered)} could be judged and {len(covered & known)} of these were found")
    return line, sorted(differ)


def runs(text: str) -> set[tuple[str, ...]]:
    "All runs of words of a text."
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}


def copied(other: JsonlSource, folder: Path = SAMPLE) -> list[str]:
    """Summaries and sentences that share a run of words with an abstract of another corpus."""
    source = JsonlSource(folder)
    ours = {run: f"the summary of {p.paper_id}" for p in source.papers() for run in runs(p.abstract)}
    ours |= {run: f"the sentence {c.context_id}" for c in source.contexts() for run in runs(c.text)}
    shared = {ours[run]: " ".join(run) for p in other.papers() for run in runs(p.abstract) & ours.keys()}
    return [f"{what} shares words with an abstract: {run}" for what, run in shared.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the sample corpus.")
    parser.add_argument("--against", type=Path, help="a folder of JSON lines to compare papers and citations with")
    against = parser.parse_args().against
    found = faults()
    if against:
        line, differ = compare(JsonlSource(against))
        found += copied(JsonlSource(against))
        print("\n".join([*differ, line]))
    papers, sentences = (len((SAMPLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
                         for name in ("papers", "contexts"))
    print("\n".join(found) if found else f"data/sample: no faults in {papers} papers and {sentences} sentences on them")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
