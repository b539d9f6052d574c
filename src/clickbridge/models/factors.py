"""What SSI and SVDFeature share: bilinear factors learned by stochastic gradient descent from clicks.

score(q, d) = sum over views v of w_v x_v' y_v  +  x' U V' y  +  b_y' y. The first sum matches equal features of
both sides (the same word, the same n-gram); the second relates different ones. All of it is one map for
queries and one for documents: matching coordinates (sparse) next to latent ones (dense).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clickbridge.graph.hold_back import MIN_USABLE, HoldBack, few_held
from clickbridge.graph.notes import said_by
from clickbridge.io.values import expect, stored
from clickbridge.models.ascent import labelled
from clickbridge.models.candidates import Query
from clickbridge.models.explain import Contributions, Feature, Part, contributions, merge
from clickbridge.models.factor_training import Judge, Objective, Training
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.latent import FittedLatent, LatentChoices, Space, mapped, times
from clickbridge.models.pls import LatentModel
from clickbridge.models.sfunction import (
    S_FUNCTION,
    Image,
    Images,
    beside,
    row_image,
    unit_image,
    unit_index,
)
from clickbridge.models.study import Known, Study
from clickbridge.numerics.row import Row, as_matrix, gathered, row_of
from clickbridge.search.index import Index, StackedIndex, make_index
from clickbridge.settings import Counting, Fields, Printed, Seeded, setting, settings
from clickbridge.types import Document
from clickbridge.wording import count_of

PATIENCE = 3
FEW_EPOCHS = 5
"""Passes where too little can be held back to tell when to stop."""


@settings
class FactorSettings(Printed, Counting, Fields, Seeded):
    dim: int = setting(100, "dimensions of the latent space", 1, 100_000)
    views: str = setting("auto", "kinds of features, e.g. word,char:title,click; auto takes what suits the GRAPH")
    epochs: int = setting(30, "the most passes over the clicks; held-back clicks say when to stop", 1, 10_000)
    learning_rate: float = setting(0.03, "step size of gradient descent", 1e-6, 10)
    negatives: int = setting(4, "unclicked documents drawn for each clicked one", 1, 1000)


@stored
@dataclass(frozen=True, kw_only=True)
class FactorChoices(LatentChoices):
    epochs: int


def _side_by_side(fitted: FittedFactors) -> Images:
    return beside(fitted.blocks)


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedFactors(FittedLatent):
    """Factors of both sides. Images are computed from them, sparse and dense parts together, and are not stored."""

    can: ClassVar[frozenset[str]] = S_FUNCTION - {"update"}

    choices: FactorChoices
    match: sparse.csr_array
    """Query columns to document columns of the same feature, times the weight of their views."""
    doc_bias: Array
    blocks: list[Images] = field(init=False, repr=False)
    """Document images: matching coordinates, and latent ones with the document's bias."""
    scorable: Array = field(init=False, repr=False)
    index: StackedIndex = field(init=False, repr=False)
    images: Images = field(init=False, repr=False, default=cached_property(_side_by_side))
    """The blocks as one matrix, made when first asked for."""

    def __post_init__(self) -> None:
        features = self.doc_features
        self._derive(blocks=self._doc_blocks(features), scorable=np.diff(features.indptr) > 0)
        super().__post_init__()

    def _check_images(self) -> None:
        """Checks the arrays that images are computed from. The images themselves are not stored."""
        if self.match.shape != (self.q_views.width, self.d_views.width):
            raise ValueError("features that match of other views")
        expect("biases of documents", self.doc_bias, (self.d_views.width,))

    def _make_index(self) -> StackedIndex:
        return StackedIndex([make_index(block, self.scorable) for block in self.blocks], self.scorable)

    @property
    def epochs(self) -> int:
        return self.choices.epochs

    # --- maps ------------------------------------------------------------------------------------

    def row_image(self, row: Row) -> Image:
        """The matching coordinates, and the latent ones with a 1 for the document's bias."""
        there = np.float32(1.0 if row else 0.0)
        return [self._matching_row(row), np.append(times(row, self.spaces[0].l_x), there)]

    def _matching_row(self, row: Row) -> Row:
        entries, begins = gathered(self.match.indptr, row.columns)
        values = self.match.data[entries] * np.repeat(row.values, np.diff(begins, append=len(entries)))
        # No two query columns match the same document column, so there is nothing to add up.
        order = np.argsort(self.match.indices[entries])
        return Row(self.match.indices[entries][order], values[order])

    def map_keys(self, queries: Sequence[Query]) -> list[Images]:
        return self._query_blocks(as_matrix([self.query_row(query) for query in queries], self.q_views.width))

    def _query_blocks(self, features: sparse.csr_array) -> list[Images]:
        latent = mapped(features, self.spaces, "q_columns", "l_x")
        there = (np.diff(features.indptr) > 0).astype(latent.dtype)
        return [sparse.csr_array(features @ self.match), np.concatenate([latent, there[:, None]], axis=1)]

    def _doc_blocks(self, features: sparse.csr_array) -> list[Images]:
        latent = mapped(features, self.spaces, "d_columns", "l_y")
        bias = np.asarray(features @ self.doc_bias, dtype=latent.dtype)
        # Only features that some query feature matches.
        used = np.zeros(features.shape[1], dtype=np.float32)
        used[self.match.indices] = 1.0
        equal = sparse.csr_array(features.multiply(used[None, :]), dtype=np.float32)
        equal.eliminate_zeros()
        return [equal, np.concatenate([latent, bias[:, None]], axis=1)]

    def map_new(self, documents: Sequence[Document]) -> Images:
        return beside(self._doc_blocks(self.new_features(documents)))

    # --- similar ---------------------------------------------------------------------------------

    @cached_property
    def _query_index(self) -> Index:
        return unit_index(self._query_blocks(self.query_features))

    @cached_property
    def _doc_index(self) -> Index:
        return unit_index(self.blocks)

    def document_image(self, number: int) -> Image:
        return unit_image([row_image(block, number) for block in self.blocks])

    # --- explain ---------------------------------------------------------------------------------

    def contributions(self, query: str, doc_id: str, k: int) -> Contributions:
        """Equal features of both sides, pairs of different ones, and the document's bias."""
        x = self._matching_row(self.query_row(self.query(query)))
        y = row_of(self.doc_features, self.catalogue.number(doc_id))
        shared, one, two = np.intersect1d(x.columns, y.columns, return_indices=True)
        values = (x.values[one] * y.values[two]).tolist()
        named = [Feature(*self.d_views.feature(c)) for c in shared.tolist()]
        met = [Part(f, f, value) for f, value in zip(named, values, strict=True)]
        bias = float(self.doc_bias[y.columns] @ y.values)
        own = contributions([*met, *([Part(Feature("any", ""), Feature("bias", ""), bias)] if bias else [])], k)
        return merge([("equal", 1.0, own), ("latent", 1.0, super().contributions(query, doc_id, k))], k)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "residual": None, "epochs": self.epochs}


