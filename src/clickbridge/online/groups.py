"""Was it worth it? Ranks of clicked results before and after, by the group of the rank they had (09, Section 4.1).

A group is chosen by the old rank, so even a random order "improves" the bad ones and spoils the good ones: its
expected figures are shown next to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

GROUPS = ((1, 5), (6, 20), (6, 10), (11, 20))


class GroupRow(NamedTuple):
    """Figures of one group; better and worse are shares of its clicks."""

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
    """All clicks, then each group that has any."""
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
