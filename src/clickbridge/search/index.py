"""Indexes of document images with exact top-k: sparse, dense, and several side by side.

An index takes the image of one query: a sparse `Row`, a dense vector, or one for each index in a stack. One query
is the common case and allocates little; `search_many` takes a matrix of images and searches in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine, default_engine
from clickbridge.numerics.coarse import CoarseRows, within_reach
from clickbridge.numerics.row import Row, gathered, segment_sums
from clickbridge.numerics.topk import sparse_topk

Array = np.ndarray[Any, Any]
Found = tuple[Array, Array]
"""Item numbers and their scores, best first, ties to the lower number."""
BLOCK = 1 << 26
"""Scores held at once by a blocked search."""
FEW_TERMS = 32
"""Up to so many features of a query, the items are looked up in the features' lists; above, the other way round."""
MANY_IMAGES = 20_000
"""From so many dense images on, they are also kept in coarse form. A search of fewer takes a millisecond or two anyway,
and needs no compiled loops, which take a third of a second to load."""
SAMPLED, SPARE = 64, 4
"""One score of so many is looked at first, and so many more than needed are let through."""
MANY_ITEMS = 512
"""From so many items on, a list is scored by the feature lists as a whole."""


class Index(Protocol):
    n_items: int

    def score(self, image: Any, items: Array) -> Array:
        """Scores of given items."""
        ...

    def add_all(self, image: Any, scale: float, total: Array, found: Array) -> None:
        """Adds `scale` times the score of every item that has one to `total`, and marks it in `found`."""
        ...

    def add_bounds(self, image: Any, scale: float, to: Bounds) -> None:
        """The same, cheaper: what is added to the total may be off by what is added to the slack."""
        ...

    def search(self, image: Any, k: int) -> Found: ...

    def search_many(self, images: Any, k: int, engine: Engine | None = None) -> list[Found]: ...


class SparseIndex:
    """Images are the rows of a sparse matrix. An item is found if it shares a feature with the query."""

    def __init__(self, images: sparse.csr_array) -> None:
        self.images = images
        self.n_items = int(images.shape[0])
        self.inverted = sparse.csr_array(images.T.tocsr())
        self.inverted.sort_indices()

    def score(self, image: Row, items: Array) -> Array:
        if len(items) > MANY_ITEMS:
            total, found = np.zeros(self.n_items), np.zeros(self.n_items, dtype=bool)
            self.add_all(image, 1.0, total, found)
            return total[items]
        if len(image.columns) <= FEW_TERMS:
            return self._by_terms(image, items)
        wide = np.zeros(self.images.shape[1])
        wide[image.columns] = image.values
        entries, begins = gathered(self.images.indptr, items)
        return segment_sums(wide[self.images.indices[entries]] * self.images.data[entries], begins)

    def _by_terms(self, image: Row, items: Array) -> Array:
        total = np.zeros(len(items))
        indptr, holders, weights = self.inverted.indptr, self.inverted.indices, self.inverted.data
        for column, value in zip(image.columns.tolist(), image.values.tolist(), strict=True):
            first, end = indptr[column], indptr[column + 1]
            if first == end:
                continue
            place = np.searchsorted(holders[first:end], items)
            place = np.minimum(place, end - first - 1) + first
            total += value * np.where(holders[place] == items, weights[place].astype(np.float64), 0.0)
        return total

    def add_all(self, image: Row, scale: float, total: Array, found: Array) -> None:
        indptr, holders, weights = self.inverted.indptr, self.inverted.indices, self.inverted.data
        for column, value in zip(image.columns.tolist(), image.values.tolist(), strict=True):
            first, end = indptr[column], indptr[column + 1]
            here = holders[first:end]
            total[here] += (scale * value) * weights[first:end].astype(np.float64)
            found[here] = True

    def add_bounds(self, image: Row, scale: float, to: Bounds) -> None:
        self.add_all(image, scale, to.total, to.found)

    def search(self, image: Row, k: int) -> Found:
        total, found = np.zeros(self.n_items), np.zeros(self.n_items, dtype=bool)
        self.add_all(image, 1.0, total, found)
        return best(total, found, k)

    def search_many(self, images: sparse.csr_array, k: int, engine: Engine | None = None) -> list[Found]:
        parts = (engine or default_engine()).by_rows(_best_of_rows, images.shape[0], images, self.inverted, k)
        return [found for part in parts for found in part]


