"""Embed the sample corpus anew: `python data/embed_sample.py`, after every change of data/sample/papers.jsonl."""

from pathlib import Path

import numpy as np

from citerec.ground.files import write_atomically
from citerec.indexes.embedding import Embedder
from citerec.sources.source import JsonlSource

SAMPLE = Path(__file__).parent / "sample"

if __name__ == "__main__":
    texts = [paper.text for paper in JsonlSource(SAMPLE).papers()]
    vectors = Embedder().embed(texts, progress=True).astype(np.float16)
    write_atomically(SAMPLE / "vectors.npy", lambda f: np.save(f, vectors, allow_pickle=False))
