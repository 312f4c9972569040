"""The sample corpus is sound, and what its makers wrote never counts as a citation."""

import pytest
from conftest import ROOT, python

from citerec.evaluation.benchmark import make_examples, marker_queries
from citerec.evaluation.fitting import paragraph_queries, sentence_queries, training_queries
from citerec.frontends.commands import examples_of
from citerec.ground.errors import InputError
from citerec.ranking.sample import open_corpus


def test_sample_is_sound():
    """The script that checks schema, titles, years, edges and sentences finds nothing."""
    python(ROOT / "data" / "check_sample.py")


def test_no_example_is_made_of_our_own_sentences():
    """Queries, training examples and examples for prompts are made of sentences by papers, and the sample has none."""
    with open_corpus("sample") as sample:
        counts = sample.manifest["counts"]
        assert (counts["contexts"], counts["ours"]) == (0, 2 * len(sample))
        assert sample.store.contexts() == sample.store.by_row.contexts_by_paper() == []
        assert make_examples(sample)[0] == marker_queries(sample) == []
        assert sentence_queries(sample, 9, set(), 0) == paragraph_queries(sample, 9, set(), 0) == []
        assert {query.query_id.partition(":")[0] for query in training_queries(sample, abstracts=9)} == {"abstract"}
        with pytest.raises(InputError, match="no citing sentences"):
            examples_of(sample, 9, print)


def test_each_document_of_ours_is_of_one_paper():
    """Our sentences on two papers share no document, so no count of documents takes them for a co-citation."""
    with open_corpus("sample") as sample:
        of_paper = {(c.citing_id, c.cited_id) for c in sample.store.contexts(ours=True)}
        assert len(of_paper) == len({document for document, _ in of_paper}) == len(sample)
        assert not {document for document, _ in of_paper} & sample.columns.row_of.keys()
