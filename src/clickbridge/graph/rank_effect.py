"""What a rank does to clicks: how often each is clicked, and how likely a look at it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.sums import pair_keys
from clickbridge.log.bias import position_based, ranks

RANKS = 10
PAGES = 200_000
"""Ranks that are shown, and the newest pages that they are measured on: more would not move the curve."""


@dataclass(frozen=True)
class RankEffect:
    """The first ranks: share of pages that are clicked there, and P(examined) over that of rank 1."""

    clicked: list[float]
    examined: list[float]
    pages: int


def rank_effect(graph: ClickGraph) -> RankEffect | None:
    """None where the log has no result pages, or nothing was clicked on them."""
    pages = graph.impressions
    if pages is None or not pages.clicked.any():
        return None
    if len(pages) > PAGES:
        pages = pages.take(np.arange(len(pages)) >= len(pages) - PAGES)
    clicked, indptr = pages.clicked.astype(bool), pages.indptr
    longest = int(np.diff(indptr).max(initial=1))
    key = pair_keys(np.repeat(pages.query, pages.lists.lengths), pages.doc)
    rank = ranks(indptr)
    rates = np.bincount(rank, clicked, minlength=longest) / np.maximum(np.bincount(rank, minlength=longest), 1)
    examined = position_based(indptr, clicked, key, longest).examined
    return RankEffect(rates[:RANKS].tolist(), examined[:RANKS].tolist(), len(pages))
