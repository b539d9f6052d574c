"""Loops over result lists: connected pages, and K v without forming K (Kim and Choi 2009, Table 1).

For each column a list needs one number, c = the sum over its pages of s_j v_j. Then s_i c is added to every page i of
the list. With s_j = 1 / (sqrt(d_j) ||x_j||) this is the normalised K of eq. (11). The scales are applied once to v and
once to K v, not at each position of a list.

The cost of a product with w columns of float32 and E positions in all lists: 2 E w additions. If rows do not stay in a
cache, each position reads a row of v, and reads and writes a row of K v: 12 w bytes. Rows are visited in the order of
the lists, which is random access to memory, so large blocks reach a fraction of the full bandwidth (docs/online.md).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from clickbridge.engines.base import Engine, default_engine
from clickbridge.numerics.threads import kernel, over_rows

Array = np.ndarray[Any, Any]
PARTS = 4
"""A large product is summed in this many parts, for any number of threads, so that the result is always the same. Each
part needs its own copy of K v."""
LEAST_PLACES = 1 << 18
"""With fewer positions in lists there is only one part."""
LEAST_WORK = 1 << 18
"""With fewer additions, starting a second thread takes longer than it saves."""


@kernel
def _spread(indptr, pages, v, first, last, out):  # type: ignore[no-untyped-def]
    """Columns first to last of B' B v, where B is lists by pages."""
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
    """K v for a block v of columns. List k shows `pages[indptr[k]:indptr[k + 1]]`."""
    scale = scale.astype(v.dtype, copy=False)[:, None]
    scaled = v * scale
    parts = PARTS if len(pages) >= LEAST_PLACES else 1
    engine = engine or default_engine()
    width, n_lists = v.shape[1], len(indptr) - 1
    stretches = [(n_lists * i // parts, n_lists * (i + 1) // parts) for i in range(parts)]
    # If there are more threads than parts, the columns are divided as well.
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
            # The smaller number becomes the root, so that the numbering does not depend on the order of lists.
            if b < a:
                parent[a] = b
                a = b
            else:
                parent[b] = a


def components(indptr: Array, pages: Array, n_pages: int) -> Array:
    """The connected component of each page: pages of the same list, or linked by a chain of lists, have the same
    number. -1 for a page that is in no list."""
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
