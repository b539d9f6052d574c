"""Paired comparison of rankings of the same queries: which is better, by how much, and is the difference significant?

Three two-sided tests of "no difference", from the most to the least assumed: the paired t-test, Fisher's
randomisation test of the mean, and the sign test. The interval is the t-test's own, so that it leaves out 0
exactly where that test, uncorrected, is below 1 - confidence; a bootstrap interval of a mean over hundreds of
queries is nearly the same, and would differ from run to run. Where all queries gain the same, their spread, and with it
Student's t, is not defined: the randomisation test, which needs no spread, then gives the p-value, and the interval has
no ends. Where several models meet one baseline, the p-values are corrected by Holm's method (1979), which needs no
independence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import bdtr, stdtr, stdtrit

Array = np.ndarray[Any, Any]
Values = Mapping[str, float]
TIED = 1e-12
"""Differences up to this count as rounding errors."""
CONFIDENCE = 0.95
ROUNDS = 10_000
"""The number of sign patterns that the randomisation test draws. If there are fewer in all, it uses all of them."""
LEVELS = (0.05, 0.01)
"""The levels of significance: one mark for a p-value below the first, two marks below the second."""
_CELLS = 4_000_000


@dataclass(frozen=True)
class Paired:
    """`difference` is the mean gain over the baseline, between `low` and `high` at 95% confidence; `p_value` is of the
    paired t-test, or of the randomisation test where all gains are equal. A query is won, tied or lost against the
    baseline."""

    difference: float
    low: float
    high: float
    p_value: float
    p_random: float
    p_sign: float
    wins: int
    ties: int
    losses: int

    @property
    def mark(self) -> str:
        return mark(self.difference, self.p_value)

    def as_dict(self) -> dict[str, Any]:
        """The columns of a table, the same for every verb."""
        return {
            "gain": self.difference,
            "low": self.low,
            "high": self.high,
            "p_t_test": self.p_value,
            "p_random": self.p_random,
            "p_sign": self.p_sign,
            "won_tied_lost": f"{self.wins}/{self.ties}/{self.losses}",
        }


def paired(values: Values, baseline: Values, rounds: int = ROUNDS) -> Paired:
    """Compares two models over the queries that both have. The p-values are not corrected."""
    gains = gains_over(values, baseline)
    wins, losses = int((gains > 0).sum()), int((gains < 0).sum())
    return Paired(
        float(gains.mean()) if len(gains) else 0.0,
        *(interval(gains) if not gains.any() or _standard_error(gains) else (-math.inf, math.inf)),
        t_test(gains),
        randomisation_test(gains, rounds),
        sign_test(wins, losses),
        wins,
        len(gains) - wins - losses,
        losses,
    )


def against(baseline: Values, values: Mapping[str, Values]) -> dict[str, Paired]:
    """Compares each of several models with one baseline. The p-values of each test are corrected by Holm's method."""
    found = {name: paired(own, baseline) for name, own in values.items()}
    t, random, sign = (holm([getattr(p, f) for p in found.values()]) for f in ("p_value", "p_random", "p_sign"))
    return {
        name: replace(own, p_value=t[i], p_random=random[i], p_sign=sign[i])
        for i, (name, own) in enumerate(found.items())
    }


def gains_over(values: Values, baseline: Values) -> Array:
    """The differences for each query. Rounding errors count as 0."""
    gains = np.array([values[q] - baseline[q] for q in sorted(set(values) & set(baseline))], dtype=np.float64)
    gains[np.abs(gains) <= TIED] = 0.0
    return gains


def t_test(gains: Array) -> float:
    """Two-sided t-test of mean 0; p of the randomisation test where t is not defined: all gains are equal, or there is
    only one."""
    error = _standard_error(gains) if len(gains) > 1 else 0.0
    if not error:
        return randomisation_test(gains)
    return float(2 * stdtr(len(gains) - 1, -abs(float(gains.mean())) / error))


def interval(values: Array, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Student's interval of the mean. It is infinite for a single value, which has no spread."""
    if not len(values):
        return 0.0, 0.0
    mean = float(values.mean())
    if len(values) == 1:
        return -math.inf, math.inf
    reach = _standard_error(values) * float(stdtrit(len(values) - 1, (1 + confidence) / 2))
    return mean - reach, mean + reach


def _standard_error(values: Array) -> float:
    if np.ptp(values) <= TIED:
        return 0.0
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def sign_test(wins: int, losses: int) -> float:
    """The p-value of a two-sided sign test: without a difference, wins are binomial with probability one half. Ties are
    left out."""
    n = wins + losses
    return min(1.0, 2 * float(bdtr(min(wins, losses), n, 0.5))) if n else 1.0


def randomisation_test(gains: Array, rounds: int = ROUNDS, seed: int = 0) -> float:
    """The p-value of a two-sided randomisation test. Without a difference, each gain could as well have the other sign;
    the p-value is the share of random choices of signs whose mean is as far from 0. It is exact if there are few of the
    2^n choices. Otherwise the observed choice is counted with the random ones, so that p is never 0 and the test is
    never too optimistic (Phipson and Smyth 2010)."""
    moved = gains[gains != 0]
    n, total = len(moved), float(moved.sum())
    if not n:
        return 1.0
    # Sum with the chosen signs turned: total - 2 * (sum of the turned). Rounding must not break ties.
    least = abs(total) - TIED * max(1.0, float(np.abs(moved).sum()))
    exact = n < rounds.bit_length()  # 2^n <= rounds
    draws, rng = (2**n if exact else rounds), np.random.default_rng(seed)
    reached = 0
    for start in range(0, draws, max(1, _CELLS // n)):
        size = min(draws - start, max(1, _CELLS // n))
        if exact:
            turned: Array = (np.arange(start, start + size)[:, None] >> np.arange(n)) & 1
        else:
            bits = np.frombuffer(rng.bytes(size * -(-n // 8)), dtype=np.uint8).reshape(size, -1)
            turned = np.unpackbits(bits, axis=1, count=n)
        reached += int((np.abs(total - 2 * (turned.astype(np.float64) @ moved)) >= least).sum())
    return reached / draws if exact else (reached + 1) / (draws + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the i-th smallest of m p-values is multiplied by m - i + 1, and is never less than
    the one before it. The level of significance then holds for all tests together."""
    m, largest = len(p_values), 0.0
    out = [0.0] * m
    for place, i in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (m - place) * p_values[i]))
        out[i] = largest
    return out


def mark(difference: float, p: float) -> str:
    """▲ or ▼ if a difference is significant, two of them if p is below .01; otherwise nothing."""
    return sum(p < level for level in LEVELS) * ("▲" if difference > 0 else "▼")


def p_in_words(p: float) -> str:
    """A p-value with three decimals, or "<.001"."""
    return "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")
