"""Sparse times dense against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge.engines.local import Local
from clickbridge.numerics.csr import compact, csr_times_dense, entries, nonzero_bounds


def random_csr(rows: int, columns: int, density: float = 0.2, seed: int = 0) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    return sparse.csr_array(rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < density))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(7, 5), (1, 5), (7, 1), (0, 5), (7, 0), (0, 0)])
@pytest.mark.parametrize("width", [0, 1, 3])
def test_equals_dense_arithmetic(shape: tuple[int, int], width: int, dtype: Any) -> None:
    a = random_csr(*shape)
    dense = np.random.default_rng(1).standard_normal((shape[1], width)).astype(dtype)
    found = csr_times_dense(a, dense)
    assert found.dtype == dtype
    assert found.shape == (shape[0], width)
    np.testing.assert_allclose(found, a.toarray() @ dense, rtol=1e-5, atol=1e-6)


def test_threads_change_nothing() -> None:
    a = random_csr(150, 100, 0.8)
    assert a.nnz > 10_000
    dense = np.random.default_rng(1).standard_normal((100, 2))
    one = csr_times_dense(a, dense, Local(threads=1))
    np.testing.assert_allclose(one, a.toarray() @ dense, rtol=1e-10)
    for threads in (2, 3, 64):
        assert csr_times_dense(a, dense, Local(threads)).tobytes() == one.tobytes()


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        csr_times_dense(random_csr(3, 4), np.ones((5, 2)))


def test_parts_cover_every_row_once() -> None:
    heavy = np.concatenate([[0], np.full(5, 20_000), [20_001, 40_000]])
    for parts in (1, 2, 3, 50):
        bounds = nonzero_bounds(heavy, parts)
        assert bounds[0] == 0
        assert bounds[-1] == len(heavy) - 1
        assert (np.diff(bounds) > 0).all()
    assert nonzero_bounds(np.array([0]), 4) == [0, 0]


def test_entries_are_those_of_the_dense_matrix() -> None:
    a = random_csr(30, 40)
    rng = np.random.default_rng(1)
    rows, columns = np.repeat(rng.integers(30, size=200), 2), np.repeat(rng.integers(40, size=200), 2)
    expected = a.toarray()[rows, columns]
    assert 0 < np.count_nonzero(expected) < len(rows)
    np.testing.assert_array_equal(entries(a, rows, columns), expected)
    parts: Any = (a.data, a.indices, a.indptr)
    mixed = sparse.csr_array(parts, shape=a.shape)
    for row in range(30):
        place = slice(mixed.indptr[row], mixed.indptr[row + 1])
        mixed.indices[place], mixed.data[place] = mixed.indices[place][::-1].copy(), mixed.data[place][::-1].copy()
    before = mixed.indices.copy()
    np.testing.assert_array_equal(entries(mixed, rows, columns), expected)
    np.testing.assert_array_equal(mixed.indices, before)


def test_entries_of_nothing() -> None:
    none = np.empty(0, dtype=np.int64)
    assert len(entries(random_csr(0, 4), none, none)) == 0
    np.testing.assert_array_equal(entries(random_csr(3, 4, 0.0), np.arange(3), np.arange(3)), np.zeros(3))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_places_take_32_bits_where_they_suffice(kind: Any) -> None:
    parts: Any = (np.array([1.0, 2.0], np.float32), np.array([2, 0], kind), np.array([0, 1, 2], kind))
    wide = sparse.csr_array(parts, shape=(2, 3))
    wide.indices, wide.indptr = wide.indices.astype(kind), wide.indptr.astype(kind)
    found = compact(wide)
    assert (found.indices.dtype, found.indptr.dtype) == (np.int32, np.int32)
    assert (found != sparse.csr_array(parts, shape=(2, 3))).nnz == 0
