"""Exact top-k and paired dot products against dense arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from clickbridge.engines.local import Local
from clickbridge.numerics.threads import over_rows
from clickbridge.numerics.topk import ITEMS_AT_ONCE, paired_dots, sparse_topk

Array = np.ndarray[Any, Any]


def random_matrix(rng: np.random.Generator, n: int, m: int, density: float = 0.3) -> sparse.csr_array:
    """Small whole numbers, so that sums are exact and ties are many; negative ones too."""
    values = rng.integers(-2, 4, (n, m)) * (rng.random((n, m)) < density)
    return sparse.csr_array(values.astype(np.float32))


def oracle(queries: sparse.csr_array, inverted: sparse.csr_array, k: int) -> list[list[tuple[int, float]]]:
    """Columns that share a feature with the row, by falling score, then by number."""
    scores = queries.toarray().astype(np.float64) @ inverted.toarray().astype(np.float64)
    touched = (queries.toarray() != 0).astype(int) @ (inverted.toarray() != 0).astype(int) > 0
    out = []
    for row, hit in zip(scores, touched, strict=True):
        order = [int(i) for i in np.argsort(-row, kind="stable") if hit[i]]
        out.append([(i, float(row[i])) for i in order[:k]])
    return out


def hits(items: Array, scores: Array, counts: Array) -> list[list[tuple[int, float]]]:
    return [
        list(zip(i[:n].tolist(), s[:n].tolist(), strict=True)) for i, s, n in zip(items, scores, counts, strict=True)
    ]


@settings(deadline=None)
@given(
    st.integers(0, 9), st.integers(0, 12), st.integers(0, 12), st.integers(0, 15), st.floats(0, 1), st.integers(0, 999)
)
def test_topk_equals_a_stable_sort(rows: int, features: int, items: int, k: int, density: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    queries, inverted = random_matrix(rng, rows, features, density), random_matrix(rng, features, items, density)
    found = sparse_topk(queries, inverted, k, Local(1))
    assert hits(*found) == oracle(queries, inverted, k)
    assert found[0].shape == found[1].shape == (rows, min(k, items))
    for row, n in enumerate(found[2]):
        assert (found[0][row, n:] == -1).all()
        assert (found[1][row, n:] == -np.inf).all()


def test_ties_go_to_the_lower_number() -> None:
    queries = sparse.csr_array(np.ones((1, 1), dtype=np.float32))
    inverted = sparse.csr_array(np.ones((1, 100), dtype=np.float32))
    items, scores, counts = sparse_topk(queries, inverted, 7)
    assert items.tolist() == [list(range(7))]
    assert scores.tolist() == [[1.0] * 7]
    assert counts.tolist() == [7]


def test_more_asked_than_there_is() -> None:
    one = sparse.csr_array(np.array([[2.0]], dtype=np.float32))
    assert hits(*sparse_topk(one, one, 10**6)) == [[(0, 4.0)]]


@pytest.mark.parametrize(("rows", "features", "items"), [(0, 0, 0), (0, 3, 2), (3, 0, 2), (3, 2, 0), (3, 2, 4)])
def test_empty_matrices(rows: int, features: int, items: int) -> None:
    queries = sparse.csr_array((rows, features), dtype=np.float32)
    inverted = sparse.csr_array((features, items), dtype=np.float32)
    assert hits(*sparse_topk(queries, inverted, 5)) == [[]] * rows


def test_k_zero() -> None:
    one = sparse.csr_array(np.ones((2, 2), dtype=np.float32))
    assert hits(*sparse_topk(one, one, 0)) == [[], []]


def test_negative_scores_are_scores() -> None:
    queries = sparse.csr_array(np.array([[-1.0]], dtype=np.float32))
    inverted = sparse.csr_array(np.array([[1.0, 3.0, 0.0, 2.0]], dtype=np.float32))
    assert hits(*sparse_topk(queries, inverted, 2)) == [[(0, -1.0), (3, -2.0)]]


def test_widths_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="3 columns do not fit an inverted matrix of 2 rows"):
        sparse_topk(sparse.csr_array((1, 3)), sparse.csr_array((2, 4)), 1)
    with pytest.raises(ValueError, match="rows of 3 and 2 columns have no dot product"):
        paired_dots(sparse.csr_array((1, 3)), sparse.csr_array((4, 2)), np.array([0, 1]), np.array([0]))


@pytest.mark.parametrize("n_items", [ITEMS_AT_ONCE, ITEMS_AT_ONCE + 1, 3 * ITEMS_AT_ONCE + 7])
def test_more_items_than_are_added_up_at_once(n_items: int) -> None:
    """Long lists, short ones that leave whole parts of the items out, and an order of its own within a list."""
    rng = np.random.default_rng(n_items)
    inverted = sparse.vstack([
        sparse.random_array((3, n_items), density=0.5, rng=rng, dtype=np.float32),
        sparse.random_array((5, n_items), density=3 / n_items, rng=rng, dtype=np.float32),
    ], format="csr")  # fmt: skip
    queries = random_matrix(rng, 6, 8, 0.5)
    found = hits(*sparse_topk(queries, sparse.csr_array(inverted), 12))
    assert found == oracle(queries, inverted, 12)
    mixed = sparse.csr_array(inverted[:, ::-1][:, ::-1])
    mixed.indices[:2], mixed.data[:2] = mixed.indices[:2][::-1].copy(), mixed.data[:2][::-1].copy()
    mixed.has_sorted_indices = False
    assert hits(*sparse_topk(queries, mixed, 12)) == found


@pytest.fixture(scope="module")
def large() -> tuple[sparse.csr_array, sparse.csr_array]:
    rng = np.random.default_rng(5)
    a, b = (sparse.csr_array(sparse.random_array((n, 80), density=0.1, rng=rng, dtype=np.float32)) for n in (500, 150))
    return a, b


def test_threads_do_not_change_a_bit(large: tuple[sparse.csr_array, sparse.csr_array]) -> None:
    a, b = large
    inverted = sparse.csr_array(b.T.tocsr())
    for one, four in zip(sparse_topk(a, inverted, 9, Local(1)), sparse_topk(a, inverted, 9, Local(4)), strict=True):
        assert one.tobytes() == four.tobytes()
    indptr = np.arange(0, 501 * 3, 3)
    columns = np.random.default_rng(1).integers(0, 150, 1500)
    one, four = (paired_dots(a, b, indptr, columns, Local(threads)) for threads in (1, 4))
    assert one.tobytes() == four.tobytes()


def test_paired_dots_equal_dense_ones(large: tuple[sparse.csr_array, sparse.csr_array]) -> None:
    a, b = large
    rng = np.random.default_rng(2)
    indptr = np.concatenate([[0], np.cumsum(rng.integers(0, 6, 500))])
    columns = rng.integers(0, 150, indptr[-1])
    rows = np.repeat(np.arange(500), np.diff(indptr))
    expected = np.einsum("ij,ij->i", a.toarray()[rows].astype(float), b.toarray()[columns].astype(float))
    np.testing.assert_allclose(paired_dots(a, b, indptr, columns), expected, rtol=1e-12, atol=1e-12)


def test_paired_dots_of_nothing() -> None:
    nothing = paired_dots(sparse.csr_array((0, 3)), sparse.csr_array((2, 3)), np.zeros(1, int), np.zeros(0, int))
    assert nothing.shape == (0,)
    empty_rows = paired_dots(sparse.csr_array((2, 3)), sparse.csr_array((2, 3)), np.array([0, 1, 2]), np.array([1, 0]))
    assert empty_rows.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("n_rows", "threads"), [(0, 4), (1, 4), (63, 4), (64, 4), (1000, 3), (1000, 1), (129, 0)])
def test_partitions_cover_every_row_once(n_rows: int, threads: int) -> None:
    seen = np.zeros(n_rows, dtype=int)

    def work(start: int, stop: int) -> None:
        seen[start:stop] += 1

    over_rows(n_rows, Local(threads) if threads else None, work)
    assert (seen == 1).all()


def test_an_error_in_a_thread_comes_out() -> None:
    def work(start: int, stop: int) -> None:
        raise RuntimeError("in a thread")

    with pytest.raises(RuntimeError, match="in a thread"):
        over_rows(1000, Local(4), work)
