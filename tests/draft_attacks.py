"""Attacks on drafts: an editor that saves while citerec writes, kills at every file event, planted records.

The tests run a short form of them. `python tests/draft_attacks.py saves|kills [number]` runs all cases and prints a
table: 1,000 saves at random moments, or a kill at every file event of `apply` and of `undo`.
"""

import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

PAPER = r"""\documentclass{article}\begin{document}
The Transformer relies on attention \cite{?}.
\bibliography{refs}
\end{document}
"""
ATTENTION = "arxiv:1706.03762"


def folder_with_draft(home: Path) -> tuple[Path, Path]:
    """Write a draft and its bibliography into an empty folder."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    tex, bib = home / "paper.tex", home / "refs.bib"
    tex.write_text(PAPER)
    bib.write_text("@misc{old, title={Old}}\n")
    return tex, bib


def cited(folder: Path, records: list, main: Path, head: str, slot: str, tail: str) -> str:
    """Build a corpus of records, cite each in a draft of its own line from the shell; gives what the shell showed."""
    from citerec.frontends.cli import main as shell
    from citerec.ranking.corpus import Corpus
    from citerec.sources.source import JsonlSource

    corpus, source = folder / "corpus", folder / "records"
    if not corpus.exists():
        source.mkdir()
        lines = [json.dumps(paper.model_dump(mode="json")) for paper in records]
        (source / "papers.jsonl").write_text("\n".join(lines))
        Corpus.build(corpus, JsonlSource(source), progress=False).close()
    lines = [f"The study of number {n} is told here {slot}.\n" for n in range(len(records))]
    main.write_text(head + "\n".join(lines) + tail)
    out, begin = io.StringIO(), head.count("\n") + 1
    for n, paper in enumerate(records):
        typed = [str(main), str(begin + 2 * n), paper.paper_id, "--corpus", str(corpus), "--quiet"]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = shell(["draft", "cite", *typed])
        assert code == 0, (paper.paper_id, out.getvalue())
    return out.getvalue()


# --- An editor saves ----------------------------------------------------------------------------------------------


def into_the_file(path: Path, text: bytes) -> None:
    """Save as nano does: the file is emptied and written."""
    path.write_bytes(text)


def as_a_new_file(path: Path, text: bytes) -> None:
    """Save as VS Code may: a new file is renamed over the old one."""
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(text)
    os.replace(new, path)


def with_a_backup(path: Path, text: bytes) -> None:
    """Save as vim does: the old file is renamed, and a new one is made."""
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, f"{path}~")
    path.write_bytes(text)
    Path(f"{path}~").unlink(missing_ok=True)


def without_emptying(path: Path, text: bytes) -> None:
    """Save into the file as it is, and cut it then."""
    with path.open("r+b") as f:
        f.write(text)
        f.truncate()


SAVES: tuple[Callable[[Path, bytes], None], ...] = (into_the_file, as_a_new_file, with_a_backup, without_emptying)


def saved_in_a_fork(save: Callable[[Path, bytes], None], path: Path, text: bytes, begun: int, moment: float) -> int:
    """Save a file in another process, a moment after something was written to a pipe; gives its process id."""
    if child := os.fork():
        return child
    try:
        os.read(begun, 1)
        time.sleep(moment)
        save(path, text)
    finally:
        os._exit(0)


def one_save(home: Path, recommender, dice: random.Random, longest: Counter[str]) -> tuple[str, str]:
    """Cite while an editor saves: how it saves, and how that ended. What is timed is kept in `longest`."""
    from citerec.ground.errors import InputError
    from citerec.writing.changes import Change
    from citerec.writing.draft import Draft

    tex, bib = folder_with_draft(home)
    draft = Draft.open(tex, recommender)
    slot, _ = draft.slots[0], draft.bibliography
    save, target = dice.choice(SAVES), dice.choice((tex, tex, bib))
    mine = f"SAVED-{dice.random()}\n".encode() + target.read_bytes()
    since = dice.choice(("cite", "apply", "apply"))  # from when the moment counts; most windows are in `apply`
    begun, begin = os.pipe()
    editor = saved_in_a_fork(save, target, mine, begun, dice.uniform(0, 1.2) * longest[since])
    started: dict[str, float] = {}

    def timed(name: str, work: Callable[..., object], *values: object) -> object:
        started[name] = time.perf_counter()
        if name == since:
            os.write(begin, b"!")
        try:
            return work(*values)
        finally:
            longest[name] = (longest[name] + (time.perf_counter() - started[name])) / 2  # type: ignore[assignment]

    apply, said = Change.apply, "written"
    Change.apply = lambda change: timed("apply", apply, change)  # type: ignore[assignment,return-value]
    try:
        timed("cite", draft.cite, slot, ATTENTION)
    except InputError:
        said = "refused"
    finally:
        Change.apply = apply  # type: ignore[method-assign]
    os.waitpid(editor, 0)
    os.close(begun), os.close(begin)
    text, entries = tex.read_bytes(), bib.read_bytes()
    left = [p.name for p in home.iterdir() if p not in (tex, bib)]
    cited, listed = b"vaswani2017attention" in text, b"vaswani2017attention" in entries
    name = f"{save.__name__}, {target.suffix}, {said}"
    if mine.split()[0] not in target.read_bytes():
        return name, "SAVE LOST"
    if left:
        return name, f"LEFT {left}"
    if cited and not listed and target == tex:
        return name, "A KEY WITHOUT AN ENTRY"
    if cited and listed:
        return name, "both are there"
    if said == "refused":
        return name, "only the editor's text" if not cited and not listed else f"{cited=} {listed=}"
    return name, "saved after it was written"


def saves(number: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Save at random moments while citerec cites."""
    import citerec

    recommender, dice, longest = citerec.load(), random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as d:
        for _ in range(3):
            one_save(Path(d) / "draft", recommender, dice, longest)
        for _ in range(number):
            yield one_save(Path(d) / "draft", recommender, dice, longest)


