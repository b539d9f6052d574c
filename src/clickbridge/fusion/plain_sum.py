"""The plain sum of a re-ranker's parts. The trees must rank better than it; otherwise it replaces them.

Each part gives one column: an S-function its scores divided by the query's normaliser, as in a sum of S-functions; any
other part its scores standardised over the list. The weights are learned from the same cross-fitted lists as the trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from clickbridge.fusion.crossfit import Block
from clickbridge.models.algebra import WEIGHT_GRID
from clickbridge.models.ascent import coordinate_ascent
from clickbridge.models.candidates import MEASURED_AT, without_gaps
from clickbridge.models.fitted import Array
from clickbridge.numerics.ndcg import ndcg_of_lists
from clickbridge.numerics.ragged import Ragged

OVER_QUERY = "over the query"
"""How the feature of a part's scores over the query's normaliser is called."""


class Judged(NamedTuple):
    """nDCG@5 of the trees and of the plain sum, on lists that neither has learned from, and the standard error of the
    difference."""

    trees: float
    plain: float
    error: float

    @property
    def lost(self) -> bool:
        return self.trees < self.plain


def part_column(lists: Ragged, name: str, columns: Mapping[str, Array]) -> Array:
    """What a part adds to the plain sum; 0 for documents that it cannot score."""
    whole = columns.get(f"{name} {OVER_QUERY}")
    return lists.standardised(columns[name]) if whole is None else without_gaps(whole)


def plain_sum(lists: Ragged, names: Sequence[str], weights: Sequence[float], columns: Mapping[str, Array]) -> Array:
    """The scores of the plain sum. The columns have the scores of the parts with these names."""
    found = (weight * part_column(lists, name, columns) for name, weight in zip(names, weights, strict=True))
    return np.sum(list(found), axis=0)


def part_columns_of(block: Block, names: Sequence[str]) -> tuple[Ragged, dict[str, Array]]:
    """The parts' own features of a block, by name."""
    wanted = [name for part in names for name in (part, f"{part} {OVER_QUERY}") if name in block.names]
    columns = {name: block.x[:, block.names.index(name)].astype(np.float64) for name in wanted}
    return Ragged.of_lengths(block.lengths), columns


def learn_weights(block: Block, names: Sequence[str]) -> tuple[float, ...]:
    """The weights of the plain sum with the best nDCG@5. Each list counts as often as it was searched for."""
    lists, columns = part_columns_of(block, names)
    order = no_order(lists)
    table = np.stack([part_column(lists, name, columns) for name in names], axis=1)[order]
    labels = block.labels[order]

    def value(weights: Array) -> float:
        return _mean(ndcg_of_lists(table @ weights, labels, lists.indptr, MEASURED_AT), block.asked)

    weights, _ = coordinate_ascent(np.ones(len(names)), WEIGHT_GRID, value, scales=())
    return tuple((weights / weights.max()).tolist())


def judged(block: Block, trees: Array, plain: Array) -> Judged:
    """Measures both orders on one block's lists."""
    lists = Ragged.of_lengths(block.lengths)
    order = no_order(lists)
    labels = block.labels[order]
    one, two = (ndcg_of_lists(scores[order], labels, lists.indptr, MEASURED_AT) for scores in (trees, plain))
    counts = np.isfinite(one) & np.isfinite(two)
    weights = block.asked[counts] / block.asked[counts].sum()
    differences = (one - two)[counts]
    error = float(np.sqrt(np.sum((weights * (differences - weights @ differences)) ** 2)))
    return Judged(_mean(one, block.asked), _mean(two, block.asked), error)


def no_order(lists: Ragged) -> Array:
    """The rows of each list in random order, so that ties do not profit from the order of the log's pages."""
    return np.lexsort((np.random.default_rng(0).random(lists.n_rows), lists.owner))


def _mean(values: Array, asked: Array) -> float:
    there = np.isfinite(values)
    return float(np.average(values[there], weights=asked[there])) if there.any() else 0.0
