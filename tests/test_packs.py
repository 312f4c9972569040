"""Packs that are fetched under fire, and recipes that are followed from the first request to the last."""

import gzip
import hashlib
import io
import json
import os
import signal
import struct
import tarfile
import time
import zipfile

import pytest
import zstandard

import citerec
from citerec.ground.errors import CiterecError
from citerec.ground.files import sha256_of, trust
from citerec.ranking.packs import recipes
from citerec.testing.fake_openalex import OpenAlexServer
from citerec.testing.loopback import Loopback, Response, file_reply

TEXT = "We drop recurrence and rely on self-attention only."
PIECES = 24  # of a pack, that come one after the other
PAUSE = 0.01  # seconds between them


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The sample as a pack."""
    return citerec.pack("sample", tmp_path_factory.mktemp("packs") / "sample.tar.zst", "Apache-2.0", progress=False)


def test_same_answers_elsewhere(packed, tmp_path, monkeypatch):
    """A pack that was opened by somebody else, in another folder, gives the same list, percentages and quotations."""

    def answers(corpus):
        found = citerec.load(corpus).recommend(TEXT, k=10)
        return [(r.paper_id, r.confidence, r.supporting_snippet, r.justification) for r in found]

    ours = answers("sample")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "another account"))
    citerec.get(packed, tmp_path / "elsewhere" / "corpus", progress=False).close()
    assert answers(tmp_path / "elsewhere" / "corpus") == ours


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the process is copied")
def test_killed_ten_times(packed, tmp_path):
    """A fetch that is killed ten times goes on each time; there is no corpus before the last byte was compared."""
    content, folder = packed.read_bytes(), tmp_path / "corpus"
    step = len(content) // PIECES

    def slowly(asked):
        reply = file_reply(content, asked)
        if asked.headers["Range"] and asked.headers["Range"].startswith("bytes=0-"):
            return reply  # of the description

        def pieces():
            for start in range(0, len(reply.body), step):
                yield reply.body[start : start + step]
                time.sleep(PAUSE)

        length = {"Content-Length": str(len(reply.body))}
        return Response(pieces(), reply.status, {**reply.headers, **length})

    part, came = tmp_path / ".corpus.getting.fetched", [0]
    with Loopback(slowly) as server:
        url = f"{server.url}/sample.tar.zst"
        for _ in range(10):
            child = os.fork()
            if not child:
                try:
                    citerec.get(url, folder, progress=False)
                finally:
                    os._exit(0)
            while not part.exists() or part.stat().st_size < came[-1] + step:
                assert os.waitpid(child, os.WNOHANG) == (0, 0), "the fetch ended by itself"
                time.sleep(PAUSE / 10)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            came.append(part.stat().st_size)
            assert not folder.exists()
        with citerec.get(url, folder, sha256_of(packed), progress=False) as corpus:
            assert corpus.check() == []
    assert came == sorted(came) and came[1] > 0 and came[-1] < len(content)
    places = [asked.headers["Range"] for asked in server.asked if asked.headers["Range"]]
    assert f"bytes={came[-1]}-" in places
    assert [p.name for p in tmp_path.iterdir()] == ["corpus"]


def frame(content: bytes) -> bytes:
    """A skippable frame of zstd."""
    return struct.pack("<II", 0x184D2A50, len(content)) + content


def hostile_pack(packed, change, path):
    """The pack of the sample, sealed as its maker would, after `change` did something to its description and tar."""
    content = packed.read_bytes()
    size = struct.unpack("<I", content[4:8])[0] + 8
    length = struct.unpack("<I", content[size + 4 : size + 8])[0]
    about = json.loads(content[size + 8 : size + 8 + length])
    tar = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content[size + 8 + length :])).read()
    about, tar = change(about, tar)
    rest = frame(json.dumps(about).encode()) + zstandard.ZstdCompressor(level=1).compress(tar)
    path.write_bytes(frame(b"citerec pack 1\nsha256 " + hashlib.sha256(rest).hexdigest().encode() + b"\n") + rest)
    return path


def entry(name, kind=tarfile.REGTYPE, content=b"") -> bytes:
    """A file of a tar file, or something else in it."""
    (about := tarfile.TarInfo(name)).type, about.size, about.linkname = kind, len(content), "/etc/passwd"
    return about.tobuf(tarfile.GNU_FORMAT) + content.ljust(-(-len(content) // 512) * 512, b"\0")


def renamed(name):
    """The first file has another name, in the description and in the tar file."""

    def change(about, tar):
        about["members"][0]["name"] = name
        return about, entry(name) + tar[512:]

    return change


def resized(size):
    """The first file claims another size."""

    def change(about, tar):
        about["members"][0]["size"] = size
        return about, tar

    return change


def members(about, change):
    """The description with other files; those that become None are left out."""
    return about | {"members": list(filter(None, map(change, about["members"])))}


HOSTILE = {
    "a path that leads out": renamed("../escaped"),
    "a path that leads out from inside": renamed("vectors/../../escaped"),
    "an absolute path": renamed("/tmp/escaped-from-a-pack"),
    "a file of another program": renamed(".bashrc"),
    "a symbolic link": lambda about, tar: (about, entry("corpus.db", tarfile.SYMTYPE) + tar),
    "a hard link": lambda about, tar: (about, entry("corpus.db", tarfile.LNKTYPE) + tar),
    "a device": lambda about, tar: (about, entry("corpus.db", tarfile.CHRTYPE) + tar),
    "one more file": lambda about, tar: (about, tar[:-1024] + entry("ranker/evil.json", content=b"{}") + bytes(1024)),
    "bytes without end": lambda about, tar: (about, tar + bytes(64 << 20)),
    "a bomb": resized(90 << 30),
    "more than any disk has": resized(1 << 50),
    "a size below zero": resized(-1),
    "another sha256": lambda about, tar: (members(about, lambda m: m | {"sha256": "0" * 64}), tar),
    "half": lambda about, tar: (about, tar[: len(tar) // 2]),
    "no database": lambda about, tar: (members(about, lambda m: m if m["name"] != "corpus.db" else None), tar),
    "files without end": lambda about, tar: (about | {"members": about["members"] * 20_000}, tar),
    "no description": lambda about, tar: ([], tar),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_pack(kind, packed, tmp_path):
    """Whatever a stranger packs, a sentence says that it is not opened, and nothing is written anywhere."""
    path = hostile_pack(packed, HOSTILE[kind], tmp_path / "evil.tar.zst")
    with pytest.raises(CiterecError, match="is not opened: .*\\. Fetch it again, or ask its maker"):
        citerec.get(path, tmp_path / "folder" / "corpus", progress=False)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["evil.tar.zst"]
    assert not os.path.exists("/tmp/escaped-from-a-pack")


def test_flipped_bytes(packed, tmp_path):
    """A byte that was changed on the way is noticed, wherever it is."""
    content = packed.read_bytes()
    for place in (0, 9, 40, 90, 1000, len(content) // 2, len(content) - 1):
        (tmp_path / "flipped").write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(CiterecError, match="is not opened"):
            citerec.get(tmp_path / "flipped", tmp_path / "corpus", progress=False)
        assert not (tmp_path / "corpus").exists()


DUMP = {"title": "Attention", "categories": "cs.CL", "abstract": "We attend.",
        "authors_parsed": [["Vaswani", "A.", ""]],
        "versions": [{"version": "v1", "created": "Mon, 12 Jun 2017 17:57:34 GMT"}], "update_date": "2023-08-03"}


def dump_of(works) -> bytes:
    """The metadata dump of arXiv, zipped: a line for each work that has a DOI."""
    lines = [DUMP | {"id": f"1706.{i:05d}", "doi": work["doi"].removeprefix("https://doi.org/"), "title": work["title"]}
             for i, work in enumerate(works)]
    lines.append(DUMP | {"id": "1706.99999", "categories": "math.GT"})
    with zipfile.ZipFile(packed := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("arxiv-metadata-oai-snapshot.json", "\n".join(map(json.dumps, lines)))
    return packed.getvalue()


def anthology_of(works) -> bytes:
    """The repository of the ACL Anthology, as GitHub packs it."""
    papers = "".join(f"<paper id='{i}'><title>{work['title']}</title><abstract>We attend.</abstract>"
                     f"<doi>{work['doi'].removeprefix('https://doi.org/')}</doi></paper>"
                     for i, work in enumerate(works, 1))
    text = ("<?xml version='1.0' encoding='UTF-8'?><collection id='2023.acl'><volume id='long' type='proceedings'>"
            f"<meta><booktitle>ACL</booktitle><year>2023</year><venue>acl</venue></meta>{papers}</volume></collection>")
    with tarfile.open(fileobj=(packed := io.BytesIO()), mode="w:gz") as archive:
        for name, content in (("data/xml/2023.acl.xml", text), ("data/yaml/venues/acl.yaml", "acronym: ACL\n")):
            (about := tarfile.TarInfo(f"acl-anthology-master/{name}")).size = len(content.encode())
            archive.addfile(about, io.BytesIO(content.encode()))
    return packed.getvalue()


@pytest.fixture
def services(monkeypatch):
    """OpenAlex and Crossref on this machine, and some works that have a DOI of a publisher."""
    nothing = Response({"message": {"items": [], "total-results": 0}})
    with OpenAlexServer(150) as openalex, Loopback(lambda asked: nothing) as crossref:
        monkeypatch.setenv("OPENALEX_URL", openalex.url)
        monkeypatch.setenv("CITEREC_OPENALEX_URL", openalex.url)
        monkeypatch.setenv("CITEREC_CROSSREF_URL", crossref.url)
        yield [w for w in openalex.works.values() if w["doi"] and "10.1000" in w["doi"] and w["title"]]


@pytest.mark.parametrize("name", recipes())
def test_recipe(name, services, tmp_path):
    """A recipe is followed whole, the services being doubles; so is the update of what it built."""
    works, told = services[-8 if name == "mine" else -24 :], []  # Crossref is asked ten times a second at most
    content = {"arxiv-cs": dump_of(works[:-1]), "acl": anthology_of(works[:-1])}.get(name, b"")
    if name == "mine":
        (tmp_path / "refs.bib").write_text("".join(
            f"@article{{k{i}, title={{{w['title']}}}, doi={{{w['doi']}}}, year={{2020}}}}\n"
            for i, w in enumerate(works[:-1])))
    here = [content]
    with Loopback(lambda asked: file_reply(here[-1], asked)) as server:
        choices = {"arxiv-cs": {"file": [f"{server.url}/arxiv"]}, "acl": {"dir": f"{server.url}/acl.tar.gz"},
                   "mine": {"file": [str(tmp_path / "refs.bib")], "expand_max": 5},
                   "openalex-ai": {"max": 30, "expand_max": 5, "repair": 0}}[name]
        with citerec.get(name, tmp_path / "built", progress=False, agree=lambda said: told.append(said) or True,
                         **choices) as corpus:
            assert corpus.check() == [] and corpus.made_here
            counts, recipe = corpus.manifest["counts"], corpus.manifest["recipe"]
            papers = corpus.papers(corpus.ids)
        assert counts["papers"] >= len(works) - 1 and counts["edges"] > 0
        assert all(p.doi or p.arxiv_id for p in papers) or name == "openalex-ai"
        assert recipe["source"] == list(recipes()[name].source)
        assert "licence" in told[0] and "size" in told[0] and "time" in told[0]
        here.append({"arxiv-cs": dump_of(works), "acl": anthology_of(works)}.get(name, b""))
        with citerec.update(tmp_path / "built", progress=False) as corpus:
            assert len(corpus) == counts["papers"] + (name in ("arxiv-cs", "acl"))
    with pytest.raises(CiterecError, match="Nothing was fetched"):
        citerec.get(name, tmp_path / "no", progress=False, agree=lambda said: False, **choices)
    assert not (tmp_path / "no").exists()


def test_file_of_a_recipe(services, tmp_path):
    """What came as a file, packed after an update, is updated by its services; its user has to allow that first."""
    choices = {"max": 10, "expand_max": 2, "repair": 0}
    citerec.get("openalex-ai", tmp_path / "built", progress=False, **choices).close()
    citerec.update(tmp_path / "built", progress=False).close()
    packed = citerec.pack(tmp_path / "built", tmp_path / "ai.tar.zst", progress=False)
    with citerec.get(packed, tmp_path / "got", progress=False) as corpus:
        before = corpus.ids
        assert corpus.manifest["licence"] == "CC0-1.0" and corpus.manifest["recipe"]["max"] == 10
    with pytest.raises(CiterecError, match="citerec trust"):
        citerec.update(tmp_path / "got", progress=False)
    trust(tmp_path / "got/manifest.json")
    with citerec.update(tmp_path / "got", progress=False) as corpus:
        assert corpus.ids == before and corpus.check() == []


def test_citations_of_any_source(services, tmp_path):
    """`citations` joins the papers of any source by DOI; a pack of the result has no path of this machine in it."""
    works = services[-3:]
    lines = [{"paper_id": f"p{i}", "title": w["title"], "doi": w["doi"]} for i, w in enumerate(works)]
    (tmp_path / "papers.jsonl").write_text("\n".join(map(json.dumps, lines)))
    a, b, c = (line["doi"].removeprefix("https://doi.org/") for line in lines)
    table = f"oci,citing,cited,creation\n1,{a},{b},2020\n2,omid:br/1 doi:{b},omid:br/2 doi:{c.upper()},2020\n"
    (tmp_path / "index.csv.gz").write_bytes(gzip.compress(table.encode()))
    with citerec.build(tmp_path / "built", tmp_path / "papers.jsonl", progress=False,
                       citations=[str(tmp_path / "index.csv.gz")]) as corpus:
        assert {(corpus.ids[i], corpus.ids[j]) for i, j in corpus.store.by_row.edges()} == {("p0", "p1"), ("p1", "p2")}
    with citerec.get(citerec.pack(tmp_path / "built", tmp_path / "p", progress=False), tmp_path / "again") as corpus:
        assert "recipe" not in corpus.manifest and str(tmp_path) not in json.dumps(corpus.manifest)
        assert [p.doi for p in corpus.papers(corpus.ids)] == [a, b, c]
