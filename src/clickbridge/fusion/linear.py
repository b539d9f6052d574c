"""`a+b` if a part is not an S-function, such as a walk: scores are added list by list.

Each part's scores are standardised over the list. A document that a part cannot score gets nothing from it. To search,
the best documents of all parts that can search are collected first. The weights are learned on held-back clicks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from clickbridge.fusion.pool import FittedPooling
from clickbridge.models.algebra import FittedWeightedSum, WeightedSum
from clickbridge.models.candidates import Candidates, Query
from clickbridge.models.fitted import Array, Fitted
from clickbridge.numerics.ragged import Ragged


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedLinearSum(FittedWeightedSum, FittedPooling):
    can: ClassVar[frozenset[str]] = frozenset({"search", "new queries", "similar queries", "update"})

    @property
    def abilities(self) -> frozenset[str]:
        some = frozenset[str]().union(*(part.abilities for part in self.parts))
        every = frozenset.intersection(*(part.abilities for part in self.parts))
        return (self.can & some) - ({"update"} - every)

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        one = Ragged(np.array([0, len(items)]))
        total, any_score = np.zeros(len(items)), np.zeros(len(items), dtype=bool)
        for part, weight in zip(self.parts, self.weights_for(query), strict=True):
            scores = part.score_items(query, items, incoming)
            total += weight * one.standardised(scores)
            any_score |= np.isfinite(scores)
        return np.where(any_score, total, -np.inf)

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        """The weighted sum of the parts' similarities, each divided by its largest value."""
        able = [
            (part, weight)
            for part, weight in zip(self.parts, self.choices.weights, strict=True)
            if "similar queries" in part.abilities
        ]
        if not able:
            return super().similar_queries(query, k, min_clicks)
        totals: dict[str, float] = {}
        for part, weight in able:
            near = part.similar_queries(query, max(50, 4 * k), min_clicks)
            largest = max((s for _, s in near), default=1.0) or 1.0
            for name, s in near:
                totals[name] = totals.get(name, 0.0) + float(weight) * s / largest
        return sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:k]


class LinearSum(WeightedSum):
    """A weighted sum of models, at least one of which is not an S-function: `BM25() + Walk()`.

    The scores of each part are standardised over the list and added. The weights are learned on held-back clicks,
    unless you set `weights`.

    Examples
    --------
    >>> from clickbridge import BM25, Walk, example_graph
    >>> model = (BM25() + Walk()).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['hotels', 'rooms', 'slice']
    """

    name = "linear"
    about = "a weighted sum of list scores"
    paper = "11M, 13"
    fitted_type: ClassVar[type[Fitted]] = FittedLinearSum

    def column(self, part: Fitted, candidates: Candidates) -> Array:
        return candidates.lists.standardised(part.scores(candidates))
