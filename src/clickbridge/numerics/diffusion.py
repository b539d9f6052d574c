"""Loops over result lists: which pages hang together, and K v without K (Kim and Choi 2009, Table 1).

A list contributes to K v through one number a column, c = sum over its pages of s_j v_j; then every page i of
the list gets s_i c. With s_j = 1 / (sqrt(d_j) ||x_j||) this is the normalised K of eq. (11). The scales are applied
to all of v and all of K v, not to each place in a list.

Cost of a product with w columns of float32, E places in lists: 2 E w additions; E times a row of v read and a row of
K v read and written, 12 w bytes, where rows do not stay in a cache. Rows come from anywhere, in the order of the
lists, so that large blocks move at a fraction of the bandwidth that a stream would have (docs/online.md).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from clickbridge.numerics.threads import kernel, over_rows

Array = np.ndarray[Any, Any]


@kernel
def _spread(indptr, pages, v, first, last, out):  # type: ignore[no-untyped-def]
    """Columns first to last of B' B v, B being lists by pages. Each thread has columns of its own: the sums of a
    column are made in one order whatever the number of threads."""
    width = last - first
    c = np.empty(width, v.dtype)
    for i in range(out.shape[0]):
        for t in range(width):
            out[i, first + t] = 0.0
    for k in range(len(indptr) - 1):
        for t in range(width):
            c[t] = 0.0
        for p in range(indptr[k], indptr[k + 1]):
            j = pages[p]
            for t in range(width):
                c[t] += v[j, first + t]
        for p in range(indptr[k], indptr[k + 1]):
            j = pages[p]
            for t in range(width):
                out[j, first + t] += c[t]


def spread(indptr: Array, pages: Array, scale: Array, v: Array, threads: int = 0) -> Array:
    """K v for a block v of columns; list k shows `pages[indptr[k]:indptr[k + 1]]`."""
    scale = scale.astype(v.dtype, copy=False)[:, None]
    scaled, out = v * scale, np.empty_like(v)
    width = v.shape[1]
    parts = max(1, min(threads or os.cpu_count() or 1, width // 16))
    bounds = [width * i // parts for i in range(parts + 1)]
    if parts == 1:
        _spread(indptr, pages, scaled, 0, width, out)
    else:
        with ThreadPoolExecutor(parts) as pool:
            jobs = [pool.submit(_spread, indptr, pages, scaled, *b, out) for b in pairwise(bounds)]
            for job in jobs:
                job.result()
    out *= scale
    return out


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
        for t in range(rows.shape[1]):
            out[k, t] = 0.0
        for p in range(indptr[k], indptr[k + 1]):
            for t in range(rows.shape[1]):
                out[k, t] += rows[pages[p], t]
        for t in range(rows.shape[1]):
            out[k, t] /= max(indptr[k + 1] - indptr[k], 1)


def list_means(indptr: Array, pages: Array, rows: Array, threads: int = 0) -> Array:
    """The mean of the rows of each list's pages; zeros for an empty list."""
    out = np.empty((len(indptr) - 1, rows.shape[1]), dtype=rows.dtype)
    over_rows(len(out), threads, lambda a, b: _list_means(indptr, pages, rows, a, b, out))
    return out
