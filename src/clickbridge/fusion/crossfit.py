"""Cross-fitting: all parts of a re-ranker are fitted on the rest of each fold, then asked about the fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import HoldBack, folds
from clickbridge.models.base import Array, Model
from clickbridge.types import ResultList


class Block(NamedTuple):
    """What trees learn from one fold: a row of `x` for each document of each list, its label, how long the lists
    are and how often each was asked for."""

    names: list[str]
    x: Array
    labels: Array
    lengths: Array
    asked: Array


def crossfit(parts: Sequence[Model], graph: ClickGraph, n: int, seed: int) -> Iterator[HoldBack]:
    """Each fold in turn, once all parts have learned from its rest alone. Where no fold can be learned from, the
    parts are fitted on everything and nothing is given."""
    tuned = False
    for held in folds(graph, n, seed=seed):
        if held.graph.pairs.clicks.any():
            for part in parts:
                # Whatever a part tunes it tunes once, on the first rest.
                (part.refit if tuned else part.fit)(held.graph)
            tuned = True
            yield held
    if not tuned:
        for part in parts:
            part.fit(graph)


def times_asked(held: HoldBack, lists: Sequence[ResultList]) -> Array:
    """A page stands for itself, a pooled list for all held-back clicks of its query."""
    if held.shown is not None or held.clicked is None:
        return np.ones(len(lists))
    clicks = np.bincount(held.clicked.query, held.clicked.clicks)
    return clicks[[held.clicked.query[int(result.query_id)] for result in lists]].astype(np.float64)
