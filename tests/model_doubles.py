"""A language model may add, not take away: doubles of seven kinds of models beside citerec without a model.

    python tests/model_doubles.py [--corpus FOLDER] [--queries FILE.jsonl.gz] [--n 40] [--doubles lying echoing ...]

Without a corpus, the sample and its own texts are taken. A file of queries has rows of `text`, `relevant` (ids), and
where known `citing_id` and `year`. The table has one row for each double: Recall@10 and mean reciprocal rank of the
first right paper for `recommend` and `search`, and the questions whose answer has the word that it needs, for `ask` and
for a library of PDFs. Exit code 1: a model has made something worse.
"""

import argparse
import gzip
import itertools
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import citerec
from citerec.asking.library import Library
from citerec.settings import load_settings
from citerec.testing.chat import DOUBLES, ChatServer
from citerec.testing.pdfs import write_paper

QUESTIONS = (  # to the sample corpus: a question, a word that an answer needs, and the id of a paper with it
    ("What does dropout remove during training?", "units", "sample:srivastava2014dropout"),
    ("How many parameters does GPT-3 have?", "175 billion", "arxiv:2005.14165"),
    ("What does the Transformer dispense with?", "recurrence", "arxiv:1706.03762"),
    ("Which averages does the optimiser Adam keep?", "gradient", "arxiv:1412.6980"),
    ("What is BERT pre-trained on?", "masked", "arxiv:1810.04805"),
    ("How many Atari games did the deep Q-network play?", "49", "doi:10.1038/nature14236"),
    ("How many questions does SQuAD have?", "100 thousand", "arxiv:1606.05250"),
    ("How many layers does GoogLeNet have?", "22", "arxiv:1409.4842"),
    ("Why do standard recurrent networks lose error signals?", "time steps", "doi:10.1162/neco.1997.9.8.1735"),
    ("What do generative adversarial nets set up?", "game", "arxiv:1406.2661"),
    ("What is the bottleneck of encoder-decoder translation?", "vector", "arxiv:1409.0473"),
    ("How many image-text pairs was CLIP trained on?", "400 million", "arxiv:2103.00020"),
    ("What does batch normalization normalise?", "normali", "arxiv:1502.03167"),
    ("How many parameters does PaLM have?", "540 billion", "arxiv:2204.02311"),
    ("What is GloVe learned from?", "co-occurrence", "doi:10.3115/v1/D14-1162"),
    ("How does self-attention cost grow with sequence length?", "quadratic", "arxiv:1904.10509"),
    ("What do CIFAR-10 images consist of?", "32", "sample:krizhevsky2009learning"),
    ("What is weight decay not equivalent to L2 regularisation for?", "adaptive", "arxiv:1711.05101"),
    ("What does ELMo give each word?", "vector", "arxiv:1802.05365"),
    ("How many tasks does GLUE have?", "nine", "arxiv:1804.07461"),
)
TEXTS = (  # for recommendations from the sample: a text, and the paper that it needs
    ("We drop recurrence and rely on self-attention only, as in [CITATION].", "arxiv:1706.03762"),
    ("We train with an adaptive optimiser with moment estimates [CITATION].", "arxiv:1412.6980"),
    ("Random units are removed during training to prevent overfitting [CITATION].", "sample:srivastava2014dropout"),
    ("A generator and a discriminator play a game [CITATION].", "arxiv:1406.2661"),
    ("Residual connections make very deep networks trainable [CITATION].", "arxiv:1512.03385"),
    ("Few-shot abilities emerge in large language models [CITATION].", "arxiv:2005.14165"),
    ("We evaluate on reading comprehension questions about Wikipedia articles [CITATION].", "arxiv:1606.05250"),
    ("Word vectors are learned from global co-occurrence counts [CITATION].", "doi:10.3115/v1/D14-1162"),
)
OFFLINE = "offline"


@dataclass(frozen=True)
class Query:
    """A text, the papers that it needs, and limits that keep its own document out."""

    text: str
    relevant: tuple[str, ...]
    limits: dict


def queries_of(path: str | None, n: int, corpus) -> list[Query]:
    """The first queries of a file, or those of the sample."""
    if path is None: return [Query(text, (paper,), {}) for text, paper in TEXTS[:n]]
    with gzip.open(path, "rt", encoding="utf-8") as rows: read = [json.loads(row) for row in itertools.islice(rows, n)]
    def limits(row: dict) -> dict:
        own = row.get("citing_id")
        return ({"exclude_ids": [own]} if own in corpus.columns.row_of else {}) | (
            {"year_max": row["year"] + 1} if row.get("year") else {})
    return [Query(row["text"], tuple(row["relevant"]), limits(row)) for row in read]


