"""Compares two models on one page by their clicks: team-draft interleaving, with a test that is valid at any time.

Under the null hypothesis either side wins a decided page with probability 1/2. The wins are weighed against a uniform
mixture of other probabilities,

    E = (integral of p^wins (1 - p)^losses dp) / 2^-(wins + losses)

which is a martingale with mean 1, so by Ville's inequality P(E ever exceeds 1/alpha) <= alpha. So 1/E is a p-value that
stays valid no matter when and how often one looks.
"""

from __future__ import annotations

import math
import secrets
from typing import Any

import numpy as np

from clickbridge.online.interleave import team_draft
from clickbridge.serve.answers import Ordered
from clickbridge.serve.store import Store

LEVEL = 0.05


class Experiment:
    def __init__(self, first: str, second: str) -> None:
        self.first, self.second = first, second
        self.name = f"{first}:{second}"
        self._rng = np.random.default_rng(secrets.randbits(128))

    def interleave(self, one: Ordered, two: Ordered, k: int | None) -> tuple[Ordered, tuple[int, ...]]:
        """One list from both models, and the model of each result. Scores are those of the result's own model."""
        page, teams = team_draft([d for d, _ in one], [d for d, _ in two], self._rng)
        scores = (dict(one), dict(two))
        ordered = [(d, scores[team].get(d)) for d, team in zip(page, teams, strict=True)]
        return ordered[:k], tuple(teams[:k])

    def report(self, store: Store) -> dict[str, Any]:
        outcomes = store.outcomes(self.name)
        wins, losses, ties = (outcomes.get(outcome, 0) for outcome in (1, -1, 0))
        p = always_valid_p(wins, losses)
        leader = self.first if wins > losses else self.second if losses > wins else None
        return {
            "first": self.first,
            "second": self.second,
            "wins": wins,
            "losses": losses,
            "ties": ties,
            "preference": wins / (wins + losses) if wins + losses else None,
            "p_value": p,
            "leader": leader,
            "decided": p < LEVEL,
        }


def always_valid_p(wins: int, losses: int) -> float:
    """1/E, at most 1. It is small if one side wins too often to be chance, whenever one looks."""
    n = wins + losses
    log_beta = math.lgamma(wins + 1) + math.lgamma(losses + 1) - math.lgamma(n + 2)
    return min(1.0, math.exp(min(0.0, -(log_beta + n * math.log(2)))))
