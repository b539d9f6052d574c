"""Simulated users. Position-based model: a click needs a look and a liking, independent of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FADING = 0.8
"""How fast looks fall with rank: P(look at rank r) = r^-FADING."""
LIKING = (0.03, 0.4, 0.8)
"""P(click | look) by grade: not relevant, acceptable, best."""


def position_based_clicks(grades: Sequence[int], rng: np.random.Generator) -> Array:
    """Which of the shown results are clicked."""
    ranks = np.arange(1, len(grades) + 1)
    return rng.random(len(grades)) < ranks**-FADING * np.take(LIKING, np.asarray(grades, dtype=int))
