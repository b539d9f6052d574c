"""The contract of every model, and how one is saved and loaded.

scikit-learn's shape: the constructor only stores, `fit(graph)` learns and returns self. An S-function
(Wu et al. 2011, Definition 1) is one map for queries, one for documents, and a dot product; everything
else about it (scores, search, sums) follows from the two maps.
"""

from __future__ import annotations

import inspect
import resource
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from clickbridge.errors import ArtifactError, NotFitted, NotSupported, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.artifact import Artifact, ArtifactWriter, PartWriter, open_artifact
from clickbridge.log.clean import normalise_query
from clickbridge.log.readers import LogRecord
from clickbridge.settings import SETTINGS
from clickbridge.types import OPAQUE, Document, Explanation, Hit, Ranking, ResultList, query_key

Array = np.ndarray[Any, Any]
KIND = "model"

MODELS: dict[str, str] = {
    "given": "clickbridge.models.given:Given",
    "vsm": "clickbridge.models.lexical:VSM",
    "bm25": "clickbridge.models.lexical:BM25",
    "lmir": "clickbridge.models.lexical:LMIR",
    "cos-word": "clickbridge.models.cosine:CosWord",
    "cos-click": "clickbridge.models.cosine:CosClick",
    "lsi-dt": "clickbridge.models.lsi:LSIDocTerm",
    "lsi-qd": "clickbridge.models.lsi:LSIQueryDoc",
    "walk": "clickbridge.models.walk:Walk",
    "pls": "clickbridge.models.pls:PLS",
    "mpls": "clickbridge.models.mpls:MPLS",
    "rmls": "clickbridge.models.rmls:RMLS",
    "expansion": "clickbridge.models.expansion:Expansion",
    "pairwise": "clickbridge.skernel.pairwise:Pairwise",
    "ssi": "clickbridge.models.ssi:SSI",
    "bltm": "clickbridge.models.bltm:BLTM",
    "svdfeature": "clickbridge.models.svdfeature:SVDFeature",
}
"""Every model that a spec can name, and where it lives. Adding a line here adds a model."""
COMPOSITES: dict[str, str] = {
    "sum": "clickbridge.models.algebra:Sum",
    "linear": "clickbridge.fusion.linear:LinearSum",
}
"""What `a+b` becomes: the algebra's sum where every part is an S-function, else a sum of list scores."""
WRAPPERS: dict[str, str] = {
    "robust": "clickbridge.skernel.robust:Robust",
    "online": "clickbridge.online.reranker:Online",
    "rrf": "clickbridge.fusion.rrf:RRF",
    "mart": "clickbridge.fusion.mart:Mart",
}
"""What may stand before the colon of a spec, and where it lives; each derives from `wrapper.Wrapper`."""


def model_class(name: str) -> type[Model]:
    module, _, attribute = (MODELS | COMPOSITES | WRAPPERS)[name].partition(":")
    found: type[Model] = getattr(import_module(module), attribute)
    return found


def as_key(query: str) -> str:
    """A query's identity from its text; the key of a query known by id alone passes unchanged."""
    return query if query.startswith(OPAQUE) else normalise_query(query)


def known_number(numbers: Mapping[str, int], query: str) -> int:
    """A known query's number by its text or, where no text is like that, by its id; -1 for an unknown one."""
    key = as_key(query)
    return numbers.get(key, numbers.get(OPAQUE + key, -1))


