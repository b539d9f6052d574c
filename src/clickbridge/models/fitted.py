"""A fitted model is a value: it is complete, it never changes, and any number of threads may use it.

Everything a user may ask is here, from texts and ids to numbers and back. A kind of model says how it scores one list
(`score_items`) and, where it can, how it searches (`search`), and what else it can do is data (`can`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.errors import InputError, NotSupported, SettingError
from clickbridge.io.values import expect, stored
from clickbridge.models.candidates import Candidates, Query
from clickbridge.models.catalogue import Catalogue, KnownQueries
from clickbridge.models.change import Change
from clickbridge.models.display import Display
from clickbridge.models.explain import Contributions
from clickbridge.models.kept_log import KeptLog
from clickbridge.search.index import Found
from clickbridge.settings import Settings
from clickbridge.types import Document, Explanation, Hit, Ranking, ResultList, check_ids

if TYPE_CHECKING:
    from scipy import sparse

Array = np.ndarray[Any, Any]
Mapped: TypeAlias = "Array | sparse.csr_array"
"""What the map of an S-function gives: a row for each query or document, dense or sparse."""
ABILITIES = {
    "search": "finds documents in the whole collection",
    "maps": "is an S-function: a map for queries, one for documents, a dot product",
    "new queries": "scores queries that the log does not hold",
    "update": "takes in new clicks and documents without learning from scratch",
    "explain": "says which features carried a score",
    "similar queries": "finds queries like a given one",
    "similar documents": "finds documents like a given one",
}
"""What a model may be able to do; tables, docs and the service read it."""


@stored
@dataclass(frozen=True, kw_only=True)
class Choices:
    """What was chosen through `hold_back` before learning, with the lines that say so. Each kind of model has its
    own record; it is saved with the model."""

    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """What a model learned: a value that answers and never changes. `model.fitted` is one.

    `model` is the name of the model that made it, under `settings` and `choices`; `notes` are lines for the user, and
    `report` says what fitting cost. Any number of threads may use it, and it can be pickled. It answers what the model
    answers: `rank`, `rerank`, `score`, `similar_queries`, `explain`.

    Examples
    --------
    >>> from clickbridge import BM25, example_graph
    >>> fitted = BM25().fit(example_graph()).fitted
    >>> fitted.rank("pizza", k=1).doc_ids
    ['oven']
    """

    can: ClassVar[frozenset[str]] = frozenset()

    model: str
    settings: Settings
    catalogue: Catalogue
    choices: Choices
    queries: KnownQueries = field(default_factory=KnownQueries.none)
    notes: tuple[str, ...] = ()
    report: dict[str, object] = field(default_factory=dict)
    display: Display = field(default_factory=Display)
    """For those who show results; only the whole model has it, not its parts."""
    applied: tuple[str, ...] = ()
    """SHA-256 of the logs that updates took in."""
    log: KeptLog | None = field(default=None, repr=False)
    """What it was learned from, where an update must learn again; only the whole model has it, not its parts."""

    def _derive(self, **values: Any) -> None:
        """Sets what follows from the fields, while the value is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _with(self, **values: Any) -> Self:
        """A copy that differs in fields from which nothing else follows."""
        out = copy.copy(self)
        out._derive(**values)
        return out

    @property
    def spec(self) -> str:
        """How the command line names the model."""
        return self.model

    @property
    def doc_ids(self) -> list[str]:
        """The documents that it knows, by number."""
        return self.catalogue.doc_ids

    @property
    def abilities(self) -> frozenset[str]:
        """What this model can do. For a model made of others it depends on its parts."""
        return self.can

    def noted(self, **more: object) -> Self:
        """The same model with more in its report."""
        return self._with(report={**self.report, **more})

    def with_notes(self, *lines: str) -> Self:
        """The same model with more lines for the user, said first."""
        notes = tuple(dict.fromkeys((*lines, *self.notes)))
        return self._with(notes=notes, report={**self.report, "notes": list(notes)})

    def describe(self) -> dict[str, object]:
        """What is worth reporting beyond seconds and memory."""
        return {}

    def check_stored(self) -> None:
        """Raises ValueError where stored arrays do not fit together: compiled loops do not check what they read."""
        expect("clicks of queries", self.queries.clicks, (len(self.queries.keys),), "iuf")

    def warm(self) -> None:
        """Answers one query, so that everything is loaded and compiled before the first real one."""
        self.score(self.queries.keys[0] if len(self.queries) else "", self.catalogue.doc_ids[:1])

    # --- what a kind of model gives --------------------------------------------------------------

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        """Scores of one list, -inf where there is none. Items may be -1: documents that are not known."""
        raise NotImplementedError

    def score_new(self, query: Query, documents: Sequence[Document]) -> Array:
        """Scores of documents that the model does not know, by their text; -inf where it cannot score them."""
        return np.full(len(documents), -np.inf)

    def scores(self, candidates: Candidates) -> Array:
        """Scores of many lists, end to end."""
        given = candidates.incoming or [None] * len(candidates)
        parts = [self.score_items(q, items, own) for (q, items), own in zip(candidates.each(), given, strict=True)]
        return np.concatenate(parts) if parts else np.empty(0)

    def search(self, query: Query, k: int) -> Found:
        """The k best documents of the collection, by number."""
        raise NotSupported(f"{self.spec} re-ranks given lists; it cannot search the collection by itself")

    def search_each(self, queries: Sequence[Query], k: int) -> list[Found]:
        """As `search`, for many queries, here and one after the other."""
        return [self.search(query, k) for query in queries]

    def search_many(self, queries: Sequence[Query], k: int, engine: Engine | None = None) -> list[Found]:
        """As `search`, for many queries. Each worker of an engine has the whole model and some of the queries."""
        if engine is None:
            return self.search_each(queries, k)
        return [found for part in engine.by_rows(_searched, len(queries), self, queries, k) for found in part]

    def falls_back(self, query: str) -> bool:
        """Whether the model knows nothing about this query and gives the answer of a simpler model."""
        return False

    def contributions(self, query: str, doc_id: str, k: int) -> Contributions:
        """The k pairs of features that carried most of a score, and what taught them."""
        raise NotSupported(f"{self.spec} cannot explain its scores")

    def updated(self, change: Change, engine: Engine) -> Self:
        """A new model that has taken in a change. This one stays as it is."""
        raise NotSupported(f"{self.spec} cannot be updated: fit it again")

    # --- what users ask --------------------------------------------------------------------------

    def query(self, text: str) -> Query:
        """A query by its key, as the code inside uses it."""
        return Query(self.queries.key_of(text))

    def items(self, doc_ids: Sequence[str]) -> Array:
        """Numbers of the documents of a list; -1 for one that is not known."""
        return self.catalogue.items(as_ids(doc_ids))

    def score(self, query: str, doc_ids: Sequence[str]) -> Array:
        """Scores in the same order; -inf for what has none."""
        return self.score_items(self.query(query), self.items(doc_ids))

    def score_documents(self, query: str, documents: Sequence[Document | str]) -> Array:
        """Scores of ids and of documents with text, in the same order. A known document is scored as the model knows
        it, a new one by its text where the model can; -inf for what has no score."""
        asked, items = self.query(query), self.items([d if isinstance(d, str) else d.doc_id for d in documents])
        return self._score_mixed(asked, items, documents)

    def _score_mixed(self, query: Query, items: Array, documents: Sequence[Document | str]) -> Array:
        scores = self.score_items(query, items)
        new = [(i, d) for i, d in enumerate(documents) if items[i] < 0 and isinstance(d, Document) and d.fields]
        if new:
            scores[[i for i, _ in new]] = self.score_new(query, [d for _, d in new])
        return scores

    @property
    def text_fields(self) -> frozenset[str]:
        """The most informative fields of documents, to which text without a field name is added."""
        return frozenset()

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        """Scores of many lists at once."""
        candidates = Candidates.of(lists, self.catalogue, self.queries)
        return candidates.split(self.scores(candidates))

    def rerank(self, query: str, doc_ids: Sequence[str], scores: Sequence[float] | None = None) -> Ranking:
        """Every given id exactly once, by falling score. Ties keep their order, and so do ids without a score, last."""
        ids = as_ids(doc_ids)
        if scores is not None and len(scores) != len(ids):
            raise InputError(f"a list has one score for each result; got {len(scores)} for {len(ids)}")
        return order(ids, self.score_items(self.query(query), self.items(ids), scores), self.title)

    def rerank_lists(self, lists: Sequence[ResultList], *, engine: Engine | None = None) -> list[Ranking]:
        """As `rerank`, for many lists at once. Each worker of an engine has the whole model and some of the lists."""
        if engine is None:
            found = self.score_lists(lists)
        else:
            found = [scores for part in engine.by_rows(_scored, len(lists), self, lists) for scores in part]
        return [order(result.results, scores, self.title) for result, scores in zip(lists, found, strict=True)]

    def rank(self, query: str, k: int = 10) -> Ranking:
        """The k best documents of the whole collection; may be empty."""
        check_k(k)
        return self.ranking(self.search(self.query(query), k))

    def rank_many(self, queries: Sequence[str], k: int = 10, *, engine: Engine | None = None) -> list[Ranking]:
        """As `rank`, for many queries at once, on an engine if one is given."""
        if isinstance(queries, str):
            raise InputError(f"queries must be a list of texts, such as [{queries!r}]; got the text {queries!r}")
        check_k(k)
        return [self.ranking(found) for found in self.search_many([self.query(q) for q in queries], k, engine)]

    def ranking(self, found: Found) -> Ranking:
        """What a search found, by id and with titles."""
        ids = self.catalogue.doc_ids
        hits = tuple(Hit(ids[i], s) for i, s in zip(found[0].tolist(), found[1].tolist(), strict=True))
        return Ranking(hits, self.title)

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        """Known queries that are most similar to this one, with their similarity, without itself."""
        raise NotSupported(f"{self.spec} has no similarity of queries")

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        """Documents that are most similar to this one, without itself."""
        raise NotSupported(f"{self.spec} has no similarity of documents")

    def explain(self, query: str, doc_id: str, k: int = 10) -> Explanation:
        """Which words of the query met which words of the document, and what taught it."""
        from clickbridge.models.explained_words import explained

        return explained(self, query, doc_id, self.contributions(query, doc_id, k))

    def map_queries(self, queries: Sequence[str]) -> Mapped:
        """The S-function's query map: one row per query."""
        raise NotSupported(f"{self.spec} is not an S-function: it has no maps")

    def map_documents(self, documents: Sequence[Document | str]) -> Mapped:
        """The S-function's document map: one row per document, which is a known id or a new `Document` with text."""
        raise NotSupported(f"{self.spec} is not an S-function: it has no maps")

    def title(self, doc_id: str) -> str:
        """What to show of a document next to its id; empty where nothing is known."""
        return self.catalogue.title(doc_id)


def _searched(engine: Engine, start: int, stop: int, fitted: Fitted, queries: Sequence[Query], k: int) -> list[Found]:
    return fitted.search_each(queries[start:stop], k)


def _scored(engine: Engine, start: int, stop: int, fitted: Fitted, lists: Sequence[ResultList]) -> list[Array]:
    return fitted.score_lists(lists[start:stop])


def as_ids(doc_ids: Sequence[Any]) -> list[str]:
    """Ids as text: whole numbers are taken as digits."""
    check_ids("doc_ids", doc_ids)
    return [doc_id if isinstance(doc_id, str) else _as_id(doc_id) for doc_id in doc_ids]


def _as_id(value: Any) -> str:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(int(value))
    raise InputError(f"a document id is text, or a whole number; got {value!r}")


def check_k(k: int) -> None:
    if k < 1:
        raise SettingError(f"k must be at least 1; got {k}")


def order(doc_ids: Sequence[str], scores: Array, title: Callable[[str], str] | None = None) -> Ranking:
    """By falling score; ties, and what has none (-inf, last), keep their incoming order."""
    places = np.argsort(-scores, kind="stable").tolist()
    values = scores.tolist()
    return Ranking(tuple(Hit(doc_ids[i], values[i]) for i in places), title)
