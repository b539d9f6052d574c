"""Kernels between chosen rows, against dense arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from clickbridge.numerics.gram import DOT, JENSEN_SHANNON, rows_kernel, square_of
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
    np.testing.assert_allclose(found, a.toarray()[numbers] @ a.toarray()[numbers].T)


def test_a_square_of_chosen_rows() -> None:
    matrix, numbers = np.arange(16.0).reshape(4, 4), np.array([3, 0, 3])
    np.testing.assert_array_equal(square_of(matrix, numbers), matrix[np.ix_(numbers, numbers)])
    assert square_of(matrix, numbers[:0]).shape == (0, 0)
    for outside in (4, -1):
        with pytest.raises(IndexError, match="from 0 to 3"):
            square_of(matrix, np.array([0, outside]))


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
