"""A score as a sum over pairs of features: the strongest ones, their shares, and the clicks they were learned from.

Features have the names that the model uses: stems, character n-grams, clicks. `models/explained_words.py` puts them
into words.
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
        """Whether the feature counts clicks: on a document, or after a query."""
        return self.view in ("click", "response")


NO_FEATURE = Feature("", "")


class Part(NamedTuple):
    """What a pair of features contributes to a score, and the clicks it was learned from."""

    query: Feature
    document: Feature
    value: float
    taught_by: tuple[str, ...] = ()
    model: str = ""
    """The part of a sum that it comes from."""


@dataclass(frozen=True, slots=True)
class Contributions:
    """A score in parts: the largest ones, the sum of all others, and the sum of all absolute values."""

    score: float
    parts: tuple[Part, ...]
    rest: float
    size: float

    def share(self, part: Part) -> float:
        """The share of one part, between 0 and 1 even if contributions of both signs cancel."""
        return abs(part.value) / self.size


def contributions(parts: Iterable[Part], k: int, rest: float = 0.0) -> Contributions:
    """The k parts with the largest absolute value."""
    ordered = sorted(parts, key=lambda part: -abs(part.value))
    score = float(sum(part.value for part in ordered) + rest)
    size = float(sum(abs(part.value) for part in ordered) + abs(rest)) or 1.0
    kept = tuple(ordered[:k])
    return Contributions(score, kept, score - float(sum(part.value for part in kept)), size)


def merge(found: Sequence[tuple[str, float, Contributions]], k: int) -> Contributions:
    """The contributions of a weighted sum from those of its parts. Each keeps the name of its model."""
    parts: list[Part] = []
    rest = 0.0
    for name, weight, own in found:
        rest += weight * own.rest
        parts += [p._replace(value=weight * p.value, model=f"{name} {p.model}".strip()) for p in own.parts]
    return contributions(parts, k, rest)
