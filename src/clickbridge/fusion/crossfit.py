"""Cross-fitting: for each fold, all parts of a re-ranker learn from the rest of the log and score the fold's lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from clickbridge.graph.hold_back import HoldBack
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.model import Model
from clickbridge.models.study import Study


class Block(NamedTuple):
    """The training data from one fold: a row of `x` for each document of each list, its label, the lengths of the lists
    and how often each was searched for."""

    names: list[str]
    x: Array
    labels: Array
    lengths: Array
    asked: Array

    def take(self, keep: Array) -> Block:
        """The lists where `keep` is true."""
        rows = np.repeat(keep, self.lengths)
        return Block(self.names, self.x[rows], self.labels[rows], self.lengths[keep], self.asked[keep])


def joined(blocks: Sequence[Block]) -> Block:
    """Joins blocks with the same features."""
    columns = zip(*(block[1:] for block in blocks), strict=True)
    return Block(blocks[0].names, *(np.concatenate(column) for column in columns))


class Fold(NamedTuple):
    """A fold, the study of its rest, and the parts learned there."""

    held: HoldBack
    rest: Study
    parts: tuple[Fitted, ...]


def crossfit(
    parts: Sequence[Model], study: Study, n: int, seed: int
) -> tuple[tuple[Choices, ...], Callable[[], Iterator[Fold]]]:
    """The choices of the parts, and the folds one after the other. Each part chooses only once: on the rest of one
    fold, which for folds by time is the last and largest. If there is no fold to learn from, it chooses on the whole
    log, and no folds are returned."""
    usable = [(held, rest) for held, rest in study.folds(n, seed) if held.graph.pairs.clicks.any()]
    where = study
    if usable:
        where = usable[-1 if usable[0][0].by == "time" else 0][1]
    choices = tuple(part.choose(where) for part in parts)

    def each() -> Iterator[Fold]:
        for number, (held, rest) in enumerate(usable, 1):
            study.progress(f"cross-fitting, fold {number} of {len(usable)}")
            yield Fold(held, rest, tuple(p.learned(rest, own) for p, own in zip(parts, choices, strict=True)))

    return choices, each
