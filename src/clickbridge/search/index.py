"""Indexes of document images with exact top-k: sparse, dense, and several side by side.

An index takes query images of its own kind: a sparse matrix, a dense one, or one for each index in a stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from clickbridge.numerics.topk import paired_dots, sparse_topk

Array = np.ndarray[Any, Any]
BLOCK = 1 << 26
"""Scores held at once by a blocked search."""


class Index(Protocol):
    n_items: int

    def search(self, queries: Any, k: int) -> tuple[Array, Array, Array]: ...

    def score(self, queries: Any, indptr: Array, items: Array) -> Array: ...

    def all_scores(self, queries: Any) -> Array: ...

    def rows(self, queries: Any, start: int, stop: int) -> Any: ...

    def mapped(self, queries: Any) -> Array: ...


class SparseIndex:
    """Images are the rows of a sparse matrix. The inverted form is made on the first search."""

    def __init__(self, images: sparse.csr_array, threads: int = 0) -> None:
        self.images = images
        self.threads = threads
        self.n_items = int(images.shape[0])

    @cached_property
    def _inverted(self) -> sparse.csr_array:
        return sparse.csr_array(self.images.T.tocsr())

    def search(self, queries: sparse.csr_array, k: int) -> tuple[Array, Array, Array]:
        """(items, scores, counts) of the k best images that share a feature with each query row."""
        return sparse_topk(queries, self._inverted, k, self.threads)

    def score(self, queries: sparse.csr_array, indptr: Array, items: Array) -> Array:
        """Scores of given items, list after list."""
        return paired_dots(queries, self.images, indptr, items, self.threads)

    def all_scores(self, queries: sparse.csr_array) -> Array:
        """A dense row of scores for each query; -inf for what shares no feature with it."""
        product = sparse.csr_array(queries @ self._inverted)
        out = np.full(product.shape, -np.inf, dtype=np.float32)
        out[np.repeat(np.arange(product.shape[0]), np.diff(product.indptr)), product.indices] = product.data
        return out

    def rows(self, queries: sparse.csr_array, start: int, stop: int) -> sparse.csr_array:
        return queries[start:stop]

    def mapped(self, queries: sparse.csr_array) -> Array:
        """Which queries have an image at all."""
        return np.diff(queries.indptr) > 0


class DenseIndex:
    """Images are the rows of a dense matrix; blocks of BLAS products, never all pairs at once."""

    def __init__(self, images: Array, scorable: Array | None = None) -> None:
        self.images = images
        self.n_items = len(images)
        self._hidden = None if scorable is None or scorable.all() else ~scorable

    def search(self, queries: Array, k: int) -> tuple[Array, Array, Array]:
        return blocked_search(self, queries, len(queries), k)

    def score(self, queries: Array, indptr: Array, items: Array) -> Array:
        rows = np.repeat(np.arange(len(queries)), np.diff(indptr))
        out = np.empty(len(items))
        step = max(BLOCK // 16 // max(self.images.shape[1], 1), 1)
        for start in range(0, len(items), step):
            part = slice(start, start + step)
            out[part] = np.einsum("ij,ij->i", queries[rows[part]], self.images[items[part]])
        return out

    def all_scores(self, queries: Array) -> Array:
        scores = queries @ self.images.T
        if self._hidden is not None:
            scores[:, self._hidden] = -np.inf
        return scores

    def rows(self, queries: Array, start: int, stop: int) -> Array:
        return queries[start:stop]

    def mapped(self, queries: Array) -> Array:
        return np.asarray(queries.any(axis=1))


class StackedIndex:
    """The sum of several indexes over the same items."""

    def __init__(self, parts: Sequence[Index], scorable: Array) -> None:
        self.parts = list(parts)
        self.n_items = self.parts[0].n_items
        self._hidden = ~scorable

    def search(self, queries: list[Any], k: int) -> tuple[Array, Array, Array]:
        return blocked_search(self, queries, len(self.mapped(queries)), k)

    def score(self, queries: list[Any], indptr: Array, items: Array) -> Array:
        return np.sum([p.score(q, indptr, items) for p, q in zip(self.parts, queries, strict=True)], axis=0)

    def all_scores(self, queries: list[Any]) -> Array:
        total = np.zeros((len(self.mapped(queries)), self.n_items), dtype=np.float32)
        found = np.zeros(total.shape, dtype=bool)
        for part, query in zip(self.parts, queries, strict=True):
            scores = part.all_scores(query)
            finite = np.isfinite(scores)
            np.add(total, scores, out=total, where=finite)
            found |= finite
        found[:, self._hidden] = False
        total[~found] = -np.inf
        return total

    def rows(self, queries: list[Any], start: int, stop: int) -> list[Any]:
        return [p.rows(q, start, stop) for p, q in zip(self.parts, queries, strict=True)]

    def mapped(self, queries: list[Any]) -> Array:
        return np.logical_or.reduce([p.mapped(q) for p, q in zip(self.parts, queries, strict=True)])


def blocked_search(index: Index, queries: Any, n_queries: int, k: int) -> tuple[Array, Array, Array]:
    """Exact top-k from dense rows of scores, a block of queries at a time; ties go to the lower number.
    What has no finite score is not found; neither is anything for a query without an image."""
    k = min(k, index.n_items)
    items = np.full((n_queries, k), -1, dtype=np.int32)
    values = np.full((n_queries, k), -np.inf)
    counts = np.zeros(n_queries, dtype=np.int64)
    if k == 0:
        return items, values, counts
    mapped = index.mapped(queries)
    step = max(BLOCK // max(index.n_items, 1), 1)
    for start in range(0, n_queries, step):
        stop = min(start + step, n_queries)
        scores = index.all_scores(index.rows(queries, start, stop))
        items[start:stop], values[start:stop] = top_of_rows(scores, k)
        counts[start:stop] = np.isfinite(values[start:stop]).sum(axis=1)
    counts[~mapped] = 0
    return items, values, counts


def top_of_rows(scores: Array, k: int) -> tuple[Array, Array]:
    """Columns and values of each row's k largest, ties to the lower column."""
    n_columns = scores.shape[1]
    if k < n_columns:
        # Everything above the k-th value is in; of those equal to it, the lowest columns.
        kth = -np.partition(-scores, k - 1, axis=1)[:, k - 1 : k]
        above, equal = scores > kth, scores == kth
        room = k - above.sum(axis=1, keepdims=True)
        chosen = above | (equal & (np.cumsum(equal, axis=1) <= room))
        columns = np.nonzero(chosen)[1].reshape(len(scores), k)
    else:
        columns = np.tile(np.arange(n_columns), (len(scores), 1))
    values = np.take_along_axis(scores, columns, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)
