"""What every re-ranker of this package does to search a whole collection: it re-ranks its parts' best.

Candidates are the union of the top max(100, 5 k) of the parts that can search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clickbridge.errors import NotSupported
from clickbridge.models.base import Model, check_k, order
from clickbridge.models.wrapper import Parted
from clickbridge.types import Ranking, ResultList

LEAST_POOL, POOL_FACTOR = 100, 5


def pooled(parts: Sequence[Model], queries: Sequence[str], depth: int) -> list[ResultList]:
    """For each query one list of candidates. Nothing was given in any order, so all were given alike: the
    order of the ids must not count."""
    found = [part.rank_many(queries, depth) for part in parts]
    pools = [sorted({d for ranking in rankings for d in ranking.doc_ids}) for rankings in zip(*found, strict=True)]
    return [ResultList("", q, pool, scores=[0.0] * len(pool)) for q, pool in zip(queries, pools, strict=True)]


class Pooling(Parted):
    """A model of parts that searches by re-ranking what they find."""

    def rank_many(self, queries: Sequence[str], k: int = 10) -> list[Ranking]:
        """The k best candidates of each query by the model's own scores."""
        check_k(k)
        if not self.searching:
            raise NotSupported(f"{self.spec} re-ranks given lists; none of its parts can search the collection")
        lists = pooled(self.searching, queries, max(LEAST_POOL, POOL_FACTOR * k))
        ranked = [order(r.results, s) for r, s in zip(lists, self.score_lists(lists), strict=True)]
        return [Ranking(tuple(hit for hit in ranking[:k] if np.isfinite(hit.score))) for ranking in ranked]

    def rank(self, query: str, k: int = 10) -> Ranking:
        return self.rank_many([query], k)[0]