class Model:
    """What every model can do. `name`, `about` and `paper` fill the table of `clickbridge models`."""

    name: ClassVar[str]
    about: ClassVar[str]
    paper: ClassVar[str]

    settings: ClassVar[tuple[str, ...]] = ()
    """Names in the settings table; each is a keyword of the constructor and an attribute."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Where a default differs from the table's."""

    notes_: list[str]
    doc_ids_: list[str]
    titles_: list[str]
    report_: dict[str, Any]
    watch: Callable[[str], None] = staticmethod(lambda line: None)
    """Is told what a long `fit` is doing; the command line shows it."""
    applied_: Sequence[str] = ()
    """SHA-256 of the logs that updates took in."""

    # --- settings --------------------------------------------------------------------------------

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" not in cls.__dict__ and cls.settings:
            keyword = inspect.Parameter.KEYWORD_ONLY
            parameters = [inspect.Parameter(n, keyword, default=cls.default(n)) for n in cls.settings]
            cls.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]

    def __init__(self, **params: Any) -> None:
        for name in self.settings:
            setattr(self, name, params.pop(name, self.default(name)))
        if params:
            raise TypeError(
                f"{type(self).__name__} has no setting {', '.join(params)}; it has {', '.join(self.settings)}"
            )

    @classmethod
    def default(cls, name: str) -> Any:
        return cls.defaults.get(name, SETTINGS[name].default)

    @classmethod
    def setting_names(cls) -> list[str]:
        return list(cls.settings)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.settings}

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

    if not TYPE_CHECKING:  # a checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Called for what is not there: before `fit`, all that is learned and what follows from it."""
            learned = (name.endswith("_") and not name.startswith("__")) or hasattr(type(self), name)
            if learned and "doc_ids_" not in self.__dict__:
                raise NotFitted(f"{self.spec} has learned nothing yet: fit it first")
            return object.__getattribute__(self, name)  # raises, with the reason that brought us here

    # --- learning --------------------------------------------------------------------------------

    def fit(self, graph: ClickGraph) -> Self:
        """Learns from the GRAPH and reports seconds and peak memory in `report_`."""
        self._check_params()
        self.tuned_ = {}
        self.applied_ = []
        return self.refit(graph)

    tuned_: dict[str, Any]
    """What `fit` chose through `hold_back`, kept by `refit`."""

    def refit(self, graph: ClickGraph) -> Self:
        """Learns anew with what was tuned before: how a part of a sum is fitted on everything."""
        start = time.perf_counter()
        self._forget()
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

    def _forget(self) -> None:
        """Drops what was derived from an earlier fit."""
        for name in [n for n in self.__dict__ if isinstance(getattr(type(self), n, None), cached_property)]:
            del self.__dict__[name]

    def _fit(self, graph: ClickGraph) -> None:
        raise NotImplementedError

    def _report(self) -> dict[str, Any]:
        return {}

    def plans(self, graph: ClickGraph) -> list[dict[str, Any]]:
        """What learning would cost, by each way it could be done, without doing it."""
        raise NotSupported(f"{self.spec} has one way to learn and no plan to choose; rmls has")

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
        raise NotSupported(f"{self.spec} re-ranks given lists; it cannot search the collection by itself")

    def rank_many(self, queries: Sequence[str], k: int = 10) -> list[Ranking]:
        return [self.rank(query, k) for query in queries]

    def falls_back(self, query: str) -> bool:
        """Whether the model has nothing of its own to say here and gives a simpler model's answer."""
        return False

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        """Known queries most like this one, with their similarity; itself left out. Queries with fewer
        than `min_clicks` clicks are never shown."""
        raise NotSupported(f"{self.spec} has no similarity of queries")

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        """Documents most like this one; itself left out."""
        raise NotSupported(f"{self.spec} has no similarity of documents")

    def explain(self, query: str, doc_id: str, k: int = 10) -> Explanation:
        """Which features carried the score, and what taught them."""
        raise NotSupported(f"{self.spec} cannot explain its scores")

    def update(self, log: Iterable[LogRecord] = (), docs: Iterable[Document] = (), remove: Iterable[str] = ()) -> Self:
        """Takes in new clicks and documents without learning from scratch."""
        raise NotSupported(f"{self.spec} cannot be updated: fit it again")

    def title(self, doc_id: str) -> str:
        number = self._doc_numbers.get(doc_id)
        return "" if number is None else self.titles_[number]

    # --- files -----------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        with ArtifactWriter(path, KIND) as writer:
            self._write_all(writer)
            writer.commit(**self._header())

    def _header(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "model": self.name,
            "params": self.get_params(),
            "report": self.report_,
            "applied": self.applied_,
        }

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
        model = cls(**cls._saved_params(artifact))
        model._restore(artifact)
        model._read(artifact)
        return model

    @classmethod
    def _saved_params(cls, artifact: Artifact) -> dict[str, Any]:
        params = artifact.manifest["params"]
        return {name: params[name] for name in cls.settings if name in params}

    def _restore(self, artifact: Artifact) -> None:
        """What every model has."""
        self.report_ = artifact.manifest["report"]
        self.applied_ = list(artifact.manifest.get("applied", []))
        self.tuned_ = {}
        self.notes_ = list(self.report_.get("notes", []))
        self.doc_ids_ = artifact.strings("doc_ids")
        self.titles_ = artifact.strings("titles")


def query_of(result: ResultList) -> str:
    return query_key(as_key(result.query), result.query_id)


def check_k(k: int) -> None:
    if k < 1:
        raise SettingError(f"k must be at least 1; got {k}")


def order(doc_ids: Sequence[str], scores: Array) -> Ranking:
    """By falling score; ties, and what has none (-inf, last), keep their incoming order."""
    places = np.argsort(-scores, kind="stable")
    return Ranking(tuple(Hit(doc_ids[i], float(scores[i])) for i in places))


def title_of(document: Document, longest: int = 120) -> str:
    """What to show of a document beside its id."""
    named = (document.fields.get(name) for name in ("title", "name", "heading"))
    text = next((text for text in named if text), next(iter(document.fields.values()), ""))
    return text[:longest].split("\n")[0]


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
    if name not in MODELS | COMPOSITES | WRAPPERS:
        raise ArtifactError(f"{artifact.path} is a {name!r} model, which this clickbridge does not know: update it")
    needed = ("params", "report", "parts") if name in COMPOSITES | WRAPPERS else ("params", "report")
    for key in needed:
        if not isinstance(artifact.manifest.get(key), dict):
            raise ArtifactError(f"the manifest of {artifact.path} has no {key}: fit the model again")
    return model_class(str(name)).from_artifact(artifact)


def every_model() -> Iterable[type[Model]]:
    return (model_class(name) for name in (*MODELS, *WRAPPERS))
