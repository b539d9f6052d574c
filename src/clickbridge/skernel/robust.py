"""Robust BM25, and the same around any S-function (Wu et al. 2011, Sections 4 and 6).

    f(q, d) = g(q, d) sum_p alpha_p inner(k_Q(q, q_p), k_D(d, d_p)) g(q_p, d_p)

is (11) with alpha_p the summed theta of the preferences that a point is in; g is the base model's score. A score of 0
(term mismatch) would multiply everything away, so epsilon is added to g everywhere: in (11) and in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from clickbridge.errors import SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.algebra import Sum
from clickbridge.models.base import Array, Model
from clickbridge.models.sfunction import SFunction, unit_images
from clickbridge.models.wrapper import Wrapper
from clickbridge.skernel.families import PowerSeries, family
from clickbridge.skernel.model import BASE, KERNEL_SETTINGS, KernelModel
from clickbridge.skernel.neighbourhood import Training
from clickbridge.types import Ranking, ResultList

POOL, POOL_FACTOR, OTHERS, EACH = 100, 5, 10, 20
"""Candidates of a search: of the query, and of its nearest neighbours."""
REFERENCES = 256
"""Documents whose least score is taken for a query's zero, where the base can be negative."""


class Robust(KernelModel, Wrapper):
    """A base S-function corrected by what was preferred for similar queries."""

    name = "robust"
    about = "any S-function, corrected by preferences of similar queries (Robust BM25)"
    paper = "11R 4-6"
    settings = ("epsilon", "family", "rho", "prior", *KERNEL_SETTINGS)
    epsilon: str
    family: str
    rho: str
    prior: str

    scale_: float
    negative_: bool

    def __init__(self, parts: Sequence[Model], **params: Any) -> None:
        super().__init__(parts, **params)
        for part in self.parts:
            if not isinstance(part, SFunction):
                raise SettingError(f"robust:{part.spec} is not possible: {part.spec} is not an S-function; try bm25")

    @property
    def base(self) -> SFunction:
        part = self.parts[0]
        assert isinstance(part, SFunction)
        return part

    @property
    def inner(self) -> PowerSeries:
        return family(self.choice_.family, self.choice_.rho)

    # --- learning --------------------------------------------------------------------------------

    def _fit(self, graph: ClickGraph) -> None:
        super()._fit(graph)
        self.notes_[:0] = self.base.notes_

    def prepare(self, graph: ClickGraph) -> None:
        """The base is tuned once; later fits keep what it chose."""
        (self.base.refit if "base" in self.tuned_ else self.base.fit)(graph)
        self.tuned_["base"] = True
        super().prepare(graph)

    def doc_kernels(self, graph: ClickGraph) -> tuple[str, ...]:
        return (BASE, "titles") if graph.field_names else (BASE,)

    def document_rows(self, graph: ClickGraph, name: str) -> Any:
        return unit_images(self.base.images_) if name == BASE else super().document_rows(graph, name)

    def score_points(self, keys: Sequence[str], training: Training) -> Array:
        """The base's scores of all training points, over their mean, so that epsilon and the ridge mean the same
        for every base."""
        sample = [ResultList("", key, self._references) for key in keys[:REFERENCES]]
        self.negative_ = any(bool(np.any(s[np.isfinite(s)] < 0)) for s in self.base.score_lists(sample))
        starts = np.searchsorted(training.point_query, np.arange(len(keys) + 1))
        docs = [self.doc_ids_[d] for d in training.point_doc]
        lists = [ResultList("", key, docs[a:b]) for key, (a, b) in zip(keys, pairwise(starts), strict=True)]
        scores = np.concatenate([*self._raw(lists), np.empty(0)])
        scores = np.where(np.isnan(scores), 0.0, scores)
        self.scale_ = float(scores.mean()) if scores.any() else 1.0
        return scores

    @cached_property
    def _references(self) -> list[str]:
        """The same documents every time, spread over the collection."""
        step = max(len(self.doc_ids_) // REFERENCES, 1)
        return self.doc_ids_[::step]

    # --- g ---------------------------------------------------------------------------------------

    def _raw(self, lists: Sequence[ResultList]) -> list[Array]:
        """The base's scores over its normaliser, never negative: 0 where nothing matches, NaN for a document that
        the base cannot score for any query."""
        scorable, number = self.base.scorable_, self._doc_numbers.get
        out = []
        for result, scores, zero in zip(lists, self._normalised(lists), self._zeros(lists), strict=True):
            known = np.array([n >= 0 and scorable[n] for n in (number(d, -1) for d in result.results)], dtype=bool)
            above = np.maximum(np.where(np.isfinite(scores), scores - zero, 0.0), 0.0)
            out.append(np.where(known, above, np.nan))
        return out

    def _normalised(self, lists: Sequence[ResultList]) -> list[Array]:
        scores = self.base.score_lists(lists)
        if isinstance(self.base, Sum):  # each part is over its own already
            return scores
        norms = self.base.normaliser(self.base.map_lists(lists)) if lists else np.empty(0)
        return [s / n for s, n in zip(scores, norms, strict=True)]

    def _zeros(self, lists: Sequence[ResultList]) -> list[float]:
        """What counts as no match. A query-only shift of an S-function is an S-function (one more coordinate)."""
        if not self.negative_:
            return [0.0] * len(lists)
        asked = [ResultList(r.query_id, r.query, self._references, vectors=r.vectors) for r in lists]
        return [float(np.min(s, where=np.isfinite(s), initial=0.0)) for s in self._normalised(asked)]

    def point_factors(self, points: Array) -> Array:
        return self.point_scores_[points] / self.scale_ + self.choice_.epsilon

    def list_factors(self, lists: Sequence[ResultList]) -> list[Array]:
        factors = (raw / self.scale_ + self.choice_.epsilon for raw in self._raw(lists))
        return [np.where(np.isnan(factor), -np.inf, factor) for factor in factors]

    # --- using -----------------------------------------------------------------------------------

    def without_neighbours(self, result: ResultList) -> Array:
        return self.base.score_lists([result])[0]

    def candidates(self, query: str, k: int) -> list[str]:
        """Documents that the base finds for the query and for its neighbours, and those of the preferences."""
        found = self.base.rank(query, max(POOL, POOL_FACTOR * k)).doc_ids
        near, _ = self.kernel_.neighbours(query, OTHERS)
        others = self.base.rank_many([self.kernel_.keys[i] for i in near], EACH) if len(near) else []
        return [*found, *(d for ranking in others for d in ranking.doc_ids), *super().candidates(query, k)]

    def rank(self, query: str, k: int = 10) -> Ranking:
        return self.base.rank(query, k) if self.falls_back(query) else super().rank(query, k)

    # --- files -----------------------------------------------------------------------------------

    def _write(self, writer: PartWriter) -> None:
        super()._write(writer)
        writer.array("base_scale", np.array([self.scale_, float(self.negative_)]))

    def _read(self, artifact: Artifact) -> None:
        super()._read(artifact)
        scale, negative = artifact.array("base_scale")
        self.scale_, self.negative_ = float(scale), bool(negative)
        if self.choice_.doc_kernel == BASE:
            self.doc_rows_ = unit_images(self.base.images_)
