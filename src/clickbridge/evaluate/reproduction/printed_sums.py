"""Sums with BM25 as 11M, 12 and 13 have them: fixed weights. The papers do not say which scores they weigh. Here these
are standardised over each list, so that a weight means the same for every part.

A document without clicks is a zero row of the matrix that LSI decomposes, so its score there is 0, as it is in a random
walk that never reaches it. Our own sums leave such a document out of the list of that part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from clickbridge.fusion.linear import FittedLinearSum, LinearSum
from clickbridge.models.candidates import Candidates, Query, without_gaps
from clickbridge.models.fitted import Array, Fitted
from clickbridge.numerics.ragged import Ragged


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedPrintedSum(FittedLinearSum):
    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        one = Ragged(np.array([0, len(items)]))
        scores = [part.score_items(query, items, incoming) for part in self.parts]
        columns = np.stack([one.standardised(without_gaps(own)) for own in scores], axis=1)
        return np.where(np.isfinite(scores).any(axis=0), columns @ np.array(self.weights_for(query)), -np.inf)


class PrintedSum(LinearSum):
    """`LSIQueryDoc() + BM25()` as printed."""

    fitted_type: ClassVar[type[Fitted]] = FittedPrintedSum

    def column(self, part: Fitted, candidates: Candidates) -> Array:
        return candidates.lists.standardised(without_gaps(part.scores(candidates)))
