"""The pairwise kernel k_Q k_D of Basilico and Hofmann (2004), the paper's baseline: no relevance model inside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clickbridge.models.base import Array, query_of
from clickbridge.skernel.model import KERNEL_SETTINGS, KernelModel
from clickbridge.types import ResultList


class Pairwise(KernelModel):
    """(11) without BM25: what was preferred for similar queries, nothing else."""

    name = "pairwise"
    about = "pairwise kernel: preferences of similar queries alone"
    paper = "11R 7.2"
    settings = KERNEL_SETTINGS

    def point_factors(self, points: Array) -> Array:
        return np.ones(len(points))

    def list_factors(self, lists: Sequence[ResultList]) -> list[Array]:
        present, number = self.documents.present, self._doc_numbers.get
        known = ([number(d, -1) for d in result.results] for result in lists)
        return [np.array([1.0 if n >= 0 and present[n] else -np.inf for n in row]) for row in known]

    def without_neighbours(self, result: ResultList) -> Array:
        """Known queries resemble it, but none of them prefers anything: what is learned from nothing is 0."""
        if not len(self.kernel_.neighbours(query_of(result), 1)[0]):
            return super().without_neighbours(result)
        return np.where(np.isfinite(self.list_factors([result])[0]), 0.0, -np.inf)