class FactorModel(LatentModel):
    """Base of models learned by gradient descent. Subclasses define the loss."""

    Settings: ClassVar[type[FactorSettings]] = FactorSettings
    fitted_type: ClassVar[type[Fitted]] = FittedFactors

    def objective(self) -> Objective:
        """The loss, and which pairs it is taken over."""
        raise NotImplementedError

    # --- choosing --------------------------------------------------------------------------------

    def choose(self, study: Study) -> FactorChoices:
        """Chooses field weights, then the number of passes with the best nDCG@5 on held-back lists."""
        s: FactorSettings = self.settings
        study = self.on(study)
        held, rest = study.hold_back(seed=s.seed)
        learnable = bool(rest.graph.pairs.clicks.any())
        weights, notes = self.choose_fields(rest if learnable else study)
        groups, few = tuple(self.groups(study.whole)), min(FEW_EPOCHS, s.epochs)
        if learnable:
            epochs, said = self._stop_early(study, held, rest, weights)
        else:
            epochs, said = few, f"no click is left after holding back; {few} epochs"
        notes = (*notes, said_by(self.name, said))
        return FactorChoices(field_weights=weights, groups=groups, epochs=epochs, notes=notes)

    def _stop_early(self, study: Study, held: HoldBack, rest: Study, weights: dict[str, float]) -> tuple[int, str]:
        s: FactorSettings = self.settings
        trial = FactorChoices(field_weights=weights, groups=tuple(self.groups(rest.whole)), epochs=0)
        known, training = self._begin(rest, trial)
        start = self._finish(rest, trial, known, training)
        lists = labelled(study, held.lists([start]))
        if len(lists) < MIN_USABLE:
            few = min(FEW_EPOCHS, s.epochs)
            return few, few_held(len(lists), "query", "to stop early", count_of(few, "epoch"))
        queries = as_matrix([start.query_row(query) for query in lists.candidates.queries], start.q_views.width)
        judge = Judge(training, lists, queries)
        best, best_value = 0, judge.value()
        while training.epochs < s.epochs and training.epochs - best < PATIENCE:
            study.progress(f"{self.name}: pass {training.epochs + 1}, nDCG@5 {best_value:.3f} so far")
            training.run(s.epochs)
            value = judge.value()
            if value > best_value:
                best, best_value = training.epochs, value
        return best, f"{best} epochs (nDCG@5 {best_value:.3f} on {len(lists)} held-back lists)"

    # --- learning --------------------------------------------------------------------------------

    def learn(self, study: Study, choices: Choices) -> FittedFactors:
        assert isinstance(choices, FactorChoices)
        study = self.on(study)
        known, training = self._begin(study, choices)
        while training.epochs < choices.epochs:
            study.progress(f"{self.name}: pass {training.epochs + 1} of {choices.epochs}")
            training.run(choices.epochs, at_once=True)
        return self._finish(study, choices, known, training)

    def _begin(self, study: Study, choices: FactorChoices) -> tuple[Known, Training]:
        known, features, _ = self.learn_features(study, ["&".join(choices.groups)], choices)
        return known, Training(study.graph, known, features, self.objective(), study.engine)

    def _finish(self, study: Study, choices: FactorChoices, known: Known, training: Training) -> FittedFactors:
        """The fitted model from the current factors."""
        s: FactorSettings = self.settings
        features, factors = training.features, training.factors
        n_x, n_y = features.q_views.width, features.d_views.width
        match = sparse.csr_array((n_x, n_y), dtype=np.float32)
        for weight, pairs in zip(training.match_weights, training.matches, strict=True):
            match = sparse.csr_array(match + np.float32(weight) * pairs)
        q_columns, d_columns = (np.arange(n, dtype=np.int32) for n in (n_x, n_y))
        space = Space(q_columns, d_columns, factors.u.copy(), factors.v.copy(), np.ones(s.dim), 0.0)
        note = f"{self.name}: views {', '.join(choices.groups)}; dim {s.dim}, {choices.epochs} epochs"
        return FittedFactors(
            model=self.name, settings=s, catalogue=study.catalogue, choices=choices, queries=known.queries,
            notes=(*known.notes, *choices.notes, note), features=features, spaces=(space,), match=match,
            doc_bias=factors.b_y.astype(np.float32), encode=self.encode or {},
        )  # fmt: skip
