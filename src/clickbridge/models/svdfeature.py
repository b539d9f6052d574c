"""SVDFeature (Chen et al. 2012; a baseline of 13): feature-based matrix factorisation.

    r(q, d) = b_g' g  +  b_x' x  +  b_y' y  +  (U' x)' (V' y)

x and y are the features of query and document, g global ones of the pair. Here g are the matches of equal
features, one for each pair of views; `global_features=none` leaves them out, as 13 had x and y alone. b_x' x is
the same for all documents of a query, so it counts in pointwise losses and in no ranking.
"""

from __future__ import annotations

from typing import ClassVar

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.models.factors import FACTOR_SETTINGS, FactorModel


class SVDFeature(FactorModel):
    """Losses: pairwise logistic, or pointwise squared and logistic over clicked and unclicked documents."""

    name = "svdfeature"
    about = "feature-based matrix factorisation"
    paper = "13 6.1.1"
    settings: ClassVar[tuple[str, ...]] = ("training", "global_features", "decay", *FACTOR_SETTINGS)
    defaults: ClassVar[dict[str, object]] = {"dim": 100, "learning_rate": 0.03, "decay": 0.01}

    training: str
    global_features: str
    decay: float
    biases = True

    def _prepare(self, graph: ClickGraph) -> None:
        super()._prepare(graph)
        if self.global_features == "none":
            self.matches_, self._translated = [], []

    @property
    def _loss(self) -> str:
        return "squared" if self.training == "squared" else "logistic"

    @property
    def _shrink(self) -> float:
        return self.decay

    @property
    def _pairwise(self) -> bool:
        return self.training == "pairwise"
