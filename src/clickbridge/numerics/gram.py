"""Kernels between selected rows of sparse matrices, as small dense blocks, and the nearest rows of a row.

One side is sorted by column into a small inverted index, in which the entries of the other side are looked up. So the
work is proportional to the pairs of entries in the same column. Such a pair adds its product (for dot products and
cosines), or the Jensen-Shannon term of two shares p and q,

    (p ln((p + q)/p) + q ln((p + q)/q)) / (2 ln 2).

Its sum over shared columns is 1 - JSD(p, q) in bits: entries that only one row has add nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.numerics.row import Row
from clickbridge.numerics.threads import kernel, unsigned
from clickbridge.numerics.topk import add_up, best_first, offer

Array = np.ndarray[Any, Any]
DOT, JENSEN_SHANNON = 0, 1
FIRST = np.zeros(1, dtype=np.int64)
NONE = np.empty(0, dtype=np.int64)


@kernel
def _by_column(indptr, indices, rows, width):  # type: ignore[no-untyped-def]
    """Numbers the columns of the rows from 1, in order of appearance. Returns the number of each column, where the
    entries of each number begin, and the number of each entry's column, row by row."""
    size = 0
    for i in range(len(rows)):
        size += indptr[rows[i] + 1] - indptr[rows[i]]
    numbers, starts, column_of = np.zeros(width, np.int32), np.zeros(size + 2, np.int32), np.empty(size, np.int32)
    seen = at = 0
    for i in range(len(rows)):
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            number = numbers[indices[p]]
            if number == 0:
                seen += 1
                number = numbers[indices[p]] = seen
            starts[number + 1] += 1
            column_of[at] = number
            at += 1
    for number in range(1, seen + 2):
        starts[number] += starts[number - 1]
    return numbers, starts, column_of


@kernel
def _share(x, y):  # type: ignore[no-untyped-def]
    """The Jensen-Shannon term."""
    if x <= 0.0 or y <= 0.0:
        return 0.0
    return (x * np.log((x + y) / x) + y * np.log((x + y) / y)) / (2 * np.log(2.0))


# The loops below take no slices of arrays: rows are so short that making a slice would cost more than reading them.


@kernel
def _square(indptr, indices, data, rows, others, width, term, out, beside):  # type: ignore[no-untyped-def]
    """The kernel of `rows` with themselves, and of `others` with `rows`. By symmetry, each row is compared only with
    earlier rows and itself, which halves the work."""
    numbers, starts, column_of = _by_column(indptr, indices, rows, width)
    ends, holders, values = starts.copy(), np.empty(len(column_of), np.uint32), np.empty(len(column_of), np.float64)
    at = 0
    for i in range(len(rows)):
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            number, x = column_of[at], np.float64(data[p])
            end = ends[number]
            holders[end], values[end] = i, x
            ends[number] = end + 1
            at += 1
            if term == DOT:
                for q in range(starts[number], end + 1):
                    out[i, holders[q]] += x * values[q]
            else:
                for q in range(starts[number], end + 1):
                    out[i, holders[q]] += _share(x, values[q])
    for i in range(len(rows)):
        for j in range(i):
            out[j, i] = out[i, j]
    _look_up(indptr, indices, data, others, numbers, starts, ends, holders, values, term, beside)


@kernel
def _look_up(  # type: ignore[no-untyped-def]
    indptr, indices, data, rows, numbers, starts, ends, holders, values, term, out
):
    """The kernel of rows with those in the inverted index."""
    for j in range(len(rows)):
        for p in range(indptr[rows[j]], indptr[rows[j] + 1]):
            number, x = numbers[indices[p]], np.float64(data[p])
            if number == 0:
                continue
            if term == DOT:
                for q in range(starts[number], ends[number]):
                    out[j, holders[q]] += x * values[q]
            else:
                for q in range(starts[number], ends[number]):
                    out[j, holders[q]] += _share(x, values[q])


@kernel
def _block(  # type: ignore[no-untyped-def]
    a_indptr, a_indices, a_data, a_rows, b_indptr, b_indices, b_data, b_rows, width, term, out
):
    """out[j, i] = the kernel of b's row j and a's row i. The index is built from a."""
    numbers, starts, column_of = _by_column(a_indptr, a_indices, a_rows, width)
    ends, holders, values = starts.copy(), np.empty(len(column_of), np.uint32), np.empty(len(column_of), np.float64)
    at = 0
    for i in range(len(a_rows)):
        for p in range(a_indptr[a_rows[i]], a_indptr[a_rows[i] + 1]):
            end = ends[column_of[at]]
            holders[end], values[end] = i, a_data[p]
            ends[column_of[at]] = end + 1
            at += 1
    _look_up(b_indptr, b_indices, b_data, b_rows, numbers, starts, ends, holders, values, term, out)


