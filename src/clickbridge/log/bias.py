"""Position bias: how much of a click is due to the rank, and how much to the document.

The first result is clicked because it is good and because it is first. Click rates by rank tell how many clicks a rank
gets on average. A document's clicks divided by those of its ranks ("clicks over expected clicks") are its own part. If
documents are shown at several ranks, the position-based model separates the two:
P(click) = P(examined | rank) P(attracted | query, document).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from clickbridge.numerics.ragged import Ragged

Array = np.ndarray[Any, Any]
STRENGTH = 20.0
"""Pages' worth of belief that the rate at rank r falls as 1 / r."""
LEAST_EXAMINED = 0.1
"""A click counts ten times at most for the rank it came from: the inverse of a small chance is mostly noise."""
MOST_ROUNDS, LEAST_CHANGE = 300, 1e-4
USUAL_PAGES = 3.0
"""Pages' worth of belief that a document draws users as often as any other. Fewer: small logs err more."""
LEAST_FALL = 0.1
"""Even where the log shows no difference, a rank counts at least r^-LEAST_FALL less: the engine had a reason."""


def ranks(indptr: Array) -> Array:
    """The rank of each shown result on its page, from 0."""
    return Ragged(indptr).places


def click_rates(indptr: Array, clicked: Array, longest: int, amounts: Array | None = None) -> Array:
    """P(clicked | rank) for ranks 1 to `longest`, over pages with a click; never rising with the rank, and never 0."""
    length, rank = np.diff(indptr), ranks(indptr)
    counts = np.repeat(np.ones(len(length)) if amounts is None else amounts, length)
    some = np.repeat(_any_clicked(indptr, clicked), length) & (rank < longest)
    shown = np.bincount(rank[some], counts[some], minlength=longest)[:longest]
    hits = np.bincount(rank[some], counts[some] * (clicked[some] > 0), minlength=longest)[:longest]
    by_belief = 1.0 / np.arange(1, longest + 1)
    rates = (hits + STRENGTH * by_belief) / (shown + STRENGTH)
    return falling(rates, shown + STRENGTH) * np.arange(1, longest + 1) ** -LEAST_FALL


def _any_clicked(indptr: Array, clicked: Array) -> Array:
    total = np.concatenate([[0], np.cumsum(clicked > 0)])
    return total[indptr[1:]] > total[indptr[:-1]]


def falling(values: Array, weights: Array) -> Array:
    """The nearest sequence that never rises (pool adjacent violators)."""
    pools: list[list[float]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append([value, weight, 1])
        while len(pools) > 1 and pools[-2][0] < pools[-1][0]:
            v, w, n = pools.pop()
            u, x, m = pools.pop()
            pools.append([(u * x + v * w) / (x + w), x + w, n + m])
    return np.concatenate([np.full(int(n), v) for v, _, n in pools]) if pools else np.empty(0)


def rank_rates(indptr: Array, clicked: Array, longest: int) -> Array:
    """For ranks 1 to `longest`, the share of pages with a click there, among pages that are long enough. Lower ranks
    count as the last one."""
    rank = np.minimum(ranks(indptr), longest - 1)
    shown = np.bincount(rank, minlength=longest)
    hits = np.bincount(rank, clicked > 0, minlength=longest)
    rates: Array = np.divide(hits, shown, out=np.zeros(longest), where=shown > 0)
    return rates


def expected_clicks(indptr: Array, clicked: Array, longest: int) -> Array:
    """The expected clicks of each shown result: the click rate of its rank over all pages."""
    return rank_rates(indptr, clicked, longest)[np.minimum(ranks(indptr), longest - 1)]


@dataclass(frozen=True)
class PositionBased:
    """The position-based model of a log."""

    examined: Array
    """P(examined | rank) over that of rank 1; falling. All queries and documents share it."""
    attracted: Array
    """For each shown result, how likely it is that the document drew the user: 1 where it was clicked; elsewhere it may
    have been good and not looked at."""


def position_based(indptr: Array, clicked: Array, pair: Array, longest: int) -> PositionBased:
    """The position-based model, learned by EM. `pair` identifies the query and document of each shown result. If a log
    shows every pair at only one rank, rank and document cannot be separated: EM then stays near its start, the click
    rates by rank."""
    rank = np.minimum(ranks(indptr), longest - 1)
    number = np.unique(pair, return_inverse=True)[1]
    shown, times = np.bincount(rank, minlength=longest), np.bincount(number)
    hits = np.bincount(rank, clicked, minlength=longest)
    if not hits.any():
        return PositionBased(np.ones(longest), np.zeros(len(clicked)))
    seen = hits / np.maximum(shown, 1)
    seen = seen / seen.max()
    # A few pseudo-pages for every pair, with the average click rate, so that a pair shown once is not 0 or 1.
    usual = min(float(clicked.mean() / seen[rank].mean()), 0.99)
    drawn = np.full(len(times), usual)
    for _ in range(MOST_ROUNDS):
        t, a = seen[rank], drawn[number]
        miss = np.maximum(1.0 - t * a, 1e-12)
        better = np.bincount(number, np.where(clicked, 1.0, a * (1 - t) / miss)) + USUAL_PAGES * usual
        better /= times + USUAL_PAGES
        looked = np.bincount(rank, np.where(clicked, 1.0, t * (1 - a) / miss), minlength=longest)
        fresh = looked / np.maximum(shown, 1)
        # Both must converge: if all documents start equal, the ranks alone do not change at first.
        change = max(float(np.abs(fresh - seen).max()), float(np.abs(better - drawn).max()))
        seen, drawn = fresh, better
        if change < LEAST_CHANGE:
            break
    seen = falling(seen, np.maximum(shown, 1e-9))
    t, a = seen[rank], drawn[number]
    attracted = np.where(clicked, 1.0, a * (1 - t) / np.maximum(1.0 - t * a, 1e-12))
    return PositionBased(seen / seen[0], attracted)
