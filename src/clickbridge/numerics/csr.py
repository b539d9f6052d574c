"""Sparse rows times a dense matrix, in threads. Latent models spend most of their time here.

out[i] = sum_j a_ij b[j]. A row of `b` is read once for each non-zero in its column, so about nnz(a) * k * size bytes
are read. Each thread gets rows with about as many non-zeros.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine, default_engine
from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
FEW = 10_000
"""With fewer non-zeros, starting a thread takes longer than it saves."""


@kernel
def rows_times(indptr, indices, data, dense, start, stop, out, first):  # type: ignore[no-untyped-def]
    """Computes rows `start` to `stop`; row i goes to out[i - first]. Takes four rows of `dense` at a time: their loads
    overlap, and the sum is read and written a quarter as often."""
    width = dense.shape[1]
    for i in range(start, stop):
        row = out[i - first]
        row[:] = 0
        p, end = indptr[i], indptr[i + 1]
        while p + 3 < end:
            w0, w1, w2, w3 = data[p], data[p + 1], data[p + 2], data[p + 3]
            r0, r1, r2, r3 = dense[indices[p]], dense[indices[p + 1]], dense[indices[p + 2]], dense[indices[p + 3]]
            for c in range(width):
                row[c] += w0 * r0[c] + w1 * r1[c] + w2 * r2[c] + w3 * r3[c]
            p += 4
        while p < end:
            value, other = data[p], dense[indices[p]]
            for c in range(width):
                row[c] += value * other[c]
            p += 1


def compact(a: sparse.csr_array) -> sparse.csr_array:
    """The same matrix with 32-bit indices, if they suffice. SciPy uses 64-bit indices for stacked matrices and for all
    products of them, which doubles the memory for indices."""
    if a.indices.dtype == np.int32 or max(a.nnz, *a.shape) > np.iinfo(np.int32).max:
        return a
    parts: Any = (a.data, a.indices.astype(np.int32), a.indptr.astype(np.int32))
    out = sparse.csr_array(parts, shape=a.shape)
    out.has_sorted_indices = a.has_sorted_indices
    return out


def csr_times_dense(a: sparse.csr_array, dense: Array, engine: Engine | None = None) -> Array:
    """`a @ dense`. Small products are computed directly, larger ones by the engine."""
    if a.indptr[-1] < FEW:
        return product(a, dense)
    return (engine or default_engine()).times(a, dense)


def product(a: sparse.csr_array, dense: Array, engine: Engine | None = None) -> Array:
    """`a @ dense` in this process, with the threads of the engine if one is given."""
    if a.shape[1] != dense.shape[0]:
        raise ValueError(f"shapes {a.shape} and {dense.shape} do not fit")
    out = np.empty((a.shape[0], dense.shape[1]), dtype=dense.dtype)
    indptr, indices, data = a.indptr, a.indices, a.data.astype(dense.dtype, copy=False)
    bounds = [0, len(out)] if engine is None else nonzero_bounds(indptr, engine.threads)
    if engine is None or len(bounds) == 2:
        rows_times(indptr, indices, data, dense, 0, len(out), out, 0)
        return out
    for _ in engine.map(lambda part: rows_times(indptr, indices, data, dense, *part, out, 0), pairwise(bounds)):
        pass
    return out


@kernel
def _entries(indptr, indices, data, rows, columns, out):  # type: ignore[no-untyped-def]
    for i in range(len(rows)):
        if i > 0 and rows[i] == rows[i - 1] and columns[i] == columns[i - 1]:
            out[i] = out[i - 1]
            continue
        low, end = indptr[rows[i]], indptr[rows[i] + 1]
        high = end
        while low < high:
            middle = (low + high) // 2
            if indices[middle] < columns[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = data[low] if low < end and indices[low] == columns[i] else 0


def entries(a: sparse.csr_array, rows: Array, columns: Array) -> Array:
    """a[rows[i], columns[i]] for every i; 0 where nothing is stored."""
    out = np.empty(len(rows), dtype=a.data.dtype)
    if not a.has_canonical_format:
        a = a.copy()
        a.sum_duplicates()
    _entries(a.indptr, a.indices, a.data, rows, columns, out)
    return out


def nonzero_bounds(indptr: Array, parts: int) -> list[int]:
    """Row numbers that cut a matrix into parts with about the same number of non-zeros."""
    n_rows, nnz = len(indptr) - 1, int(indptr[-1])
    if parts <= 1 or nnz < FEW:
        return [0, n_rows]
    cuts = np.searchsorted(indptr, [nnz * i // parts for i in range(1, parts)])
    return [0, *(int(c) for c in np.unique(cuts) if 0 < c < n_rows), n_rows]
