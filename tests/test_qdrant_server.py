"""A real Qdrant server or cluster answers as the indexes of a corpus folder do."""

import os
import uuid

import numpy as np
import pytest

URL = os.environ.get("CITEREC_TEST_QDRANT_URL")
KEY = os.environ.get("CITEREC_TEST_QDRANT_API_KEY")
PAPERS, DIM, CUT = 5000, 64, 1700
LAYOUTS = {
    "plain": {},
    "quantised": {"quantised": True, "on_disk": True},
    "two of each": {"shards": 2, "replicas": 2},
}
QUERY = "word1 word7 word30"

pytestmark = pytest.mark.skipif(not URL, reason="CITEREC_TEST_QDRANT_URL names no Qdrant server")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Random vectors, texts and columns, with the indexes of a corpus folder."""
    from citerec.indexes.lexical import LexicalIndex
    from citerec.indexes.vectors import ExactIndex, PaperColumns

    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(PAPERS, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    often = 1 / np.arange(1, 301)
    texts = [" ".join(f"word{i}" for i in rng.choice(300, 40, p=often / often.sum())) for _ in range(PAPERS)]
    concepts = [("even",) if i % 2 == 0 else () for i in range(PAPERS)]
    years, counts = rng.integers(1990, 2025, PAPERS), rng.integers(0, 1000, PAPERS)
    columns = PaperColumns([f"p{i}" for i in range(PAPERS)], years, counts, concepts)
    LexicalIndex.build(tmp_path_factory.mktemp("words") / "lexical", texts)
    lexical = LexicalIndex(tmp_path_factory.getbasetemp() / "words0" / "lexical")
    return vectors, texts, columns, ExactIndex(vectors, columns), lexical


def connected(columns, name, layout):
    """The index on the server, in a collection of its own."""
    from citerec.indexes.qdrant import Layout, ServerIndex

    return ServerIndex.connect(URL, name, columns, KEY, Layout(**layout), timeout=60)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_server_answers_as_the_folder(corpus, layout):
    """Meaning, words and filters agree after an upload that was cut off and continued."""
    from citerec.ground.schema import SearchFilter

    vectors, texts, columns, exact, lexical = corpus
    server = connected(columns, f"citerec-test-{uuid.uuid4().hex}", LAYOUTS[layout])
    try:
        server.upload(vectors[:CUT], lambda start, stop: texts[start : min(stop, CUT)])
        server.client.delete(server.collection, list(range(500, 700)), wait=True)
        server.upload(vectors, lambda start, stop: texts[start:stop])
        assert server.client.count(server.collection, exact=True).count == PAPERS
        for filters in (SearchFilter(), SearchFilter(year_min=2000, min_citations=100, concepts=["even"])):
            mask = columns.mask(filters)
            shared = [{*server.search(v, 20, filters)[0]} & {*exact.search(v, 20, filters)[0]} for v in vectors[:50]]
            assert np.mean([len(rows) / 20 for rows in shared]) > 0.95
            rows, scores = server.words(QUERY, 20, filters)
            assert mask is None or mask[rows].all()
            # each shard counts for itself how rare a word is
            np.testing.assert_allclose(scores, lexical.search(QUERY, 20, mask)[1], rtol=0.1)
            assert len(server.fused(vectors[0], QUERY, 10, filters)[0]) == 10
    finally:
        server.client.delete_collection(server.collection)
        server.close()
