"""Paired comparison of two rankings of the same queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats


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
    wins, losses = int((gains > 1e-12).sum()), int((gains < -1e-12).sum())
    p_value = 1.0
    if len(gains) > 1 and np.ptp(gains) > 0:
        p_value = float(stats.ttest_1samp(gains, 0.0).pvalue)
    return Paired(float(gains.mean()) if len(gains) else 0.0, p_value, wins, len(gains) - wins - losses, losses)