class DenseIndex:
    """Images are the rows of a dense matrix. Every scorable item is found by a query that has an image. With the
    images in `coarse` form, a search looks at few of the exact ones."""

    def __init__(self, images: Array, scorable: Array, coarse: CoarseRows | None = None) -> None:
        self.images = images
        self.coarse = coarse
        self.n_items = len(images)
        self.scorable = scorable

    def score(self, image: Array, items: Array) -> Array:
        # Not a matrix product, whose rounding depends on its shape: a score must not depend on the list. It runs on
        # one thread, too; waking a second one costs more than a whole query.
        return np.einsum("ij,j->i", self.images[items], image).astype(np.float64)

    def add_all(self, image: Array, scale: float, total: Array, found: Array) -> None:
        if image.any():
            # In double precision, as the score of a list is made of those of its parts.
            scores = np.multiply(np.einsum("ij,j->i", self.images, image), scale, dtype=np.float64)
            np.add(total, scores, out=total, where=self.scorable)
            np.logical_or(found, self.scorable, out=found)

    def add_bounds(self, image: Array, scale: float, to: Bounds) -> None:
        if self.coarse is None:
            self.add_all(image, scale, to.total, to.found)
        elif image.any():
            self.coarse.add(image, scale, to.total, to.slack)
            np.logical_or(to.found, self.scorable, out=to.found)

    def search(self, image: Array, k: int) -> Found:
        if not image.any():
            return best(np.empty(0), np.empty(0, dtype=bool), k)
        bounds = Bounds(self.n_items)
        self.add_bounds(image, 1.0, bounds)
        return bounds.best(k, lambda items: self.score(image, items))

    def search_many(self, images: Array, k: int, engine: Engine | None = None) -> list[Found]:
        hidden = None if self.scorable.all() else ~self.scorable
        items, scores = (engine or default_engine()).top_k(images, self.images, k, hidden)
        counts = np.where(images.any(axis=1), np.isfinite(scores).sum(axis=1), 0)
        return [(i[:n], s[:n]) for i, s, n in zip(items, scores, counts.tolist(), strict=True)]

    def _block(self, images: Array) -> Array:
        scores = images @ self.images.T
        scores[:, ~self.scorable] = -np.inf
        scores[~images.any(axis=1)] = -np.inf
        return scores


class StackedIndex:
    """The sum of several indexes over the same items; an image is a list with one for each. `scorable` marks the
    items that may be found at all."""

    def __init__(self, parts: Sequence[Index], scorable: Array) -> None:
        self.parts = list(parts)
        self.n_items = self.parts[0].n_items
        self.scorable = scorable

    def score(self, image: Sequence[Any], items: Array) -> Array:
        total = np.zeros(len(items))
        for part, own in zip(self.parts, image, strict=True):
            total += part.score(own, items)
        return total

    def add_all(self, image: Sequence[Any], scale: float, total: Array, found: Array) -> None:
        own = np.zeros(self.n_items, dtype=bool)
        for part, block in zip(self.parts, image, strict=True):
            part.add_all(block, scale, total, own)
        found |= own & self.scorable

    def add_bounds(self, image: Sequence[Any], scale: float, to: Bounds) -> None:
        before, to.found = to.found, np.zeros(self.n_items, dtype=bool)
        for part, block in zip(self.parts, image, strict=True):
            part.add_bounds(block, scale, to)
        to.found = before | (to.found & self.scorable)

    def search(self, image: Sequence[Any], k: int) -> Found:
        bounds = Bounds(self.n_items)
        self.add_bounds(image, 1.0, bounds)
        return bounds.best(k, lambda items: self.score(image, items))

    def search_many(self, images: Sequence[Any], k: int, engine: Engine | None = None) -> list[Found]:
        return blocked_search(
            lambda a, b: self._block([block[a:b] for block in images]), images[0].shape[0], self.n_items, k
        )

    def _block(self, images: Sequence[Any]) -> Array:
        total = np.zeros((images[0].shape[0], self.n_items), dtype=np.float32)
        found = np.zeros(total.shape, dtype=bool)
        for part, own in zip(self.parts, images, strict=True):
            scores = all_scores(part, own)
            finite = np.isfinite(scores)
            np.add(total, scores, out=total, where=finite)
            found |= finite
        found[:, ~self.scorable] = False
        total[~found] = -np.inf
        return total