# --- Killed -------------------------------------------------------------------------------------------------------

EVENTS = ("open", "os.", "shutil.", "pathlib.", "fcntl.", "ctypes.", "tempfile.")  # of Python's audit, about files


def killed_at(work: Callable[[], object], at: int | None) -> tuple[bool, int]:
    """Run something in a fork that is killed right before its n-th file event: if it was, and how many it had."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        seen = 0

        def hook(event: str, _: object) -> None:
            nonlocal seen
            if event.startswith(EVENTS):
                seen += 1
                if seen == at:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(hook)
            work()
            os.write(write, str(seen).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        seen_in_all = told.read()
    return os.WIFSIGNALED(os.waitpid(child, 0)[1]), int(seen_in_all or 0)


def kills(every: int = 1) -> Iterator[tuple[str, str]]:
    """Kill `apply` and `undo` at their file events, then let the next writing settle it."""
    from citerec.ground.errors import InputError
    from citerec.ground.schema import Paper
    from citerec.writing import changes
    from citerec.writing.bibliography import Bibliography
    from citerec.writing.insertion import cite_changes
    from citerec.writing.manuscript import read_manuscript

    paper = Paper(paper_id="W1", title="Attention Is All You Need", authors=["Ashish Vaswani"], year=2017, source="x")
    with tempfile.TemporaryDirectory() as d:
        home = Path(d) / "draft"

        def fresh() -> Callable[[], object]:
            tex, _ = folder_with_draft(home)
            shutil.rmtree(changes._home(home), ignore_errors=True)
            os.chmod(tex, 0o640)
            draft = read_manuscript(tex)
            return cite_changes(draft, Bibliography.of(draft), [(draft.slots[0], [paper])]).apply

        def content() -> tuple[bytes, ...]:
            return tuple((home / name).read_bytes() for name in ("paper.tex", "refs.bib"))

        def cited() -> Callable[[], object]:
            fresh()()
            return lambda: changes.undo(home / "paper.tex")

        fresh()
        old = content()
        cited()
        new = content()
        for name, prepare in (("apply", fresh), ("undo", cited)):
            killed, events = killed_at(prepare(), None)
            assert not killed and events > 10, (name, events)
            for at in range(1, events + 1, every):
                killed, _ = killed_at(prepare(), at)
                crashed = content() in (old, new, (old[0], new[1]))  # never half a file, never a key without an entry
                told = changes.interrupted(home) or content() in (old, new)
                changes.recover(home)
                whole = content() in (old, new)
                left = {p.name for p in home.iterdir()} == {"paper.tex", "refs.bib"}
                mode = (home / "paper.tex").stat().st_mode & 0o777 == 0o640
                state = "all old" if content() == old else "all new"
                if state == "all new":
                    with contextlib.suppress(InputError):
                        changes.undo(home / "paper.tex")
                back = content() == old
                good = killed and crashed and told and whole and left and mode and back
                said = f"BAD at {at}: {killed=} {crashed=} {told=} {whole=} {left=} {mode=} {back=}"
                yield name, f"{state} at once or after it was settled" if good else said


def main(what: str, number: int | None = None) -> int:
    """Run all cases of a kind, and print a table; the exit code is 1 if something was lost."""
    with tempfile.TemporaryDirectory() as data:
        os.environ["XDG_DATA_HOME"] = data  # the records are not those of whoever runs this
        cases = saves(number or 1000) if what == "saves" else kills(number or 1)
        outcomes = Counter(f"{name}: {outcome}" for name, outcome in cases)
    for line, n in sorted(outcomes.items()):
        print(f"{n:6}  {line}")
    print(f"{sum(outcomes.values()):6}  in all")
    return int(any(word in line for line in outcomes for word in ("LOST", "LEFT", "WITHOUT", "BAD", "left ")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:3])))
