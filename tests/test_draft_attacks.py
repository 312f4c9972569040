"""The attacks of `draft_attacks.py` in a short form, and records of changes that somebody else has planted."""

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from conftest import ROOT, python, run
from draft_attacks import cited, folder_with_draft

from citerec.ground.errors import InputError
from citerec.ground.schema import Paper
from citerec.writing.changes import import_changes, undo
from citerec.writing.draft import Draft

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@forks
def test_what_an_editor_saves_while_citerec_cites_is_never_lost():
    """40 saves at random moments, in four ways (all 1,000: `python tests/draft_attacks.py saves`)."""
    assert "40  in all" in python(ROOT / "tests" / "draft_attacks.py", "saves", 40).stdout


@forks
def test_a_change_that_is_killed_leaves_all_old_or_all_new():
    """Killed at every tenth file event of a change and of its undo (all: `python tests/draft_attacks.py kills`)."""
    assert "apply: all old" in python(ROOT / "tests" / "draft_attacks.py", "kills", 10).stdout


def sha256(content: bytes) -> str:
    """Give the mark by which a journal names a content."""
    return hashlib.sha256(content).hexdigest()


def planted(record: Path, state: str) -> None:
    """Plant a record that would make a hook, change a configuration and remove a file outside the draft's folder."""
    record.mkdir(parents=True)
    files = [
        {"path": "../mine/hook", "before": sha256(b"#!/bin/sh"), "after": None, "mode": 0o755},
        {"path": "../mine/config", "before": sha256(b"pager"), "after": sha256(b""), "mode": None},
        {"path": "../mine/rc", "before": None, "after": sha256(b"known"), "mode": None},
    ]
    if state == "done":
        files = files[1:]
    for n, content in enumerate([b"#!/bin/sh", b"pager"][-len(files) :]):
        (record / f"{n}.before").write_bytes(content)
    journal = {"title": "x", "draft": "paper.tex", "state": state, "files": files}
    (record / "journal.json").write_text(json.dumps(journal))


