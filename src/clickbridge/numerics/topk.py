"""Exact top-k of sparse rows against an inverted matrix, and scores of given row pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.numerics.threads import kernel, over_rows, unsigned

Array = np.ndarray[Any, Any]


@kernel
def _before(score_a, item_a, score_b, item_b):  # type: ignore[no-untyped-def]
    """Whether a stands before b: higher score first, then the lower number."""
    return score_a > score_b or (score_a == score_b and item_a < item_b)


@kernel
def offer(scores, items, size, score, item):  # type: ignore[no-untyped-def]
    """Takes a hit into the heap where there is room, or where it stands before the last one. Returns the new size."""
    if size < len(scores):
        scores[size], items[size] = score, item
        _sift_up(scores, items, size)
        return size + 1
    if _before(score, item, scores[0], items[0]):
        scores[0], items[0] = score, item
        _sift_down(scores, items, size, 0)
    return size


@kernel
def _sift_down(scores, items, size, at):  # type: ignore[no-untyped-def]
    """Restores the heap whose root is the hit that stands last."""
    while True:
        worst, child = at, 2 * at + 1
        for c in (child, child + 1):
            if c < size and _before(scores[worst], items[worst], scores[c], items[c]):
                worst = c
        if worst == at:
            return
        scores[at], scores[worst] = scores[worst], scores[at]
        items[at], items[worst] = items[worst], items[at]
        at = worst


@kernel
def _sift_up(scores, items, at):  # type: ignore[no-untyped-def]
    """Restores the heap after a new leaf."""
    while at > 0:
        up = (at - 1) // 2
        if not _before(scores[up], items[up], scores[at], items[at]):
            return
        scores[at], scores[up] = scores[up], scores[at]
        items[at], items[up] = items[up], items[at]
        at = up


@kernel
def best_first(scores, items, size):  # type: ignore[no-untyped-def]
    """The heap in order; behind it, places without a hit."""
    for last in range(size - 1, 0, -1):
        scores[0], scores[last] = scores[last], scores[0]
        items[0], items[last] = items[last], items[0]
        _sift_down(scores, items, last, 0)
    for place in range(size, len(scores)):
        scores[place], items[place] = -np.inf, -1


@kernel
def add_up(columns, values, indptr, holders, weights, total, seen, touched):  # type: ignore[no-untyped-def]
    """Adds a row's products to the `total` of every item that shares a column with it; `touched` gets those items.
    Returns how many. Products are as precise as the total; for a search that is doubles, as in _dots: search and scores
    agree to the bit."""
    n_touched = 0
    for p in range(len(columns)):
        weight, own = total.dtype.type(values[p]), slice(indptr[columns[p]], indptr[columns[p] + 1])
        n_touched = _add_list(weight, holders[own], weights[own], 0, total, seen, touched, n_touched)
    return n_touched


@kernel
def _add_list(weight, holders, weights, first, total, seen, touched, n_touched):  # type: ignore[no-untyped-def]
    """Adds one list of items; the total begins with the item `first`."""
    for j in range(len(holders)):
        holder = holders[j] - first
        if not seen[holder]:
            seen[holder] = 1
            touched[n_touched] = holder
            n_touched += 1
        total[holder] += weight * weights[j]
    return n_touched


ITEMS_AT_ONCE = 1 << 14
"""Items whose scores are added up together: they stay in the cache, however long the lists are."""


@kernel
def _search(  # type: ignore[no-untyped-def]
    q_indptr, q_indices, q_data, inv_indptr, inv_items, inv_weights, n_items, start, stop, items, scores, counts
):
    total = np.zeros(min(n_items, ITEMS_AT_ONCE), dtype=np.float64)
    seen = np.zeros(len(total), dtype=np.uint8)
    touched = np.empty(len(total), dtype=np.int32)
    for row in range(start, stop):
        columns, values = q_indices[q_indptr[row] : q_indptr[row + 1]], q_data[q_indptr[row] : q_indptr[row + 1]]
        at = np.empty(len(columns), dtype=np.int64)  # how far each list has been read
        for p in range(len(columns)):
            at[p] = inv_indptr[columns[p]]
        best, numbers, size = scores[row], items[row], 0
        for first in range(0, n_items, ITEMS_AT_ONCE):
            n_touched = 0
            for p in range(len(columns)):
                begin, end = at[p], inv_indptr[columns[p] + 1]
                at[p] = _reach(inv_items, begin, end, first + ITEMS_AT_ONCE)
                own = slice(begin, at[p])
                n_touched = _add_list(
                    np.float64(values[p]), inv_items[own], inv_weights[own], first, total, seen, touched, n_touched
                )
            for t in range(n_touched):
                item = touched[t]
                size = offer(best, numbers, size, total[item], np.int32(first + item))
                total[item], seen[item] = 0.0, 0
        best_first(best, numbers, size)
        counts[row] = size


@kernel
def _reach(items, begin, end, limit):  # type: ignore[no-untyped-def]
    """The first place from `begin` on whose item is not below the limit. Items rise."""
    step = 1
    while begin + step < end and items[begin + step] < limit:
        begin += step
        step *= 2
    low, high = begin, min(begin + step, end)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < limit:
            low = middle + 1
        else:
            high = middle
    return low


def sparse_topk(
    queries: sparse.csr_array, inverted: sparse.csr_array, k: int, engine: Engine | None = None
) -> tuple[Array, Array, Array]:
    """For each row of `queries` the k best columns of `queries @ inverted`, among those it touches.

    `inverted` has a row for each feature. Returns (items, scores, counts); ties go to the lower number.
    """
    n_rows, n_features = queries.shape
    if n_features != inverted.shape[0]:
        raise ValueError(f"{n_features} columns do not fit an inverted matrix of {inverted.shape[0]} rows")
    if not inverted.has_sorted_indices:
        inverted = inverted.sorted_indices()
    n_items = inverted.shape[1]
    k = min(k, n_items)
    items = np.empty((n_rows, k), dtype=np.int32)
    scores = np.empty((n_rows, k), dtype=np.float64)
    counts = np.zeros(n_rows, dtype=np.int64)
    if k > 0:
        q = queries.indptr, queries.indices, queries.data
        inv = inverted.indptr, unsigned(inverted.indices), inverted.data
        over_rows(n_rows, engine, lambda a, b: _search(*q, *inv, n_items, a, b, items, scores, counts))
    return items, scores, counts


@kernel
def _dots(  # type: ignore[no-untyped-def]
    a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, width, indptr, columns, start, stop, out
):
    wide = np.zeros(width, dtype=np.float64)
    for row in range(start, stop):
        for p in range(a_indptr[row], a_indptr[row + 1]):
            wide[a_indices[p]] = a_data[p]
        for at in range(indptr[row], indptr[row + 1]):
            first, end = b_indptr[columns[at]], b_indptr[columns[at] + 1]
            features, values = b_indices[first:end], b_data[first:end]
            total = 0.0
            for p in range(len(features)):
                total += wide[features[p]] * values[p]
            out[at] = total
        for p in range(a_indptr[row], a_indptr[row + 1]):
            wide[a_indices[p]] = 0.0


def paired_dots(
    a: sparse.csr_array, b: sparse.csr_array, indptr: Array, columns: Array, engine: Engine | None = None
) -> Array:
    """Dot products of row i of `a` with rows `columns[indptr[i]:indptr[i + 1]]` of `b`, end to end."""
    n_rows, width = a.shape
    if width != b.shape[1]:
        raise ValueError(f"rows of {width} and {b.shape[1]} columns have no dot product")
    out = np.zeros(len(columns), dtype=np.float64)
    one, two = (a.indptr, a.indices, a.data), (b.indptr, unsigned(b.indices), b.data)
    over_rows(n_rows, engine, lambda start, stop: _dots(*one, *two, width, indptr, columns, start, stop, out))
    return out
