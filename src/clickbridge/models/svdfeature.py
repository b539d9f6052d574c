"""SVDFeature (Chen et al. 2012; a baseline of 13): feature-based matrix factorisation.

    r(q, d) = b_g' g  +  b_x' x  +  b_y' y  +  (U' x)' (V' y)

x and y are the features of query and document, g global ones of the pair. Here g are the matches of equal
features, one for each pair of views; `global_features=none` leaves them out, as 13 had x and y alone. b_x' x is
the same for all documents of a query, so it counts in pointwise losses and in no ranking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from clickbridge.models.factor_training import Objective
from clickbridge.models.factors import FactorModel, FactorSettings
from clickbridge.settings import setting, settings


@settings
class SVDFeatureSettings(FactorSettings):
    printed: ClassVar[Mapping[str, Any]] = {
        "views": "word,click",
        "training": "squared",
        "global_features": "none",
        "targets": "counts",
    }

    training: str = setting(
        "pairwise",
        "logistic loss over pairs, or squared or logistic over documents",
        choices=("pairwise", "squared", "logistic"),
    )
    global_features: str = setting(
        "match", "features of the pair: matches of equal features, or none", choices=("match", "none")
    )
    targets: str = setting(
        "clicked",
        "of a single document: clicked or not, 1 and 0, or the clicks of the pair (13; training=squared)",
        choices=("clicked", "counts"),
    )
    decay: float = setting(0.01, "how strongly factors are drawn to 0", 0, 1000)


class SVDFeature(FactorModel):
    """Losses: pairwise logistic, or pointwise squared and logistic over clicked and unclicked documents."""

    name = "svdfeature"
    about = "feature-based matrix factorisation"
    paper = "13 6.1.1"
    Settings: ClassVar[type[FactorSettings]] = SVDFeatureSettings

    def objective(self) -> Objective:
        s: SVDFeatureSettings = self.settings
        return Objective(
            loss="squared" if s.training == "squared" else "logistic",
            pairwise=s.training == "pairwise", biases=True, matching=s.global_features == "match", decay=s.decay,
            dim=s.dim, rate=s.learning_rate, negatives=s.negatives, seed=s.seed,
            counts=s.targets == "counts" and s.training == "squared",
        )  # fmt: skip
