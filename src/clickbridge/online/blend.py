"""How much weight the learned parts get: score = log rate(incoming rank) + a latent(x | q) + b own(q, x), or f alone
as in 09.

The rate of a rank is how often a result at that rank is clicked, whatever it is. A learned part is divided by its
evidence plus `shrink`. So it starts at 0, which keeps the engine's order, and gains influence with every click.
a, b and shrink are chosen to give the lowest mean rank of held-back clicks, among values that do not lower the mean
reciprocal rank: a gain far down a page must not cost anything at the top, which is what people see. The held-back
clicks were made on the engine's order and favour it, so a gain measured on them is smaller than the true one. If they
show no gain, the engine's order stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from clickbridge.errors import SettingError
from clickbridge.graph.hold_back import MIN_USABLE, few_held
from clickbridge.io.values import stored
from clickbridge.numerics.ragged import Ragged

Array = np.ndarray[Any, Any]
ALONE = "none"
"""No blend: results are ordered by f (eq. 23) alone."""
SHRINKS = (1.0, 4.0, 16.0)
GRID = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2, 1.6, 2.4)
"""A weight times the part's root mean square over the held-back lists; priors are logarithms."""


@stored
@dataclass(frozen=True)
class Blend:
    latent: float
    own: float
    shrink: float
    """Added to a part's evidence before the part is divided by it; 0 leaves sums as they are."""
    incoming: float = 1.0
    """Weight of the log rate of the incoming rank."""

    @classmethod
    def parse(cls, text: str) -> Blend:
        if text == ALONE:
            return cls(1.0, 0.0, 0.0, 0.0)
        try:
            latent, own, shrink = (float(word) for word in text.split(","))
        except ValueError:
            latent, own, shrink = np.nan, np.nan, np.nan
        if not (latent >= 0 and own >= 0 and 0 < shrink < np.inf):
            raise SettingError(f"blend must be auto, none or latent,own,shrink, such as 0.1,0.2,4; got {text!r}")
        return cls(latent, own, shrink)


@dataclass(frozen=True)
class ClickedLists:
    """Lists with held-back clicks, in their incoming order, one after the other."""

    ragged: Ragged
    clicked: Array
    prior: Array
    """log rate of each result's incoming rank."""
    amounts: Array
    """How often each list with these clicks came."""

    def __len__(self) -> int:
        return len(self.ragged)

    def take(self, keep: Array) -> ClickedLists:
        rows = self.ragged.kept_rows(keep)
        return ClickedLists(self.ragged.take(keep), self.clicked[rows], self.prior[rows], self.amounts[keep])

    def any_in_list(self, values: Array) -> Array:
        return self.ragged.sums(values != 0) > 0

    def ranks(self, scores: Array) -> Array:
        """The rank, from 1, of each result by these scores; ties keep the incoming order."""
        out = np.empty(len(scores))
        out[self.ragged.order(scores)] = self.ragged.places + 1
        return out

    def of_clicks(self, values: Array) -> Array:
        """Each list's mean over its clicked results."""
        return self.ragged.sums(values * self.clicked) / self.ragged.sums(self.clicked)

    def mean(self, values: Array) -> tuple[float, float]:
        """The mean over lists, each weighted by how often it was shown, and its standard error."""
        total = self.amounts.sum()
        mean = float(self.amounts @ values / total)
        return mean, float(np.sqrt(np.sum((self.amounts * (values - mean)) ** 2)) / total)


def log_rates(rates: Array, ranks: Array) -> Array:
    """The log rate of ranks, counted from 0. Beyond the longest list it falls as 1 / r."""
    longest = len(rates)
    beyond = np.maximum(ranks + 1, longest) / longest
    return np.log(rates)[np.minimum(ranks, longest - 1)] - np.log(beyond)


class LearnedParts(NamedTuple):
    blend: Blend
    most: float
    """The largest gain of any blend; 0 where there was too little to learn from."""
    words: str
    """What was done."""


def learn_blend(lists: ClickedLists, parts: dict[float, tuple[Array, Array]], fallback: Blend) -> LearnedParts:
    """The blend that ranks held-back clicks best.

    `parts` has (latent, own) for each shrink. The latent part is tuned first, on queries without clicks of their own in
    the rest of the log; then the own part, on all queries. If both were tuned together, the own part would hide what
    the latent part does for new queries.
    """
    n = len(lists)
    if n < MIN_USABLE:
        words: str = few_held(n, "list", f"to learn the blend: {_words(fallback)}")
        return LearnedParts(fallback, 0.0, words)
    new = ~lists.any_in_list(next(iter(parts.values()))[1])
    alone = lists.take(new)
    tried = []
    for shrink, (latent, own) in parts.items():
        a = 0.0
        if len(alone) >= MIN_USABLE:
            part = latent[lists.ragged.kept_rows(new)]
            a = gentlest([_tried(alone, Blend(w, 0.0, shrink), w * part) for w in _weights(part)])[0].latent
        tried += [_tried(lists, Blend(a, b, shrink), a * latent + b * own) for b in _weights(own)]
    best, gain = gentlest(tried)
    if gain == 0.0:
        return LearnedParts(best, 0.0, f"no blend improved {n} held-back lists: the incoming order stays")
    before, _ = lists.mean(lists.of_clicks(lists.ranks(lists.prior)))
    words = (
        f"{_words(best)}; mean rank of clicks {before:.3f} to {before - gain:.3f} on {n} held-back lists, "
        f"{len(alone)} of them of new queries"
    )
    return LearnedParts(best, max(t.gain for t in tried if t.at_top >= 0), words)


def _weights(part: Array) -> list[float]:
    spread = float(np.sqrt(np.mean(part[part != 0] ** 2))) if part.any() else 0.0
    return [step / spread for step in GRID] if spread > 0 else [0.0]


class Tried(NamedTuple):
    blend: Blend
    gain: float
    error: float
    moved: float
    """Places that a result moves on average."""
    at_top: float = 0.0
    """The gain in mean reciprocal rank."""


def _tried(lists: ClickedLists, blend: Blend, learned: Array) -> Tried:
    incoming, ranks = lists.ranks(lists.prior), lists.ranks(lists.prior + learned)
    gains = lists.of_clicks(incoming - ranks)
    at_top, _ = lists.mean(lists.of_clicks(1 / ranks - 1 / incoming))
    return Tried(blend, *lists.mean(gains), float(np.abs(ranks - incoming).mean()), at_top)


def gentlest(tried: list[Tried]) -> tuple[Blend, float]:
    """The blend that moves results least, among those within one standard error of the best; none if the gain of the
    best is not larger than its standard error, or if each of them loses at the top. This is cautious on purpose: clicks
    do not show what it costs to move a result away from its engine's rank."""
    allowed = [t for t in tried if t.at_top >= 0]
    best = max(allowed, key=lambda t: t.gain, default=None)
    if best is None or best.gain <= best.error:
        return Blend(0.0, 0.0, tried[0].blend.shrink), 0.0
    found = min((t for t in allowed if t.gain >= best.gain - best.error), key=lambda t: t.moved)
    return found.blend, found.gain


def _words(blend: Blend) -> str:
    return f"blend latent {blend.latent:.3g}, own {blend.own:.3g}, shrink {blend.shrink:g}"
