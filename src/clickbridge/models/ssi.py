"""Supervised semantic indexing (Bai et al. 2009; a baseline of 13): f(q, d) = q' (U' V + I) d.

The identity matches equal words, like the vector space model. The low-rank part learns which different words belong
together, from clicked and unclicked documents, with a margin loss: sum of max(0, 1 - f(q, d+) + f(q, d-)).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from clickbridge.models.factor_training import Objective
from clickbridge.models.factors import FactorModel, FactorSettings
from clickbridge.settings import setting, settings


@settings
class SSISettings(FactorSettings):
    printed: ClassVar[Mapping[str, Any]] = {
        "views": "word", "training_pairs": "preferences", "fields": "equal", "stop_words": "drop",
    }  # fmt: skip

    training_pairs: str = setting(
        "drawn",
        "clicked over unclicked documents drawn at random, or the log's preferences, as in 13: skip-above where "
        "there are pages, else counts",
        choices=("drawn", "preferences"),
        group="13",
    )


class SSI(FactorModel):
    """Supervised semantic indexing: matching words, plus learned relations between different words.

    The score uses a low-rank matrix plus the identity. It is learned by gradient descent on clicked and unclicked
    documents (Bai and others 2009).

    Examples
    --------
    >>> from clickbridge import SSI, example_graph
    >>> model = SSI(dim=4).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['hotels', 'rooms', 'slice']
    """

    name = "ssi"
    about = "supervised semantic indexing: margin ranking over pairs"
    paper = "13 6.1.1"
    Settings: ClassVar[type[FactorSettings]] = SSISettings

    def objective(self) -> Objective:
        s: SSISettings = self.settings
        return Objective(
            loss="hinge", pairwise=True, biases=False, matching=True, decay=0.0,
            dim=s.dim, rate=s.learning_rate, negatives=s.negatives, seed=s.seed,
            pairs=s.training_pairs,
        )  # fmt: skip
