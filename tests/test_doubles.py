"""No kind of language model makes an answer worse than it is without one: the short form of model_doubles.py."""

import pytest
from model_doubles import QUESTIONS, table


@pytest.fixture(scope="module")
def compared():
    return table(["echoing", "lying", "twisting", "thinking", "silent"], n=2, questions=QUESTIONS[:2], library=False,
                 say=lambda line: None)


def test_nothing_is_worse(compared):
    assert compared[1] == []


def test_no_thought_is_shown(compared):
    assert [row["thoughts"] for row in compared[0].values()] == [0] * 6


def test_the_offline_answers_hold(compared):
    assert compared[0]["offline"]["ask"] == 2
