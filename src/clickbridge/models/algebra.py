"""The algebra of S-functions (Wu et al. 2011, Lemma 2): scaling, sum and product of fitted models, and
`Sum`, the model behind a spec like `bm25+pls`, whose weights are learned through `hold_back`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from clickbridge.errors import NotSupported, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import Array, Model, SFunction, model_of, order
from clickbridge.models.tuning import LabelledLists, coordinate_ascent
from clickbridge.types import Document, Ranking, ResultList

WEIGHT_GRID = (0.0, 0.03, 0.06, 0.12, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0, 16.0, 32.0)


class Scaled(SFunction):
    """factor * model: the factor goes into the query map (Lemma 2, (1))."""

    name = "scaled"
    about = "a model's scores times a number"
    paper = "11R Lemma 2"

    def __init__(self, model: SFunction, factor: float) -> None:
        self.model = model
        self.factor = factor
        _take_documents(self, model)

    def map_queries(self, queries: Sequence[str]) -> sparse.csr_array:
        return sparse.csr_array(self.model.map_queries(queries) * self.factor)

    def map_documents(self, documents: Sequence[Document | str]) -> sparse.csr_array:
        return self.model.map_documents(documents)


class Product(Model):
    """a * b: an S-function in the product of the two spaces (Lemma 2, (3)), too large to write its maps
    down; scores are exact."""

    name = "product"
    about = "the product of two models' scores"
    paper = "11R Lemma 2"

    def __init__(self, one: SFunction, two: SFunction) -> None:
        self.one = one
        self.two = two
        self.doc_ids_, self.titles_ = one.doc_ids_, one.titles_

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        pairs = zip(self.one.score_lists(lists), self.two.score_lists(lists), strict=True)
        return [_times(a, b) for a, b in pairs]

    def rank(self, query: str, k: int = 10) -> Ranking:
        scores = self.score(query, self.doc_ids_)
        best = order(self.doc_ids_, scores)
        return Ranking(tuple(hit for hit in best[:k] if np.isfinite(hit.score)))


class Sum(SFunction):
    """a + b + …: maps side by side (Lemma 2, (2)). Each part's query map is divided by a query-only
    normaliser and multiplied by its weight."""

    name = "sum"
    about = "a weighted sum of S-functions"
    paper = "11R Lemma 2"

    def __init__(self, parts: Sequence[SFunction], weights: str = "auto", seed: int = 0) -> None:
        self.parts = list(parts)
        self.weights = weights
        self.seed = seed

    weights_: Array

    @property
    def spec(self) -> str:
        return "+".join(part.spec for part in self.parts)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"weights": self.weights, "seed": self.seed}

    def _fit(self, graph: ClickGraph) -> None:
        for part in self.parts:
            if not isinstance(part, SFunction):
                raise NotSupported(f"{part.name} is not an S-function: it cannot be part of the sum {self.spec}")
        self.weights_ = self._learn(graph) if self.weights == "auto" else self._parse()
        for part in self.parts:
            part.fit(graph)
            self.notes_ += part.notes_
        self._stack()

    def _parse(self) -> Array:
        try:
            weights = np.array([float(w) for w in self.weights.split(",")])
        except ValueError:
            weights = np.empty(0)
        if len(weights) != len(self.parts) or not np.isfinite(weights).all():
            raise SettingError(f"weights of {self.spec} are {len(self.parts)} numbers, as 1,0.5; got {self.weights!r}")
        return weights

    def _learn(self, graph: ClickGraph) -> Array:
        """Weights by nDCG@5 on held-back lists, the parts fitted on the rest."""
        held = graph.hold_back(seed=self.seed)
        for part in self.parts:
            part.fit(held.graph)
        rankers = [lambda query, k, part=part: part.rank(query, k).doc_ids for part in self.parts]
        lists = LabelledLists(held.lists(rankers))
        start = np.ones(len(self.parts))
        if len(lists) < MIN_USABLE:
            self.notes_.append(f"{self.spec}: {len(lists)} usable held-back queries are too few; weights are equal")
            return start
        columns = np.stack([self._normalised(part, lists.lists) for part in self.parts], axis=1)
        weights, found = coordinate_ascent(start, WEIGHT_GRID, lambda w: lists.ndcg(columns @ w))
        words = ", ".join(f"{p.spec}:{w:.3g}" for p, w in zip(self.parts, weights, strict=True))
        self.notes_.append(f"weights {words} (nDCG@5 {found:.3f} on {len(lists)} held-back lists)")
        return weights

    @staticmethod
    def _normalised(part: SFunction, lists: list[ResultList]) -> Array:
        """Scores over the normaliser, end to end; what a part cannot score adds nothing."""
        norms = part.normaliser(part.map_queries([r.query for r in lists]))
        scores = [s / n for s, n in zip(part.score_lists(lists), norms, strict=True)]
        flat = np.concatenate(scores)
        return np.where(np.isfinite(flat), flat, 0.0)

    def _stack(self) -> None:
        self.images_ = sparse.csr_array(sparse.hstack([part.images_ for part in self.parts], format="csr"))
        self.scorable_ = np.logical_or.reduce([part.scorable_ for part in self.parts])

    def map_queries(self, queries: Sequence[str]) -> sparse.csr_array:
        maps = []
        for part, weight in zip(self.parts, self.weights_, strict=True):
            image = part.map_queries(queries)
            scale = weight / part.normaliser(image)
            maps.append(sparse.diags_array(scale) @ image)
        return sparse.csr_array(sparse.hstack(maps, format="csr"))

    def map_documents(self, documents: Sequence[Document | str]) -> sparse.csr_array:
        images = [part.map_documents(documents) for part in self.parts]
        return sparse.csr_array(sparse.hstack(images, format="csr"))

    def _report(self) -> dict[str, Any]:
        weights = {part.spec: float(w) for part, w in zip(self.parts, self.weights_, strict=True)}
        return {"weights": weights, "parts": [part.report_ for part in self.parts]}

    def _write(self, writer: PartWriter) -> None:
        writer.array("weights", self.weights_)
        for number, part in enumerate(self.parts):
            part._write_all(writer.part(str(number)))

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> Self:
        numbers = sorted(artifact.manifest["parts"], key=int)
        parts = [model_of(artifact.part(number)) for number in numbers]
        model = cls(parts, **artifact.manifest["params"])  # type: ignore[arg-type]
        model._restore(artifact)
        model.weights_ = artifact.array("weights")
        model._stack()
        return model


def _take_documents(target: SFunction, source: SFunction) -> None:
    target.doc_ids_, target.titles_ = source.doc_ids_, source.titles_
    target.images_, target.scorable_ = source.images_, source.scorable_


def _times(one: Array, two: Array) -> Array:
    both = np.isfinite(one) & np.isfinite(two)
    return np.where(both, np.where(both, one, 0.0) * np.where(both, two, 0.0), -np.inf)
