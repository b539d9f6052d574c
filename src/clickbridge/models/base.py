"""The contract of every model, and how one is saved and loaded.

scikit-learn's shape: the constructor only stores, `fit(graph)` learns and returns self. An S-function
(Wu et al. 2011, Definition 1) is one map for queries, one for documents, and a dot product; everything
else about it (scores, search, sums) follows from the two maps.
"""

from __future__ import annotations

import inspect
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from clickbridge.errors import ArtifactError, NotSupported, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.artifact import Artifact, ArtifactWriter, PartWriter, open_artifact
from clickbridge.log.clean import normalise_query
from clickbridge.search.index import SparseIndex
from clickbridge.settings import SETTINGS
from clickbridge.types import OPAQUE, Document, Hit, Ranking, ResultList, query_key

Array = np.ndarray[Any, Any]
KIND = "model"

MODELS: dict[str, str] = {
    "given": "clickbridge.models.given:Given",
    "vsm": "clickbridge.models.lexical:VSM",
    "bm25": "clickbridge.models.lexical:BM25",
    "lmir": "clickbridge.models.lexical:LMIR",
}
"""Every model that a spec can name, and where it lives. Adding a line here adds a model."""


def model_class(name: str) -> type[Model]:
    if name == "sum":
        from clickbridge.models.algebra import Sum

        return Sum
    module, _, attribute = MODELS[name].partition(":")
    found: type[Model] = getattr(import_module(module), attribute)
    return found


def as_key(query: str) -> str:
    """A query's identity from its text; the key of a query known by id alone passes unchanged."""
    return query if query.startswith(OPAQUE) else normalise_query(query)


class Model:
    """What every model can do. `name`, `about` and `paper` fill the table of `clickbridge models`."""

    name: ClassVar[str]
    about: ClassVar[str]
    paper: ClassVar[str]

    notes_: list[str]
    doc_ids_: list[str]
    titles_: list[str]
    report_: dict[str, Any]

    # --- settings --------------------------------------------------------------------------------

    @classmethod
    def setting_names(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters.values()
        return [p.name for p in parameters if p.name != "self" and p.kind is p.POSITIONAL_OR_KEYWORD]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.setting_names()}

    def set_params(self, **params: Any) -> Self:
        for name, value in params.items():
            if name not in self.setting_names():
                raise SettingError(f"{self.name} has no setting {name!r}; it has {', '.join(self.setting_names())}")
            setattr(self, name, SETTINGS[name].check(value) if name in SETTINGS else value)
        return self

    def _check_params(self) -> None:
        self.set_params(**self.get_params())

    @property
    def spec(self) -> str:
        return self.name

    # --- learning --------------------------------------------------------------------------------

    def fit(self, graph: ClickGraph) -> Self:
        """Learns from the GRAPH and reports seconds and peak memory in `report_`."""
        self._check_params()
        start = time.perf_counter()
        for derived in ("index", "_doc_numbers", "_frozen_counter"):
            self.__dict__.pop(derived, None)
        self.notes_ = []
        self.doc_ids_ = graph.doc_ids
        self.titles_ = titles_of(graph)
        self._fit(graph)
        self.report_ = {
            "spec": self.spec,
            "dim": None,
            "seconds": round(time.perf_counter() - start, 3),
            "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
            "density": None,
            "weights": None,
            "views": None,
            **self._report(),
            "notes": self.notes_,
        }
        return self

    def _fit(self, graph: ClickGraph) -> None:
        raise NotImplementedError

    def _report(self) -> dict[str, Any]:
        return {}

    # --- using -----------------------------------------------------------------------------------

    @cached_property
    def _doc_numbers(self) -> dict[str, int]:
        return {doc_id: number for number, doc_id in enumerate(self.doc_ids_)}

    def score(self, query: str, doc_ids: Sequence[str]) -> Array:
        """Scores in the same order; -inf for a document (or all, for a query) the model cannot score."""
        return self.score_lists([ResultList("", query, list(doc_ids))])[0]

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        """Scores of many lists at once."""
        raise NotImplementedError

    def rerank(self, query: str, doc_ids: Sequence[str], scores: Sequence[float] | None = None) -> Ranking:
        """Every given id exactly once: scored ones by score, ties and the unscored, last, as they came."""
        given = ResultList("", query, list(doc_ids), None, None if scores is None else list(scores))
        return self.rerank_lists([given])[0]

    def rerank_lists(self, lists: Sequence[ResultList]) -> list[Ranking]:
        return [order(result.results, scores) for result, scores in zip(lists, self.score_lists(lists), strict=True)]

    def rank(self, query: str, k: int = 10) -> Ranking:
        """The k best documents of the whole collection; may be empty."""
        raise NotSupported(f"{self.name} re-ranks given lists; it cannot search the collection by itself")

    def title(self, doc_id: str) -> str:
        number = self._doc_numbers.get(doc_id)
        return "" if number is None else self.titles_[number]

    # --- files -----------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        with ArtifactWriter(path, KIND) as writer:
            self._write_all(writer)
            writer.commit(**self._header())

    def _header(self) -> dict[str, Any]:
        return {"kind": KIND, "model": self.name, "params": self.get_params(), "report": self.report_}

    def _write_all(self, writer: PartWriter) -> None:
        writer.strings("doc_ids", self.doc_ids_)
        writer.strings("titles", self.titles_)
        self._write(writer)
        writer.header = self._header()

    def _write(self, writer: PartWriter) -> None:
        """Learned arrays into the artifact."""

    def _read(self, artifact: Artifact) -> None:
        """Learned arrays back."""

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> Self:
        model = cls(**artifact.manifest["params"])
        model._restore(artifact)
        model._read(artifact)
        return model

    def _restore(self, artifact: Artifact) -> None:
        """What every model has."""
        self.report_ = artifact.manifest["report"]
        self.notes_ = list(self.report_["notes"])
        self.doc_ids_ = artifact.strings("doc_ids")
        self.titles_ = artifact.strings("titles")


