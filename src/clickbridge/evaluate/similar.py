"""Similar queries, judged by paired preference (11M): better than, comparable to, or worse than a baseline."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PairedPreference:
    """How often a model's similar queries were better than, comparable to, or worse than a baseline's."""

    model: str
    baseline: str
    pos: int
    com: int
    neg: int
    p_value: float
