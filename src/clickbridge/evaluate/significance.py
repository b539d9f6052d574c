"""Paired comparison of two rankings of the same queries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

TIED = 1e-12
"""Values this close are equal: the rest is rounding."""


@dataclass(frozen=True)
class Paired:
    """`difference` is the mean gain over the baseline; `p_value` is of the two-sided paired t-test."""

    difference: float
    p_value: float
    wins: int
    ties: int
    losses: int


def paired(values: Mapping[str, float], baseline: Mapping[str, float]) -> Paired:
    shared = sorted(set(values) & set(baseline))
    gains = np.array([values[q] - baseline[q] for q in shared])
    gains[np.abs(gains) <= TIED] = 0.0
    wins, losses = int((gains > 0).sum()), int((gains < 0).sum())
    return Paired(float(gains.mean()) if len(gains) else 0.0, _p_value(gains), wins, len(gains) - wins - losses, losses)


def _p_value(gains: np.ndarray[Any, Any]) -> float:
    """Two-sided t-test of mean 0. No gain, or one query: nothing is shown (1). The same gain for every query
    leaves no doubt (0)."""
    if len(gains) < 2 or not gains.any():
        return 1.0
    error = float(gains.std(ddof=1)) / math.sqrt(len(gains))
    if np.ptp(gains) <= TIED or not error:
        return 0.0
    return float(2 * stdtr(len(gains) - 1, -abs(float(gains.mean())) / error))
