"""Dense and stacked indexes against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from clickbridge.search import index as module
from clickbridge.search.index import DenseIndex, SparseIndex, StackedIndex, top_of_rows

Array = np.ndarray[Any, Any]


def brute(scores: Array, k: int) -> list[list[tuple[int, float]]]:
    """Falling score, ties by number, nothing without a score."""
    out = []
    for row in scores:
        best = sorted((i for i in range(len(row)) if row[i] > -np.inf), key=lambda i: (-row[i], i))
        out.append([(i, float(row[i])) for i in best[:k]])
    return out


def hits(found: tuple[Array, Array, Array]) -> list[list[tuple[int, float]]]:
    items, scores, counts = found
    return [
        [(int(i), float(s)) for i, s in zip(row[:n], values[:n], strict=True)]
        for row, values, n in zip(items, scores, counts, strict=True)
    ]


def whole(rng: Any, *shape: int) -> Array:
    """Whole numbers: many ties, and sums that are exact in any order."""
    return rng.integers(-2, 3, shape).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 9), st.integers(1, 12), st.integers(1, 15))
def test_dense_search_is_brute_force(seed: int, n_queries: int, n_items: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    queries, images = whole(rng, n_queries, 3), whole(rng, n_items, 3)
    scorable = rng.random(n_items) < 0.8
    expected = np.where(scorable, queries @ images.T, -np.inf)
    expected[~queries.any(axis=1)] = -np.inf
    found = hits(DenseIndex(images, scorable).search(queries, k))
    assert found == brute(expected, k)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 15))
def test_stacked_search_is_brute_force(seed: int, k: int) -> None:
    """A document is found by what any part makes of it; a part that knows nothing of it adds nothing."""
    rng = np.random.default_rng(seed)
    n_items, n_queries = 10, 6
    q_dense, d_dense = whole(rng, n_queries, 3), whole(rng, n_items, 3)
    known = rng.random(n_items) < 0.6
    q_sparse = np.abs(whole(rng, n_queries, 5)) * (rng.random((n_queries, 5)) < 0.4)
    d_sparse = np.abs(whole(rng, n_items, 5)) * (rng.random((n_items, 5)) < 0.4)
    q_dense[0], q_sparse[0] = 0, 0
    touched = (q_sparse @ d_sparse.T) > 0
    scorable = known | d_sparse.any(axis=1)
    expected = np.where(known, q_dense @ d_dense.T, 0) + q_sparse @ d_sparse.T
    expected = np.where((touched | known) & scorable, expected, -np.inf)
    expected[~(q_dense.any(axis=1) | q_sparse.any(axis=1))] = -np.inf
    index = StackedIndex([DenseIndex(d_dense, known), SparseIndex(sparse.csr_array(d_sparse))], scorable)
    queries: list[Any] = [q_dense, sparse.csr_array(q_sparse)]
    assert hits(index.search(queries, k)) == brute(expected, k)
    indptr, items = np.array([0, 2, 2, 4, 4, 5, 5]), np.array([3, 1, 0, 9, 9])
    rows = np.repeat(np.arange(6), np.diff(indptr))
    np.testing.assert_allclose(
        index.score(queries, indptr, items), (q_dense @ d_dense.T + q_sparse @ d_sparse.T)[rows, items]
    )


def test_only_what_some_sparse_part_touches_is_found() -> None:
    images = sparse.csr_array(np.eye(3, dtype=np.float32))
    index = StackedIndex([SparseIndex(images), SparseIndex(images)], np.ones(3, dtype=bool))
    one = sparse.csr_array(np.array([[1.0, 0, 0]], dtype=np.float32))
    two = sparse.csr_array(np.array([[0, 2.0, 0]], dtype=np.float32))
    assert hits(index.search([one, two], 3)) == [[(1, 2.0), (0, 1.0)]]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    queries, images = whole(rng, 20, 4), whole(rng, 15, 4)
    index = DenseIndex(images)
    indptr, items = np.arange(0, 61, 3), rng.integers(0, 15, 60)
    at_once = hits(index.search(queries, 4)), index.score(queries, indptr, items).tolist()
    for block in (1, 31, 200):
        monkeypatch.setattr(module, "BLOCK", block)
        assert (hits(index.search(queries, 4)), index.score(queries, indptr, items).tolist()) == at_once


def test_scores_of_given_items() -> None:
    rng = np.random.default_rng(1)
    queries, images = rng.standard_normal((3, 4)), rng.standard_normal((6, 4))
    indptr, items = np.array([0, 2, 2, 5]), np.array([5, 0, 1, 1, 2])
    expected = (queries @ images.T)[[0, 0, 2, 2, 2], items]
    np.testing.assert_allclose(DenseIndex(images).score(queries, indptr, items), expected)


def test_nothing_to_search() -> None:
    empty = DenseIndex(np.zeros((0, 3), dtype=np.float32))
    assert hits(empty.search(np.ones((2, 3), dtype=np.float32), 5)) == [[], []]
    assert hits(DenseIndex(np.ones((4, 3))).search(np.zeros((0, 3)), 5)) == []
    assert hits(DenseIndex(np.ones((4, 3)), np.zeros(4, dtype=bool)).search(np.ones((1, 3)), 5)) == [[]]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9))
def test_top_of_rows(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random((5, 9)) < 0.2, -np.inf, rng.integers(-2, 3, (5, 9)))
    columns, values = top_of_rows(scores, k)
    for row in range(5):
        expected = sorted(range(9), key=lambda i: (-scores[row, i], i))[:k]
        assert columns[row].tolist() == expected
        assert values[row].tolist() == scores[row, expected].tolist()
