"""Hostile corpora: structured mutations of every file of a corpus, whose checksums are repaired, as a maker would.

    python tests/fuzz_corpora.py 300 [seed]       tries cases and prints what came of each kind
    python tests/fuzz_corpora.py one NAME SEED    tries one case again

Each case is a copy of a small corpus in which one thing was changed. A child process opens it, asks it, and may crash;
its memory and its time are limited. "other answer" is a fault where the structure is broken; where a file holds other
values that an honest one could hold as well (another title, another vector), it is what a stranger may do: a corpus is
whatever its maker wrote into it.
"""

import contextlib
import gzip
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import struct
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

MEMORY = 2 << 30  # bytes that a case may take beyond what the parent has
SECONDS, WAIT = 10, 40  # of the processor, and on the clock, as other work may share the machine
TEXTS = ("We drop recurrence and rely on self-attention only [CITATION].", "Graph neural networks for parsing of trees")
EXTREMES = (-1, -5, 2**31 - 1, -(2**31), 2**30, 0, 1, 10**6)
FLOATS = (float("nan"), float("inf"), -float("inf"), 3e38, -3e38, -1.0, 1e9)
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


# --- The honest corpora -------------------------------------------------------------------------------------------


def papers_and_contexts() -> tuple[list, list]:
    """Make 60 papers on ten topics, and sentences that cite them."""
    from citerec.ground.schema import CitationContext, Paper

    topics = """self-attention and recurrence|graph neural networks|parsing of trees|word embeddings|machine translation
        |image classification|reinforcement learning|question answering|speech recognition|knowledge graphs""".split(
        "|"
    )
    papers, contexts = [], []
    for i in range(60):
        topic = topics[i % 10].strip()
        papers.append(
            Paper(
                paper_id=f"W{i}",
                title=f"{'Net' if i % 3 else 'TransNet'}{i}: learning {topic} with method {i}",
                abstract=f"We study {topic}. We introduce Net{i}, which improves {topic} on data {i % 7}. It is fast.",
                year=2000 + i % 20,
                citation_count=i * 3,
                authors=[f"Ann Author{i % 9}", f"Bo Writer{i % 5}"],
                concepts=[topic, f"area {i % 4}"],
                venue=("ACL", "NeurIPS", "")[i % 3],
                references=[f"W{j}" for j in range(i) if (i * j) % 11 == 3],
                language="fr" if i == 7 else None,
                chunk_texts=[f"1 Introduction\nThe text of paper {i} on {topic}."] if i % 10 == 0 else (),
            )
        )
    for i in range(120):
        topic = topics[i % 10].strip()
        contexts.append(
            CitationContext(
                context_id=f"c{i}",
                citing_id=f"doc{i % 17}",
                cited_id=f"W{i % 60}",
                text=f"As Net{i % 60} [CITATION] shows, {topic} is hard, and {topic} needs care.",
            )
        )
    return papers, contexts


def build(folder: Path, large: bool) -> None:
    """Build the small corpus; `large`: in the form that corpora of many papers have, with mapped files."""
    from unittest.mock import patch

    from citerec.ranking.corpus import Corpus
    from citerec.sources.source import ListSource

    papers, contexts = papers_and_contexts()
    names = ("store", "lexical", "graph", "contexts", "vectors") if large else ()
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(patch(f"citerec.indexes.{name}.LARGE", 1))
        Corpus.build(folder, ListSource(papers, contexts=contexts), progress=False).close()


def ask(folder: Path) -> dict:
    """Open a corpus and ask it; the answers, the notes, or the sentence with which it is refused."""
    from citerec.answering.recommender import load
    from citerec.ground.errors import CiterecError
    from citerec.ranking.corpus import check_corpus
    from citerec.ranking.mentions import paper_named

    try:
        rec = load(folder)
        answers, notes = [], set()
        for text in TEXTS:
            found = rec.recommend(text, k=5)
            answers.append([p.paper_id for p in found])
            notes |= {*found.state.metadata["notes"], *map(str, found.state.errors)}
        searched = rec.search("papers by Author3 on parsing after 2003", k=5)
        answers.append([r.paper.paper_id for r in searched])
        notes |= {*searched.notes}
        corpus = rec.corpus
        answers.append([*corpus.find("W3"), paper_named(corpus, "Net5"), len(corpus)])
        answers.append([p.title for p in corpus.papers(["W7", "W8"])] + [*map(str, corpus.briefs(["W9"]).values())])
        assert repr(corpus)
        assert corpus._repr_html_()
        notes |= {*corpus.notes}
        corpus.close()
        faults = check_corpus(folder)
        return {"answers": answers, "notes": sorted(notes), "faults": faults}
    except CiterecError as e:
        return {"refused": f"{e.problem} {e.fix}"}


