"""The effect of the rank on clicks: how often each rank is clicked, and how likely it is looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickbridge.graph.parts import Array, Impressions
from clickbridge.graph.sums import pair_keys
from clickbridge.log.bias import PositionBased, position_based, rank_rates

RANKS = 10
PAGES = 200_000
"""Ranks that are shown, and the newest pages that they are measured on: more would not move the curve."""


@dataclass(frozen=True)
class RankEffect:
    """For the first ranks: the share of pages with a click there, and P(examined) relative to rank 1."""

    clicked: list[float]
    examined: list[float]
    pages: int


def shown_pairs(pages: Impressions) -> Array:
    """The pair of query and document of each shown result, as one number."""
    return pair_keys(np.repeat(pages.query, pages.lists.lengths), pages.doc)


def longest_page(pages: Impressions) -> int:
    return int(np.diff(pages.indptr).max(initial=1))


def position_model(pages: Impressions, pairs: Array) -> PositionBased:
    """The position-based model of a log's pages; `pairs` are those of `shown_pairs`."""
    return position_based(pages.indptr, pages.clicked.astype(bool), pairs, longest_page(pages))


def rank_effect(pages: Impressions | None) -> RankEffect | None:
    """The effect of the rank; None if the log has no result pages, or no clicks on them."""
    if pages is None or not pages.clicked.any():
        return None
    if len(pages) > PAGES:
        pages = pages.take(np.arange(len(pages)) >= len(pages) - PAGES)
    rates = rank_rates(pages.indptr, pages.clicked, longest_page(pages))
    examined = position_model(pages, shown_pairs(pages)).examined
    return RankEffect(rates[:RANKS].tolist(), examined[:RANKS].tolist(), len(pages))
