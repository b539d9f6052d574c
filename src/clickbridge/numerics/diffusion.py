"""Loops over result lists: which pages hang together, and K v without K (Kim and Choi 2009, Table 1).

A list contributes to K v through one number per column, c = sum over its pages of s_j v_j; then every page i of
the list gets s_i c. With s_j = 1 / (sqrt(d_j) ||x_j||) this is the normalised K of eq. (11). The scales are applied
to all of v and all of K v, not to each place in a list.

Cost of a product with w columns of float32, E places in lists: 2 E w additions; E times a row of v read and a row of
K v read and written, 12 w bytes, where rows do not stay in a cache. Rows come from anywhere, in the order of the
lists, so that large blocks move at a fraction of the bandwidth that a stream would have (docs/online.md).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from clickbridge.engines.base import Engine, default_engine
from clickbridge.numerics.threads import kernel, over_rows

Array = np.ndarray[Any, Any]
PARTS = 4
"""Stretches of lists that a large product sums apart, whatever the number of threads, so that the result is the same.
Each needs a K v of its own."""
LEAST_PLACES = 1 << 18
"""Fewer places than this are one stretch."""
LEAST_WORK = 1 << 18
"""Additions: with fewer, to wake a second thread takes longer than it saves."""


@kernel
def _spread(indptr, pages, v, first, last, out):  # type: ignore[no-untyped-def]
    """Columns first to last of B' B v, B being lists by pages."""
    c = np.empty(last - first, v.dtype)
    out[:, first:last] = 0.0
    for k in range(len(indptr) - 1):
        c[:] = 0.0
        for p in range(indptr[k], indptr[k + 1]):
            row = v[pages[p], first:last]
            for t in range(len(c)):
                c[t] += row[t]
        for p in range(indptr[k], indptr[k + 1]):
            row = out[pages[p], first:last]
            for t in range(len(c)):
                row[t] += c[t]


def spread(indptr: Array, pages: Array, scale: Array, v: Array, engine: Engine | None = None) -> Array:
    """K v for a block v of columns; list k shows `pages[indptr[k]:indptr[k + 1]]`."""
    scale = scale.astype(v.dtype, copy=False)[:, None]
    scaled = v * scale
    parts = PARTS if len(pages) >= LEAST_PLACES else 1
    engine = engine or default_engine()
    width, n_lists = v.shape[1], len(indptr) - 1
    stretches = [(n_lists * i // parts, n_lists * (i + 1) // parts) for i in range(parts)]
    # More threads than stretches take columns apart.
    columns = max(1, min(-(-engine.threads // parts), width // 16)) if len(pages) * width >= LEAST_WORK else 1
    bounds = [width * i // columns for i in range(columns + 1)]
    sums = [np.empty_like(v) for _ in stretches]
    jobs = [(a, b, *c, out) for (a, b), out in zip(stretches, sums, strict=True) for c in pairwise(bounds)]

    def work(job: tuple[int, int, int, int, Array]) -> None:
        a, b, first, last, out = job
        _spread(indptr[a : b + 1], pages, scaled, first, last, out)

    for _ in engine.map(work, jobs):
        pass
    for more in sums[1:]:
        sums[0] += more
    sums[0] *= scale
    return sums[0]


@kernel
def _union(indptr, pages, parent):  # type: ignore[no-untyped-def]
    for k in range(len(indptr) - 1):
        if indptr[k] == indptr[k + 1]:
            continue
        a = pages[indptr[k]]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        for p in range(indptr[k] + 1, indptr[k + 1]):
            b = pages[p]
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = parent[b]
            # The smaller number is the root, so that the numbering does not depend on the order of lists.
            if b < a:
                parent[a] = b
                a = b
            else:
                parent[b] = a


def components(indptr: Array, pages: Array, n_pages: int) -> Array:
    """A number for each page, equal where a chain of shared lists joins two pages; -1 for a page in no list."""
    parent = np.arange(n_pages, dtype=np.int64)
    _union(indptr, pages, parent)
    while True:
        above = parent[parent]
        if np.array_equal(above, parent):
            break
        parent = above
    listed = np.zeros(n_pages, dtype=bool)
    listed[pages] = True
    out = np.full(n_pages, -1, dtype=np.int32)
    out[listed] = np.unique(parent[listed], return_inverse=True)[1]
    return out


@kernel
def _list_means(indptr, pages, rows, start, stop, out):  # type: ignore[no-untyped-def]
    for k in range(start, stop):
        mean = out[k]
        mean[:] = 0.0
        for p in range(indptr[k], indptr[k + 1]):
            row = rows[pages[p]]
            for t in range(len(mean)):
                mean[t] += row[t]
        mean /= max(indptr[k + 1] - indptr[k], 1)


def list_means(indptr: Array, pages: Array, rows: Array, engine: Engine | None = None) -> Array:
    """The mean of the rows of each list's pages; zeros for an empty list."""
    out = np.empty((len(indptr) - 1, rows.shape[1]), dtype=rows.dtype)
    over_rows(len(out), engine, lambda a, b: _list_means(indptr, pages, rows, a, b, out))
    return out
