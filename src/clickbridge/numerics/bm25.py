"""The three factors of BM25 (Robertson and Zaragoza 2009): rarity of a term, length of a text, frequency of the term.

They are scalar functions for compiled loops. `bm25_data` is the loop over sparse rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
K1, B = 1.2, 0.75
"""The usual parameters."""


def idf_of(frequency: Array, n_docs: int) -> Array:
    """log(1 + (N - df + 1/2) / (df + 1/2)): positive for every term."""
    return np.log1p((n_docs - frequency + 0.5) / (frequency + 0.5))


@kernel
def length_norm(length, average, b):  # type: ignore[no-untyped-def]
    return 1 - b + b * length / average


@kernel
def saturated(frequency, k1):  # type: ignore[no-untyped-def]
    return (k1 + 1) * frequency / (k1 + frequency)


@kernel
def _weigh(indptr, indices, counts, idf, average, k1, b, out):  # type: ignore[no-untyped-def]
    for row in range(len(indptr) - 1):
        length = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            length += counts[p]
        norm = length_norm(length, average, b)
        for p in range(indptr[row], indptr[row + 1]):
            out[p] = idf[indices[p]] * saturated(counts[p] / norm, k1)


def average_length(lengths: Array) -> float:
    """The average length of the texts that are not empty; 1 if all are empty."""
    filled = lengths[lengths > 0]
    return float(filled.mean()) if len(filled) else 1.0


def bm25_data(indptr: Array, indices: Array, counts: Array, width: int, k1: float = K1, b: float = B) -> Array:
    """BM25 weights of the terms of each text (row), in the order of `counts`. `width` is the number of terms."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    average = average_length(np.bincount(rows, weights=counts, minlength=len(indptr) - 1))
    idf = idf_of(np.bincount(indices, minlength=width), len(indptr) - 1)
    out = np.empty(len(counts), dtype=np.float32)
    _weigh(indptr, indices, counts, idf, average, k1, b, out)
    return out
