"""Measures fitted models on held-back searches, one by one: the numbers on which `auto` decides.

If the log has result pages, a model re-ranks those that were held back. If it has only clicks, a model searches the
whole collection, as it will in use, and gains nothing for a document that it does not find. A query counts as often as
it was clicked, so that known and new queries have the same shares as in the held-back part of the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from clickbridge.graph.hold_back import HoldBack
from clickbridge.models.candidates import MEASURED_AT, Candidates, Labelled, without_gaps
from clickbridge.models.fitted import Fitted
from clickbridge.models.study import Study
from clickbridge.types import ResultList

Array = np.ndarray[Any, Any]
MOST_SEARCHES = 5_000
"""Held-back searches that candidates are judged on: the mean paired difference of so many is known to three places."""
LAST = -1e300
"""The score of what has none."""
DISCOUNTS = 1 / np.log2(np.arange(MEASURED_AT) + 2.0)


@dataclass(frozen=True)
class Gain:
    """The mean paired difference of two models, and its standard error."""

    mean: float
    error: float

    def bounds(self, errors: float = 1.96) -> tuple[float, float]:
        return self.mean - errors * self.error, self.mean + errors * self.error


class Jury:
    """Held-back searches to measure models on. The `values` of two models can be compared search by search."""

    def __init__(self, study: Study, seed: int = 0, most: int = MOST_SEARCHES) -> None:
        self.held: HoldBack
        self.rest: Study
        self.held, self.rest = study.hold_back(seed=seed)
        self.pages = self.held.shown is not None
        self.has_text = bool(study.graph.field_names) and any(study.graph.query_texts)
        self._lists: Labelled | None = None
        self._wanted: list[dict[int, float]] = []
        if self.pages:
            found = self.held.lists(at_most=most, seed=seed)
            self._lists = Labelled(found, study.catalogue, study.clicked().queries)
            self.candidates, self.weights = self._lists.candidates, np.ones(len(self._lists))
        else:
            searches = self.held.searches(most, seed)
            self.candidates = Candidates.of(searches, study.catalogue, study.clicked().queries)
            self.weights = self.held.times_asked(searches)
            wanted = zip(self.candidates.each(), searches, strict=True)
            self._wanted = [self._grades(items, search) for (_, items), search in wanted]
        known = self.rest.clicked().queries
        self.new = np.array([known.number(key) < 0 for key in self.candidates.keys], dtype=bool)
        """Which searches are of a query without a click in the rest."""

    @staticmethod
    def _grades(items: Array, search: ResultList) -> dict[int, float]:
        return dict(zip(items.tolist(), np.exp2(search.labels or []) - 1, strict=True))

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def task(self) -> str:
        """What models are measured on, in words."""
        return "re-ranking held-back pages" if self.pages else "searching the collection for held-back clicks"

    def can_judge(self, fitted: Fitted) -> bool:
        return self.pages or "search" in fitted.abilities

    def values(self, fitted: Fitted) -> Array:
        """nDCG@5 of each held-back search."""
        if self._lists is not None:
            return np.nan_to_num(self._lists.values(without_gaps(fitted.scores(self._lists.candidates), LAST)))
        found = fitted.search_many(self.candidates.queries, MEASURED_AT)
        return np.array([_ndcg(items, grades) for (items, _), grades in zip(found, self._wanted, strict=True)])

    def mean(self, values: Array) -> float:
        return float(np.average(values, weights=self.weights))

    def gain(self, values: Array, over: Array) -> Gain:
        """The gain of one model over another."""
        total = self.weights.sum()
        differences = values - over
        mean = float(self.weights @ differences / total)
        return Gain(mean, float(np.sqrt(np.sum((self.weights * (differences - mean)) ** 2)) / total))


def _ndcg(found: Array, grades: dict[int, float]) -> float:
    """nDCG@5 of the documents found. `grades` has the gain of each relevant document."""
    gains = np.array([grades.get(item, 0.0) for item in found[:MEASURED_AT].tolist()])
    ideal = np.sort(np.fromiter(grades.values(), dtype=np.float64))[::-1][:MEASURED_AT]
    best = float(ideal @ DISCOUNTS[: len(ideal)])
    return float(gains @ DISCOUNTS[: len(gains)]) / best if best > 0 else 0.0
