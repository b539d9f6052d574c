"""Reciprocal-rank fusion (Cormack, Clarke and Büttcher 2009): score(d) = sum over parts of 1 / (k + rank(d)).

Nothing is learned beyond the parts themselves, and scores of any scale can be mixed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clickbridge.fusion.pool import Pooling
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.models.base import Array
from clickbridge.models.wrapper import Wrapper
from clickbridge.types import ResultList


class RRF(Pooling, Wrapper):
    """Documents that tie in a part share the mean of their ranks there; what a part cannot score gets
    nothing from it."""

    name = "rrf"
    about = "reciprocal-rank fusion of models"
    paper = "-"
    settings = ("rrf_k",)
    separate = True

    rrf_k: float

    def _fit(self, graph: ClickGraph) -> None:
        for part in self.parts:
            (part.refit if self.tuned_.get("parts") else part.fit)(graph)
            self.notes_ += [note for note in part.notes_ if note not in self.notes_]
        self.tuned_["parts"] = True

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        scored = [part.score_lists(lists) for part in self.parts]
        out = []
        for per_part in zip(*scored, strict=True):
            total = np.zeros(len(per_part[0]))
            for scores in per_part:
                known = np.isfinite(scores)
                total[known] += 1 / (self.rrf_k + mean_ranks(scores[known]))
            any_score = np.logical_or.reduce([np.isfinite(scores) for scores in per_part])
            out.append(np.where(any_score, total, -np.inf))
        return out


def mean_ranks(scores: Array) -> Array:
    """Ranks from 1 by falling score; equal scores share the mean of their places."""
    _, inverse, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]
