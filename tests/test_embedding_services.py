"""Embeddings by a service in answers: what is sent, and what happens if the service is gone; devices that do not exist."""

import pytest

import citerec
from citerec.ground.errors import InputError
from citerec.ground.settings import load_settings
from citerec.ranking.catalogue import build
from citerec.ranking.sample import embed_corpus, open_corpus
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