def _best_of_rows(
    engine: Engine, start: int, stop: int, images: sparse.csr_array, inverted: sparse.csr_array, k: int
) -> list[Found]:
    items, scores, counts = sparse_topk(sparse.csr_array(images[start:stop]), inverted, k, engine)
    return [(i[:n], s[:n]) for i, s, n in zip(items, scores, counts.tolist(), strict=True)]


def all_scores(index: Any, images: Any) -> Array:
    """A dense row of scores for each query image; -inf for what is not found."""
    if not isinstance(index, SparseIndex):
        return index._block(images)
    product = sparse.csr_array(images @ index.inverted)
    out = np.full(product.shape, -np.inf, dtype=np.float32)
    out[np.repeat(np.arange(product.shape[0]), np.diff(product.indptr)), product.indices] = product.data
    return out


class Bounds:
    """What every item scores, give or take its slack, gathered by `add_bounds`."""

    def __init__(self, n_items: int) -> None:
        self.total, self.slack, self.found = np.zeros(n_items), np.zeros(n_items), np.zeros(n_items, dtype=bool)

    def best(self, k: int, exact: Callable[[Array], Array]) -> Found:
        """The k best by the exact scores, which are asked for where they can still be among these."""
        if not self.slack.any():
            return best(self.total, self.found, k)
        items = within_reach(self.total, self.slack, self.found, min(k, len(self.total)))
        there, scores = best(exact(items), np.ones(len(items), dtype=bool), k)
        return items[there], scores


def best(scores: Array, found: Array, k: int) -> Found:
    """The k largest among the items that are found."""
    there = np.flatnonzero(found)
    values = scores[there]
    if k < len(there):
        # Everything above the k-th value is in; of those equal to it, the lowest numbers.
        kth = kth_largest(values, k)
        above, equal = np.flatnonzero(values > kth), np.flatnonzero(values == kth)
        chosen = np.concatenate([above, equal[: k - len(above)]])
        there, values = there[chosen], values[chosen]
    order = np.lexsort((there, -values))
    return there[order], values[order].astype(np.float64)


def kth_largest(values: Array, k: int) -> Any:
    """The k-th largest of at least k values. Selecting it takes 20 ms from 100,000 scores of which nine tenths are
    equal; so every 64th says first how high one has to be, and what is selected from are the few that are."""
    if len(values) > SAMPLED * SAMPLED:
        sample = np.sort(values[::SAMPLED])
        high = values[values >= sample[-min(SPARE + 2 * k // SAMPLED, len(sample))]]
        values = high if len(high) >= k else values
    return np.sort(values)[len(values) - k]


def blocked_search(block: Any, n_queries: int, n_items: int, k: int) -> list[Found]:
    """Exact top-k from dense rows of scores, a block of queries at a time."""
    step = max(BLOCK // max(n_items, 1), 1)
    out: list[Found] = []
    for start in range(0, n_queries, step):
        scores = block(start, min(start + step, n_queries))
        out += [best(row, np.isfinite(row), k) for row in scores]
    return out


def make_index(images: Any, scorable: Array) -> Index:
    if sparse.issparse(images):
        return SparseIndex(images)
    return DenseIndex(images, scorable, CoarseRows.of(images) if len(images) >= MANY_IMAGES else None)
