"""Embeddings by a service in answers: what is sent, what happens if it is gone; and devices that do not exist."""

import json
import shutil

import pytest

import citerec
from citerec.frontends.cli import main
from citerec.ground.errors import InputError
from citerec.ground.settings import load_settings
from citerec.indexes.models import find_model
from citerec.ranking.catalogue import build
from citerec.ranking.corpus import Corpus
from citerec.ranking.sample import FurtherEmbedding, embed_corpus, embeddings_of, open_corpus
from citerec.sources.source import ListSource
from citerec.testing.chat import ChatServer

DRAFT = "Random forests average many trees that were grown on bootstrap samples."


@pytest.fixture(scope="module")
def server():
    """Give a service of embeddings."""
    with ChatServer(str) as service: yield service


@pytest.fixture(scope="module")
def folder(server, tmp_path_factory):
    """Build a corpus that has an embedding by the service."""
    with open_corpus("sample") as sample: papers = sample.papers(sample.ids[:150])
    settings = load_settings(embedding_base_url=server.url, llm_cache="off")
    with build(tmp_path_factory.mktemp("served") / "mine", ListSource(papers), settings, False) as corpus:
        assert embed_corpus(corpus, "compatible:m").dim == 16
        return corpus.folder


def recommended(folder, **choices):
    """Recommend for the draft: ids with confidences, and everything that was noted."""
    found = citerec.load(str(folder), llm_cache="off", min_confidence=0, **choices).recommend(DRAFT, k=10)
    return {paper.paper_id: paper.confidence for paper in found}, f"{found.state.metadata['notes']} {found.errors}"


def test_a_draft_is_sent_only_if_that_is_allowed(server, folder):
    """Without permission nothing is sent, and a note says how to give it."""
    before = len(server.requests)
    without, notes = recommended(folder, embedding_base_url=server.url)
    assert len(server.requests) == before
    assert "CITEREC_EMBEDDING_QUERIES=true" in notes
    with_it, notes = recommended(folder, embedding_base_url=server.url, embedding_queries=True)
    assert [DRAFT in str(body["input"]) for body in server.requests[before:]] == [True]
    assert "compatible:m" not in notes
    assert with_it != without


def test_a_service_that_is_gone_is_left_out(folder):
    """The rest of the search answers, with the vectors of the corpus, and a note says what was left out."""
    with ChatServer(str) as other: gone = other.url
    without, _ = recommended(folder, retrievers="bm25,dense")
    left, notes = recommended(folder, embedding_base_url=gone, embedding_queries=True)
    assert left == without == recommended(folder)[0]
    assert "embedding:compatible:m was not asked" in notes
    assert "BM25" not in notes


@pytest.mark.parametrize("device", ["cuda:77", "foo"])
def test_a_device_that_does_not_exist_is_one_sentence(device):
    """The error comes when a corpus is opened, and names the setting and a device that exists."""
    with pytest.raises(InputError, match="CITEREC_DEVICE: cpu"): citerec.load(device=device)


@pytest.fixture
def records(tmp_path):
    """Write a folder of records."""
    (tmp_path / "records").mkdir()
    papers = [{"paper_id": word, "title": f"On {word}"} for word in ("attention", "trees")]
    (tmp_path / "records" / "papers.jsonl").write_text("\n".join(map(json.dumps, papers)))
    return tmp_path / "records"


def test_build_names_its_model(records, capsys):
    """`--embedding` decides which model embeds; one that cannot be had, or is a service, is one sentence."""
    build_it = ["build", str(records.parent / "mine"), "--source", str(records), "--quiet", "--embedding"]
    for name, words in {"somebody/nothing": "neither a local folder", "compatible:m": "asked over the network"}.items():
        assert main([*build_it, name]) != 0
        assert words in capsys.readouterr().err
    assert main([*build_it, "bge-small-en-v1.5-int8"]) == 0
    with Corpus.open(records.parent / "mine") as corpus: assert corpus.manifest["model"] == "bge-small-en-v1.5-int8"


def test_a_model_in_a_folder_is_used_like_a_known_one(records, capsys):
    """`--like` puts the words of that model before the papers, so the vectors differ; an unknown one is refused."""
    folder, model = str(records.parent / "mine"), records.parent / "a-model"
    shutil.copytree(find_model("sentence-transformers/all-MiniLM-L6-v2"), model)
    (model / "README.md").unlink(missing_ok=True)
    config = json.loads((model / "config.json").read_text()) | {"_name_or_path": ""}
    (model / "config.json").write_text(json.dumps(config))
    assert main(["build", folder, "--source", str(records), "--quiet"]) == 0
    embed = ["embed", folder, "--quiet", "--model", str(model)]
    assert main([*embed, "--like", "a horse"]) != 0
    assert "no known model 'a horse'" in capsys.readouterr().err
    assert main(embed) == 0
    assert "--like intfloat/e5-large-v2" in capsys.readouterr().err
    assert main([*embed, "--like", "intfloat/e5-large-v2"]) == 0
    assert "--like" not in capsys.readouterr().err
    with Corpus.open(folder) as corpus:
        plain, like = (FurtherEmbedding(corpus, e, True) for e in sorted(embeddings_of(corpus), key=lambda e: e.model))
        assert like.embedder.card.query_instruction == "query: "
        assert (plain.index.vectors * like.index.vectors).sum(1).max() < .99