# --- Mutations: each changes one thing in a copy ------------------------------------------------------------------

Mutation = Callable[[Path, random.Random], str]
MUTATIONS: dict[str, Mutation] = {}


def mutation(make: Mutation) -> Mutation:
    """Register a mutation; it says what it did, and begins with "content" where an honest file could be so."""
    MUTATIONS[make.__name__] = make
    return make


def pick(folder: Path, rng: random.Random, *patterns: str) -> Path:
    """One of the files that match."""
    found = sorted(
        {p for pattern in patterns for p in folder.rglob(pattern) if p.is_file() and "qdrant" not in p.parts}
    )
    return rng.choice(found)


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a file."""
    if path.suffix == ".npy":
        return {"": np.load(path)}
    with np.load(path) as kept:
        return {name: kept[name].copy() for name in kept.files}


def write(path: Path, arrays: dict[str, np.ndarray], compressed: bool) -> None:
    """Write them again."""
    if path.suffix == ".npy":
        np.save(path, arrays[""], allow_pickle=True)
    elif compressed:
        np.savez_compressed(path, **arrays)
    else:
        np.savez(path, **arrays)


def cast(value: float, dtype: np.dtype) -> np.ndarray:
    """A number in the type of an array, whether it fits or not."""
    with np.errstate(all="ignore"):
        return np.array(value).astype(dtype)


def is_compressed(path: Path) -> bool:
    """Whether an archive is compressed."""
    if path.suffix == ".npy":
        return False
    with zipfile.ZipFile(path) as archive:
        return any(entry.compress_type for entry in archive.infolist())


@contextlib.contextmanager
def arrays_in(folder: Path, rng: random.Random, *patterns: str) -> Iterator[tuple[Path, dict[str, np.ndarray]]]:
    """The arrays of one of the files that match; it is written again as they are left."""
    path = pick(folder, rng, *patterns)
    arrays, compressed = arrays_of(path), is_compressed(path)
    yield path, arrays
    write(path, arrays, compressed)


@mutation
def value(folder: Path, rng: random.Random) -> str:
    """One number of an array becomes an extreme one."""
    with arrays_in(folder, rng, "*.npy", "*.npz") as (path, arrays):
        name = rng.choice([n for n, a in arrays.items() if a.size and a.dtype.kind in "iuf"])
        array = arrays[name]
        new = rng.choice(FLOATS if array.dtype.kind == "f" else EXTREMES)
        at = rng.randrange(array.size)
        before = array.flat[at]
        array.flat[at] = cast(new, array.dtype)
    legal = array.flat[at] == before or (0 <= new < 60 and array.dtype.kind != "f") or "vectors" in path.parts
    return f"{'content: ' if legal else ''}{path.name} {name}[{at}] = {new}"


@mutation
def dtype(folder: Path, rng: random.Random) -> str:
    """An array is of another type."""
    with arrays_in(folder, rng, "*.npy", "*.npz") as (path, arrays):
        name = rng.choice([*arrays])
        kind = rng.choice(["i1", "i8", "u4", "f8", "f2", "c8", "S8", "?", ">i4", "O", "U4", "M8[s]", "V8"])
        with np.errstate(all="ignore"):
            try:
                arrays[name] = arrays[name].astype(kind)
            except (TypeError, ValueError):
                arrays[name] = np.zeros(arrays[name].shape, dtype=kind)
    return f"{'content: ' if kind in ('i8', 'f8', 'f2', 'i1') else ''}{path.name} {name} as {kind}"


@mutation
def shape(folder: Path, rng: random.Random) -> str:
    """An array is of another shape."""
    with arrays_in(folder, rng, "*.npy", "*.npz") as (path, arrays):
        name = rng.choice([*arrays])
        a = arrays[name]
        ways = [
            lambda: a[..., None],
            lambda: a.ravel()[:0],
            lambda: a.ravel()[:-1],
            lambda: a.T,
            lambda: np.concatenate([a.ravel()] * 2),
            lambda: a.reshape(1, *a.shape),
            lambda: a.ravel()[:1].reshape(()) if a.size else a,
            lambda: a[::-1],
        ]
        way = rng.randrange(len(ways))
        arrays[name] = ways[way]()
        same = np.array_equal(arrays[name], a)
    return f"{'content: ' if same or way == 7 else ''}{path.name} {name}: {a.shape} -> {arrays[name].shape}"


@mutation
def header(folder: Path, rng: random.Random) -> str:
    """The header of an .npy file lies."""
    path = pick(folder, rng, "*.npy")
    array = np.load(path)
    lies = [
        ("(99999999999999,)", "<f4"),
        ("(-1, -1)", "<f4"),
        ("(1000000, 1000000, 1000000)", "<i4"),
        ("(5,)", "|O"),
        ("(2,)", "|S0"),
        ("(True,)", "<f4"),
        ("(3.5,)", "<f4"),
        ("()", "<i4"),
        ("(0, 99999999999)", "<f4"),
        (str(array.shape), "<f8"),
        (str(array.shape), "|V4"),
        ("(" * 60 + ")" * 60, "<f4"),
        (str(array.shape), ">f4"),
    ]
    said, kind = rng.choice(lies)
    text = f"{{'descr': '{kind}', 'fortran_order': {rng.random() < 0.2}, 'shape': {said}, }}".encode()
    version = rng.choice([(1, 0), (2, 0), (3, 0), (9, 9)])
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    path.write_bytes(b"\x93NUMPY" + bytes(version) + length + text + array.tobytes())
    return f"{path.name}: {said} of {kind}, version {version[0]}"


@mutation
def archive(folder: Path, rng: random.Random) -> str:
    """An .npz file with odd entries."""
    path = pick(folder, rng, "*.npz")
    arrays = arrays_of(path)
    name, way = rng.choice([*arrays]), rng.randrange(8)
    if way == 0:
        arrays.pop(name)
        np.savez(path, **arrays)
    elif way == 1:
        np.savez_compressed(path, **(arrays | {name: np.zeros(300_000_000, dtype=np.int8)}))
    elif way == 2:
        np.savez(path, **arrays, **{f"x{i}": np.zeros(1) for i in range(500)})
    elif way == 3:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
            for n in arrays:
                z.writestr(f"{n}.npy", gzip.compress(b"x"))
    elif way == 4:
        content = bytearray(path.read_bytes())
        at = content.rindex(b"PK\x01\x02")
        content[at + 42 : at + 46] = struct.pack("<I", rng.choice([2**32 - 2, 10**6, 3]))
        path.write_bytes(bytes(content))
    elif way == 5:
        content = bytearray(path.read_bytes())
        for _ in range(20):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(bytes(content))
    elif way == 6:
        for part in ("format", "shape", "size"):
            if part in arrays:
                arrays[part] = np.array(b"coo") if part == "format" else np.array([2**31 - 1, 2**31 - 1])
        np.savez(path, **arrays)
    else:
        content = path.read_bytes()
        path.write_bytes(content.replace(name.encode(), b"../" + name.encode()[3:]))
    return f"{'content: ' if way == 2 and len(arrays) < 0 else ''}{path.name} {name} way {way}"


@mutation
def matrix(folder: Path, rng: random.Random) -> str:
    """The places of a sparse matrix lead out of it."""
    names = (f"{name}.npz" for name in ("graph", "said", "whole", "names", "given", "places"))
    with arrays_in(folder, rng, *names) as (path, arrays):
        name = rng.choice([n for n in arrays if arrays[n].dtype.kind in "iu" and arrays[n].size > 2] or [*arrays])
        a, way = arrays[name], rng.randrange(5)
        if way == 0:
            a[:] = cast(rng.choice((2**31 - 1, -5, -(2**31))), a.dtype)
        elif way == 1:
            a[len(a) // 2] = cast(rng.choice((2**30, -(2**30))), a.dtype)
        elif way == 2:
            a[:] = a[::-1].copy()
        elif way == 3:
            a[-1] = cast(int(a[-1]) + rng.choice((1, 1000, 2**30)), a.dtype)
        else:
            a[0] = cast(rng.choice((1, -1)), a.dtype)
    legal = way == 2 and name not in ("indptr", "starts", "cited") or (way == 4 and a[0] == 1 and "ind" in name)
    return f"{'content: ' if legal else ''}{path.parent.name}/{path.name} {name} way {way}"


@mutation
def file(folder: Path, rng: random.Random) -> str:
    """A file of any kind is empty, half, zeros, text, or bytes at random."""
    path = pick(folder, rng, "*")
    content, way = path.read_bytes(), rng.randrange(5)
    new = [b"", content[: len(content) // 2], bytes(len(content)), b"text", rng.randbytes(min(len(content), 10_000))][
        way
    ]
    path.write_bytes(new)
    return f"{path.relative_to(folder)} way {way}"


@mutation
def entry(folder: Path, rng: random.Random) -> str:
    """A file is a link, a pipe, a device, a folder, missing, or endless."""
    path = pick(folder, rng, "*")
    kept, way = path.read_bytes(), rng.randrange(8)
    path.unlink()
    if way == 0:
        path.symlink_to("/dev/zero")
    elif way == 1:
        os.mkfifo(path)
    elif way == 2:
        (folder.parent / "outside").write_bytes(kept)
        path.symlink_to(folder.parent / "outside")
    elif way == 3:
        path.symlink_to(path)
    elif way == 4:
        path.mkdir()
    elif way == 6:
        path.touch()
        os.truncate(path, 1 << 42)
    elif way == 7:
        parent = path.parent
        path.write_bytes(kept)
        if parent == folder:
            return "content: nothing"
        moved = folder.parent / "moved"
        shutil.move(parent, moved)
        parent.symlink_to(moved)
    return f"{path.relative_to(folder)} way {way}"


ODD = (None, -1, 0, 3.5, 10**30, "x", "\ud800", [], {}, [[]], True, 1e308, "x" * 100_000)


@mutation
def jsons(folder: Path, rng: random.Random) -> str:
    """A value in a JSON file is of another type, or the file is deep or huge."""
    path = pick(folder, rng, "frequencies.json", "params.index.json", "vocab.index.json", "phrases.json", "part-*.json")
    way = rng.randrange(6)
    if way == 0:
        path.write_text("[" * 200_000 + "]" * 200_000)
    elif way == 1:
        path.write_text("[" + "[]," * 20_000_000 + "[]]")
    elif way == 2:
        path.write_text(json.dumps(rng.choice(ODD)))
    elif way == 3:
        path.write_text("1" * 100_000)
    else:
        loaded = json.loads(path.read_text())
        inner = loaded["frequencies"] if isinstance(loaded, dict) and "frequencies" in loaded and way == 4 else loaded
        key = rng.choice([*inner]) if isinstance(inner, dict) else rng.randrange(len(inner))
        inner[key] = rng.choice(ODD)
        path.write_text(json.dumps(loaded))
        unread = path.name == "params.index.json" and key != "num_docs"
        return f"{'content: ' if unread else ''}{path.relative_to(folder)} {str(key)[:20]!r} = {str(inner[key])[:20]!r}"
    return f"{path.relative_to(folder)} way {way}"


@mutation
def manifest(folder: Path, rng: random.Random) -> str:
    """A value of the manifest is odd; the seal fits."""
    loaded = json.loads((folder / "manifest.json").read_text())
    inner = loaded["counts"] if rng.random() < 0.3 else loaded
    key = rng.choice([k for k in inner if k not in ("seal", "checksums")] + ["updates", "recipe", "files", "checksums"])
    inner[key] = rng.choice(ODD)
    (folder / "manifest.json").write_text(json.dumps(loaded))
    told = key in ("source", "fetched", "about", "recipe", "text_kind", "updates", "fingerprint")
    return f"{'content: ' if told or inner is not loaded else ''}{key} = {str(inner[key])[:20]!r}"


@mutation
def schema(folder: Path, rng: random.Random) -> str:
    """The database has views, triggers, computed columns, foreign tables or indexes."""
    db = sqlite3.connect(folder / "corpus.db", isolation_level=None)
    table = rng.choice(["meta", "papers", "citation_edges", "citation_contexts"])
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    way, some = rng.randrange(9), ", ".join(columns)
    if way in (0, 1):
        db.execute(f"ALTER TABLE {table} RENAME TO kept")
        source = (
            f"{ENDLESS} SELECT kept.* FROM kept, n"
            if way == 0
            else f"SELECT {some.replace(columns[-1], 'hex(zeroblob(999999999)) AS ' + columns[-1])} FROM kept"
        )
        db.execute(f"CREATE VIEW {table} AS {source}")
    elif way == 2:
        db.execute(f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END")
    elif way == 3:
        last = columns[-1]
        db.execute("PRAGMA writable_schema=ON")
        db.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?",
            (f"{last} TEXT", f"{last} TEXT AS (hex(zeroblob(999999999)))", table),
        )
    elif way == 4:
        db.execute(f"CREATE INDEX evil ON {table}(hex({columns[0]}))")
    elif way == 5:
        db.execute("DROP TABLE IF EXISTS columns")
        db.execute("CREATE VIRTUAL TABLE columns USING fts5(name, value)")
    elif way == 6:
        db.execute("CREATE INDEX i ON meta(value)")
        db.execute("ANALYZE")
    elif way == 7:
        db.execute("PRAGMA writable_schema=ON")
        db.execute(
            "UPDATE sqlite_master SET rootpage = "
            "(SELECT rootpage FROM sqlite_master WHERE name = 'papers') WHERE name = ?",
            (table,),
        )
    else:
        db.execute("PRAGMA writable_schema=ON")
        db.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = ?", (rng.choice([0, 1, 2, 10**6]), table))
    db.close()
    return f"{'content: ' if way == 7 and table == 'papers' else ''}{table} way {way}"


@mutation
def cell(folder: Path, rng: random.Random) -> str:
    """Values in the database are of another type, or odd."""
    db = sqlite3.connect(folder / "corpus.db", isolation_level=None)
    db.execute("PRAGMA foreign_keys=OFF")
    tables = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'meta'")]
    table = rng.choice(tables)
    column = rng.choice([row[1] for row in db.execute(f"PRAGMA table_info({table})")])
    odd = rng.choice(
        [
            b"\xff\xfe",
            b"abc",
            7,
            -(2**62),
            2**62,
            1.5,
            float("inf"),
            "7",
            "[[[]]]",
            "[" * 100_000,
            '["a", 1]',
            "{}",
            "x" * 300_000,
            "",
            "\U0001f600" * 9,
            "[null]",
            b"",
            b"1234567",
        ]
    )
    where = f"rowid IN (SELECT rowid FROM {table} ORDER BY random() LIMIT 3)" if table == "papers" else "1"
    with contextlib.suppress(sqlite3.Error):
        db.execute(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {where}", (odd,))
    db.close()
    return f"content: {table}.{column} = {str(odd)[:20]!r}"


@mutation
def rows(folder: Path, rng: random.Random) -> str:
    """Rows are numbered in another way, or missing."""
    db = sqlite3.connect(folder / "corpus.db", isolation_level=None)
    db.execute("PRAGMA foreign_keys=OFF")
    way = rng.randrange(4)
    sql = [
        "UPDATE papers SET row = row + 2147483647",
        "UPDATE papers SET row = -row - 1",
        "DELETE FROM papers WHERE row > 30",
        "UPDATE papers SET row = 9223372036854775000 WHERE row = 59",
    ][way]
    db.execute(sql)
    db.close()
    return sql


@mutation
def pages(folder: Path, rng: random.Random) -> str:
    """Bytes of the database are others: numbers of pages, lengths of values, letters."""
    path = folder / "corpus.db"
    content, size = bytearray(path.read_bytes()), 4096
    for _ in range(rng.choice([1, 5, 40])):
        page = rng.randrange(len(content) // size)
        at = page * size + (rng.randrange(100) if rng.random() < 0.7 else rng.randrange(size))
        content[at : at + 4] = struct.pack(">I", rng.choice([rng.randrange(len(content) // size), 2**31, 0, 2**32 - 1]))
    path.write_bytes(bytes(content[: len(path.read_bytes())]))
    return "content: pages"


@mutation
def beside(folder: Path, rng: random.Random) -> str:
    """A log, an index of it or a journal lies beside the database."""
    path = folder / "corpus.db"
    way = rng.randrange(5)
    if way == 0:
        with tempfile.TemporaryDirectory() as d:
            copy = Path(d) / "corpus.db"
            shutil.copy(path, copy)
            db = sqlite3.connect(copy, isolation_level=None)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("UPDATE papers SET title = 'ANOTHER'")
            shutil.copy(f"{copy}-wal", f"{path}-wal")
            db.close()
    else:
        name = ("-wal", "-shm", "-journal", "-wal")[way - 1]
        beside = Path(f"{path}{name}")
        beside.unlink(missing_ok=True)
        if way == 4:
            os.mkfifo(beside)
        else:
            beside.write_bytes(rng.randbytes(40_000))
    return f"beside way {way}"


@mutation
def ranker(folder: Path, rng: random.Random) -> str:
    """A ranker of a stranger, trusted or not, whole or not."""
    from citerec.ground.files import shipped

    shutil.copytree(shipped("ranker"), folder / "ranker")
    path = folder / "ranker" / rng.choice(["ranker.json", "ranker.txt"])
    return damaged(path, rng)


@mutation
def encoder(folder: Path, rng: random.Random) -> str:
    """An encoder of a stranger, trusted or not, whole or not; the card fits the weights."""
    import hashlib

    import torch
    from safetensors.torch import load_file, save

    from citerec.ground.files import shipped

    shutil.copytree(shipped("encoder"), folder / "encoder")
    path = folder / "encoder" / "encoder.safetensors"
    weights, way = load_file(path), rng.randrange(12)
    name = rng.choice([*weights])
    w = weights[name]
    changes = [
        {name: torch.full_like(w, float("nan"))},
        {name: w[:1]},
        {name: w.to(torch.int8)},
        {name: w.repeat(2, *[1] * (w.dim() - 1))},
        {"embeddings.word_embeddings.weight": torch.zeros(2, 384)},
        {n: torch.zeros_like(v) for n, v in weights.items()},
        {name: torch.full_like(w, 60_000)},
        {name: w.double() * 1e300},
        {name: torch.full_like(w, float("inf"))},
        {"other": w},
        {name: w[..., None]},
        {name: w},
    ]
    content = save({n: v.clone() for n, v in (weights | changes[way]).items()})
    if way == 9:
        content = save({n: v for n, v in weights.items() if n != name})
    if way == 11:
        content = content[: rng.randrange(len(content))]
    path.write_bytes(content)
    card = json.loads((path.parent / "encoder.json").read_text())
    card["sha256"] = hashlib.sha256(content).hexdigest()
    if rng.random() < 0.2:
        card["layers"] = rng.choice([[0, 1], [99], [3, 3, 3], [4, 5, 6]])
    (path.parent / "encoder.json").write_text(json.dumps(card))
    return f"encoder way {way} {name} {'content: ' if way == 6 else ''}"


def damaged(path: Path, rng: random.Random) -> str:
    """Some bytes of a file are others."""
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 50])):
        content[rng.randrange(len(content))] = rng.randrange(256)
    path.write_bytes(bytes(content))
    return f"{path.name} damaged"


@mutation
def prompts(folder: Path, rng: random.Random) -> str:
    """Instructions of a stranger."""
    (folder / "prompts" / "learned").mkdir(parents=True)
    path = folder / "prompts" / rng.choice(["query.txt", "grounding.txt", "learned/0001.json", "learned/0009.json"])
    way = rng.randrange(4)
    if way == 0:
        path.write_text("ORDERS OF A STRANGER {intent}")
    elif way == 1:
        os.mkfifo(path)
    elif way == 2:
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(b"[" * 5_000_000)
    return f"{path.name} way {way}"


# --- A case -------------------------------------------------------------------------------------------------------


def seal_again(folder: Path) -> None:
    """Make the checksums fit what is there now, as the maker of a corpus can."""
    from citerec.ground.files import checksums
    from citerec.ranking.building import seal

    path = folder / "manifest.json"
    if not path.is_file() or path.is_symlink():
        return
    try:
        loaded = json.loads(path.read_text())
        sums = loaded.get("checksums")
    except (ValueError, AttributeError, RecursionError):
        return
    if isinstance(sums, dict):
        for name in sums:
            there = folder / name
            if there.is_file() and not there.is_symlink() and there.stat().st_size < 1 << 31 and "qdrant" not in name:
                sums |= checksums(folder, name)
    loaded.pop("seal", None)
    with contextlib.suppress(ValueError, UnicodeError):
        path.write_text(json.dumps(loaded | {"seal": seal(json.loads(json.dumps(loaded)))}))


def in_child(work: Callable[[], dict]) -> tuple[str, dict, float, int]:
    """Run work in a child: how it ended, what it gave, its seconds, and its peak of memory beyond the parent's."""
    reading, writing = os.pipe()
    begun = time.monotonic()
    child = os.fork()
    if not child:
        os.close(reading)
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.alarm(WAIT)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        try:
            told = work()
        except BaseException as e:  # noqa: BLE001
            told = {"raw": f"{type(e).__name__}: {e}"[:200], "trace": traceback.format_exc()[-1500:]}
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(json.dumps(told, default=str).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    _, status, used = os.wait4(child, 0)
    seconds = time.monotonic() - begun
    if os.WIFSIGNALED(status):
        return (
            (
                "HANG"
                if os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL)
                else f"CRASH {os.WTERMSIG(status)}"
            ),
            {},
            seconds,
            used.ru_maxrss,
        )
    return "done", json.loads(content or b"{}"), seconds, used.ru_maxrss


