"""Ranks of clicked results before and after learning, grouped by the rank they had before (09, Section 4.1).

The groups are formed by the old rank, so even a random order "improves" results with a bad rank and worsens those with
a good one. The expected figures of a random order are therefore shown next to the measured ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

GROUPS = ((1, 5), (6, 20), (6, 10), (11, 20))


class GroupRow(NamedTuple):
    """The figures of one group. Better and worse are shares of its clicks."""

    group: str
    clicks: int
    improvement: float
    better: float
    worse: float
    random_improvement: float
    random_better: float
    random_worse: float


class Move(NamedTuple):
    """A clicked result: its rank before and after in a list of `length`, from 1."""

    before: int
    after: int
    length: int


def moves(before: Sequence[str], after: Sequence[str], clicks: Iterable[str]) -> list[Move]:
    return [Move(before.index(c) + 1, after.index(c) + 1, len(before)) for c in clicks if c in before]


def rank_groups(found: Sequence[Move], groups: Sequence[tuple[int, int]] = GROUPS) -> list[GroupRow]:
    """One row for all clicks, then one for each group with clicks."""
    rows: list[GroupRow] = []
    for low, high in ((1, max((m.before for m in found), default=1)), *groups):
        here = np.array([m for m in found if low <= m.before <= high], dtype=float)
        if not len(here):
            continue
        before, after, length = here.T
        rows.append(
            GroupRow(
                f"{low}-{high}" if rows else "all",
                len(here),
                float(np.mean(before - after)),
                float(np.mean(after < before)),
                float(np.mean(after > before)),
                # A random order puts a result at any rank of its list with the same probability.
                float(np.mean(before - (length + 1) / 2)),
                float(np.mean((before - 1) / length)),
                float(np.mean((length - before) / length)),
            )
        )
    return rows
