"""Supervised semantic indexing (Bai et al. 2009; a baseline of 13): f(q, d) = q' (U' V + I) d.

The identity matches equal words, as the vector space model does; the low-rank part learns which different ones
belong together, from preferences and a margin: sum of max(0, 1 - f(q, d+) + f(q, d-)).
"""

from __future__ import annotations

from typing import ClassVar

from clickbridge.models.factors import FACTOR_SETTINGS, FactorModel


class SSI(FactorModel):
    """Both maps of a feature are learned; where a feature is on both sides, it also matches itself."""

    name = "ssi"
    about = "supervised semantic indexing: margin ranking over pairs"
    paper = "13 6.1.1"
    settings: ClassVar[tuple[str, ...]] = FACTOR_SETTINGS
    defaults: ClassVar[dict[str, object]] = {"dim": 100, "learning_rate": 0.03}

    @property
    def _loss(self) -> str:
        return "hinge"
