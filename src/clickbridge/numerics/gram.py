"""Kernels between chosen rows of sparse matrices: small dense blocks out of large sparse data.

One loop serves all: the entries of one side are chained by column, those of the other walk the chains, so that the
work is the entries that meet, not all that might. What two entries add is their product (dot products, cosines), or
the Jensen-Shannon term of two shares p and q,

    (p ln((p + q)/p) + q ln((p + q)/q)) / (2 ln 2),

whose sum over shared entries is 1 - JSD(p, q) in bits: entries that only one row has add nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
DOT, JENSEN_SHANNON = 0, 1


@kernel
def _block(  # type: ignore[no-untyped-def]
    a_indptr, a_indices, a_data, a_rows, b_indptr, b_indices, b_data, b_rows, term, symmetric, head, out
):
    """`head` has the last entry of each column, or -1, and is left as it came: -1 everywhere."""
    size = 0
    for i in range(len(a_rows)):
        size += a_indptr[a_rows[i] + 1] - a_indptr[a_rows[i]]
    row, value, before = np.empty(size, np.int32), np.empty(size, np.float64), np.empty(size, np.int32)
    used = 0 if symmetric else _chain(a_indptr, a_indices, a_data, a_rows, 0, len(a_rows), 0, head, row, value, before)
    for j in range(len(b_rows)):
        if symmetric:
            used = _chain(a_indptr, a_indices, a_data, a_rows, j, j + 1, used, head, row, value, before)
        for p in range(b_indptr[b_rows[j]], b_indptr[b_rows[j] + 1]):
            y, at = np.float64(b_data[p]), head[b_indices[p]]
            while at >= 0:
                x = value[at]
                if term == DOT:
                    out[row[at], j] += x * y
                elif x > 0.0 and y > 0.0:
                    out[row[at], j] += (x * np.log((x + y) / x) + y * np.log((x + y) / y)) / (2 * np.log(2.0))
                at = before[at]
    for i in range(len(a_rows)):
        for p in range(a_indptr[a_rows[i]], a_indptr[a_rows[i] + 1]):
            head[a_indices[p]] = -1
    if symmetric:
        for i in range(len(a_rows)):
            for j in range(i):
                out[i, j] = out[j, i]


@kernel
def _chain(indptr, indices, data, rows, start, stop, used, head, row, value, before):  # type: ignore[no-untyped-def]
    """Entries of some rows, each joined to the one that its column had before."""
    for i in range(start, stop):
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            row[used], value[used], before[used] = i, data[p], head[indices[p]]
            head[indices[p]] = used
            used += 1
    return used


def rows_kernel(a: sparse.csr_array, a_rows: Array, b: sparse.csr_array, b_rows: Array, term: int = DOT) -> Array:
    """out[i, j] = sum over shared columns of term(a[a_rows[i]], b[b_rows[j]]); rows with themselves: half the work."""
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"rows of {a.shape[1]} and {b.shape[1]} columns have no kernel")
    out = np.zeros((len(a_rows), len(b_rows)))
    one, two = (np.ascontiguousarray(rows, dtype=np.int64) for rows in (a_rows, b_rows))
    symmetric = a is b and a_rows is b_rows
    left, right = ((m.indptr, m.indices, m.data) for m in (a, b))
    _block(*left, one, *right, two, term, symmetric, np.full(a.shape[1], -1, dtype=np.int32), out)
    return out


@kernel
def _square(matrix, rows, out):  # type: ignore[no-untyped-def]
    for i in range(len(rows)):
        one = matrix[rows[i]]
        for j in range(len(rows)):
            out[i, j] = one[rows[j]]


def square_of(matrix: Array, rows: Array) -> Array:
    """matrix[rows][:, rows] in one pass, of a square matrix."""
    numbers = np.ascontiguousarray(rows, dtype=np.int64)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(matrix):
        raise IndexError(f"rows must be from 0 to {len(matrix) - 1}")
    out = np.empty((len(numbers), len(numbers)), dtype=matrix.dtype)
    _square(np.ascontiguousarray(matrix), numbers, out)
    return out
