"""The order of the list as it was given: the default baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.io.values import stored
from clickbridge.models.candidates import Query
from clickbridge.models.change import Change
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.model import Model
from clickbridge.models.study import Study


@stored
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedGiven(Fitted):
    can: ClassVar[frozenset[str]] = frozenset({"new queries", "update"})

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        if incoming is None:
            return np.arange(len(items), 0, -1, dtype=np.float64)
        return np.array(incoming, dtype=np.float64)

    def updated(self, change: Change, engine: Engine) -> Self:
        return replace(self, catalogue=change.after)


class Given(Model):
    """Keeps the order in which a list was given: the baseline that every other model has to beat.

    If a list has scores of its own, it is sorted by them. This model re-ranks lists; it cannot search.

    Examples
    --------
    >>> from clickbridge import Given, example_graph
    >>> model = Given().fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['slice', 'hotels', 'rooms']
    """

    name = "given"
    about = "the incoming order, or the list's own scores"
    paper = "-"
    light = True
    fitted_type: ClassVar[type[Fitted]] = FittedGiven

    def learn(self, study: Study, choices: Choices) -> FittedGiven:
        return FittedGiven(model=self.name, settings=self.settings, catalogue=study.catalogue, choices=choices)
