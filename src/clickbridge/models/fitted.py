"""A fitted model is a value: it is complete, it never changes, and any number of threads may use it.

The methods that users call are here; they translate texts and ids to numbers and back. A kind of model defines how it
scores one list (`score_items`) and, if it can, how it searches (`search`). `can` lists what else it can do.
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
from clickbridge.types import Document, Explanation, Hit, Ranking, ResultList, as_id, check_ids
from clickbridge.wording import count_of

if TYPE_CHECKING:
    from scipy import sparse

Array = np.ndarray[Any, Any]
Mapped: TypeAlias = "Array | sparse.csr_array"
"""What the map of an S-function gives: a row for each query or document, dense or sparse."""
ABILITIES = {
    "search": "finds documents in the whole collection",
    "maps": "is an S-function: a map for queries, one for documents, a dot product",
    "new queries": "scores queries that are not in the log",
    "update": "learns new clicks and documents without starting from scratch",
    "explain": "explains which features a score comes from",
    "similar queries": "finds queries that are similar to a given one",
    "similar documents": "finds documents that are similar to a given one",
}
"""What a model may be able to do; tables, docs and the service read it."""


@stored
@dataclass(frozen=True, kw_only=True)
class Choices:
    """What was chosen on held-back clicks before learning, and lines for the user about it. Each kind of model has a
    class of its own for this; it is saved with the model."""

    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """What a model learned, as an object that never changes: `model.fitted`.

    It has the methods of the model that need no learning: `rank`, `rerank`, `score`, `similar_queries`, `explain`. Any
    number of threads may use it at once, and it can be pickled. `fit` makes it.

    Parameters
    ----------
    model : str
        The name of the model that was fitted, such as "pls".
    settings : Settings
        The settings of the fit.
    catalogue : Catalogue
        The ids and titles of the documents.
    choices : Choices
        What was chosen on held-back clicks.
    queries : KnownQueries
        The queries of the log that the model learned from.
    notes : tuple of str
        Lines for the user about the fit.
    report : dict
        How long the fit took, how much memory it used, and more.
    display : Display
        Snippets and fields for showing results.
    applied : tuple of str
        SHA-256 checksums of the logs that were added by `update`.
    log : KeptLog, optional
        The log of the fit, kept if `update` has to learn again from it.

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
    """Snippets and fields for showing results. Only the whole model has them, not its parts."""
    applied: tuple[str, ...] = ()
    """SHA-256 checksums of the logs that were added by `update`."""
    log: KeptLog | None = field(default=None, repr=False)
    """The log of the fit, kept if `update` has to learn again from it. Only the whole model has it, not its parts."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Otherwise every dataclass below would print all of its arrays.
        type.__setattr__(cls, "__repr__", Fitted.__repr__)
        super().__init_subclass__(**kwargs)

    def __repr__(self) -> str:
        counts = f"{count_of(len(self.queries.keys), 'query')}, {count_of(len(self.doc_ids), 'document')}"
        return f"{type(self).__name__}({self.spec}: {counts})"

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
        """The model as the command line writes it, such as `bm25+pls`."""
        return self.model

    @property
    def doc_ids(self) -> list[str]:
        """The ids of all documents that the model knows. A document's position in this list is its number."""
        return self.catalogue.doc_ids

    @property
    def abilities(self) -> frozenset[str]:
        """What this model can do, such as search or explain. For a sum or a wrapper it depends on the parts."""
        return self.can

    def noted(self, **more: object) -> Self:
        """A copy with more entries in its report."""
        return self._with(report={**self.report, **more})

    def with_notes(self, *lines: str) -> Self:
        """A copy with more lines for the user. They come before the others."""
        notes = tuple(dict.fromkeys((*lines, *self.notes)))
        return self._with(notes=notes, report={**self.report, "notes": list(map(str, notes))})

    def describe(self) -> dict[str, object]:
        """Entries of the report that only this kind of model has."""
        return {}

    def check_stored(self) -> None:
        """Raises ValueError if arrays read from disk do not fit together. Compiled loops do not check bounds."""
        expect("clicks of queries", self.queries.clicks, (len(self.queries.keys),), "iuf")

    def warm(self) -> None:
        """Answers one query, so that everything is loaded and compiled before the first real one."""
        self.score(self.queries.keys[0] if len(self.queries) else "", self.catalogue.doc_ids[:1])

    # --- what a kind of model gives --------------------------------------------------------------

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        """Scores one list of documents, given by number (-1 for an unknown one); -inf where there is no score."""
        raise NotImplementedError

    def score_new(self, query: Query, documents: Sequence[Document]) -> Array:
        """Scores documents that the model does not know by their text; -inf where it cannot."""
        return np.full(len(documents), -np.inf)

    def scores(self, candidates: Candidates) -> Array:
        """Scores many lists. Returns one array, the lists one after the other."""
        given = candidates.incoming or [None] * len(candidates)
        parts = [self.score_items(q, items, own) for (q, items), own in zip(candidates.each(), given, strict=True)]
        return np.concatenate(parts) if parts else np.empty(0)

    def search(self, query: Query, k: int) -> Found:
        """Finds the k best documents of the collection: their numbers and scores."""
        raise NotSupported(f"{self.spec} re-ranks given lists; it cannot search the collection by itself")

    def search_each(self, queries: Sequence[Query], k: int) -> list[Found]:
        """Like `search`, for many queries, in this process."""
        return [self.search(query, k) for query in queries]

    def search_many(self, queries: Sequence[Query], k: int, engine: Engine | None = None) -> list[Found]:
        """Like `search`, for many queries. Each worker of an engine has the whole model and some of the queries."""
        if engine is None:
            return self.search_each(queries, k)
        return [found for part in engine.by_rows(_searched, len(queries), self, queries, k) for found in part]

    def falls_back(self, query: str) -> bool:
        """Whether the model knows nothing about this query and gives the answer of a simpler model.

        Takes and gives the same as `Model.falls_back`."""
        return False

    def contributions(self, query: str, doc_id: str, k: int) -> Contributions:
        """The k pairs of features that contribute most to a score, and the clicks they were learned from."""
        raise NotSupported(f"{self.spec} cannot explain its scores")

    def updated(self, change: Change, engine: Engine) -> Self:
        """A new fitted value that includes a change of clicks and documents. This one stays as it is."""
        raise NotSupported(f"{self.spec} cannot be updated: fit it again")

    # --- what users ask --------------------------------------------------------------------------

    def query(self, text: str) -> Query:
        """The query as an object that the internal methods take."""
        return Query(self.queries.key_of(text))

    def items(self, doc_ids: Sequence[str]) -> Array:
        """The numbers of these documents; -1 for an unknown one."""
        return self.catalogue.items(as_ids(doc_ids))

    def score(self, query: str, doc_ids: Sequence[str]) -> Array:
        """Scores documents for a query, in the order given; -inf for documents without a score.

        Takes and gives the same as `Model.score`."""
        return self.score_items(self.query(query), self.items(doc_ids))

    def score_documents(self, query: str, documents: Sequence[Document | str]) -> Array:
        """Scores documents, given as ids or as `Document` objects.

        Parameters
        ----------
        query : str
            What was typed.
        documents : sequence of str or Document
            A known document is scored as the model knows it, a new one by its text, if the model can do that.

        Returns
        -------
        array of float
            One score per document, in the same order; -inf for documents without a score.
        """
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
        """The most informative fields of documents. Text that comes without a field name is treated as theirs."""
        return frozenset()

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        """Scores many lists at once: one array of scores for each.

        Takes and gives the same as `Model.score_lists`."""
        candidates = Candidates.of(lists, self.catalogue, self.queries)
        return candidates.split(self.scores(candidates))

    def rerank(self, query: str, doc_ids: Sequence[str], scores: Sequence[float] | None = None) -> Ranking:
        """Sorts the given documents by their score. Equal scores keep their order; documents without one come last.

        Takes and gives the same as `Model.rerank`."""
        ids = as_ids(doc_ids)
        if scores is not None and len(scores) != len(ids):
            raise InputError(f"a list has one score for each result; got {len(scores)} for {len(ids)}")
        return order(ids, self.score_items(self.query(query), self.items(ids), scores), self.title)

    def rerank_lists(self, lists: Sequence[ResultList], *, engine: Engine | None = None) -> list[Ranking]:
        """Like `rerank`, for many lists at once. Each worker of an engine has the whole model and some of the lists.

        Takes and gives the same as `Model.rerank_lists`."""
        if engine is None:
            found = self.score_lists(lists)
        else:
            found = [scores for part in engine.by_rows(_scored, len(lists), self, lists) for scores in part]
        return [order(result.results, scores, self.title) for result, scores in zip(lists, found, strict=True)]

    def rank(self, query: str, k: int = 10) -> Ranking:
        """Searches the whole collection: the k best documents; empty if the model has no score for this query.

        Takes and gives the same as `Model.rank`."""
        check_k(k)
        return self.ranking(self.search(self.query(query), k))

    def rank_many(self, queries: Sequence[str], k: int = 10, *, engine: Engine | None = None) -> list[Ranking]:
        """Like `rank`, for many queries at once, on an engine if one is given.

        Takes and gives the same as `Model.rank_many`."""
        if isinstance(queries, str):
            raise InputError(f"queries must be a list of texts, such as [{queries!r}]; got the text {queries!r}")
        check_k(k)
        return [self.ranking(found) for found in self.search_many([self.query(q) for q in queries], k, engine)]

    def ranking(self, found: Found) -> Ranking:
        """Turns the numbers and scores of a search into a `Ranking` with ids and titles."""
        ids = self.catalogue.doc_ids
        hits = tuple(Hit(ids[i], s) for i, s in zip(found[0].tolist(), found[1].tolist(), strict=True))
        return Ranking(hits, self.title)

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        """Finds the queries of the log that are most similar to this one, with their similarity.

        Takes the same as `Model.similar_queries`, and gives a plain list of (query, similarity)."""
        raise NotSupported(f"{self.spec} has no similarity of queries")

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        """Finds the documents that are most similar to this one.

        Takes and gives the same as `Model.similar_documents`."""
        raise NotSupported(f"{self.spec} has no similarity of documents")

    def explain(self, query: str, doc_id: str, k: int = 10) -> Explanation:
        """Explains a score: which words or other features it comes from, and which clicks they were learned from.

        Takes and gives the same as `Model.explain`."""
        from clickbridge.models.explained_words import explained

        return explained(self, query, doc_id, self.contributions(query, doc_id, k))

    def map_queries(self, queries: Sequence[str]) -> Mapped:
        """Maps queries into the space of the S-function: one row per query.

        Takes and gives the same as `Model.map_queries`."""
        raise NotSupported(f"{self.spec} is not an S-function: it has no maps")

    def map_documents(self, documents: Sequence[Document | str]) -> Mapped:
        """Maps documents into the space of the S-function: one row per document.

        Takes and gives the same as `Model.map_documents`."""
        raise NotSupported(f"{self.spec} is not an S-function: it has no maps")

    def title(self, doc_id: str) -> str:
        """The title to show next to a document's id; empty if the model has none.

        Takes and gives the same as `Model.title`."""
        return self.catalogue.title(doc_id)


def _searched(engine: Engine, start: int, stop: int, fitted: Fitted, queries: Sequence[Query], k: int) -> list[Found]:
    return fitted.search_each(queries[start:stop], k)


def _scored(engine: Engine, start: int, stop: int, fitted: Fitted, lists: Sequence[ResultList]) -> list[Array]:
    return fitted.score_lists(lists[start:stop])


def as_ids(doc_ids: Sequence[Any]) -> list[str]:
    """Ids as text. Integers become their digits."""
    check_ids("doc_ids", doc_ids)
    return [as_id(doc_id) for doc_id in doc_ids]


def check_k(k: object) -> None:
    if not isinstance(k, int | np.integer):
        raise SettingError(f"k must be a whole number; got {k!r}")
    if k < 1:
        raise SettingError(f"k must be at least 1; got {k}")


def order(doc_ids: Sequence[str], scores: Array, title: Callable[[str], str] | None = None) -> Ranking:
    """Sorts by score, highest first. Equal scores keep their order; documents without one (-inf) come last."""
    places = np.argsort(-scores, kind="stable").tolist()
    values = scores.tolist()
    return Ranking(tuple(Hit(doc_ids[i], values[i]) for i in places), title)
