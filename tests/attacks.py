"""Attacks on citerec: other software's variables, damaged files, kills at every file event.

The tests run a short form of them. `python tests/attacks.py damage|kills [every]` runs all cases (or each n-th) and
prints a table.
"""

import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import socket
import sqlite3
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

TEXT = "We drop recurrence and rely on self-attention only to translate between languages."
SECRET = "UNPUBLISHED-7391"  # stands in a draft, so that it can be looked for in what was sent or written


# --- Who is contacted ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def listener() -> Iterator[tuple[str, list[bytes]]]:
    """Listen on this machine, and keep the first bytes of every connection, whatever its protocol."""
    heard: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def listen() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return  # closed
            heard.append(b"")
            with connection, contextlib.suppress(OSError):
                connection.settimeout(2)
                heard[-1] = connection.recv(65536)

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}", heard
    finally:
        server.close()


def variables(place: str) -> dict[str, str]:
    """Give the variables by which other software sends traces, goes through proxies and finds model hubs."""
    url = f"http://{place}"
    names = """HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy LANGSMITH_ENDPOINT LANGCHAIN_ENDPOINT
        HF_ENDPOINT OTEL_EXPORTER_OTLP_ENDPOINT OTEL_EXPORTER_OTLP_TRACES_ENDPOINT WANDB_BASE_URL MLFLOW_TRACKING_URI
        COMET_URL_OVERRIDE LANGFUSE_HOST PHOENIX_COLLECTOR_ENDPOINT TRACELOOP_BASE_URL OPIK_URL_OVERRIDE
        OPENAI_BASE_URL OPENAI_API_BASE HUGGINGFACE_CO_RESOLVE_ENDPOINT""".split()
    switches = """LANGSMITH_TRACING LANGSMITH_TRACING_V2 LANGCHAIN_TRACING LANGCHAIN_TRACING_V2 LANGSMITH_OTEL_ENABLED
        LANGCHAIN_COMET_TRACING LANGCHAIN_WANDB_TRACING HF_HUB_ENABLE_HF_TRANSFER""".split()
    keys = "LANGSMITH_API_KEY LANGCHAIN_API_KEY WANDB_API_KEY HF_TOKEN HUGGING_FACE_HUB_TOKEN COMET_API_KEY".split()
    return {
        **dict.fromkeys(names, url),
        **dict.fromkeys(switches, "true"),
        **dict.fromkeys(keys, "planted"),
        "LANGCHAIN_HANDLER": "langchain",
        "SENTRY_DSN": f"http://key@{place}/1",
        "OTEL_TRACES_EXPORTER": "otlp",
        "HF_HUB_OFFLINE": "0",
        "NO_PROXY": "",
        "no_proxy": "",
    }


# --- Damaged files ------------------------------------------------------------------------------------------------


def flip(content: bytes, at: float) -> bytes:
    """Flip the bits of one byte."""
    place = min(int(len(content) * at), len(content) - 1)
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {  # what is left of a file; None: it is gone
    "removed": lambda content: None,
    "emptied": lambda content: b"",
    "a byte short": lambda content: content[:-1],
    "half": lambda content: content[: len(content) // 2],
    "flipped in the middle": lambda content: flip(content, 0.5),
    "flipped at the start": lambda content: flip(content, 0.02),
    "flipped near the end": lambda content: flip(content, 0.97),
    "zeros": lambda content: bytes(len(content)),
    "other": lambda content: b"<html>404</html>" * (len(content) // 16 + 1),
}


def apply(damage: Callable[[bytes], bytes | None], path: Path) -> bool:
    """Damage a file; tell whether that changed it."""
    content = path.read_bytes()
    left = damage(content) if content else None
    if left == content:
        return False
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    return True


def answers(folder: Path) -> tuple[str, list[tuple[str, float]], list[str]]:
    """Ask a corpus: how it ended, what was recommended, and what was said about it."""
    from citerec.answering.recommender import load
    from citerec.ground.errors import CiterecError

    try:
        recommender = load(str(folder))
        try:
            recommendations = recommender.recommend(TEXT, k=10)
        finally:
            recommender.corpus.close()
    except CiterecError as e:
        return "refused", [], [str(e)]
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        return f"raised {type(e).__name__}", [], [str(e)]
    said = [e.message for e in recommendations.errors] + list(recommendations.state.metadata.get("notes", []))
    return "answered", [(r.paper_id, round(r.confidence or 0, 4)) for r in recommendations], said


def is_close(papers: list[tuple[str, float]], whole: list[tuple[str, float]]) -> bool:
    """Tell whether answers are the same but for what vectors vary by when they are computed again, in other batches."""
    found, wanted, least = dict(papers), dict(whole), .01  # papers of less confidence are not listed
    return all(abs(found.get(one, least) - wanted.get(one, least)) < .01 for one in {*found, *wanted})


def judge(name: str, whole: list[tuple[str, float]], outcome: tuple[str, list[tuple[str, float]], list[str]]) -> str:
    """Name what a damage came to; a name in capitals is a fault."""
    how, papers, said = outcome
    if how == "refused":  # without its records nothing can be shown
        return "refused" if name in ("corpus.db", "manifest.json") else "REFUSED"
    if how != "answered":
        return how.upper()
    if papers == whole:
        return "same answer, said" if said else "same answer"
    if not said:
        return "OTHER ANSWER, SILENTLY"
    return "other answer, said" if papers else "NO ANSWER"


def corpus_files(folder: Path) -> list[str]:
    """List the files of a corpus that hold something."""
    skipped = (".lock", "corpus.db-shm", "corpus.db-wal")
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size)
    return [path.relative_to(folder).as_posix() for path in files if path.name not in skipped]


def damage_cases(original: Path, work: Path, every: int = 1, offset: int = 0,
                 repair: int = 0) -> Iterator[tuple[str, str, str]]:
    """Damage each file of a corpus in each way, and ask; gives file, damage and outcome. Repairs each n-th case."""
    from citerec.ranking.corpus import repair_corpus

    _, whole, said = answers(original)
    assert whole and not said, said
    cases = [(name, damage) for name in corpus_files(original) for damage in DAMAGES]
    for number, (name, damage) in enumerate(cases[offset::every]):
        folder = work / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(original, folder)
        if not apply(DAMAGES[damage], folder / name):
            continue
        outcome = judge(name, whole, answers(folder))
        yield name, damage, outcome
        if repair and number % repair == 0 and name not in ("corpus.db", "manifest.json"):
            repair_corpus(folder, progress=False)
            how, papers, said = answers(folder)
            repaired = (how, said) == ("answered", []) and is_close(papers, whole)
            yield name, damage, "repaired" if repaired else f"NOT REPAIRED: {how} {said}"


# --- Kills at file events -----------------------------------------------------------------------------------------

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "sqlite3.connect"}
KILLED = 77  # exit code of a process that was killed by its own hook