RAW = ("Error:", "Traceback", "mat1", "mat2", "size mismatch", "index out of", "out of bounds", "operand")


def outcome(end: str, told: dict, honest: dict, what: str) -> str:
    """What came of a case."""
    if end != "done":
        return end
    if "raw" in told or not told:
        return "RAW ERROR"
    if "refused" in told:
        return "refused"
    new = [note for note in told["notes"] if note not in honest["notes"]]
    if any("agent failed" in note and "Run `citerec" not in note and "citerec build" not in note for note in new):
        return "RAW ERROR in an agent"
    if told["answers"] == honest["answers"]:
        return "same answer, said" if new else "same answer"
    if new:
        return "other answer, said"
    return "other content" if "content: " in what else "OTHER ANSWER SILENTLY"


def prepared(home: Path) -> dict[bool, tuple[Path, dict]]:
    """Both honest corpora, and what they answer to somebody else."""
    import citerec.indexes.embedding as embedding
    from citerec.indexes.models import find_model

    make = embedding.BertEncoder
    loaded = make(find_model("sentence-transformers/all-MiniLM-L6-v2"))  # once, for all children
    kept = type("Kept", (make,), {"__init__": lambda self, *_, **__: self.__dict__.update(loaded.__dict__)})
    embedding.BertEncoder = kept
    corpora = {}
    for large in (False, True):
        place = home / ("large" if large else "small")
        child = in_child_unlimited(lambda place=place, large=large: build(place, large))
        assert child == 0, "the honest corpus could not be built"
        copy = copied(place, home / "honest")
        end, told, seconds, memory = in_child(lambda copy=copy: ask(copy) | {"modules": [*sys.modules]})
        assert end == "done", (end, told)
        assert "answers" in told, told
        assert all(fault.startswith("qdrant/") for fault in told["faults"]), told["faults"]
        for name in told.pop("modules"):  # what a child loads late, the parent loads once for all
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        print(f"honest {place.name}: {seconds:.1f} s, {memory >> 10} MB", told["notes"], told["answers"][0], flush=True)
        corpora[large] = place, told
        shutil.rmtree(home / "honest")
    return corpora


