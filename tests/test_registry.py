"""Registries of titles that are damaged, killed and made of hostile files, and what they say of made-up titles."""

import gzip
import json
import os
import random

import pytest
from attacks import KILLED, fork

from citerec.frontends.cli import main
from citerec.ground.errors import CiterecError, CorpusError, InputError
from citerec.ground.schema import Paper
from citerec.ranking.registry import Registry, build_registry

rng = random.Random(0)
WORDS = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randrange(3, 11))) for _ in range(3_000)]


def titles(count: int, seed: int) -> list[str]:
    """Made-up titles of six to ten words."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(6, 11))).capitalize() for _ in range(count)]


def records(path, listed):
    """A file of records."""
    papers = (Paper(paper_id=f"p{i}", title=title, year=1990 + i % 30, venue=f"Venue{'abc'[i % 3]} Conference",
                    doi=f"10.1000/{i}", authors=["Ada Lovelace", f"Grace Hopper{chr(97 + i % 26)}"])
              for i, title in enumerate(listed))
    path.write_text("".join(f"{paper.model_dump_json()}\n" for paper in papers), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A registry of 2,000 made-up works, and their titles."""
    folder, listed = tmp_path_factory.mktemp("registry"), titles(2_000, 1)
    return build_registry(folder / "made.registry", records=records(folder / "papers.jsonl", listed)), listed


def test_every_title_is_found(built):
    registry, listed = built
    rows = set()
    for i, title in enumerate(listed):
        [one] = registry.find(title.upper())
        assert (one.match, one.publications[0][0], one.authors) == ("exact", 1990 + i % 30, 2)
        assert one.compare_authors(["Lovelace, A."]).shared == 1 and not one.compare_authors(["A. Turing"]).shared
        assert [found.row for found in registry.by_doi(f"10.1000/{i}")] == [one.row]
        rows.add(one.row)
    assert len(rows) == len(listed) == len(registry)


def test_titles_that_are_not_listed(built):
    registry, listed = built
    assert not any(registry.find(title) for title in titles(1_000, 2) if title not in listed)


@pytest.mark.parametrize("fault", ["replaced", "added", "missing", "letter", "two letters"])
def test_one_fault(built, fault):
    registry, listed = built
    rng, missed = random.Random(3), 0
    for title in listed[:400]:
        words, [true] = title.lower().split(), registry.find(title)
        at, other = rng.sample(range(len(words)), 2)
        if fault == "replaced":
            words[at] = rng.choice(WORDS)
        elif fault == "added":
            words.insert(at, rng.choice(WORDS))
        elif fault == "missing":
            del words[at]
        else:
            for place in (at, other) if fault == "two letters" else (at,):
                words[place] = words[place][:-1] + rng.choice("abcdefgh")
        found = registry.find(" ".join(words))
        missed += true.row not in [one.row for one in found]
    assert missed <= 8  # of 400: the other word shares its bits with the true one, or has many letters


