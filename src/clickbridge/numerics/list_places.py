"""Ranks and standard scores within lists, for many columns at once.

`Ragged` does the same for one column, with a dozen array operations. For one short list these cost more than this loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
SHORT = 128
"""Up to this length, counting the larger values is faster than sorting."""
LEVEL = 1e-12
"""Standard deviations up to this are rounding error: such a column is constant."""


@kernel
def _ranks(values, out):  # type: ignore[no-untyped-def]
    """How many values are strictly larger. NaN is the smallest."""
    n = len(values)
    filled = np.empty(n)
    for i in range(n):
        filled[i] = -np.inf if np.isnan(values[i]) else values[i]
    if n <= SHORT:
        for i in range(n):
            above = 0
            for j in range(n):
                above += filled[j] > filled[i]
            out[i] = above
        return
    order = np.argsort(-filled)
    for place in range(n):
        tied = place > 0 and filled[order[place]] == filled[order[place - 1]]
        out[order[place]] = out[order[place - 1]] if tied else place


@kernel
def _places(indptr, columns, out):  # type: ignore[no-untyped-def]
    for i in range(len(indptr) - 1):
        start, stop = indptr[i], indptr[i + 1]
        for c in range(columns.shape[0]):
            values = columns[c, start:stop]
            _ranks(values, out[3 * c, start:stop])
            best, total, count = -np.inf, 0.0, 0
            for value in values:
                if not np.isnan(value):
                    best, total, count = max(best, value), total + value, count + 1
            mean, squares = total / max(count, 1), 0.0
            for value in values:
                if not np.isnan(value):
                    squares += (value - mean) ** 2
            deviation = np.sqrt(squares / max(count, 1))
            deviation = deviation if deviation > LEVEL else 1.0
            for j in range(len(values)):
                missing = np.isnan(values[j])
                out[3 * c + 1, start + j] = values[j] - best if not missing else np.nan
                out[3 * c + 2, start + j] = (values[j] - mean) / deviation if not missing else 0.0


def places(indptr: Array, columns: Array) -> Array:
    """Three rows for each row of `columns`: ranks (how many values of the list are strictly larger), differences from
    the largest value of the list, and standard scores (mean 0 and deviation 1). NaN is the smallest value and has the
    standard score 0."""
    out = np.empty((3 * len(columns), columns.shape[1]))
    _places(indptr, columns, out)
    return out


@kernel
def _trust(indptr, items, scores, out):  # type: ignore[no-untyped-def]
    for i in range(len(indptr) - 1):
        start, stop = indptr[i], indptr[i + 1]
        best = -np.inf
        for at in range(start, stop):
            out[0, at] = 0.0
            for c in range(scores.shape[0]):
                out[0, at] += scores[c, at]
            out[0, at] /= max(scores.shape[0], 1)
            best = max(best, out[0, at])
        total = 0.0
        for at in range(start, stop):
            out[1, at] = out[0, at] == best and items[at] >= 0
            out[2, at] = 1 / (stop - start) if items[at] >= 0 else 0.0
            out[0, at] = np.exp(out[0, at] - best)
            total += out[0, at]
        for at in range(start, stop):
            out[0, at] = out[0, at] / total if items[at] >= 0 else 0.0


def trust(indptr: Array, items: Array, scores: Array) -> Array:
    """Three ways to weight the documents of each list by the mean of `scores` (a row for each part): the softmax of the
    mean, everything on the best, or equal weights. Unknown documents (-1) get 0."""
    out = np.empty((3, len(items)))
    _trust(indptr, items, scores, out)
    return out