def everything(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    """List what lies in a folder."""
    return {str(p): (p.lstat().st_mode, p.read_bytes() if p.is_file() else None) for p in folder.rglob("*")}


@pytest.mark.parametrize("form", ["open", "done", "linked", "record linked", "many", "above", "no journal"])
def test_records_beside_a_draft_do_nothing(tmp_path, monkeypatch, form):
    """Whatever lies in `.citerec` beside a draft or above it: checking, citing and undoing change nothing with it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    mine, clone = tmp_path / "home" / "mine", tmp_path / "home" / "clone"
    for name in ("2023", "7"):
        (mine / name).mkdir(parents=True)
        (mine / name / "photo").write_text("x")
    (mine / "config").write_bytes(b"")
    (mine / "rc").write_bytes(b"known")
    tex, bib = folder_with_draft(clone)
    if form == "linked":
        (clone / ".citerec").symlink_to("../mine")
    elif form == "record linked":
        planted(tmp_path / "home" / "else", "open")
        (clone / ".citerec").mkdir()
        (clone / ".citerec" / "1").symlink_to("../../else")
    elif form == "no journal":
        (clone / ".citerec" / "2024").mkdir(parents=True)
        (clone / ".citerec" / "2024" / "thesis.tex").write_text("years of work")
    elif form == "above":
        planted(tmp_path / "home" / ".citerec" / "1", "done")
    else:
        for n in range(25 if form == "many" else 1):
            planted(clone / ".citerec" / str(n + 1), "open" if form == "open" else "done")
    before, drafts = everything(tmp_path / "home"), {str(tex), str(bib)}
    Draft.open(tex)
    for where in (tex, clone):
        with pytest.raises(InputError, match="has changed nothing"):
            undo(where)
    with pytest.raises(InputError):
        import_changes(tex)
    assert everything(tmp_path / "home") == before
    Draft.open(tex).cite("2", "1706.03762")
    cited = everything(tmp_path / "home")
    assert {name for name in before | cited if before.get(name) != cited.get(name)} == drafts
    undo(tex)
    assert everything(tmp_path / "home") == before


def test_checking_in_the_shell_writes_nothing(tmp_path):
    """`citerec draft check` in a folder with a planted record ends as it does without one, and writes no file."""
    tex, _ = folder_with_draft(tmp_path / "home" / "clone")
    (tmp_path / "home" / "mine").mkdir()
    planted(tex.parent / ".citerec" / "1", "open")
    before = everything(tmp_path)
    done = run("citerec", "draft", "check", "paper.tex", cwd=tex.parent, XDG_DATA_HOME=str(tmp_path / "data"))
    assert (done.returncode, "[slot]" in done.stdout) == (1, True)
    marks = tmp_path / "data" / "citerec" / "trusted"  # that the sample corpus is citerec's own
    assert {path: it for path, it in everything(tmp_path).items()
            if not marks.is_relative_to(path) and not path.startswith(str(marks))} == before


HOSTILE = {
    "roots": r"$\input{secret}$ \input{secret}",
    "stems": "}},\n note = {x}}\n@preamble{\"\\input{secret}\"}",
    "leaves": "`r system('touch mark')`",
    "petals": "{{< include secret.tex >}} {{% env HOME %}}",
    "seeds": r"`\input{secret}`{=latex} ]{.b onclick=x}",
    "bark": "\x1b]8;;http://evil\x1b\\ \x9b31m \u202egnp \u2066x \ufffe",
    "moss": "```{r}\nsystem('id')\n```\n\n# Head\n<script>alert(1)</script>",
    "ferns": r"$x^^5cinput{secret}$ ; @other] \cite{x} % #1 & ~",
}


def test_hostile_records_are_cited_as_text(tmp_path, monkeypatch):
    """`citerec draft cite` writes commands in titles, names, venues, DOIs, ids and keys of records as plain text."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    records = []
    for word, text in HOSTILE.items():
        said = {"venue": f"Journal of {word} {text}", "doi": f"10.1/{word}{text}", "bibkey": word + text}
        names, title = (f"{word.title()} {text} B",), f"On {word} of trees {text}"
        records.append(Paper(paper_id=word + text, title=title, authors=names, year=2000, **said))
    tex, note = tmp_path / "paper" / "paper.tex", tmp_path / "note" / "note.qmd"
    for path in (tex, note):
        path.parent.mkdir()
        (path.parent / "refs.bib").write_text("")
    head = "\\documentclass{article}\n\\begin{document}\n"
    shown = cited(tmp_path, records, tex, head, r"\cite{?}", "\\bibliography{refs}\n\\end{document}\n")
    shown += cited(tmp_path, records, note, "---\nbibliography: refs.bib\n---\n\n", "[@?]", "")
    texts = [path.read_text(encoding="utf-8") for path in (tex, tex.parent / "refs.bib", note)]
    assert texts[1] == (note.parent / "refs.bib").read_text(encoding="utf-8")
    assert not [c for c in "".join([shown, *texts]) if c != "\n" and not c.isprintable()]
    assert set(re.findall(r"\\([A-Za-z]+)", texts[0])) == set("documentclass begin cite bibliography end".split())
    allowed = {f"text{name}" for name in "backslash braceleft braceright asciicircum asciitilde".split()}
    assert set(re.findall(r"\\([A-Za-z]+)", texts[1])) == allowed
    assert "^^" not in texts[1] and re.findall(r"(?m)^@(\w+)\{(\w+)", texts[1])[7:] != []
    assert len(re.findall("(?m)^@", texts[1])) == len(records)
    keys = re.findall(r"(?m)^@\w+\{(.*),$", texts[1])
    body = texts[2].partition("---\n\n")[2]
    assert re.findall(r"\[@(.*)\]\.", body) == keys and re.findall(r"\\cite\{(.*)\}", texts[0]) == keys
    assert not re.search(r"[`{}<>]", body)
