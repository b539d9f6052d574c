"""BM25 of sparse rows against the textbook formula."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from clickbridge.numerics.bm25 import average_length, bm25_data, idf_of


def test_weights_are_those_of_the_formula() -> None:
    counts = np.array([[2.0, 0, 1, 0], [0, 0, 0, 0], [1, 3, 0, 0]])
    rows = sparse.csr_array(counts.astype(np.float32))
    found = bm25_data(rows.indptr, rows.indices, rows.data, 4, k1=1.5, b=0.5)
    expected = []
    for d, t in zip(*np.nonzero(counts), strict=True):
        df = np.count_nonzero(counts[:, t])
        tf = counts[d, t] / (1 - 0.5 + 0.5 * counts[d].sum() / 3.5)  # the empty text does not count
        expected.append(math.log(1 + (3 - df + 0.5) / (df + 0.5)) * 2.5 * tf / (1.5 + tf))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_nothing() -> None:
    assert bm25_data(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), 0).tolist() == []
    assert bm25_data(np.zeros(3, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), 5).tolist() == []
    assert average_length(np.zeros(3)) == 1
    assert idf_of(np.array([0, 5]), 5).min() > 0
