"""SVDFeature (Chen et al. 2012; a baseline of 13): feature-based matrix factorisation.

    r(q, d) = b_g' g  +  b_x' x  +  b_y' y  +  (U' x)' (V' y)

x and y are the features of query and document, g global features of the pair. Here g are the matches of equal
features, one for each pair of views. `global_features=none` leaves them out, since 13 used only x and y. b_x' x is
the same for all documents of a query, so it matters in pointwise losses but never changes a ranking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from clickbridge.models.factor_training import Objective
from clickbridge.models.factors import FactorModel, FactorSettings
from clickbridge.settings import ADVANCED, setting, settings


@settings
class SVDFeatureSettings(FactorSettings):
    printed: ClassVar[Mapping[str, Any]] = {
        "views": "word,response",
        "fields": "equal",
        "stop_words": "drop",
        "training": "squared",
        "global_features": "none",
        "targets": "counts",
    }

    training: str = setting(
        "pairwise",
        "loss: logistic over pairs of documents, or squared or logistic over single ones",
        choices=("pairwise", "squared", "logistic"),
        group=ADVANCED,
    )
    global_features: str = setting(
        "match",
        "features of a query and a document together: which features they share, or none",
        choices=("match", "none"),
        group=ADVANCED,
    )
    targets: str = setting(
        "clicked",
        "target of a single document: 1 or 0 for clicked or not, or the clicks of the pair, as in 13 "
        "(training=squared)",
        choices=("clicked", "counts"),
        group="13",
    )
    decay: float = setting(0.01, "strength of the penalty on large factors", 0, 1000, group=ADVANCED)


class SVDFeature(FactorModel):
    """Matrix factorisation over features of queries and documents, with biases, learned by gradient descent.

    The loss compares a clicked document with an unclicked one. Pointwise losses are advanced settings (Chen and others
    2012).

    Examples
    --------
    >>> from clickbridge import SVDFeature, example_graph
    >>> model = SVDFeature(dim=4).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['hotels', 'rooms', 'slice']
    """

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