def figures(found: list[str], query: Query) -> tuple[float, float]:
    """Recall@10 and the reciprocal rank of the first right paper."""
    first = next((1 / rank for rank, paper in enumerate(found, 1) if paper in query.relevant), 0.0)
    return len({*found[:10]} & {*query.relevant}) / len(query.relevant), first


def without_marks(text: str) -> str:
    """The words of a text as a searcher types them."""
    return " ".join(text.replace("[CITATION]", "").replace("[OTHERCIT]", "").split())[:380]


def library_of(folder: Path, corpus, questions, settings) -> Path:
    """A library of PDFs with the summaries of the papers that the questions need."""
    for number, paper in enumerate(corpus.papers([paper for *_, paper in questions])):
        write_paper(folder / f"{number}.pdf", paper.title, ", ".join(paper.authors) or "A. Author",
                    [("Abstract", paper.abstract), ("1 Introduction", paper.abstract)])
    path = folder / "library.db"
    with Library.open(path, settings) as library: library.add(folder, progress=False)
    return path


def row_of(settings, corpus_name: str, queries, questions, pdfs: Path | None) -> dict[str, float]:
    """What one model leads to."""
    out: dict[str, float] = {}
    recommender = citerec.load(corpus_name, **settings)
    recommended, searched = [], []
    for q in queries:
        recommended.append(figures([r.paper_id for r in recommender.recommend(q.text, k=10, **q.limits)], q))
        asked = without_marks(q.text)
        if asked: searched.append(figures([r.paper.paper_id for r in recommender.search(asked, k=10, **q.limits)], q))
    for name, values in (("recommend", recommended), ("search", searched)):
        if values: out[f"{name} R@10"], out[f"{name} MRR"] = (sum(v) / len(v) for v in zip(*values, strict=True))
    here = recommender if corpus_name == "sample" else citerec.load("sample", **settings)
    answers = [here.ask(question).text for question, *_ in questions]
    out["ask"] = sum(word in answer for (_, word, _), answer in zip(questions, answers, strict=True))
    if pdfs:
        with Library.open(pdfs, load_settings(**settings)) as library:
            said = [library.ask(question).text for question, *_ in questions]
        out["library ask"] = sum(word in answer for (_, word, _), answer in zip(questions, said, strict=True))
        answers += said
    out["thoughts"] = sum(mark in answer for answer in answers for mark in ("think", "retracted", "Okay, "))
    return out


def table(doubles, corpus_name="sample", path=None, n=40, questions=QUESTIONS, library=True, timeout=1.0,
          say=print) -> tuple[dict[str, dict[str, float]], list[str]]:
    """A row for each double, and what is worse than without a model."""
    sample = citerec.load("sample", preset=OFFLINE).corpus
    corpus = sample if corpus_name == "sample" else citerec.load(corpus_name, preset=OFFLINE).corpus
    queries, rows, worse = queries_of(path, n, corpus), dict[str, dict[str, float]](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        pdfs = library_of(Path(folder), sample, questions, load_settings(OFFLINE)) if library else None
        for name in (OFFLINE, *doubles):
            with ChatServer(DOUBLES.get(name, lambda body: "")) as server:
                service = dict(preset="compatible", llm_base_url=server.url, llm_model=name, llm_cache="off",
                               **({"llm_timeout": timeout} if name == "slow" else {}))
                settings = {"preset": OFFLINE} if name == OFFLINE else service
                rows[name] = row_of(settings, corpus_name, queries, questions, pdfs)
            say(f"{name:9} " + "  ".join(f"{what} {value:.{4 if '@' in what or 'MRR' in what else 0}f}"
                                         for what, value in rows[name].items()))
            worse += [f"{name}: {what} {value:.4f} instead of {rows[OFFLINE][what]:.4f}"
                      for what, value in rows[name].items()
                      if (value > rows[OFFLINE][what] if what == "thoughts" else value < rows[OFFLINE][what] - 1e-9)]
    return rows, worse


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="sample", help="a corpus folder (default: the sample)")
    parser.add_argument("--queries", help="a file of queries, *.jsonl.gz (default: texts on the sample)")
    parser.add_argument("--n", type=int, default=40, help="queries that are taken (default: 40)")
    parser.add_argument("--doubles", nargs="*", default=list(DOUBLES), choices=list(DOUBLES))
    args = parser.parse_args()
    _, worse = table(args.doubles, args.corpus, args.queries, args.n, say=lambda line: print(line, flush=True))
    print("\n".join(worse) or "no model has made anything worse")
    return 1 if worse else 0


if __name__ == "__main__": sys.exit(main())
