"""How far to trust what was learned: score = log rate(incoming rank) + a latent(x | q) + b own(q, x).

The rate of a rank is how often a result there is clicked, whatever it is. A learned part is divided by its
evidence plus `shrink`, so it starts at nothing, which leaves the engine's order, and takes over as clicks come.
a, b and shrink are those with the least mean rank of held-back clicks. These clicks were made on the engine's
order, which they favour: a gain measured on them is less than the true one, and where they show none, the
engine's order stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from clickbridge.errors import SettingError
from clickbridge.graph.hold_back import MIN_USABLE

Array = np.ndarray[Any, Any]
SHRINKS = (1.0, 4.0, 16.0)
GRID = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2, 1.6, 2.4)
"""Weights in standard deviations of the part over the held-back lists."""
SURE = 1.0
"""A blend is taken if it gains at least this many standard errors."""


@dataclass(frozen=True)
class Blend:
    latent: float
    own: float
    shrink: float

    @classmethod
    def parse(cls, text: str) -> Blend:
        try:
            latent, own, shrink = (float(word) for word in text.split(","))
        except ValueError:
            latent, own, shrink = np.nan, np.nan, np.nan
        if not (latent >= 0 and own >= 0 and 0 < shrink < np.inf):
            raise SettingError(f"blend must be auto or latent,own,shrink, as 0.1,0.2,4; got {text!r}")
        return cls(latent, own, shrink)


@dataclass(frozen=True)
class Trial:
    """One list of held-back clicks after the other: ranks start at 0 in each."""

    indptr: Array
    clicked: Array
    prior: Array
    """log rate of each result's incoming rank."""

    def ranks(self, scores: Array) -> Array:
        """The rank, from 1, of each result by these scores; ties keep the incoming order."""
        length = np.diff(self.indptr)
        of_list = np.repeat(np.arange(len(length)), length)
        places = np.lexsort((np.arange(len(scores)), -scores, of_list))
        out = np.empty(len(scores))
        out[places] = np.arange(len(scores)) - np.repeat(self.indptr[:-1], length) + 1
        return out

    def mean_ranks(self, ranks: Array) -> Array:
        """Each list's mean rank of its clicked results."""
        starts = self.indptr[:-1]
        return np.add.reduceat(ranks * self.clicked, starts) / np.add.reduceat(self.clicked, starts)


def learn_blend(trial: Trial, parts: dict[float, tuple[Array, Array]], fallback: Blend) -> tuple[Blend, str]:
    """The best of a grid; `parts` has (latent, own) for each shrink. And one line that says what was done."""
    n = len(trial.indptr) - 1
    if n < MIN_USABLE:
        return fallback, f"{n} usable held-back lists are too few to learn the blend: {_words(fallback)}"
    incoming = trial.ranks(trial.prior)
    before = trial.mean_ranks(incoming)
    tried: list[tuple[Blend, float, float, float]] = []
    for shrink, (latent, own) in parts.items():
        units = [float(np.std(part[part != 0])) if part.any() else np.inf for part in (latent, own)]
        for a, b in ((a, b) for a in GRID for b in GRID):
            found = Blend(a / units[0], b / units[1], shrink)
            ranks = trial.ranks(trial.prior + found.latent * latent + found.own * own)
            gain = before - trial.mean_ranks(ranks)
            moved = float(np.abs(ranks - incoming).mean())
            tried.append((found, float(gain.mean()), float(gain.std() / np.sqrt(n)), moved))
    best, best_gain = gentlest(tried)
    if best_gain == 0.0:
        return best, f"no blend improved {n} held-back lists: the incoming order stays"
    return best, (
        f"{_words(best)}; mean rank of clicks {before.mean():.3f} to {before.mean() - best_gain:.3f} "
        f"on {n} held-back lists"
    )


def _words(blend: Blend) -> str:
    return f"blend latent {blend.latent:.3g}, own {blend.own:.3g}, shrink {blend.shrink:g}"


def gentlest(tried: list[tuple[Blend, float, float, float]]) -> tuple[Blend, float]:
    """Of the blends within one standard error of the best, the one that moves results least; none if even the
    best gains less than its error. Each is (blend, gain, error, places moved)."""
    _, most, error, _ = max(tried, key=lambda t: t[1])
    if most <= SURE * error:
        return Blend(0.0, 0.0, tried[0][0].shrink), 0.0
    found, gain, _, _ = min((t for t in tried if t[1] >= most - error), key=lambda t: t[3])
    return found, gain