def records(folder: Path, papers: int = 40, seed: int = 0) -> Path:
    """Write made-up records: papers on a few topics that cite each other, with sentences that cite them."""
    chance = random.Random(seed)
    topics = "attention translation graphs retrieval images speech reinforcement dialogue parsing clustering".split()
    rows, edges, contexts = [], [], []
    for i in range(papers):
        one, other = topics[i % len(topics)], topics[(i // 3) % len(topics)]
        rows.append({"paper_id": f"p{i}", "title": f"{one} and {other}, part {i}", "year": 1990 + i,
                     "abstract": f"We study {one} with {other}. It works {i} times."})
        for cited in chance.sample(range(i), min(i, 6)):
            edges.append({"source_id": f"p{i}", "target_id": f"p{cited}"})
        if i:
            contexts.append({"context_id": f"c{i}", "citing_id": f"p{i}", "cited_id": f"p{i - 1}",
                             "text": f"As others did for {one}, we follow [CITATION] in {other}."})
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("papers", rows), ("edges", edges), ("contexts", contexts)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, content)), encoding="utf-8")
    return folder


def fork(work: Callable[[], object], kill_at: int | None = None, inside: Path | None = None) -> tuple[int, int]:
    """Run something in a fork; kill it right before file event `kill_at`. Gives exit code and events that were seen."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        seen = 0

        def hook(event: str, arguments: tuple) -> None:
            nonlocal seen
            if event not in EVENTS or not isinstance(arguments[0], str | os.PathLike):
                return
            if not str(arguments[0]).startswith(str(inside)):
                return
            writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT
            if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & writing):
                return
            seen += 1
            if seen == kill_at:
                os._exit(KILLED)

        code = 1
        try:
            sys.addaudithook(hook)
            work()
            code = 0
        except BaseException as e:
            print(f"{type(e).__name__}: {e}", file=sys.stderr)
        finally:
            os.write(writer, str(seen).encode())
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        seen = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), int(seen or 0)


def content(folder: Path, vectors: Path) -> str:
    """Hash what a corpus holds: records, citations, sentences, words; keep its vectors, whose last bits may differ."""
    import numpy

    from citerec.ranking.corpus import Corpus

    with Corpus.open(folder) as corpus:
        papers = [p.model_dump(mode="json") for p in corpus.papers(corpus.ids)]
        contexts = [c.model_dump(mode="json") for c in corpus.store.contexts()]
        parts = [papers, corpus.store.by_row.edges().tolist(), contexts]
        numpy.save(vectors, corpus.vectors)
        parts.append(corpus.lexical.scores("attention graphs speech").round(5).tolist())
        parts.append(corpus.titles.coverage("graphs and images").round(5).tolist())
        return hashlib.sha256(json.dumps([parts, corpus.manifest["counts"]]).encode()).hexdigest()


def build(source: Path, folder: Path) -> None:
    """Build a corpus of records."""
    from citerec.ranking.corpus import Corpus
    from citerec.sources.source import JsonlSource

    Corpus.build(folder, JsonlSource(source), progress=False).close()


def update(source: Path, folder: Path) -> None:
    """Add what is new in the records."""
    from citerec.ranking.corpus import Corpus
    from citerec.sources.source import JsonlSource

    Corpus.update(folder, JsonlSource(source), progress=False).close()


def evaluate(folder: Path, run_file: Path) -> None:
    """Answer queries made of the corpus, and keep the answers."""
    from citerec.frontends.cli import main

    with contextlib.redirect_stdout(io.StringIO()):
        code = main(["evaluate", str(folder), "--system", "bm25", "--run-file", str(run_file), "--quiet"])
    assert code == 0, code


def fit(folder: Path) -> None:
    """Save a ranker into a corpus: what `citerec fit` does once it has learned."""
    from citerec.evaluation.fitting import save_ranker
    from citerec.ranking.ranker import shipped_ranker

    trees = next(shipped_ranker().glob("ranker*.txt")).read_text()
    save_ranker(folder / "ranker", type("Trees", (), {"model_to_string": lambda self: trees})(), None, ["p1"])


def kill_cases(work: Path, wanted: int | None = None) -> Iterator[tuple[str, int, str]]:
    """Kill build, update, fit and evaluate at their file events, then run the same again; gives the outcomes."""
    import pandas
    import torch  # what each fork would import again

    import citerec.evaluation.fitting
    import citerec.ranking.corpus

    assert citerec.ranking.corpus and citerec.evaluation.fitting and pandas and torch
    old, new = records(work / "old"), records(work / "new", 50)
    base, updated, judged = work / "base", work / "updated", work / "run.trec"
    assert fork(lambda: build(old, base))[0] == 0
    shutil.copytree(base, updated)
    assert fork(lambda: update(new, updated))[0] == 0
    assert fork(lambda: evaluate(base, judged))[0] == 0
    truth = {"build": Content(base), "update": Content(updated), "fit": Content(base), "evaluate": judged.read_text()}
    for name in truth:
        place = work / "place"

        def start(name: str = name, place: Path = place) -> Callable[[], None]:
            shutil.rmtree(place, ignore_errors=True)
            if name == "build":
                place.mkdir()
                return lambda: build(old, place)
            shutil.copytree(base, place)
            (place / "notes of the user.txt").write_text("keep")
            if name == "update":
                return lambda: update(new, place)
            return (lambda: fit(place)) if name == "fit" else lambda: evaluate(place, place / "run.trec")

        code, events = fork(start(), inside=place)
        assert code == 0 and events > 2, (name, code, events)
        step = (events - 1) / max(1, (wanted or events) - 1)
        for at in sorted({round(1 + i * step) for i in range(wanted or events)}):
            job = start()
            code, _ = fork(job, at, place)
            if code != KILLED:
                yield name, at, f"WAS NOT KILLED ({code})"
                continue
            again = fork(job)[0]
            left = [p.name for p in place.rglob("*") if ".part" in p.name]
            result: str | Content | None = None
            if again == 0:
                result = (place / "run.trec").read_text() if name == "evaluate" else Content(place)
            lost = name != "build" and (place / "notes of the user.txt").read_text() != "keep"
            bad = "" if result == truth[name] else f"ANOTHER RESULT ({again})"
            bad = "LOST A FILE" if lost else f"LEFT {left[0]}" if left else bad
            yield name, at, bad or "same result"


class Content:
    """What a corpus holds. It is read in a fork, since this process must not compute if it is to be forked again."""

    def __init__(self, folder: Path):
        import numpy

        with tempfile.TemporaryDirectory() as d:
            text, vectors = Path(d) / "hash", Path(d) / "vectors.npy"
            self.code, _ = fork(lambda: text.write_text(content(folder, vectors)))
            self.hash = text.read_text() if self.code == 0 else "unreadable"
            self.vectors = numpy.load(vectors) if self.code == 0 else numpy.zeros(0)

    def __eq__(self, other: object) -> bool:
        import numpy

        if not isinstance(other, Content):
            return False
        same = (self.code, self.hash, self.vectors.shape) == (0, other.hash, other.vectors.shape)
        return same and bool(numpy.allclose(self.vectors, other.vectors, atol=1e-3))


def whole_database(path: Path) -> bool:
    """Tell whether a database is sound by SQLite's own check."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def main(what: str, every: int = 1) -> int:
    """Run all cases of one kind, and print what came of them."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as d:
        if what == "damage":
            from citerec.ranking.sample import open_corpus

            with open_corpus("sample") as sample:
                shutil.copytree(sample.folder, Path(d) / "original")
            cases = damage_cases(Path(d) / "original", Path(d), every, repair=10)
        else:
            cases = kill_cases(Path(d), None if every == 1 else every)
        for name, how, outcome in cases:
            outcomes[f"{name if what == 'kills' else ''} {outcome}".strip()] += 1
            if outcome != outcome.lower():
                print(f"{name}, {how}: {outcome}", flush=True)
    print(*(f"{n:5} {outcome}" for outcome, n in outcomes.most_common()), sep="\n")
    return 1 if any(outcome.split(" ", 1)[-1].isupper() for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1))
