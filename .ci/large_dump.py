"""Read two million made-up records of arXiv's dump, and the citations between them, and say how much memory that took.

    python .ci/large_dump.py [FOLDER] [RECORDS]

The records go through the reader into a store, as in a build, but nothing is embedded and no index is made.
"""
import json
import random
import resource
import sys
import time
from pathlib import Path

from citerec.indexes.store import Store
from citerec.ranking import building
from citerec.sources.arxiv import ArxivDump
from citerec.sources.merging import OpenCitationsSource

WORDS = [f"{a}{b}" for a in ("neural", "graph", "deep", "sparse", "causal", "latent", "robust", "kernel")
         for b in ("ly", "ed", "ing", "al", "ness", "ment", "ity", "ism")]
ABSTRACT = 150  # words, as in arXiv's
CITATIONS = 5  # a record
LIMIT = 2.0  # GB


def name(i: int) -> str: return f"{1000 + i // 20_000:04d}.{i % 20_000:05d}"


def write(folder: Path, count: int) -> None:
    """Write the dump and the table of citations."""
    rng = random.Random(0)
    with (folder / "dump.json").open("w") as dump, (folder / "index.csv").open("w") as table:
        table.write("oci,citing,cited,creation,timespan,journal_sc,author_sc\n")
        for i in range(count):
            words = rng.choices(WORDS, k=ABSTRACT)
            dump.write(json.dumps({
                "id": name(i), "submitter": "A. Author", "authors": "A. Author, B. Author",
                "title": " ".join(words[:9]),
                "comments": None, "journal-ref": None, "doi": f"10.1000/J.{i}" if i % 2 else None, "report-no": None,
                "categories": "cs.CL cs.LG", "license": None, "abstract": " ".join(words),
                "versions": [{"version": "v1", "created": "Mon, 2 Apr 2007 19:18:42 GMT"}], "update_date": "2008-11-26",
                "authors_parsed": [["Author", "A.", ""], ["Author", "B.", ""]]}) + "\n")
            for _ in range(CITATIONS):
                cited = rng.randrange(count)
                table.write(f"{i}-{cited},10.48550/arXiv.{name(i)},10.48550/arxiv.{name(cited)},2020,P1Y,no,no\n")


def memory() -> float:
    """The most memory that this process has had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> int:
    folder, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2_000_000
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "dump.json").exists(): write(folder, count)
    (folder / "corpus.db").unlink(missing_ok=True)
    begun = time.perf_counter()
    source = OpenCitationsSource(ArxivDump(folder / "dump.json", ["cs"]), [folder / "index.csv"])
    def say(step: str) -> None:
        print(f"{step}: {time.perf_counter() - begun:.0f} s, at most {memory():.2f} GB", flush=True)
    source.check()
    say("checked")
    source.fingerprint()
    say("fingerprint")
    with Store(folder / "corpus.db", write=True) as store:
        building._take_papers(store, source, "", False)
        say("papers")
        building._take_citations(store, source, False)
        say("citations")
        print(f"{len(store):,} papers, {store.counts()['edges']:,} citations")
    return memory() > LIMIT


if __name__ == "__main__": sys.exit(main())
