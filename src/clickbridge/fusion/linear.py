"""`a+b` where a part is not an S-function (a walk): scores are added list by list.

Each part's scores are standardised over the list; what a part cannot score adds nothing. To search, the best
documents of the parts that can search are pooled first. Weights are learned through `hold_back`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np

from clickbridge.fusion.pool import Pooling
from clickbridge.models.algebra import Composite
from clickbridge.models.base import Array, Model
from clickbridge.types import ResultList


class LinearSum(Pooling, Composite):
    name = "linear"
    about = "a weighted sum of list scores"
    paper = "11M, 13"

    def part_scores(self, lists: Sequence[ResultList]) -> Array:
        columns = []
        for part in self.parts:
            scored = part.score_lists(lists)
            columns.append(np.concatenate([standardised(scores) for scores in scored]) if scored else np.empty(0))
        return np.stack(columns, axis=1)

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        scored = [part.score_lists(lists) for part in self.parts]
        out = []
        for per_part in zip(*scored, strict=True):
            total = sum(w * standardised(s) for w, s in zip(self.weights_, per_part, strict=True))
            any_score = np.logical_or.reduce([np.isfinite(s) for s in per_part])
            out.append(np.where(any_score, total, -np.inf))
        return out

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        """Similarities of the parts that have one, each over its largest, weighted."""
        totals: dict[str, float] = {}
        able = [type(part).similar_queries is not Model.similar_queries for part in self.parts]
        if not any(able):
            return super().similar_queries(query, k, min_clicks)
        for part, weight in compress(zip(self.parts, self.weights_, strict=True), able):
            near = part.similar_queries(query, max(50, 4 * k), min_clicks)
            largest = max((s for _, s in near), default=1.0) or 1.0
            for name, s in near:
                totals[name] = totals.get(name, 0.0) + float(weight) * s / largest
        return sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:k]


def standardised(scores: Array) -> Array:
    """Mean 0 and deviation 1 over the scored documents of a list; 0 for the rest."""
    finite = np.isfinite(scores)
    if not finite.any():
        return np.zeros(len(scores))
    mean, deviation = scores[finite].mean(), scores[finite].std()
    return np.where(finite, (np.where(finite, scores, mean) - mean) / (deviation or 1.0), 0.0)
