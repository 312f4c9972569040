"""Build a registry of six million made-up works, and say its size, the memory and time of the build, and how fast and
how well it finds titles.

    python .ci/large_registry.py FOLDER [WORKS]

The works come as an XML dump like DBLP's and as a dump like arXiv's, with words, openings and endings as frequent as in
real titles: published only, published twice, published after a preprint, preprint only.
"""
import gzip
import json
import random
import resource
import sys
import time
from itertools import accumulate
from pathlib import Path

from citerec.ranking.registry import Registry, build_registry

VOCABULARY, PHRASES, PEOPLE = 60_000, 3_000, 30_000  # different words; frequent openings and endings; surnames
LENGTHS = ([3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18], [1, 3, 5, 8, 11, 13, 14, 13, 11, 9, 6, 4, 2, 1])
ASKED = 400  # titles of each kind
MOST = {"bytes a work": 40, "size in MB": 250, "memory in GB": 2}
SLOWEST = 5  # ms, 95 % of each kind
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Maker:
    """Made-up titles, people and venues."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        of_words = random.Random(0)
        syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "is", "on", "al")]
        words = sorted({"".join(of_words.choices(syllables, k=of_words.choice((1, 2, 2, 3, 3, 4))))
                        for _ in range(2 * VOCABULARY)})
        of_words.shuffle(words)
        self.words = words[:VOCABULARY]
        self.weights = list(accumulate(1 / (i + 3) for i in range(VOCABULARY)))
        self.people = ["".join(of_words.choices(syllables, k=3)).capitalize() for _ in range(PEOPLE)]
        self.phrases = [of_words.choices(self.words, cum_weights=self.weights, k=of_words.choice((2, 2, 3)))
                        for _ in range(PHRASES)]
        self.often = list(accumulate(1 / (i + 10) for i in range(PHRASES)))

    def phrase(self) -> list[str]:
        return self.rng.choices(self.phrases, cum_weights=self.often)[0]

    def title(self) -> str:
        """Six of ten titles begin or end like many others, one of five has a subtitle."""
        count = self.rng.choices(*LENGTHS)[0]
        begin = self.phrase() if count > 5 and self.rng.random() < .3 else []
        end = self.phrase() if count > 5 and self.rng.random() < .3 else []
        middle = self.rng.choices(self.words, cum_weights=self.weights, k=max(count - len(begin) - len(end), 1))
        words = [*begin, *middle, *end]
        at = self.rng.randrange(1, 4) if len(words) > 6 and self.rng.random() < .2 else 0
        if at: words[at - 1] += ":"
        return " ".join(words).capitalize()

    def authors(self) -> list[str]:
        count = min(1 + int(self.rng.expovariate(.4)), 12)
        return [f"{self.rng.choice('ABCDEFGHIJ')}. {name}" for name in self.rng.choices(self.people, k=count)]


def entry(kind: str, key: str, title: str, authors: list[str], year: int, venue: str, more: str) -> str:
    """A record as DBLP writes it."""
    field = "journal" if kind == "article" else "booktitle"
    people = "".join(f"<author>{name}</author>" for name in authors)
    return (f'<{kind} key="{key}" mdate="2026-11-01">\n{people}\n<title>{title}.</title>\n<year>{year}</year>\n'
            f"<{field}>{venue}</{field}>{more}\n</{kind}>\n")


def write(folder: Path, count: int) -> None:
    """Write the dumps, and some of the titles with their authors."""
    make, kept, numbers = Maker(1), [], {}
    rng, step = make.rng, max(count // (3 * ASKED), 1)
    with (gzip.open(folder / "dblp.part.gz", "wt", compresslevel=1) as dblp,
          gzip.open(folder / "arxiv.part.gz", "wt", compresslevel=1) as arxiv):
        dblp.write('<?xml version="1.0" encoding="ISO-8859-1"?>\n<!DOCTYPE dblp SYSTEM "dblp.dtd">\n<dblp>\n')
        for i in range(count):
            title, authors, year, what = make.title(), make.authors(), rng.randrange(1990, 2027), rng.random()
            if i % step == 0: kept.append((title, authors))
            doi = f"\n<ee>https://doi.org/10.{1000 + i % 90}/made.{i}</ee>" if rng.random() < .75 else ""
            place = f"VENUE{rng.randrange(60) if rng.random() < .5 else rng.randrange(6_000)} Conf"
            if what < .80: dblp.write(entry("inproceedings", f"conf/{i}", title, authors, year, place, doi))
            if what < .05: dblp.write(entry("article", f"journals/{i}", title, authors, year + 1, f"J. {place}", ""))
            if what < .70: continue
            month = f"{rng.randrange(8, 27):02d}{rng.randrange(1, 13):02d}"
            numbers[month] = numbers.get(month, 0) + 1
            name = f"{month}.{numbers[month]:05d}"
            if what < .84:
                dblp.write(entry("article", f"journals/corr/{name}", title, authors, 2000 + int(month[:2]), "CoRR",
                                 f"<volume>abs/{name}</volume>"))
            arxiv.write(json.dumps({
                "id": name, "title": title, "abstract": "We study it.", "categories": "cs.CL", "doi": None,
                "versions": [{"version": "v1", "created": f"Mon, 2 Apr 20{month[:2]} 19:18:42 GMT"}],
                "authors_parsed": [[a[3:], a[:2], ""] for a in authors]}) + "\n")
        dblp.write("</dblp>\n")
    (folder / "works.json").write_text(json.dumps(kept))
    for name in ("dblp", "arxiv"): (folder / f"{name}.part.gz").rename(folder / f"{name}.gz")


def altered(make: Maker, title: str, kind: str, other: str) -> str | None:
    """A title with a fault."""
    words, rng = title.split(), make.rng
    at = rng.randrange(len(words))
    if kind == "joined": return f"{title} {other}" if min(len(words), len(other.split())) > 3 else None
    if kind.startswith("no subtitle"): return title.partition(":")[0] if ":" in title else None
    if len(words) < 6: return None
    if kind == "word replaced": words[at] = rng.choice(make.words)
    elif kind == "word added": words.insert(at, rng.choice(make.words))
    elif kind == "word missing": del words[at]
    elif kind.endswith("off"):
        for at in rng.sample(range(len(words)), 2 if kind.startswith("two") else 1):
            letter = rng.randrange(len(words[at]))
            words[at] = words[at][:letter] + rng.choice(LETTERS) + words[at][letter + 1 :]
    return " ".join(words)


def ask(registry: Registry, works: list[tuple[str, list[str]]]) -> list[str]:
    """Look faulty titles up, and print how many were found and how long it took."""
    make, slow, rng = Maker(2), [], random.Random(3)
    kinds = ("exact", "word replaced", "word added", "word missing", "a letter off", "two letters off", "no subtitle",
             "no subtitle, authors", "joined", "not listed")
    print(f"{'titles':21}{'asked':>7}{'found':>8}{'median ms':>11}{'95 % ms':>9}{'most ms':>9}")
    for kind in kinds:
        times, found, asked = [], 0, 0
        for title, authors in rng.sample(works, len(works)):
            said = make.title() if kind == "not listed" else altered(make, title, kind, rng.choice(works)[0])
            if not said or asked == ASKED: continue
            rows = {one.row for part in ([title] if kind != "not listed" else []) for one in registry.find(part, k=9)}
            begun = time.perf_counter()
            listed = registry.find(said, authors=authors if kind.endswith("authors") else ())
            times.append(1000 * (time.perf_counter() - begun))
            asked += 1
            found += bool(listed) if kind == "not listed" else any(one.row in rows for one in listed)
        times.sort()
        median, late = times[len(times) // 2], times[int(len(times) * .95)]
        print(f"{kind:21}{asked:7}{found / asked:8.1%}{median:11.2f}{late:9.2f}{times[-1]:9.2f}", flush=True)
        if late > SLOWEST: slow.append(f"{kind}: {late:.1f} ms, at most {SLOWEST}")
    return slow


def main() -> int:
    folder, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 6_000_000
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    if not all((folder / name).exists() for name in ("works.json", "arxiv.gz")):
        write(folder, count)
        print(f"made {count:,} works in {time.perf_counter() - begun:.0f} s", flush=True)
    works = json.loads((folder / "works.json").read_text())
    begun = time.perf_counter()
    registry = build_registry(folder / "large.registry", dblp=folder / "dblp.gz", arxiv=folder / "arxiv.gz")
    memory, size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, registry.path.stat().st_size
    print(f"built in {time.perf_counter() - begun:.0f} s, at most {memory:.2f} GB of memory")
    print(f"{len(registry):,} works, {size / 1e6:.1f} MB, {size / len(registry):.1f} bytes a work", flush=True)
    begun = time.perf_counter()
    registry = Registry.open(registry.path)
    print(f"opened in {1000 * (time.perf_counter() - begun):.1f} ms")
    begun = time.perf_counter()
    wrong = registry.check()
    print(f"checked in {1000 * (time.perf_counter() - begun):.0f} ms: {wrong or 'whole'}", flush=True)
    measured = {"bytes a work": size / len(registry), "size in MB": size / 1e6, "memory in GB": memory}
    faults = [f"{name}: {measured[name]:.1f}, at most {most}" for name, most in MOST.items() if measured[name] > most]
    faults += ask(registry, works)
    for fault in faults: print(f"TOO MUCH: {fault}")
    return bool(faults or wrong)


if __name__ == "__main__": sys.exit(main())
