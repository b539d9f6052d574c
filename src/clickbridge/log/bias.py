"""Position bias: how much of a click is the rank, and how much the document.

The first result is clicked because it is good and because it is first. Rates by rank say what the rank alone
foretells; a document's clicks over what its ranks foretold ("clicks over expected clicks") is what is its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
STRENGTH = 20.0
"""Pages' worth of belief that the rate at rank r falls as 1 / r."""
LEAST_FALL = 0.1
"""Even where the log shows no difference, a rank counts at least r^-LEAST_FALL less: the engine had a reason."""


def click_rates(indptr: Array, clicked: Array, longest: int, amounts: Array | None = None) -> Array:
    """P(clicked | rank) for ranks 1 to `longest` over pages that were clicked at all; falling, never 0."""
    length = np.diff(indptr)
    rank = np.arange(len(clicked)) - np.repeat(indptr[:-1], length)
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


def expected_clicks(indptr: Array, clicked: Array, longest: int) -> Array:
    """For each shown result, the rate of its rank over all pages: its expected clicks."""
    rank = np.arange(len(clicked)) - np.repeat(indptr[:-1], np.diff(indptr))
    rank = np.minimum(rank, longest - 1)
    shown = np.bincount(rank, minlength=longest)
    hits = np.bincount(rank, clicked > 0, minlength=longest)
    rates: Array = np.divide(hits, shown, out=np.zeros(longest), where=shown > 0)
    return rates[rank]
