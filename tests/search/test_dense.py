"""Dense and stacked indexes against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from clickbridge.numerics import nearest
from clickbridge.numerics.row import row_of
from clickbridge.search import index as module
from clickbridge.search.index import DenseIndex, SparseIndex, StackedIndex, best

Array = np.ndarray[Any, Any]


def brute(scores: Array, k: int) -> list[list[tuple[int, float]]]:
    """Falling score, ties by number, nothing without a score."""
    out = []
    for row in scores:
        best = sorted((i for i in range(len(row)) if row[i] > -np.inf), key=lambda i: (-row[i], i))
        out.append([(i, float(row[i])) for i in best[:k]])
    return out


def hits(found: list[tuple[Array, Array]]) -> list[list[tuple[int, float]]]:
    return [list(zip(items.tolist(), scores.tolist(), strict=True)) for items, scores in found]


def every(n: int) -> Array:
    return np.ones(n, dtype=bool)


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
    index = DenseIndex(images, scorable)
    assert hits(index.search_many(queries, k)) == brute(expected, k)
    assert hits([index.search(query, k) for query in queries]) == brute(expected, k)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 9), st.integers(1, 12), st.integers(1, 15))
def test_sparse_search_is_brute_force(seed: int, n_queries: int, n_items: int, k: int) -> None:
    """An item is found if it shares a feature with the query, whatever the score."""
    rng = np.random.default_rng(seed)
    queries, images = (sparse.csr_array(whole(rng, n, 4)) for n in (n_queries, n_items))
    for matrix in (queries, images):
        matrix.eliminate_zeros()
    shared = (abs(queries) @ abs(images).T).toarray() > 0
    expected = np.where(shared, (queries @ images.T).toarray(), -np.inf)
    index = SparseIndex(images)
    one_by_one = [index.search(row_of(queries, n), k) for n in range(n_queries)]
    assert hits(one_by_one) == brute(expected, k)
    assert hits(index.search_many(queries, k)) == brute(expected, k)
    items = rng.integers(0, n_items, 7)
    for n in range(n_queries):
        np.testing.assert_allclose(index.score(row_of(queries, n), items), (queries @ images.T).toarray()[n, items])


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
    # A part that has no image of the query finds nothing.
    found = touched | (known & q_dense.any(axis=1)[:, None])
    expected = np.where(found & scorable, expected, -np.inf)
    index = StackedIndex([DenseIndex(d_dense, known), SparseIndex(sparse.csr_array(d_sparse))], scorable)
    queries: list[Any] = [q_dense, sparse.csr_array(q_sparse)]
    assert hits(index.search_many(queries, k)) == brute(expected, k)
    images = [[q_dense[n], row_of(queries[1], n)] for n in range(n_queries)]
    assert hits([index.search(image, k) for image in images]) == brute(expected, k)
    items = np.array([3, 1, 0, 9, 9])
    for n, image in enumerate(images):
        total = q_dense[n] @ d_dense[items].T + q_sparse[n] @ d_sparse[items].T
        np.testing.assert_allclose(index.score(image, items), total)


def test_only_what_some_sparse_part_touches_is_found() -> None:
    images = sparse.csr_array(np.eye(3, dtype=np.float32))
    index = StackedIndex([SparseIndex(images), SparseIndex(images)], every(3))
    one = sparse.csr_array(np.array([[1.0, 0, 0]], dtype=np.float32))
    two = sparse.csr_array(np.array([[0, 2.0, 0]], dtype=np.float32))
    assert hits(index.search_many([one, two], 3)) == [[(1, 2.0), (0, 1.0)]]
    assert hits([index.search([row_of(one, 0), row_of(two, 0)], 3)]) == [[(1, 2.0), (0, 1.0)]]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    queries, images = whole(rng, 20, 4), whole(rng, 15, 4)
    index = DenseIndex(images, every(15))
    at_once = hits(index.search_many(queries, 4))
    for block in (1, 31, 200):
        monkeypatch.setattr(module, "BLOCK", block)
        monkeypatch.setattr(nearest, "SCORES", block)
        monkeypatch.setattr(nearest, "ROWS", 7)
        assert hits(index.search_many(queries, 4)) == at_once


def test_scores_of_given_items() -> None:
    rng = np.random.default_rng(1)
    queries, images = rng.standard_normal((3, 4)), rng.standard_normal((6, 4))
    for query in queries:
        for items in ([5, 0], [], [1, 1, 2]):
            numbers = np.array(items, dtype=np.int64)
            np.testing.assert_allclose(DenseIndex(images, every(6)).score(query, numbers), images[numbers] @ query)


@pytest.mark.parametrize("n_features", [3, 200])
def test_sparse_scores_are_the_same_by_every_way(n_features: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the query's features, by the items' own, and by all lists as a whole."""
    rng = np.random.default_rng(2)
    images = sparse.csr_array(np.where(rng.random((40, n_features)) < 0.4, whole(rng, 40, n_features), 0))
    images.eliminate_zeros()
    query = sparse.csr_array(whole(rng, 1, n_features))
    query.eliminate_zeros()
    items = rng.permutation(40)
    expected = (query @ images.T).toarray()[0, items]
    for few, many in ((1000, 1000), (0, 1000), (0, 1)):
        monkeypatch.setattr(module, "FEW_TERMS", few)
        monkeypatch.setattr(module, "MANY_ITEMS", many)
        np.testing.assert_allclose(SparseIndex(images).score(row_of(query, 0), items), expected)


def test_nothing_to_search() -> None:
    empty = DenseIndex(np.zeros((0, 3), dtype=np.float32), every(0))
    assert hits(empty.search_many(np.ones((2, 3), dtype=np.float32), 5)) == [[], []]
    assert hits([empty.search(np.ones(3, dtype=np.float32), 5)]) == [[]]
    assert hits(DenseIndex(np.ones((4, 3)), every(4)).search_many(np.zeros((0, 3)), 5)) == []
    assert hits(DenseIndex(np.ones((4, 3)), ~every(4)).search_many(np.ones((1, 3)), 5)) == [[]]
    assert hits([DenseIndex(np.ones((4, 3)), ~every(4)).search(np.ones(3), 5)]) == [[]]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9))
def test_the_best_of_what_is_found(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    scores, found = rng.integers(-2, 3, 9).astype(np.float64), rng.random(9) < 0.8
    expected = sorted(np.flatnonzero(found).tolist(), key=lambda i: (-scores[i], i))[:k]
    items, values = best(scores, found, k)
    assert items.tolist() == expected
    assert values.tolist() == scores[expected].tolist()
