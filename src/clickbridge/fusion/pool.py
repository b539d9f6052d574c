"""How every re-ranker of this package searches a whole collection: it re-ranks the best documents of its parts.

The candidates are the union of the top max(100, 5 k) documents of all parts that can search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.errors import NotSupported
from clickbridge.models.candidates import Candidates, Query
from clickbridge.models.composite import FittedComposite
from clickbridge.numerics.ragged import Ragged
from clickbridge.search.index import Found

Array = np.ndarray[Any, Any]
LEAST_POOL, POOL_FACTOR = 100, 5
LONG_LIST = 200
"""A list with more documents is treated as a collection to search, not as a page to re-rank."""


def pooled(
    parts: Sequence[Any], queries: Sequence[Query], depth: int, always: Array, engine: Engine | None = None
) -> Candidates:
    """One list of candidates for each query, including those of `always`. The candidates have no incoming order, so all
    get the same incoming score: the order of their numbers must not matter."""
    found = [part.search_many(queries, depth, engine) for part in parts]
    pools = [np.unique(np.concatenate([always, *(items for items, _ in own)])) for own in zip(*found, strict=True)]
    items = np.concatenate([np.empty(0, dtype=np.int64), *pools])
    lists = Ragged.of_lengths([len(pool) for pool in pools])
    return Candidates(queries, lists, items, [[0.0] * len(pool) for pool in pools])


def scored(own: Mapping[str, Array]) -> Array:
    """Which documents have a score from at least one part."""
    known: Array = np.logical_or.reduce([np.isfinite(column) for column in own.values()])
    return known


def summed(lists: Ragged, own: Mapping[str, Array]) -> Array:
    """The sum of the parts' scores, standardised over each list; -inf for documents without a score from any part."""
    scores = np.sum([lists.standardised(column) for column in own.values()], axis=0)
    return np.where(scored(own), scores, -np.inf)


def ranked_high(lists: Ragged, own: Mapping[str, Array]) -> Array:
    """Which documents a search of the list would find: all of a short list; of a long one, those that at least one part
    ranks among its best and above documents that do not match."""
    near = lists.kept_rows(lists.lengths <= LONG_LIST)
    if near.all():
        return near
    for column in own.values():
        order = lists.order(np.where(np.isfinite(column), column, -np.inf))
        high = np.zeros(lists.n_rows, dtype=bool)
        high[order[lists.places < LEAST_POOL]] = True
        finite = np.where(np.isfinite(column), column, np.inf)
        near = near | (high & np.isfinite(column) & (column > lists.reduce(np.minimum, finite)[lists.owner]))
    return near


class FittedPooling(FittedComposite):
    """A model with parts that searches by re-ranking what they find."""

    @property
    def always(self) -> Array:
        """Documents that are candidates for every query."""
        return np.empty(0, dtype=np.int64)

    @property
    def abilities(self) -> frozenset[str]:
        some = frozenset[str]().union(*(part.abilities for part in self.parts))
        return self.can & (some | {"explain", "update"})

    def search(self, query: Query, k: int) -> Found:
        return self.search_many([query], k)[0]

    def search_many(self, queries: Sequence[Query], k: int, engine: Engine | None = None) -> list[Found]:
        """The k best candidates for each query by the model's own scores."""
        searching = self.searching
        if not searching:
            raise NotSupported(f"{self.spec} re-ranks given lists; none of its parts can search the collection")
        candidates = pooled(searching, queries, max(LEAST_POOL, POOL_FACTOR * k), self.always, engine)
        scores = candidates.split(self.scores(candidates))
        return [_best(items, own, k) for (_, items), own in zip(candidates.each(), scores, strict=True)]


def _best(items: Any, scores: Any, k: int) -> Found:
    order = np.lexsort((items, -scores))[:k]
    order = order[np.isfinite(scores[order])]
    return items[order], scores[order]
