"""Embed the sample corpus anew: `python data/embed_sample.py`, after every change of its papers or sentences."""

from pathlib import Path

import numpy as np

from citerec.ground.files import write_atomically
from citerec.indexes.contexts import without_markers
from citerec.indexes.embedding import Embedder
from citerec.sources.source import JsonlSource

SAMPLE = Path(__file__).parent / "sample"

if __name__ == "__main__":
    source, embedder = JsonlSource(SAMPLE), Embedder()
    texts = {"vectors.npy": [paper.text for paper in source.papers()],
             "context_vectors.npy": [without_markers(context.text) for context in source.contexts()]}
    for name, those in texts.items():
        vectors = embedder.embed(those, progress=True).astype(np.float16)
        write_atomically(SAMPLE / name, lambda f, vectors=vectors: np.save(f, vectors, allow_pickle=False))