def in_child_unlimited(work: Callable[[], None]) -> int:
    """Run work in a child, so that the parent has no threads."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def copied(place: Path, case: Path) -> Path:
    """A copy of a corpus where nobody has trusted it; without the files of the index, which are not read there."""
    shutil.rmtree(case, ignore_errors=True)
    shutil.copytree(place, case / "corpus", ignore=shutil.ignore_patterns("qdrant"))
    return case / "corpus"


def run_case(name: str, seed: int, corpora: dict, home: Path) -> tuple[str, str, float, int, dict]:
    """One case: what came of it, what was changed, and what it took."""
    from citerec.indexes.models import brought_by, made_here

    rng = random.Random(f"{name} {seed}")
    place, honest = corpora[rng.random() < 0.5]
    case = home / "case"
    folder = copied(place, case)
    what = MUTATIONS[name](folder, rng)
    seal_again(folder)
    if name in ("ranker", "encoder", "prompts") and rng.random() < 0.6:
        what += " (trusted)"
        for path in brought_by(folder):
            if path.name != "manifest.json":
                made_here(path)
    end, told, seconds, memory = in_child(lambda: ask(folder))
    came = outcome(end, told, honest, f"{place.name} {what}")
    if (case / "moved").exists() or (case / "outside").exists():
        shutil.rmtree(case, ignore_errors=True)
    return came, f"{place.name} {what}", seconds, memory, told


FAULTS = ("HANG", "CRASH", "RAW", "OTHER")
SHORT = (  # cases of the short form: of kinds that crashed, hung or took all memory before there were checks
    ("matrix", 0),
    ("matrix", 1),
    ("header", 0),
    ("schema", 0),
    ("entry", 0),
    ("jsons", 1),
    ("rows", 0),
    ("encoder", 0),
)


def main(count: int, seed: int, one: str = "") -> int:
    """Try cases; the number of faults."""
    with tempfile.TemporaryDirectory(prefix="citerec-fuzz-") as d:
        home = Path(d)
        os.environ |= {"XDG_DATA_HOME": f"{d}/data", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        corpora = prepared(home)
        table: dict[str, Counter] = defaultdict(Counter)
        faults, longest, most = 0, 0.0, 0
        names = [one] if one else [*MUTATIONS]
        signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
        stopped: list[bool] = []
        for i in range(count):
            if stopped:
                break
            name, number = names[i % len(names)], seed + i // len(names)
            came, what, seconds, memory, told = run_case(name, number, corpora, home)
            table[name][came] += 1
            longest, most = max(longest, seconds), max(most, memory)
            if came.startswith(FAULTS) or one:
                faults += came.startswith(FAULTS)
                print(f"{came}: {name} {number}: {what} ({seconds:.1f} s) {told.get('raw', '')}", flush=True)
                if one:
                    print(json.dumps(told, indent=1)[:4000])
                elif came.startswith(("RAW", "OTHER")):
                    print(
                        "   ",
                        told.get("trace", "")[-300:].replace("\n", "\n    "),
                        [n[:250] for n in told.get("notes", [])],
                    )
        outcomes = sorted({came for row in table.values() for came in row})
        print(f"{'':10}", *(f"{came:>22}" for came in outcomes))
        for name, row in table.items():
            print(f"{name:10}", *(f"{row[came] or '':>22}" for came in outcomes))
        total = Counter(came for row in table.values() for came in row.elements())
        print(f"{'all':10}", *(f"{total[came]:>22}" for came in outcomes))
        print(f"{total.total()} cases, {faults} faults; longest {longest:.1f} s; most memory {most >> 10} MB")
    return faults


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        sys.exit(bool(main(1, int(sys.argv[3]), sys.argv[2])))
    sys.exit(bool(main(int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0]))))