class SFunction(Model):
    """A model given by two maps. Subclasses give `map_queries`, `map_documents` and, after `fit`,
    `images_` (one row a document) and `scorable_`."""

    images_: sparse.csr_array
    scorable_: Array

    def map_queries(self, queries: Sequence[str]) -> sparse.csr_array:
        """One row a query; an empty row for a query the model cannot map."""
        raise NotImplementedError

    def map_documents(self, documents: Sequence[Document | str]) -> sparse.csr_array:
        """One row a document: a known id, or a new document by its text."""
        raise NotImplementedError

    def normaliser(self, queries: sparse.csr_array) -> Array:
        """What `a+b` divides each query's map by, so that weights mean the same for all queries."""
        norms = np.sqrt(np.asarray(queries.multiply(queries).sum(axis=1)).ravel())
        return np.where(norms > 0, norms, 1.0)

    @cached_property
    def index(self) -> SparseIndex:
        return SparseIndex(self.images_)

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        queries = self.map_queries([query_of(result) for result in lists])
        indptr = np.concatenate([[0], np.cumsum([len(result.results) for result in lists], dtype=np.int64)])
        number, total = self._doc_numbers.get, int(indptr[-1])
        items = np.fromiter((number(d, -1) for r in lists for d in r.results), dtype=np.int64, count=total)
        items[items >= 0] = np.where(self.scorable_[items[items >= 0]], items[items >= 0], -1)
        scores = self.index.score(queries, indptr, items)
        scores[np.repeat(np.diff(queries.indptr) == 0, np.diff(indptr))] = -np.inf
        return np.split(scores, indptr[1:-1]) if len(lists) else []

    def rank(self, query: str, k: int = 10) -> Ranking:
        return self.rank_many([query], k)[0]

    def rank_many(self, queries: Sequence[str], k: int = 10) -> list[Ranking]:
        items, scores, counts = self.index.search(self.map_queries(queries), k)
        return [
            Ranking(tuple(Hit(self.doc_ids_[i], float(s)) for i, s in zip(row[:n], values[:n], strict=True)))
            for row, values, n in zip(items, scores, counts, strict=True)
        ]


def query_of(result: ResultList) -> str:
    return query_key(as_key(result.query), result.query_id)


def order(doc_ids: Sequence[str], scores: Array) -> Ranking:
    """By falling score; ties, and what has none (-inf, last), keep their incoming order."""
    places = np.argsort(-scores, kind="stable")
    return Ranking(tuple(Hit(doc_ids[i], float(scores[i])) for i in places))


def titles_of(graph: ClickGraph, longest: int = 120) -> list[str]:
    """What to show of each document beside its id: its title, name or heading, else its first field."""
    names: list[str] = [name for name in ("title", "name", "heading") if name in graph.field_names]
    names += [name for name in graph.field_names if name not in names]
    out = [""] * graph.n_docs
    for name in names[:4]:
        if all(out):
            break
        out = [have or text[:longest].split("\n")[0] for have, text in zip(out, graph.field(name), strict=True)]
    return out


def load(path: str | Path) -> Model:
    """A saved model, memory-mapped."""
    return model_of(open_artifact(path, KIND))


def model_of(artifact: Artifact) -> Model:
    name = artifact.manifest.get("model")
    if name != "sum" and name not in MODELS:
        raise ArtifactError(f"{artifact.path} is a {name!r} model, which this clickbridge does not know: update it")
    return model_class(str(name)).from_artifact(artifact)


def every_model() -> Iterable[type[Model]]:
    return (model_class(name) for name in MODELS)


Progress = Callable[[str, int], None]
