"""What is written into the folder of a corpus that somebody else made stays in it, and nothing in it decides more."""

import json
import os
import shutil
from pathlib import Path

import pytest

from citerec.ground.errors import CiterecError, CorpusError
from citerec.ground.files import distrust, is_trusted, trust
from citerec.ground.schema import Paper
from citerec.ranking import building, catalogue
from citerec.ranking.corpus import Corpus, repair_corpus
from citerec.sources.source import ListSource

PAPERS = [Paper(paper_id=f"p{i}", title=f"Parsing of trees {i}", abstract=f"We parse trees {i}.") for i in range(3)]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A corpus of a folder of records, with its recipe and a vector index."""
    home = tmp_path_factory.mktemp("built")
    (home / "records").mkdir()
    (home / "records/papers.jsonl").write_text("\n".join(p.model_dump_json() for p in PAPERS))
    catalogue.build(home / "corpus", home / "records", progress=False, index="qdrant").close()
    return home / "corpus"


@pytest.fixture
def foreign(built, tmp_path) -> Path:
    """A copy of it, which nobody has trusted in its place."""
    shutil.copytree(built, tmp_path / "foreign")
    return tmp_path / "foreign"


@pytest.fixture
def victim(tmp_path) -> Path:
    """A folder of the user, with entries that have names of parts."""
    place = tmp_path / "victim"
    for name in ("vectors/a", "photos/1", "pages/ab/x", "learned/y", "corpus.db", "report.txt", "lexical/z"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("kept")
    return place


def state(place: Path) -> dict:
    """All files below a folder."""
    return {str(p.relative_to(place)): p.read_bytes() if p.is_file() else b"" for p in place.rglob("*")}


def unfinished(folder: Path) -> None:
    """Turn a whole corpus into a build that was interrupted, as its maker would."""
    manifest = json.loads((folder / "manifest.json").read_text())
    with building.Store(folder / "corpus.db", write=True) as store, store.batch():
        for part in building.PARTS:
            store.set_meta(f"checksums {part}", json.dumps(building.sums_of(part, manifest["checksums"])))
    (folder / "manifest.json").unlink()


def again(folder: Path) -> None:
    """The build that the user continues."""
    records = folder.parent / "records"
    catalogue.build(folder, records, progress=False, index="qdrant").close()


# --- Links in places that are written ------------------------------------------------------------------------------


def a_ranker(folder: Path) -> None:
    from types import SimpleNamespace
    from unittest.mock import patch

    from citerec.evaluation import fitting

    with patch.object(fitting, "checked_trees"):
        fitting.save_ranker(folder / "ranker", SimpleNamespace(model_to_string=lambda: "tree"), None, [])


def an_encoder(folder: Path) -> None:
    import numpy as np

    from citerec.ranking.mentions import save_tuned

    save_tuned(folder / "encoder", "0" * 64, [0], {"a": np.zeros(1)}, [])


def a_prompt(folder: Path) -> None:
    from types import SimpleNamespace

    from citerec.agents.prompts import keep_program

    keep_program(folder, SimpleNamespace(number=1, model_dump=lambda mode: {}))


def a_run(folder: Path) -> None:
    from types import SimpleNamespace

    from citerec.evaluation.optimising import _alone, keep_run

    with _alone(folder):
        keep_run(folder, SimpleNamespace(run="1", model_dump=lambda mode: {}))


def a_page(folder: Path) -> None:
    from citerec.sources import services

    path = services._page_path(folder / "pages", services._Request("http://127.0.0.1/x", bytes))
    if not (folder / "pages").is_symlink():
        (folder / "pages").mkdir()
        path.parent.symlink_to(folder.parent / "victim/photos")
    services._keep_page(path, services.Page(url="", status=200, fetched="", body=b""))


def an_embedding(folder: Path) -> None:
    from citerec.ranking.sample import embed_corpus

    with Corpus.open(folder) as corpus:
        embed_corpus(corpus, corpus.embedder.name)


WRITERS = [
    ("ranker", a_ranker),
    ("encoder", an_encoder),
    ("prompts", a_prompt),
    ("prompts/learned", a_prompt),
    ("prompts", a_run),
    ("prompts/learned", a_run),
    ("pages", a_page),
    ("", a_page),
    ("embeddings", an_embedding),
]


@pytest.mark.parametrize("name, write", WRITERS, ids=[f"{w.__name__}-{n}" for n, w in WRITERS])
def test_links_that_are_written(name, write, foreign, victim):
    """A link in the place of a folder is refused with a sentence, and nothing is written through it."""
    if name:
        (foreign / name).parent.mkdir(exist_ok=True)
        (foreign / name).symlink_to(victim)
    before = state(victim)
    with pytest.raises(CiterecError, match="is a link"):
        write(foreign)
    assert state(victim) == before


@pytest.mark.parametrize("part", ["contexts", "vectors", "lexical"])
@pytest.mark.parametrize("whole", [True, False])
def test_links_in_place_of_parts(part, whole, foreign, victim, built):
    """A build or a repair removes the link, never what it leads to, whatever the checksums of the maker name."""
    shutil.copytree(built.parent / "records", foreign.parent / "records")
    source = catalogue.source_of(catalogue.recipe_of([str(foreign.parent / "records")], {}), foreign / "pages")
    shutil.rmtree(foreign / part, ignore_errors=True)
    (foreign / part).symlink_to(victim)
    before = state(victim)
    manifest = building.read_manifest(foreign)
    manifest["checksums"] |= {f"{part}/photos/1": (1, 1, ""), f"{part}/vectors/a": (1, 1, "")}
    building.write_manifest(foreign, manifest)
    distrust(foreign)
    if not whole:
        unfinished(foreign)
    Corpus.build(foreign, source, progress=False).close()
    assert state(victim) == before
    assert not (foreign / part).is_symlink()


@pytest.mark.parametrize("name", ["update-1", "update-2"])
def test_links_in_place_of_updates(name, foreign, victim, built):
    """A build, which removes old updates, removes nothing through a link; an update neither."""
    shutil.copytree(built.parent / "records", foreign.parent / "records")
    (foreign / name).symlink_to(victim)
    before = state(victim)
    for step in (lambda: Corpus.update(foreign, ListSource(PAPERS), progress=False).close(),
                 lambda: Corpus.update(foreign, ListSource(PAPERS[:2]), progress=False).close(),
                 lambda: (foreign / "manifest.json").unlink(missing_ok=True), lambda: again(foreign)):
        try:
            step()
        except CiterecError as e:
            print(e)
        assert state(victim) == before


# --- What a manifest decides ---------------------------------------------------------------------------------------

RECIPES = [{"source": ["bib"], "file": ["/etc/passwd"]}, {"source": ["/etc"]}, {"source": ["openalex"]},
           {"source": ["openalex-snapshot"], "dir": "s3://elsewhere/works"}, {"source": ["acl"], "dir": "/root"},
           {"source": ["bib"], "file": [], "match": "/srv/corpus"}]


def with_recipe(folder: Path, recipe: dict) -> None:
    """Write another recipe, as somebody else would."""
    building.write_manifest(folder, building.read_manifest(folder) | {"recipe": recipe})
    distrust(folder)


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_recipe_of_a_stranger(recipe, foreign, monkeypatch):
    """An update reads and asks nothing that the manifest of a stranger names; the sentence says what it would be."""
    with_recipe(foreign, recipe)
    asked = []
    monkeypatch.setattr(catalogue, "source_of", lambda *a: asked.append(a) or ListSource(PAPERS))
    with pytest.raises(CorpusError, match="made elsewhere"):
        catalogue.update_sources(foreign, progress=False)
    assert not asked


def test_recipe_is_not_laundered(foreign):
    """A repair, and an update from a source that the user named, do not make a stranger's recipe this user's."""
    with_recipe(foreign, RECIPES[0])
    (foreign / "graph.npz").unlink()
    repair_corpus(foreign, progress=False)
    assert not is_trusted(foreign / "manifest.json")
    Corpus.update(foreign, ListSource(PAPERS), progress=False).close()
    assert "recipe" not in building.read_manifest(foreign)
    with pytest.raises(CorpusError, match="does not say how"):
        catalogue.update_sources(foreign, progress=False)


def test_trusted_recipe(foreign, built):
    """After `citerec trust` it is obeyed."""
    trust(foreign / "manifest.json")
    catalogue.update_sources(foreign, progress=False).close()
    assert (foreign / "update-1/corpus.db").exists()


def test_unfinished_build_of_a_stranger(foreign, built):
    """The vector index, whose library trusts its files, is made again; that of this user's own build is kept."""
    shutil.copytree(built.parent / "records", foreign.parent / "records")
    own = foreign.parent / "own"
    again(own)
    for folder, kept in ((foreign, False), (own, True)):
        unfinished(folder)
        os.utime(folder / "qdrant/edge_config.json", (1, 1))
        again_from = catalogue.source_of(catalogue.recipe_of([str(built.parent / "records")], {}), folder / "pages")
        Corpus.build(folder, again_from, progress=False, index="qdrant").close()
        assert ((folder / "qdrant/edge_config.json").stat().st_mtime == 1) is kept
