"""The pairwise kernel k_Q k_D of Basilico and Hofmann (2004), the paper's baseline: no relevance model inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from clickbridge.models.candidates import Query
from clickbridge.models.explain import Contributions, contributions
from clickbridge.models.fitted import Array, Fitted
from clickbridge.skernel.kernel_model import FittedKernel, KernelModel


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedPairwise(FittedKernel):
    """g is 1 for every document that has a row."""

    def point_factors(self, points: Array) -> Array:
        return np.ones(len(points))

    def factors(self, query: Query, items: Array) -> Array:
        return np.where((items >= 0) & self.documents.present[items], 1.0, -np.inf)

    def _resembles(self, query: Query) -> bool:
        return len(self.kernel.neighbours(self.asked(query), 1)[0]) > 0

    def without_neighbours(self, query: Query, items: Array) -> Array:
        """Scores of 0 if there are similar queries but none of them has a preference to learn from."""
        if not self._resembles(query):
            return super().without_neighbours(query, items)
        return np.where(np.isfinite(self.factors(query, items)), 0.0, -np.inf)

    def contributions_without_neighbours(self, query: str, doc_id: str, k: int) -> Contributions:
        if not self._resembles(self.query(query)):
            return super().contributions_without_neighbours(query, doc_id, k)
        return contributions([], k)


class Pairwise(KernelModel):
    """The pairwise kernel: ranks by what people preferred for similar queries, and by nothing else. A baseline of 11R.

    For each search, a small ranking model is trained on the preferences of the most similar queries of the log. A
    preference is a clicked result compared with an unclicked one.

    Examples
    --------
    >>> from clickbridge import Pairwise, example_graph
    >>> model = Pairwise().fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['rooms', 'hotels', 'slice']
    """

    name = "pairwise"
    about = "pairwise kernel: preferences of similar queries alone"
    paper = "11R 7.2"
    fitted_type: ClassVar[type[Fitted]] = FittedPairwise