def test_joined_titles(built):
    registry, listed = built
    for first, second in zip(listed[:50], listed[50:100], strict=True):
        found = registry.find(f"{first}: {second}")
        assert [one.match for one in found] == ["joined", "joined"]
        assert {one.row for one in found} == {registry.find(title)[0].row for title in (first, second)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the process is copied")
def test_killed_at_every_file_event(built, tmp_path):
    """A build that is killed leaves the registry that was there, or the new one, and the next build cleans up."""
    registry, listed = built
    new, file, before = records(tmp_path / "new.jsonl", listed[:30]), tmp_path / "r" / "t.registry", registry.path
    file.parent.mkdir()
    seen = fork(lambda: build_registry(file, records=new), None, file.parent)[1]
    assert seen > 1
    for at in range(1, seen + 1):
        for path in file.parent.iterdir():
            path.unlink()
        file.write_bytes(before.read_bytes())
        assert fork(lambda: build_registry(file, records=new), at, file.parent)[0] == KILLED
        assert len(Registry.open(file)) in (30, len(registry))
        assert len(build_registry(file, records=new)) == 30
        assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_every_flipped_byte_is_seen_or_harmless(built, tmp_path):
    registry, listed = built
    good, file, rng = registry.path.read_bytes(), tmp_path / "flipped.registry", random.Random(4)
    for _ in range(60):
        at = rng.randrange(len(good))
        file.write_bytes(good[:at] + bytes([good[at] ^ 1 << rng.randrange(8)]) + good[at + 1 :])
        try:
            assert len(Registry.open(file)) == len(registry)  # it lies between two sections, where nothing is read
        except CorpusError as e:
            assert "registry" in str(e)


def test_every_length(built, tmp_path):
    good, file = built[0].path.read_bytes(), tmp_path / "cut.registry"
    for length in (0, 1, 7, 8, 27, 28, 29, 100, len(good) // 2, len(good) - 1):
        file.write_bytes(good[:length])
        with pytest.raises(CorpusError, match="damaged|no registry"):
            Registry.open(file)


def hostile(kind: str) -> str:
    """XML that wants too much."""
    if kind == "deep":
        return "<dblp>" + "<article>" * 50_000
    if kind == "entities":
        return '<!DOCTYPE d [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><dblp><book><title>&b;</title></book></dblp>'
    if kind == "file":
        return '<!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/passwd">]><dblp><book><title>&a;</title></book></dblp>'
    if kind == "long":
        return f"<dblp><book><title>{'word ' * 400_000}</title><year>{'9' * 5_000}</year></book></dblp>"
    return "<dblp><book><title>A &#0; title</title></book></dblp>"


@pytest.mark.parametrize("kind", ["deep", "entities", "file", "zero"])
def test_hostile_xml_is_refused(kind, tmp_path):
    file = tmp_path / "dblp.xml.gz"
    file.write_bytes(gzip.compress(hostile(kind).encode()))
    with pytest.raises(InputError):
        build_registry(tmp_path / "r", dblp=file)
    assert not (tmp_path / "r").exists()


def test_long_fields_are_cut(tmp_path):
    file = tmp_path / "dblp.xml"
    file.write_text(hostile("long"))
    assert build_registry(tmp_path / "r", dblp=file).find("word " * 400_000)[0].publications == ()


def test_names_are_shown_harmlessly(tmp_path, capsys):
    """Names of venues and files come from others; a terminal gets no control characters of them, a page no tags."""
    file = tmp_path / "pa\x1bpers<b>.jsonl"
    file.write_text(json.dumps({"paper_id": "a", "title": "A title of five words", "venue": "V\x1b[31m\nX<script>"}))
    registry = build_registry(tmp_path / "r", records=file)
    assert "<b>" not in registry._repr_html_().replace("<b>Registry", "")
    assert main(["registry", "info", str(tmp_path / "r")]) == 0
    assert main(["registry", "find", str(tmp_path / "r"), "A title of five words"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_two_readers_and_a_new_file(built, tmp_path):
    """A registry that is open goes on answering when it is built again."""
    registry, listed = built
    file = tmp_path / "t.registry"
    file.write_bytes(registry.path.read_bytes())
    old = Registry.open(file)
    new = build_registry(file, records=records(tmp_path / "few.jsonl", listed[:5]))
    assert (len(old), len(new), old.find(listed[9])[0].match, new.find(listed[9])) == (len(listed), 5, "exact", [])


def test_errors_are_of_citerec(tmp_path):
    for wrong in (b"", b"\x1f\x8b\x08garbage", b"[1, 2]\n", b"\xff\xfe\x00"):
        (tmp_path / "x").write_bytes(wrong)
        for option in ("dblp", "arxiv", "records", "corpora", "retractions"):
            with pytest.raises(CiterecError):
                given = {"records": records(tmp_path / "p", ["A title"]), option: tmp_path / "x"}
                build_registry(tmp_path / "r", **given)
