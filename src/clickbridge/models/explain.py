"""A score as a sum over pairs of features: the strongest ones, their shares, and what taught them.

Features are named as the model has them: stems, letters, clicks. `models/explained_words.py` says them in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Feature(NamedTuple):
    """A feature by its view (`word`, `char:title`, `click`, …) and its name there."""

    view: str
    name: str

    @property
    def of_clicks(self) -> bool:
        """Whether it is what was clicked, or who clicked: counted, or by its response."""
        return self.view in ("click", "response")


NO_FEATURE = Feature("", "")


class Part(NamedTuple):
    """What a pair of features put into a score, and the clicks that taught it."""

    query: Feature
    document: Feature
    value: float
    taught_by: tuple[str, ...] = ()
    model: str = ""
    """The part of a sum that it comes from."""


@dataclass(frozen=True, slots=True)
class Contributions:
    """A score in parts: the largest ones, what all others are together, and the sum of all sizes."""

    score: float
    parts: tuple[Part, ...]
    rest: float
    size: float

    def share(self, part: Part) -> float:
        """Between 0 and 1, also where contributions of both signs cancel."""
        return abs(part.value) / self.size


def contributions(parts: Iterable[Part], k: int, rest: float = 0.0) -> Contributions:
    """The k parts of largest size."""
    ordered = sorted(parts, key=lambda part: -abs(part.value))
    score = float(sum(part.value for part in ordered) + rest)
    size = float(sum(abs(part.value) for part in ordered) + abs(rest)) or 1.0
    kept = tuple(ordered[:k])
    return Contributions(score, kept, score - float(sum(part.value for part in kept)), size)


def merge(found: Sequence[tuple[str, float, Contributions]], k: int) -> Contributions:
    """Those of a weighted sum from those of its parts; each keeps the name of its model."""
    parts: list[Part] = []
    rest = 0.0
    for name, weight, own in found:
        rest += weight * own.rest
        parts += [p._replace(value=weight * p.value, model=f"{name} {p.model}".strip()) for p in own.parts]
    return contributions(parts, k, rest)
