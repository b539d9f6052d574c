"""Reciprocal-rank fusion (Cormack, Clarke and Büttcher 2009): score(d) = sum over parts of 1 / (k + rank(d)).

Only the parts are learned, and their scores may have any scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from clickbridge.fusion.pool import FittedPooling
from clickbridge.models.candidates import Query
from clickbridge.models.composite import FittedWrapper, PartsChoices, Wrapper
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.study import Study
from clickbridge.settings import Settings, setting, settings


@settings
class RRFSettings(Settings):
    rrf_k: float = setting(60.0, "added to every rank; the smaller, the more the first places count", 0, 1e6)


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRRF(FittedPooling, FittedWrapper):
    can: ClassVar[frozenset[str]] = frozenset({"search", "new queries"})

    settings: RRFSettings

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        total, any_score = np.zeros(len(items)), np.zeros(len(items), dtype=bool)
        for part in self.parts:
            scores = part.score_items(query, items, incoming)
            known = np.isfinite(scores)
            total[known] += 1 / (self.settings.rrf_k + mean_ranks(scores[known]))
            any_score |= known
        return np.where(any_score, total, -np.inf)


class RRF(Wrapper):
    """Reciprocal-rank fusion of models: `RRF([BM25(), PLS()])`.

    Only ranks count: a document gets 1 / (rrf_k + rank) from each part, and these are added. Documents with equal
    scores in a part get the mean of their ranks. A document that a part cannot score gets nothing from it.

    Examples
    --------
    >>> from clickbridge import BM25, PLS, RRF, example_graph
    >>> model = RRF([BM25(), PLS(dim=10)]).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['hotels', 'rooms', 'slice']
    """

    name = "rrf"
    about = "reciprocal-rank fusion of models"
    paper = "-"
    Settings = RRFSettings
    fitted_type: ClassVar[type[Fitted]] = FittedRRF
    separate = True

    def choose(self, study: Study) -> PartsChoices:
        self.settings  # noqa: B018 - refused before any work
        return PartsChoices(parts=self.choose_parts(study))

    def learn(self, study: Study, choices: Choices) -> FittedRRF:
        assert isinstance(choices, PartsChoices)
        return self.composed(study, choices, self.learn_parts(study, choices.parts))


def mean_ranks(scores: Array) -> Array:
    """Ranks from 1, highest score first. Equal scores get the mean of their ranks."""
    _, inverse, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]
