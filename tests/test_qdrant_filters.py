"""Every limit of a filter means the same in Qdrant, embedded and as a server, as in the columns of a corpus."""

import os
import uuid
import warnings

import numpy as np
import pytest

from citerec.ground.schema import Paper, SearchFilter

URL = os.environ.get("CITEREC_TEST_QDRANT_URL")  # a real server, which is then tested in place of the client in memory
KEY = os.environ.get("CITEREC_TEST_QDRANT_API_KEY")
ROUNDS = 25  # filters of each single limit, and four times as many of several


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    """The records of the corpus that ships, some with labels that few papers have, and every index of them."""
    from qdrant_client import QdrantClient

    import citerec
    from citerec.indexes.qdrant import EmbeddedIndex, ServerIndex
    from citerec.indexes.vectors import LabelColumns, PaperColumns

    corpus = citerec.load().corpus
    rng = np.random.default_rng(39)
    papers = [with_labels(paper, rng) for paper in corpus.papers(list(corpus.ids))]
    by_id = {paper.paper_id: paper for paper in papers}

    def sparse(name):
        return {row: str(value) for row, paper in enumerate(papers) if (value := getattr(paper, name))}

    labels = LabelColumns(
        len(papers),
        lambda: [p.authors for p in papers],
        lambda: [p.title for p in papers],
        lambda: [p.venue or "" for p in papers],
        sparse,
    )
    columns = PaperColumns(
        corpus.ids,
        np.array([p.year or 0 for p in papers]),
        np.array([p.citation_count or 0 for p in papers]),
        [tuple(c.lower() for c in p.concepts) for p in papers],
        labels,
        records=lambda ids: [by_id[i] for i in ids],
    )
    vectors = rng.normal(size=(len(papers), 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    EmbeddedIndex.build(tmp_path_factory.mktemp("index") / "qdrant", vectors, columns)
    embedded = EmbeddedIndex(tmp_path_factory.getbasetemp() / "index0" / "qdrant", columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name = f"citerec-test-{uuid.uuid4().hex}"
        memory = ServerIndex(QdrantClient(":memory:"), name, columns)
        server = ServerIndex.connect(URL, name, columns, KEY) if URL else memory
        server.upload(vectors, lambda start, stop: [p.title for p in papers[start:stop]], senders=1)
    yield papers, columns, vectors, (embedded, server)
    server.client.delete_collection(name)
    server.close()
    embedded.close()


def with_labels(paper: Paper, rng) -> Paper:
    """A paper with made-up values where the records of the corpus have none."""
    return paper.model_copy(
        update={
            "year": None if rng.random() < 0.05 else paper.year,
            "language": str(rng.choice(["EN", "fr", "de"])) if rng.random() < 0.2 else None,
            "awards": ("Best Paper",) if rng.random() < 0.1 else (),
            "bibkey": f"Key{rng.integers(300)}" if rng.random() < 0.5 else None,
            "venue": paper.venue or str(rng.choice(["NIPS 2017", "NAACL-HLT", "Findings of the ACL: EMNLP 2021"])),
            "title": "!?" if rng.random() < 0.01 else paper.title,
        }
    )


def limit_of(name: str, papers: list[Paper], rng):
    """A value for one limit, mostly one that some papers fit."""
    paper = papers[rng.integers(len(papers))]
    words = paper.title.split()
    first = rng.integers(len(words))
    people = [part for author in paper.authors for part in (author, author.split()[-1], f"{author[0]}. {author[1:]}")]
    ids = tuple(papers[row].paper_id for row in rng.integers(len(papers), size=300))
    values = {
        "year_min": int(rng.integers(1990, 2026)),
        "year_max": int(rng.integers(1990, 2026)),
        "written": int(rng.integers(1990, 2026)),
        "min_citations": int(rng.integers(0, 200)),
        "concepts": tuple(c.upper() for c in paper.concepts[:2]) or ("none",),
        "authors": (str(rng.choice(people)) if people and rng.random() < 0.9 else "?",),
        "title_words": (" ".join(words[first : first + rng.integers(1, 4)]),),
        "venues": (str(rng.choice([paper.venue, "NeurIPS", "ACL", "findings of emnlp", "ICML"])),),
        "language": str(rng.choice(["en", "EN", "fr", "nl"])),
        "has_awards": bool(rng.random() < 0.5),
        "bibkey": f"kEy{rng.integers(300)}",
        "exclude_ids": ids,
        "within_ids": (*ids, "nobody"),
        "known_ids": ids,
        "again": bool(rng.random() < 0.5),
    }
    return values[name]


NAMES = [name for name in SearchFilter.model_fields]


def allowed_by(index, filters, papers, vectors) -> list[int]:
    """The papers that an index allows: all that a search for as many as there are gives."""
    return sorted(index.search(vectors[0], papers, filters)[0].tolist())


def check(indexes, chosen, rng) -> int:
    """Compare the indexes with the columns for a filter of these limits; gives how many papers it allows."""
    papers, columns, vectors, both = indexes
    limits = {name: limit_of(name, papers, rng) for name in chosen}
    if {"year_min", "year_max"} <= limits.keys():
        limits["year_max"] = limits["year_min"] + int(rng.integers(0, 20))
    filters = SearchFilter(**limits)
    mask = columns.mask(filters)
    wanted = list(range(len(papers))) if mask is None else np.flatnonzero(mask).tolist()
    for index in both:
        assert allowed_by(index, filters, len(papers), vectors) == wanted, (index.name, filters)
    return len(wanted)


@pytest.mark.parametrize("name", NAMES)
def test_each_limit(indexes, name):
    """A filter of one limit allows the same papers everywhere, and not always all of them or none."""
    rng = np.random.default_rng(NAMES.index(name))
    allowed = {check(indexes, [name], rng) for _ in range(ROUNDS)}
    assert name == "again" or len(allowed) > 1


def test_limits_together(indexes):
    """Filters of several random limits."""
    rng = np.random.default_rng(7)
    allowed = [check(indexes, rng.choice(NAMES, rng.integers(2, 5), replace=False), rng) for _ in range(4 * ROUNDS)]
    assert sum(0 < n < len(indexes[0]) for n in allowed) > ROUNDS
