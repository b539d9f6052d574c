"""What the robust and the pairwise model share: from a GRAPH to kernels and preferences, and one small model for
each query that is asked (Wu et al. 2011, Section 6).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import InputError, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import Array, Model, as_key, check_k, order, query_of
from clickbridge.models.explain import Part, explanation
from clickbridge.models.sfunction import unit_images
from clickbridge.skernel.documents import DocumentKernel, view_rows
from clickbridge.skernel.families import PowerSeries, family
from clickbridge.skernel.material import TAUGHT_BY_CLICKS, Material, gather
from clickbridge.skernel.neighbourhood import Neighbourhood, Training, train
from clickbridge.skernel.similarity import QueryKernel
from clickbridge.skernel.tuning import Choice, parse_weights, tuned
from clickbridge.types import Explanation, Hit, Ranking, ResultList, edge_name
from clickbridge.views.view import Source

CACHED = 10_000
BASE = "base"
"""The document kernel that is the cosine of the base model's own images."""
TITLES = ("title", "name", "heading", "url")
KERNEL_SETTINGS = (
    "preference", "query_kernel", "click_kernel", "doc_kernel", "n_neighbours", "n_pairs", "ridge", "loss",
    "language", "seed",
)  # fmt: skip


class KernelModel(Model):
    """Subclasses say what multiplies the kernel: g of lists to score and of training points."""

    preference: str
    query_kernel: str
    click_kernel: str
    doc_kernel: str
    n_neighbours: str
    n_pairs: int
    ridge: str
    loss: str
    language: str
    seed: int

    choice_: Choice
    kernel_: QueryKernel
    doc_rows_: Any
    training_: Training
    query_clicks_: Array
    point_scores_: Array

    # --- learning --------------------------------------------------------------------------------

    def _fit(self, graph: ClickGraph) -> None:
        if not np.any(graph.pairs.clicks):
            raise InputError("no click is left to learn from: ingest a log with clicks")
        if "choice" not in self.tuned_:
            self.tuned_["choice"], note = tuned(self, graph)
            self.notes_.append(note)
        self.prepare(graph)
        self.adopt(self.tuned_["choice"])
        self.notes_.append(self._material.note)
        del self._graph, self._material, self._materials, self._doc_rows

    def prepare(self, graph: ClickGraph) -> None:
        """Everything that does not depend on the choice; `adopt` then costs little."""
        self._graph = graph
        self._materials: dict[frozenset[str], Material] = {}
        self._doc_rows: dict[str, Any] = {}

    def adopt(self, choice: Choice) -> None:
        """Scores go by this choice from now on."""
        weights = parse_weights(choice.query_kernel)
        parts = frozenset(name for name in TAUGHT_BY_CLICKS if weights.get(name, 0.0) > 0)
        if parts not in self._materials:
            self._materials[parts] = gather(self, self._graph, parts)
        self._material = self._materials[parts]
        if choice.doc_kernel not in self._doc_rows:
            self._doc_rows[choice.doc_kernel] = self.document_rows(self._graph, choice.doc_kernel)
        self.choice_ = choice
        self.kernel_ = self._material.kernel.with_weights(weights, self.click_kernel)
        self.doc_rows_ = self._doc_rows[choice.doc_kernel]
        self.training_, self.query_clicks_ = self._material.training, self._material.query_clicks
        self.point_scores_ = self._material.point_scores
        self._forget()

    def score_points(self, keys: Sequence[str], training: Training) -> Array:
        """What point_factors needs to know of every training point."""
        return np.empty(0)

    def document_rows(self, graph: ClickGraph, name: str) -> Any:
        """Unit rows of documents: `titles`, `words`, or views by name."""
        texts = {field: graph.field(field) for field in graph.field_names}
        if name == "titles":
            shown = [field for field in TITLES if field in texts] or list(texts)
            name = ",".join(f"word:{field}" for field in shown)
        terms = ["word"] if name == "words" else name.split(",")
        clicks = sparse.csr_array(graph.matrix(rows="queries").T)
        source = Source(texts, graph.n_docs, clicks, {"query": graph.query_texts}, graph.query_keys)
        return view_rows([term.strip() for term in terms], source, self.language)

    def doc_kernels(self, graph: ClickGraph) -> tuple[str, ...]:
        """What `doc_kernel=auto` chooses from; the first is the default."""
        return ("words", "titles") if graph.field_names else ("click",)

    # --- one model a query -----------------------------------------------------------------------

    def point_factors(self, points: Array) -> Array:
        """g of training points."""
        raise NotImplementedError

    def list_factors(self, lists: Sequence[ResultList]) -> list[Array]:
        """g of the lists' documents; -inf for a document without one."""
        raise NotImplementedError

    def without_neighbours(self, result: ResultList) -> Array:
        """Scores for a query that resembles no known one."""
        return np.full(len(result.results), -np.inf)

    @property
    def inner(self) -> PowerSeries:
        return family("product")

    @cached_property
    def documents(self) -> DocumentKernel:
        return DocumentKernel(self.doc_rows_)

    @cached_property
    def _cache(self) -> tuple[OrderedDict[Any, Neighbourhood | None], Lock]:
        return OrderedDict(), Lock()

    def neighbourhood(self, query: str) -> Neighbourhood | None:
        """The query's model, trained when first asked for; None where no known query resembles it. Kept until the
        model or a setting changes."""
        cache, lock = self._cache
        key = (as_key(query), self.n_pairs, self.loss, self.choice_)
        with lock:
            if key in cache:
                cache.move_to_end(key)
                return cache[key]
        made = self.train(query)
        with lock:
            cache[key] = made
            if len(cache) > CACHED:
                cache.popitem(last=False)
        return made

    def train(self, query: str) -> Neighbourhood | None:
        return train(
            query, self.kernel_, self.documents, self.training_, self.inner, self.point_factors,
            n_neighbours=int(self.choice_.n_neighbours), n_pairs=self.n_pairs, lam=self.choice_.ridge, loss=self.loss,
            prior=self.choice_.prior,
        )  # fmt: skip

    def falls_back(self, query: str) -> bool:
        """Whether no known query with a preference is like this one."""
        return not len(self.kernel_.neighbours(query, 1, self.training_.has_pairs)[0])

    # --- using -----------------------------------------------------------------------------------

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        inner, out = self.inner, []
        for result, factors in zip(lists, self.list_factors(lists), strict=True):
            model = self.neighbourhood(query_of(result))
            if model is None:
                out.append(self.without_neighbours(result))
                continue
            scores, known = np.full(len(factors), -np.inf), np.isfinite(factors)
            docs = np.array([self._doc_numbers.get(d, -1) for d in result.results], dtype=np.int64)[known]
            scores[known] = factors[known] * model.values(inner, self.documents, docs)
            out.append(scores)
        return out

    def candidates(self, query: str, k: int) -> list[str]:
        """Documents worth scoring: those of the neighbours' preferences."""
        model = self.neighbourhood(query)
        return [] if model is None else [self.doc_ids_[d] for d in model.docs]

    def rank(self, query: str, k: int = 10) -> Ranking:
        check_k(k)
        found = sorted(set(self.candidates(query, k)))
        ranked = order(found, self.score(query, found))
        return Ranking(tuple(hit for hit in ranked[:k] if np.isfinite(hit.score)))

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        """By k_Q: clicks and text together."""
        near, values = self.kernel_.neighbours(query, k + 1 if min_clicks <= 1 else len(self.kernel_.keys))
        own = edge_name(as_key(query))
        named = [(edge_name(self.kernel_.keys[i]), v) for i, v in zip(near, values.tolist(), strict=True)
                 if self.query_clicks_[i] >= min_clicks]  # fmt: skip
        return [(name, value) for name, value in named if name != own][:k]

    @cached_property
    def _doc_search(self) -> Any:
        from clickbridge.models.sfunction import make_index

        return make_index(self.doc_rows_, self.documents.present)

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        """By k_D."""
        number = self._doc_numbers.get(doc_id)
        if number is None:
            raise InputError(f"no document {doc_id!r} in the model: check the id")
        items, scores, counts = self._doc_search.search(unit_images(self.doc_rows_[[number]]), k + 1)
        near = zip(items[0, : counts[0]], scores[0, : counts[0]], strict=True)
        return Ranking(tuple(Hit(self.doc_ids_[i], float(s)) for i, s in near if i != number and s > 0)[:k])

    def explain(self, query: str, doc_id: str, k: int = 10) -> Explanation:
        """Which documents of which similar queries carried the score."""
        model, number = self.neighbourhood(query), self._doc_numbers.get(doc_id)
        if model is None or number is None:
            raise SettingError(f"{self.spec}: {query!r} resembles no known query; nothing to explain")
        factor = self.list_factors([ResultList("", query, [doc_id])])[0][0]
        k_d = self.documents.block(np.array([number]), model.docs)[0, model.doc_of_point]
        values = factor * self.inner(model.likeness, k_d) * model.weights
        names = [self.titles_[doc] or self.doc_ids_[doc] for doc in model.docs]
        parts: list[Part] = [
            (f"a query alike by {likeness:.2f}", names[doc], float(value), ())
            for likeness, doc, value in zip(model.likeness, model.doc_of_point, values, strict=True)
        ]
        return explanation(query, doc_id, [(query, "the base model", float(factor * model.prior), ()), *parts], k)

    # --- files -----------------------------------------------------------------------------------

    def _report(self) -> dict[str, Any]:
        return {
            **super()._report(),
            "views": list(parse_weights(self.choice_.query_kernel)),
            "weights": self.choice_.as_dict(),
        }

    def _write(self, writer: PartWriter) -> None:
        super()._write(writer)
        writer.strings("choice", self.choice_.as_strings())
        self.kernel_.write(writer, "queries")
        self.training_.write(writer, "training")
        writer.array("query_clicks", self.query_clicks_)
        writer.array("point_scores", self.point_scores_)
        if self.choice_.doc_kernel != BASE:
            writer.sparse("doc_rows", self.doc_rows_)

    def _read(self, artifact: Artifact) -> None:
        super()._read(artifact)
        self.choice_ = Choice.of_strings(artifact.strings("choice"))
        weights = parse_weights(self.choice_.query_kernel)
        self.kernel_ = QueryKernel(weights, self.click_kernel, self.language).read(artifact, "queries")
        self.training_ = Training.read(artifact, "training")
        self.query_clicks_ = artifact.array("query_clicks")
        self.point_scores_ = artifact.array("point_scores")
        if self.choice_.doc_kernel != BASE:
            self.doc_rows_ = artifact.sparse("doc_rows")
