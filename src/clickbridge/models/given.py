"""The order that came in: the default baseline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clickbridge.errors import InputError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.models.base import Array, Model
from clickbridge.types import ResultList


class Given(Model):
    """Keeps the incoming order, or sorts by the list's own `scores` where it has them."""

    name = "given"
    about = "the incoming order, or the list's own scores"
    paper = "-"

    def _fit(self, graph: ClickGraph) -> None:
        pass

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        for r in lists:
            if r.scores is not None and len(r.scores) != len(r.results):
                raise InputError(f"a list has one score for each result; got {len(r.scores)} for {len(r.results)}")
        return [
            np.arange(len(r.results), 0, -1, dtype=np.float64) if r.scores is None else np.array(r.scores, float)
            for r in lists
        ]
