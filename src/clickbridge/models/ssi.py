"""Supervised semantic indexing (Bai et al. 2009; a baseline of 13): f(q, d) = q' (U' V + I) d.

The identity matches equal words, as the vector space model does; the low-rank part learns which different ones
belong together, from clicked and unclicked documents and a margin: sum of max(0, 1 - f(q, d+) + f(q, d-)).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from clickbridge.models.factor_training import Objective
from clickbridge.models.factors import FactorModel, FactorSettings
from clickbridge.settings import setting, settings


@settings
class SSISettings(FactorSettings):
    printed: ClassVar[Mapping[str, Any]] = {"views": "word", "pairs": "preferences"}

    pairs: str = setting(
        "drawn",
        "clicked over unclicked documents drawn at random, or preferences (13): skip-above on pages, counts without",
        choices=("drawn", "preferences"),
    )


class SSI(FactorModel):
    """Both maps of a feature are learned; where a feature is on both sides, it also matches itself."""

    name = "ssi"
    about = "supervised semantic indexing: margin ranking over pairs"
    paper = "13 6.1.1"
    Settings: ClassVar[type[FactorSettings]] = SSISettings

    def objective(self) -> Objective:
        s: SSISettings = self.settings
        return Objective(
            loss="hinge", pairwise=True, biases=False, matching=True, decay=0.0,
            dim=s.dim, rate=s.learning_rate, negatives=s.negatives, seed=s.seed,
            pairs=s.pairs,
        )  # fmt: skip
