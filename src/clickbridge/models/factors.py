"""What SSI and SVDFeature share: bilinear factors learned by stochastic gradient descent from preferences.

score(q, d) = sum over views v of w_v x_v' y_v  +  x' U V' y  +  b_y' y. The first sum matches equal features of
both sides (the same word, the same n-gram); the second relates different ones. All of it is one map for
queries and one for documents: matching coordinates (sparse) beside latent ones (dense).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.algebra import beside
from clickbridge.models.base import Array, query_of
from clickbridge.models.explain import explanation, merge
from clickbridge.models.latent import COUNTING, LatentModel, Space, brought_vectors
from clickbridge.models.pls import default_views
from clickbridge.models.preferences import preferences
from clickbridge.models.sfunction import Images, make_index, row_norms
from clickbridge.models.tuning import LabelledLists
from clickbridge.numerics.factors import Descent, Factors, Samples, random_factors
from clickbridge.numerics.topk import paired_dots
from clickbridge.search.index import StackedIndex
from clickbridge.types import Document, Explanation, ResultList
from clickbridge.views.stack import ViewStack
from clickbridge.views.view import DenseView, TermView, View

FACTOR_SETTINGS = ("dim", "views", "epochs", "learning_rate", "negatives", *COUNTING,
                   "fields", "language", "stop_words", "seed")  # fmt: skip
PATIENCE = 3
FEW_EPOCHS = 5
"""Passes where too little can be held back to tell when to stop."""


class FactorModel(LatentModel):
    """Subclasses choose the loss, whether biases are learned, and the weights of the matching views."""

    dim: int
    views: str
    epochs: int
    learning_rate: float
    negatives: int

    biases = False
    start_scale = 0.1
    """Expected length of a feature's random first image."""

    match_: sparse.csr_array
    """Query columns to document columns of the same feature."""
    match_weights_: Array
    """One for each pair of matching views."""
    doc_bias_: Array

    # --- learning --------------------------------------------------------------------------------

    def _fit(self, graph: ClickGraph) -> None:
        if "epochs" not in self.tuned_:
            self.tuned_["epochs"] = self._stop_early(graph)
        self._prepare(graph)
        descent = self._descent()
        for epoch in range(self.tuned_["epochs"]):
            descent.epoch(self._samples(graph, epoch))
        self._take(descent.mean)
        views = ", ".join(self._groups(graph))
        self.notes_.append(f"{self.name}: views {views}; dim {self.dim}, {self.tuned_['epochs']} epochs")

    def _groups(self, graph: ClickGraph) -> list[str]:
        return default_views(graph) if self.views == "auto" else [v.strip() for v in self.views.split(",")]

    def _prepare(self, graph: ClickGraph) -> None:
        self._learn_features(graph, ["&".join(self._groups(graph))])
        self.matches_ = matching(self.q_views_, self.d_views_)
        shape = self.q_views_.width, self.d_views_.width
        self._translated = [sparse.csr_array(self.query_features_ @ m) for m in self.matches_]
        self.match_ = sparse.csr_array(shape, dtype=np.float32)
        rows = {key: row for row, key in enumerate(self.query_keys_)}
        self._rows = np.array([rows.get(key, -1) for key in graph.query_keys], dtype=np.int64)

    def _descent(self) -> Descent:
        n_x, n_y = self.query_features_.shape[1], self.doc_features_.shape[1]
        n_globals = len(self.matches_) if self.biases else 0
        factors = random_factors(n_x, n_y, self.dim, n_globals, self.start_scale, self.seed)
        factors.b_g[:] = 1.0
        return Descent(
            self.query_features_, self.doc_features_, factors, self._loss, self.learning_rate, self._shrink,
            self.biases,
        )  # fmt: skip

    @property
    def _loss(self) -> str:
        raise NotImplementedError

    @property
    def _shrink(self) -> float:
        return 0.0

    @property
    def _pairwise(self) -> bool:
        return True

    def _samples(self, graph: ClickGraph, epoch: int) -> Samples:
        """For each click `negatives` documents that were shown with it and not clicked; where the log has no
        pages, documents drawn at random."""
        rng = np.random.default_rng([self.seed, epoch])
        query, positive, negative = preferences(graph, self.negatives, rng)
        query = self._rows[query]
        keep = query >= 0
        query, positive, negative = query[keep], positive[keep], negative[keep]
        if not self._pairwise:
            return self._pointwise(query, positive, negative, rng)
        difference = self.matched(query, positive) - self.matched(query, negative)
        return self._as_samples(query, positive, negative, np.ones(len(query)), difference, rng)

    def _pointwise(self, query: Array, positive: Array, negative: Array, rng: Any) -> Samples:
        """Each clicked document once for each of its negatives, aim 1, and the negatives, aim 0."""
        query, docs = np.concatenate([query, query]), np.concatenate([positive, negative])
        target = np.concatenate([np.ones(len(positive)), np.zeros(len(negative))])
        return self._as_samples(query, docs, np.full(len(docs), -1), target, self.matched(query, docs), rng)

    def _as_samples(
        self, query: Array, positive: Array, negative: Array, target: Array, match: Array, rng: Any
    ) -> Samples:
        order = rng.permutation(len(query))
        offset = np.zeros(len(query)) if self.biases else match.sum(axis=1)
        features = match if self.biases else np.zeros((len(query), 0))
        columns = (query, positive, negative, target, features, offset)
        return Samples(*(np.ascontiguousarray(column[order]) for column in columns))

    def matched(self, query: Array, doc: Array) -> Array:
        """x_v' y_v of each pair, a column for each pair of matching views."""
        indptr = np.arange(len(query) + 1)
        columns = [paired_dots(x[query], self.doc_features_, indptr, doc) for x in self._translated]
        return np.stack(columns, axis=1) if columns else np.zeros((len(query), 0))

    def _take(self, factors: Factors) -> None:
        """The model of learned factors."""
        n_x, n_y = self.query_features_.shape[1], self.doc_features_.shape[1]
        self.match_weights_ = factors.b_g if self.biases else np.ones(len(self.matches_))
        total = sparse.csr_array((n_x, n_y), dtype=np.float32)
        for weight, match in zip(self.match_weights_, self.matches_, strict=True):
            total = total + np.float32(weight) * match
        self.match_ = sparse.csr_array(total)
        self.doc_bias_ = factors.b_y.astype(np.float32)
        ones = np.ones(self.dim)
        self.spaces_ = [Space(np.arange(n_x), np.arange(n_y), factors.u.copy(), factors.v.copy(), ones, 0.0)]
        self._forget()
        self._finish()

    # --- when to stop ----------------------------------------------------------------------------

    def _stop_early(self, graph: ClickGraph) -> int:
        """The number of passes after which nDCG@5 on held-back lists was best."""
        held = graph.hold_back(seed=self.seed)
        few = min(FEW_EPOCHS, self.epochs)
        if not held.graph.pairs.clicks.any():
            return few
        trial = type(self)(**self.get_params())
        trial.tuned_, trial.notes_ = {}, []
        trial.doc_ids_, trial.titles_ = self.doc_ids_, self.titles_
        trial._prepare(held.graph)
        self.tuned_ |= trial.tuned_
        descent = trial._descent()
        trial._take(descent.mean)
        lists = LabelledLists(held.lists([lambda query, k: trial.rank(query, k).doc_ids]))
        if len(lists) < MIN_USABLE:
            self.notes_.append(
                f"{self.name}: {len(lists)} usable held-back queries are too few to stop early; {few} epochs"
            )
            return few
        best, best_value = 0, trial._value(lists)
        for epoch in range(self.epochs):
            descent.epoch(trial._samples(held.graph, epoch))
            trial._take(descent.mean)
            value = trial._value(lists)
            if value > best_value:
                best, best_value = epoch + 1, value
            elif epoch + 1 - best >= PATIENCE:
                break
        self.notes_.append(f"{self.name}: {best} epochs (nDCG@5 {best_value:.3f} on {len(lists)} held-back lists)")
        return best

    def _value(self, lists: LabelledLists) -> float:
        return lists.ndcg(np.concatenate(self.score_lists(lists.lists)))

    # --- maps ------------------------------------------------------------------------------------

    def _blocks(self, features: sparse.csr_array) -> list[Images]:
        """A query's matching coordinates, and its latent ones with a 1 for the document's bias."""
        latent = self._apply(features, "q_columns", "l_x")
        there = (np.diff(features.indptr) > 0).astype(latent.dtype)
        return [sparse.csr_array(features @ self.match_), np.concatenate([latent, there[:, None]], axis=1)]

    def _doc_blocks(self, features: sparse.csr_array) -> list[Images]:
        latent = self._apply(features, "d_columns", "l_y")
        bias = np.asarray(features @ self.doc_bias_, dtype=latent.dtype)
        return [self._matching(features), np.concatenate([latent, bias[:, None]], axis=1)]

    def _matching(self, features: sparse.csr_array) -> sparse.csr_array:
        """Only features that some query feature matches."""
        used = np.zeros(features.shape[1], dtype=np.float32)
        used[self.match_.indices] = 1.0
        out = sparse.csr_array(features.multiply(used[None, :]), dtype=np.float32)
        out.eliminate_zeros()
        return out

    def _finish(self) -> None:
        self.scorable_ = np.diff(self.doc_features_.indptr) > 0

    @cached_property
    def _image_blocks(self) -> list[Images]:
        return self._doc_blocks(self.doc_features_)

    @cached_property
    def images_(self) -> Images:
        return beside(self._image_blocks)

    @cached_property
    def index(self) -> StackedIndex:
        return StackedIndex([make_index(block, self.scorable_) for block in self._image_blocks], self.scorable_)

    def map_queries(self, queries: Sequence[str]) -> Images:
        return beside(self._blocks(self.query_features(queries)))

    def map_lists(self, lists: Sequence[ResultList]) -> Images:
        vectors = brought_vectors(lists, [view.argument for view in self.q_views_.views if view.kind == "dense"])
        return self._blocks(self.query_features([query_of(result) for result in lists], vectors))

    def normaliser(self, queries: Images) -> Array:
        blocks = queries if isinstance(queries, list) else [queries]
        norms = np.sqrt(np.sum([row_norms(block) ** 2 for block in blocks], axis=0))
        return np.where(norms > 0, norms, 1.0)

    def map_new(self, documents: Sequence[Document]) -> Images:
        return beside(self._doc_blocks(self.new_features(documents)))

    def explain(self, query: str, doc_id: str, k: int = 10) -> Explanation:
        """Equal features that met, pairs of different ones, and the document's bias."""
        (number,) = self.doc_numbers([doc_id])
        x, y = self.query_features([query]), self.doc_features_[[number]]
        equal = (sparse.csr_array(x @ self.match_) * y).tocoo()
        names = [" ".join(part for part in self.d_views_.feature(int(c)) if part != "word") for c in equal.coords[1]]
        met = [(name, name, float(value), ()) for name, value in zip(names, equal.data, strict=True)]
        bias = float((y @ self.doc_bias_)[0])
        own = explanation(query, doc_id, [*met, *([("any", "bias", bias, ())] if bias else [])], k)
        return merge(query, doc_id, [("equal", 1.0, own), ("latent", 1.0, super().explain(query, doc_id, k))], k)

    # --- files -----------------------------------------------------------------------------------

    def _report(self) -> dict[str, Any]:
        return {**super()._report(), "residual": None, "epochs": self.tuned_["epochs"]}

    def _write_images(self, writer: PartWriter) -> None:
        """None: they follow from the factors, sparse and dense ones at once."""

    def _read_images(self, artifact: Artifact) -> None:
        """None, as written."""

    def _write(self, writer: PartWriter) -> None:
        super()._write(writer)
        writer.sparse("match", self.match_)
        writer.array("doc_bias", self.doc_bias_)

    def _read(self, artifact: Artifact) -> None:
        self.match_, self.doc_bias_ = artifact.sparse("match"), artifact.array("doc_bias")
        super()._read(artifact)


def matching(queries: ViewStack, docs: ViewStack) -> list[sparse.csr_array]:
    """For each pair of views that speak of the same features, which columns are the same one."""
    out = []
    shape = queries.width, docs.width
    for q_view, (q_start, _) in zip(queries.views, queries.spans, strict=True):
        for d_view, (d_start, _) in zip(docs.views, docs.spans, strict=True):
            one, two = _same_features(q_view, d_view)
            if len(one):
                parts = (np.ones(len(one), dtype=np.float32), (one + q_start, two + d_start))
                out.append(sparse.csr_array(sparse.coo_array(parts, shape=shape)))
    return out


def _same_features(q_view: View, d_view: View) -> tuple[Array, Array]:
    """Columns of both views for the same term, or the same number of the same vectors."""
    if q_view.kind == d_view.kind and isinstance(q_view, TermView) and isinstance(d_view, TermView) and q_view.of_text:
        shared = [
            (number, d_view.vocabulary_[t]) for t, number in q_view.vocabulary_.items() if t in d_view.vocabulary_
        ]
        pairs = np.array(shared, dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]
    if isinstance(q_view, DenseView) and q_view.name == d_view.name and q_view.width == d_view.width:
        return np.arange(q_view.width), np.arange(d_view.width)
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
