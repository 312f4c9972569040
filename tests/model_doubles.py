"""A language model may add, not take away: doubles of seven kinds of models beside citerec without a model.

    python tests/model_doubles.py [--corpus FOLDER] [--queries FILE.jsonl.gz] [--searches FILE.jsonl.gz] [--n 40]
                                  [--questions 20] [--doubles lying echoing ...] [--service http://127.0.0.1:8080/v1]

Without a corpus, the sample and its own texts are taken. A file of queries has rows of `text`, `relevant` (ids), and
where known `citing_id` and `year`; without one of searches, the same texts are searched for. The table has one row for
each double, or one for a real service: Recall@10 and mean reciprocal rank of the first right paper for `recommend` and
`search`, and the questions whose answer has the word that it needs, for `ask` and for a library of PDFs; each text that
has lost is named. Exit code 1: a model has made something worse.
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
from citerec.answering.library import Library
from citerec.ground.settings import load_settings
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
    ("How many hours of speech does LibriSpeech have?", "1000", "doi:10.1109/ICASSP.2015.7178964"),
    ("What does LoRA freeze?", "pretrained weights", "arxiv:2106.09685"),
    ("Why does Q-learning overestimate action values?", "maximum", "arxiv:1509.06461"),
    ("What does SigLIP replace the softmax loss by?", "sigmoid", "arxiv:2303.15343"),
    ("How many languages does MTEB cover?", "112", "arxiv:2210.07316"),
    ("What does a residual block learn?", "correction", "arxiv:1512.03385"),
    ("How does GELU weight its inputs?", "value", "arxiv:1606.08415"),
    ("What is knowledge distillation trained on?", "softened", "arxiv:1503.02531"),
    ("How many sentence pairs does MultiNLI have?", "433 thousand", "arxiv:1704.05426"),
    ("How does RotatE represent a relation?", "rotation", "arxiv:1902.10197"),
    ("Which attacks does AutoAttack join?", "Square", "arxiv:2003.01690"),
    ("How fast does YOLO run?", "45 frames", "arxiv:1506.02640"),
    ("What does FedProx add to federated averaging?", "proximal", "arxiv:1812.06127"),
    ("What is temperature scaling?", "scalar", "arxiv:1706.04599"),
    ("How many parameters does the largest OPT model have?", "175 billion", "arxiv:2205.01068"),
    ("How often did people find the paper in CiteME?", "69.7", "arxiv:2407.12861"),
    ("What does NeRF map a position and viewing direction to?", "density", "arxiv:2003.08934"),
    ("Which statistics does ROUGE-L rely on?", "longest common", "sample:lin2004rouge"),
    ("What are induction heads?", "earlier occurrence", "arxiv:2209.11895"),
    ("What did Ho and colleagues train a U-Net to predict?", "noise", "arxiv:2006.11239"),
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
        return ({"exclude": [own]} if own in corpus.columns.row_of else {}) | (
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


Row = dict[str, dict[str, float]]  # what is measured -> text -> its value


def row_of(settings, corpus_name: str, queries, searches, questions, pdfs: Path | None, say=lambda line: None) -> Row:
    """What one model leads to, text by text."""
    out = {what: dict[str, float]() for what in ("recommend R@10", "recommend MRR", "search R@10", "search MRR", "ask",
                                                 "library ask", "thoughts")}
    def note(what: str, text: str, *values: float) -> None:
        names = [what] if len(values) == 1 else [f"{what} R@10", f"{what} MRR"]
        for name, value in zip(names, values, strict=True): out[name][text] = value
        say(f"    {what}: {text[:60]} {values}")
    recommender = citerec.load(corpus_name, **settings)
    for q in queries:
        note("recommend", q.text, *figures([r.paper_id for r in recommender.recommend(q.text, k=10, **q.limits)], q))
    for q in searches:
        if asked := without_marks(q.text):
            found = [r.paper.paper_id for r in recommender.search(asked, k=10, **q.limits)]
            note("search", q.text, *figures(found, q))
    here = recommender if corpus_name == "sample" else citerec.load("sample", **settings)
    def answered(what: str, question: str, word: str, answer: str) -> None:
        note(what, question, float(word in answer))
        out["thoughts"][f"{what}: {question}"] = float(any(m in answer for m in ("think", "retracted", "Okay, ")))
    for question, word, _ in questions: answered("ask", question, word, here.ask(question).text)
    if pdfs:
        with Library.open(pdfs, load_settings(**settings)) as library:
            for question, word, _ in questions: answered("library ask", question, word, library.ask(question).text)
    return {what: values for what, values in out.items() if values}


def shown(row: Row) -> dict[str, float]:
    """The figures of a row: means, and for questions how many are answered."""
    return {what: sum(values.values()) / (len(values) if " R@10" in what or " MRR" in what else 1)
            for what, values in row.items()}


def losses(name: str, row: Row, offline: Row) -> list[str]:
    """What is worse than without a model, and with which texts."""
    out, before = list[str](), shown(offline)
    for what, value in shown(row).items():
        less = -1 if what == "thoughts" else 1
        if less * (before[what] - value) < 1e-9: continue
        lost = [text for text, own in row[what].items() if less * (offline[what][text] - own) > 1e-9]
        out.append("\n    ".join([f"{name}: {what} {value:.4f} instead of {before[what]:.4f}", *lost]))
    return out


def table(doubles, corpus_name="sample", path=None, n=40, questions=QUESTIONS, library=True, timeout=1.0, say=print,
          searches=None, service=None) -> tuple[dict[str, dict[str, float]], list[str]]:
    """A row for each double, or for a real service, and what is worse than without a model."""
    sample = citerec.load("sample", preset=OFFLINE).corpus
    corpus = sample if corpus_name == "sample" else citerec.load(corpus_name, preset=OFFLINE).corpus
    queries, rows, worse = queries_of(path, n, corpus), dict[str, Row](), list[str]()
    searched = queries_of(searches, n, corpus) if searches else queries
    with tempfile.TemporaryDirectory() as folder:
        pdfs = library_of(Path(folder), sample, questions, load_settings(OFFLINE)) if library else None
        for name in (OFFLINE, *doubles):
            with ChatServer(DOUBLES.get(name, lambda body: "")) as server:
                settings = {"preset": OFFLINE} if name == OFFLINE else dict(
                    preset="compatible", llm_base_url=service or server.url, llm_model=name,
                    **({} if service else {"llm_cache": "off"}), **({"llm_timeout": timeout} if name == "slow" else {}))
                rows[name] = row_of(settings, corpus_name, queries, searched, questions, pdfs,
                                    say if service else lambda line: None)
            say(f"{name:9} " + "  ".join(f"{what} {value:.{4 if '@' in what or 'MRR' in what else 0}f}"
                                         for what, value in shown(rows[name]).items()))
            worse += losses(name, rows[name], rows[OFFLINE])
    return {name: shown(row) for name, row in rows.items()}, worse


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="sample", help="a corpus folder (default: the sample)")
    parser.add_argument("--queries", help="a file of queries, *.jsonl.gz (default: texts on the sample)")
    parser.add_argument("--searches", help="a file of queries for `search` (default: those of --queries)")
    parser.add_argument("--n", type=int, default=40, help="queries that are taken (default: 40)")
    parser.add_argument("--questions", type=int, default=len(QUESTIONS), help="questions that are taken, the last ones")
    parser.add_argument("--doubles", nargs="*", default=list(DOUBLES), choices=list(DOUBLES))
    parser.add_argument("--service", help="address of a real service, in place of the doubles")
    args = parser.parse_args()
    doubles = ["service"] if args.service else args.doubles
    _, worse = table(doubles, args.corpus, args.queries, args.n, QUESTIONS[len(QUESTIONS) - args.questions :],
                     searches=args.searches, service=args.service, say=lambda line: print(line, flush=True))
    print("\n".join(worse) or "no model has made anything worse")
    return 1 if worse else 0


if __name__ == "__main__": sys.exit(main())
