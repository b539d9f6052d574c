"""How many passes RMLS makes and which thresholds it has, where clicks that were held back decide.

13 (Section 6.2) tuned both on validation data and stopped within ten passes. 12 tried seven values for beta and gamma
and took .1. These are on the scale of its log: omega shrinks as the number of queries grows, and on another log .1 may
leave nothing of the maps. So smaller values follow the papers', each a tenth of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clickbridge.graph.hold_back import FEW_HELD
from clickbridge.graph.notes import Note
from clickbridge.models.rmls_passes import AUTO, RMLSSettings

PAPERS = (10.0, 5.0, 1.0, 0.5, 0.1, 0.005, 0.001)
SMALLEST = 1e-12
FEWEST = PAPERS[-1]
"""The threshold where nothing can be held back."""
PATIENCE = 3
"""Passes without a better one after which a threshold has shown what it can do."""
WORSE = 2
"""Thresholds without a better one after which no smaller one is tried."""

Judge = Callable[[float | None], Iterator[float]]
Values = dict[float | None, list[float]]


class TooFewLists(Exception):
    """Too little could be held back; the message says how little."""


@dataclass(frozen=True)
class Tuned:
    threshold: float | None
    passes: int
    note: str


def tune(judged: Judge, s: RMLSSettings) -> Tuned:
    """The threshold and the number of passes with the best value; `judged` gives a threshold's value after each pass,
    and none where it leaves nothing of the maps."""
    open_sides = s.shrink != "density" and AUTO in (s.beta, s.gamma)
    try:
        found: Values = _tried(judged, s) if open_sides else {None: _values(judged(None), s)}
    except TooFewLists as few:
        aim = "to choose thresholds" if open_sides else "to stop early"
        return Tuned(FEWEST if open_sides else None, s.iterations, Note(f"{few} {aim}", FEW_HELD))
    if not any(found.values()):
        return Tuned(FEWEST if open_sides else None, s.iterations, "no threshold leaves anything of the maps")
    best = max((t for t in found if found[t]), key=lambda t: max(found[t]))
    values = found[best]
    passes = values.index(max(values)) + 1
    listed = ", ".join(f"{value:.3f}" for value in values)
    note = f"stops after {passes} of {s.iterations} iterations (held-back nDCG@5 {listed})"
    if best is not None:
        others = ", ".join(f"{t:g}: {max(v):.3f}" for t, v in found.items() if v)
        note = f"threshold {best:g} (held-back nDCG@5 of each threshold's best pass: {others}); {note}"
    return Tuned(best, passes, note)


def _tried(judged: Judge, s: RMLSSettings) -> Values:
    """The values after each pass, by threshold, from the largest down."""
    found: Values = {}
    best, worse = -1.0, 0
    for threshold in _thresholds():
        values = found[threshold] = _values(judged(threshold), s)
        if not values:
            continue
        worse = 0 if max(values) > best else worse + 1
        best = max(best, *values)
        if worse == WORSE:
            break
    return found


def _thresholds() -> Iterator[float]:
    yield from PAPERS
    threshold = PAPERS[-1]
    while threshold > SMALLEST:
        threshold /= 10
        yield threshold


def _values(judged: Iterator[float], s: RMLSSettings) -> list[float]:
    """After each pass; with an early stop until patience ends, without one the last pass alone counts."""
    out: list[float] = []
    for value in judged:
        out.append(value)
        if s.early_stop and len(out) - (out.index(max(out)) + 1) >= PATIENCE:
            break
    return out if s.early_stop else [-1.0] * (len(out) - 1) + out[-1:]
