"""Robust BM25, and the same method around any S-function (Wu et al. 2011, Sections 4 and 6).

    f(q, d) = g(q, d) sum_p alpha_p inner(k_Q(q, q_p), k_D(d, d_p)) g(q_p, d_p)

is (11), where alpha_p is the sum of theta over the preferences of a point, and g is the base model's score. A base
score of 0 (term mismatch) would make every product 0, so epsilon is added to g everywhere, in (11) and in training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.io.values import stored
from clickbridge.models.algebra import FittedSum
from clickbridge.models.candidates import Query, behind
from clickbridge.models.composite import FittedWrapper, PartsChoices, Wrapper
from clickbridge.models.explain import Contributions
from clickbridge.models.fitted import Array, Fitted
from clickbridge.models.model import Model
from clickbridge.models.sfunction import FittedSFunction
from clickbridge.models.study import Study
from clickbridge.search.index import Found, Index
from clickbridge.settings import ADVANCED, setting, settings
from clickbridge.skernel.base_scores import BaseScores, above_zero, image_blocks, references, score_points
from clickbridge.skernel.document_kernel import DocumentKernel
from clickbridge.skernel.families import FAMILIES
from clickbridge.skernel.kernel_choices import Choice, KernelChoices
from clickbridge.skernel.kernel_model import FittedKernel, KernelModel, KernelSettings
from clickbridge.skernel.neighbourhood import Neighbourhood
from clickbridge.skernel.training_data import KernelData

BASE = "base"
"""The document kernel that is the cosine of the base model's own images."""
POOL, POOL_FACTOR, OTHERS, EACH = 100, 5, 10, 20
"""Candidates of a search: of the query, and of its nearest neighbours."""
LONG_LIST = 200
"""A list of more documents is a collection to be searched, not a page to be re-ranked."""


@settings
class RobustSettings(KernelSettings):
    printed: ClassVar[Mapping[str, Any]] = {
        **KernelSettings.printed,
        "epsilon": "0.001", "family": "product", "rho": "1", "prior": "0", "base_scale": "none",
    }  # fmt: skip

    epsilon: str = setting(
        "auto",
        "what a base score of 0 counts, as a multiple of the mean score; auto chooses on held-back clicks",
        group=ADVANCED,
    )
    family: str = setting(
        "auto",
        "family of the S-kernel; product is equation (8); auto chooses on held-back clicks",
        choices=("auto", *FAMILIES),
        group="11R",
    )
    rho: str = setting(
        "auto", "how much similarity counts against the base model itself; auto chooses on held-back clicks"
    )
    prior: str = setting(
        "auto",
        "weight of the uncorrected base model; the paper has 0; auto chooses on held-back clicks",
        group="11R",
    )
    base_scale: str = setting(
        "mean",
        "base scores over their mean, so that lambda and epsilon do not depend on the log, or as they are (the paper)",
        choices=("mean", "none"),
        group="11R",
    )


