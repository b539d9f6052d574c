"""Kernels between chosen rows, against dense arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from clickbridge.numerics.gram import (
    DOT,
    JENSEN_SHANNON,
    dense_kernel,
    nearest_rows,
    row_kernel,
    rows_kernel,
    square_kernel,
)
from clickbridge.numerics.row import EMPTY, row_of
from oracles.skernel import click_kernel


def rows(n: int, width: int, seed: int) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    return sparse.csr_array(rng.integers(0, 4, (n, width)) * (rng.random((n, width)) < 0.4)).astype(np.float32)


def test_dots_of_chosen_rows() -> None:
    a, b = rows(6, 9, 0), rows(5, 9, 1)
    one, two = np.array([3, 0, 3]), np.array([4, 1])
    found = rows_kernel(a, one, b, two, DOT)
    np.testing.assert_allclose(found, a.toarray()[one] @ b.toarray()[two].T)
    assert rows_kernel(a, one[:0], b, two).shape == (0, 2)
    assert rows_kernel(a, one, b, two[:0]).shape == (3, 0)


@given(st.lists(st.integers(0, 5), max_size=9), st.integers(0, 50))
def test_rows_with_themselves(chosen: list[int], seed: int) -> None:
    """Half the work, the same values; a row may be chosen twice, and none has to be."""
    a, numbers = rows(6, 9, seed), np.array(chosen, dtype=np.int64)
    found = rows_kernel(a, numbers, a, numbers)
    np.testing.assert_array_equal(found, rows_kernel(a, numbers, a, numbers.copy()))
    others = np.array([5, 0, 0])
    square, beside = square_kernel(a, numbers, others)
    np.testing.assert_array_equal(square, found)
    np.testing.assert_array_equal(beside, rows_kernel(a, others, a, numbers))
    np.testing.assert_allclose(found, a.toarray()[numbers] @ a.toarray()[numbers].T)


def test_one_row_with_chosen_rows() -> None:
    a, b = rows(2, 9, 3), rows(5, 9, 4)
    one, two = row_of(a, 1), np.array([4, 1, 4])
    np.testing.assert_allclose(row_kernel(one, b, two), b.toarray()[two] @ a.toarray()[1])
    assert row_kernel(EMPTY, b, two).tolist() == [0, 0, 0]
    assert row_kernel(one, b, two[:0]).shape == (0,)


@given(st.integers(0, 50), st.integers(0, 8), st.integers(0, 63))
def test_the_nearest_rows(seed: int, k: int, mask: int) -> None:
    """Those that share a column, of those that the mask names; ties to the lower number."""
    b, one = rows(6, 9, seed), row_of(rows(1, 9, seed + 1000), 0)
    among = np.array([bool(mask >> i & 1) for i in range(6)])
    values = row_kernel(one, b, np.arange(6))
    wanted = [i for i in np.lexsort((np.arange(6), -values)) if among[i] and values[i] > 0][:k]
    found, scores = nearest_rows(one, sparse.csr_array(b.T.tocsr()), k, among)
    assert found.tolist() == wanted
    np.testing.assert_allclose(scores, values[wanted])
    assert not len(nearest_rows(EMPTY, sparse.csr_array(b.T.tocsr()), k, among)[0])


def test_dense_rows() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 4, 7)).astype(np.float32)
    whole = dense_kernel(a, b)
    np.testing.assert_allclose(whole, a.astype(np.float64) @ b.astype(np.float64).T)
    for i in range(4):
        np.testing.assert_array_equal(dense_kernel(a[i : i + 1], b)[0], whole[i])
    assert dense_kernel(a[:0], b).shape == (0, 4)


def test_jensen_shannon_of_shares() -> None:
    dense = rows(7, 8, 2).toarray().astype(np.float64)
    dense = dense[dense.sum(axis=1) > 0]
    shares = sparse.csr_array(dense / dense.sum(axis=1, keepdims=True))
    every = np.arange(len(dense))
    found = rows_kernel(shares, every, shares, every, JENSEN_SHANNON)
    wanted = [[click_kernel("jensen-shannon", u, v) for v in dense] for u in dense]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_rows_of_different_width() -> None:
    with pytest.raises(ValueError, match="9 and 8 columns"):
        rows_kernel(rows(2, 9, 0), np.array([0]), rows(2, 8, 0), np.array([0]))