def rows_kernel(a: sparse.csr_array, a_rows: Array, b: sparse.csr_array, b_rows: Array, term: int = DOT) -> Array:
    """out[i, j] = sum over shared columns of term(a[a_rows[i]], b[b_rows[j]]). The kernel of rows with themselves takes
    half the time. Of two different sets, give the smaller one first: this is faster."""
    width = a.shape[1]
    if width != b.shape[1]:
        raise ValueError(f"rows of {width} and {b.shape[1]} columns have no kernel")
    if a is b and a_rows is b_rows:
        return square_kernel(a, a_rows, NONE, term)[0]
    one = np.ascontiguousarray(a_rows, dtype=np.int64)
    two = np.ascontiguousarray(b_rows, dtype=np.int64)
    out = np.zeros((len(two), len(one)))
    left, right = ((m.indptr, unsigned(m.indices), m.data) for m in (a, b))
    _block(*left, one, *right, two, width, term, out)
    return np.ascontiguousarray(out.T)


def square_kernel(a: sparse.csr_array, rows: Array, others: Array, term: int = DOT) -> tuple[Array, Array]:
    """The kernel of `rows` with themselves, and of `others` with `rows`. The index is built once for both."""
    one, two = (np.ascontiguousarray(numbers, dtype=np.int64) for numbers in (rows, others))
    out, beside = np.zeros((len(one), len(one))), np.zeros((len(two), len(one)))
    _square(a.indptr, unsigned(a.indices), a.data, one, two, a.shape[1], term, out, beside)
    return out, beside


def row_kernel(row: Row, b: sparse.csr_array, b_rows: Array) -> Array:
    """Dot products of one row with selected rows of a matrix."""
    two = np.ascontiguousarray(b_rows, dtype=np.int64)
    out = np.zeros((len(two), 1))
    one = np.array([0, len(row.columns)]), unsigned(row.columns), row.values, FIRST
    _block(*one, b.indptr, unsigned(b.indices), b.data, two, b.shape[1], DOT, out)
    return out[:, 0]


# --- dense rows ------------------------------------------------------------------------------------


@kernel
def _dense_block(a, columns, out):  # type: ignore[no-untyped-def]
    for i in range(len(a)):
        line = out[i]
        for k in range(a.shape[1]):
            x, other = a[i, k], columns[k]
            for j in range(len(other)):
                line[j] += x * other[j]


def dense_kernel(a: Array, b: Array) -> Array:
    """a @ b.T in float64. BLAS is not used, because its rounding depends on the shapes. Here every sum is taken in the
    same order, whatever the other rows are."""
    out = np.zeros((len(a), len(b)))
    _dense_block(a.astype(np.float64), np.ascontiguousarray(b.T, dtype=np.float64), out)
    return out


# --- the nearest rows ------------------------------------------------------------------------------


@kernel
def _nearest(columns, values, indptr, holders, weights, among, items, scores):  # type: ignore[no-untyped-def]
    n_items = len(among)
    total, seen = np.zeros(n_items, np.float64), np.zeros(n_items, np.uint8)
    touched = np.empty(n_items, np.int32)
    n_touched = add_up(columns, values, indptr, holders, weights, total, seen, touched)
    size = 0
    for t in range(n_touched):
        item = touched[t]
        score = total[item]
        if among[item]:
            size = offer(scores, items, size, score, item)
    best_first(scores, items, size)
    return size


def nearest_rows(row: Row, inverted: sparse.csr_array, k: int, among: Array) -> tuple[Array, Array]:
    """The k rows with the largest dot products with `row`, best first; of equal ones the lower number first. Only rows
    that share a column with it and are in the mask `among` count. `inverted` has a row for each column."""
    k = min(k, len(among))
    items, scores = np.empty(k, dtype=np.int64), np.empty(k)
    if not k:
        return items, scores
    lists = inverted.indptr, unsigned(inverted.indices), inverted.data
    size = _nearest(unsigned(row.columns), row.values, *lists, among, items, scores)
    return items[:size], scores[:size]