@stored
@dataclass(frozen=True, kw_only=True)
class RobustChoices(KernelChoices, PartsChoices):
    """The choices of the base, and the kernels and constants around it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRobust(FittedKernel, FittedWrapper):
    """A base S-function, and the learned function that multiplies it. g is the base's score plus epsilon."""

    settings: RobustSettings
    base_scores: BaseScores
    base: FittedSFunction = field(init=False, repr=False)
    references: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._derive(base=self.parts[0], references=references(len(self.catalogue)))
        super().__post_init__()

    def _document_kernel(self) -> DocumentKernel:
        return super()._document_kernel() if self.doc_rows is not None else DocumentKernel.of(*image_blocks(self.base))

    @cached_property
    def _doc_indexes(self) -> list[Index]:
        if self.doc_rows is not None:
            return super()._doc_indexes
        return [self.base.index] if not isinstance(self.base, FittedSum) else [p.index for p in self.base.parts]

    # --- g ---------------------------------------------------------------------------------------

    def point_factors(self, points: Array) -> Array:
        return self.base_scores.points[points] / self.base_scores.mean + self.choice.epsilon

    def factors(self, query: Query, items: Array) -> Array:
        given = self.base_scores
        scores = above_zero(self.base, query, items, self.references if given.negative else None, given.scaled)
        known = (items >= 0) & self.base.scorable[items]
        return np.where(known, scores / given.mean + self.choice.epsilon, -np.inf)

    # --- using -----------------------------------------------------------------------------------

    def falls_back(self, query: str) -> bool:
        return not self.choices.corrects or super().falls_back(query)

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        """A long list is treated like a search: the promising documents are scored and come first, and all others
        follow in the base's order."""
        if not self.choices.corrects:
            return self.base.score_items(query, items)
        if len(items) <= LONG_LIST:
            return super().score_items(query, items)
        found = self.neighbourhood(query, np.empty(0, dtype=np.int64))
        if found is None:
            return self.without_neighbours(query, items)
        near = np.isin(items, self.worth_scoring(query, found, LONG_LIST))
        first = self.score_within(found.scoring(self.documents, items[near]), query, items[near])
        return behind(near, first, self.base.score_items(query, items))

    def search(self, query: Query, k: int) -> Found:
        return super().search(query, k) if self.choices.corrects else self.base.search(query, k)

    def without_neighbours(self, query: Query, items: Array) -> Array:
        return self.base.score_items(query, items)

    def contributions_without_neighbours(self, query: str, doc_id: str, k: int) -> Contributions:
        return self.base.contributions(query, doc_id, k)

    def search_without_neighbours(self, query: Query, k: int) -> Found:
        return self.base.search(query, k)

    def worth_scoring(self, query: Query, found: Neighbourhood, k: int) -> Array:
        """The documents that the base finds for the query and for its neighbours, and those in the preferences."""
        near, _ = self.kernel.neighbours(self.asked(query), OTHERS)
        others = self.base.search_many([Query(self.queries.keys[i]) for i in near.tolist()], EACH)
        own, _ = self.base.search(query, max(POOL, POOL_FACTOR * k))
        return np.concatenate([own, *(items for items, _ in others), super().worth_scoring(query, found, k)])


class Robust(KernelModel, Wrapper):
    """A model corrected by what people preferred for similar queries: `Robust([BM25()])`, in specs `robust-bm25`.

    For each search, a small ranking model is trained on the preferences of the most similar queries of the log, and
    multiplies the base model's score. A preference is a clicked result compared with an unclicked one. A query without
    similar ones gets the answer of the base model.

    Examples
    --------
    >>> from clickbridge import BM25, Robust, example_graph
    >>> model = Robust([BM25()]).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['hotels', 'rooms', 'slice']
    """

    name = "robust"
    about = "any S-function, corrected by preferences of similar queries (Robust BM25)"
    paper = "11R 4-6"
    Settings: ClassVar[type[KernelSettings]] = RobustSettings
    fitted_type: ClassVar[type[Fitted]] = FittedRobust

    def __init__(self, parts: Model | Sequence[Model], **params: object) -> None:
        super().__init__(parts, **params)
        for part in self.parts:
            if "maps" not in part.abilities():
                raise SettingError(f"robust:{part.spec} is not possible: {part.spec} is not an S-function; try bm25")

    def doc_kernels(self, study: Study) -> tuple[str, ...]:
        return (BASE, "titles") if study.graph.field_names else (BASE,)

    def document_rows(self, study: Study, name: str) -> sparse.csr_array | None:
        return None if name == BASE else super().document_rows(study, name)

    def choices(self, study: Study, choice: Choice, *notes: str) -> RobustChoices:
        return RobustChoices(choice=choice, parts=self.choose_parts(study), notes=notes)

    def learned_parts(self, study: Study, choices: KernelChoices) -> tuple[Fitted, ...]:
        assert isinstance(choices, RobustChoices)
        return self.learn_parts(study, choices.parts)

    def more_fields(self, parts: tuple[Fitted, ...], material: KernelData) -> dict[str, object]:
        scaled = self.settings.base_scale == "mean"
        (base,) = parts
        assert isinstance(base, FittedSFunction)
        scores = score_points(base, material.queries.keys, material.training, scaled)
        return {"parts": parts, "base_scores": scores}
