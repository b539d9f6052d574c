"""The records that all parts of clickbridge use. Ids are text in the interface; integers are only used internally."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

from clickbridge.errors import InputError, shown
from clickbridge.frames import Table, Value, html_table, make_frame

Id = TypeVar("Id", str, str | None)


def as_id(value: Id) -> Id:
    """An id as text. A whole number, such as NumPy's, becomes its digits."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, str | Integral) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"an id is text, or a whole number; got {shown(value)}")


def as_ids(values: Sequence[str]) -> list[str]:
    """Ids as text; the same list if it holds only text already."""
    if type(values) is list and {*map(type, values)} <= {str}:
        return values
    return [as_id(value) for value in values]


def check_ids(what: str, ids: object) -> None:
    """Refuses a text where a list of ids is needed: it would be read letter by letter."""
    if isinstance(ids, str):
        raise InputError(f"{what} must be a list of document ids, such as [{ids!r}]; got the text {ids!r}")


@dataclass(slots=True)
class Impression:
    """One search: a query, the result page that was shown, and what was clicked.

    Parameters
    ----------
    query : str
        What was typed. Empty if the query has only a `query_id`.
    results : list of str, or None
        Ids of the documents in the order they were shown; None if that is not known.
    clicks : list of str
        Ids of the clicked documents, each once.
    query_id : str, optional
        The query's id, if it has no text.
    user : str, optional
        The id of the person who searched.
    time : float, optional
        The time of the search, in seconds since 1970.

    Examples
    --------
    >>> from clickbridge import Impression
    >>> Impression("ny pizza", ["d1", "d2"], ["d2"], user="u7").clicks
    ['d2']
    """

    query: str
    results: list[str] | None
    clicks: list[str]
    query_id: str | None = None
    user: str | None = None
    time: float | None = None

    def __post_init__(self) -> None:
        results, clicks = self.results, self.clicks
        for name, ids in () if type(clicks) is list is type(results) else (("results", results), ("clicks", clicks)):
            check_ids(f"{name} of a page", ids)
        self.results = None if results is None else as_ids(results)
        self.clicks, self.query_id = as_ids(clicks), as_id(self.query_id)


@dataclass(slots=True)
class PairCount:
    """One row of a table of clicks: a query, a document, and how often it was clicked (and shown).

    Use it for logs without result pages.

    Parameters
    ----------
    query, doc_id : str
        What was typed, and the id of the clicked document.
    clicks : int
        How often the document was clicked for this query.
    impressions : int, optional
        How often it was shown.
    query_id, user, time : optional
        As in `Impression`.

    Examples
    --------
    >>> from clickbridge import PairCount
    >>> PairCount("ny pizza", "d2", clicks=3).clicks
    3
    """

    query: str
    doc_id: str
    clicks: int = 1
    impressions: int | None = None
    query_id: str | None = None
    user: str | None = None
    time: float | None = None

    def __post_init__(self) -> None:
        self.doc_id, self.query_id = as_id(self.doc_id), as_id(self.query_id)


@dataclass(slots=True)
class Document:
    """A document: its id, its text by field and, if it has any, dense vectors by name.

    Parameters
    ----------
    doc_id : str
        The id of the document, as in the log.
    fields : mapping of str to str
        Text by field. If field weights are not learned, `title`, `name` and `heading` count more than other fields.
    vectors : mapping of str to sequence of float, optional
        Your own vectors by NAME, for views `dense:NAME`.

    Examples
    --------
    >>> from clickbridge import Document
    >>> Document("d2", {"title": "Pizza by the slice", "city": "Brooklyn"}).fields["title"]
    'Pizza by the slice'
    """

    doc_id: str
    fields: Mapping[str, str] = field(default_factory=dict)
    vectors: Mapping[str, Sequence[float]] | None = None

    def __post_init__(self) -> None:
        self.doc_id = as_id(self.doc_id)
        fields: object = self.fields
        if isinstance(fields, str):
            raise InputError(
                f"fields of document {self.doc_id!r} must be text by name, such as {{'title': 'Pizza'}}; got "
                f"{shown(fields)}"
            )


@dataclass(slots=True)
class Reject:
    """A line of the input that was left out, and why."""

    source: str
    line: int
    reason: str


class Hit(NamedTuple):
    """A document and its score, as a pair.

    Parameters
    ----------
    doc_id : str
        The id of the document.
    score : float
        Its score; -inf if it has none.

    Examples
    --------
    >>> from clickbridge import Hit
    >>> doc_id, score = Hit("d2", 3.5)
    >>> doc_id
    'd2'
    """

    doc_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Ranking(Sequence[Hit]):
    """A ranked list of documents, best first. It may be empty. It behaves like a list of (doc_id, score).

    It prints as a table, also in a notebook. `to_frame` gives that table as a data frame, with ranks and titles;
    `pandas.DataFrame(ranking)` has ids and scores alone.

    Parameters
    ----------
    hits : tuple of Hit
        Documents and their scores, best first.
    title : function of a str, optional
        The title of a document by its id.

    Examples
    --------
    >>> from clickbridge import Hit, Ranking
    >>> ranking = Ranking((Hit("d2", 3.5), Hit("d1", 1.25)), {"d2": "Pizza"}.get)
    >>> for doc_id, score in ranking:
    ...     print(doc_id, score)
    d2 3.5
    d1 1.25
    >>> ranking.doc_ids, ranking.titles
    (['d2', 'd1'], ['Pizza', ''])
    """

    hits: tuple[Hit, ...] = ()
    title: Callable[[str], str | None] | None = field(default=None, compare=False, repr=False)
    """The title of a document by its id. It is asked only when titles are: most rankings are used without."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has only the titles of its own documents, not all those of the model."""
        return Ranking, (self.hits, dict(zip(self.doc_ids, self.titles, strict=True)).get)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        return self.hits[i]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @property
    def doc_ids(self) -> list[str]:
        """The ids of the documents, best first."""
        return [hit.doc_id for hit in self.hits]

    @property
    def scores(self) -> list[float]:
        """The scores, highest first; -inf for a document without a score."""
        return [hit.score for hit in self.hits]

    @property
    def titles(self) -> list[str]:
        """The titles of the documents; empty if the model does not know a title."""
        return ["" if self.title is None else self.title(hit.doc_id) or "" for hit in self.hits]

    def rows(self) -> list[dict[str, Value]]:
        """The ranking as rows of a table.

        Returns
        -------
        list of dict
            One per document, with `rank`, `doc_id`, `score` and `title`.
        """
        shown = zip(self.hits, self.titles, strict=True)
        return [{"rank": i, "doc_id": h.doc_id, "score": h.score, "title": t} for i, (h, t) in enumerate(shown, 1)]

    def to_frame(self, kind: str | None = None) -> Table:
        """A data frame with one row per document.

        Parameters
        ----------
        kind : str, optional
            "pandas", "polars" or "arrow". By default pandas if it is installed, else Polars, else Arrow.

        Returns
        -------
        data frame
            With columns `rank`, `doc_id`, `score` and `title`.
        """
        rows = self.rows()
        return make_frame({name: [row[name] for row in rows] for name in ("rank", "doc_id", "score", "title")}, kind)

    def __str__(self) -> str:
        width = max((len(hit.doc_id) for hit in self.hits), default=0)
        lines = [f"{r['rank']:>4}  {r['doc_id']:<{width}}  {r['score']:10.4f}  {r['title']}" for r in self.rows()]
        return "\n".join(line.rstrip() for line in lines) or "no documents"

    __repr__ = __str__  # an interpreter shows what a notebook does

    def _repr_html_(self) -> str:
        return html_table(self.rows()) if self.hits else "<p>no documents</p>"


class SimilarQueries(list[tuple[str, float]]):
    """Queries and their similarity, most similar first: a list that shows as a table in a notebook."""

    def rows(self) -> list[dict[str, Value]]:
        """One dict per query, with `query` and `similarity`."""
        return [{"query": query, "similarity": similarity} for query, similarity in self]

    def to_frame(self, kind: str | None = None) -> Table:
        """A data frame with one row per query.

        Parameters
        ----------
        kind : str, optional
            "pandas", "polars" or "arrow". By default pandas if it is installed, else Polars, else Arrow.

        Returns
        -------
        data frame
            With columns `query` and `similarity`.
        """
        return make_frame({"query": [q for q, _ in self], "similarity": [s for _, s in self]}, kind)

    def _repr_html_(self) -> str:
        return html_table(self.rows()) if self else "<p>no similar queries</p>"


@dataclass(frozen=True, slots=True)
class FeaturePair:
    """A word of the query, as typed, a word of the document, and what the pair contributes to the score.

    Other features are described in words, too: "…izz…" are letters inside a word, "clicks after “ny pizza”" are clicks
    for another query.
    """

    query_feature: str
    doc_feature: str
    contribution: float
    share: float
    taught_by: tuple[str, ...] = ()
    model: str = ""
    """The part of a sum that it comes from."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a document has its score: a sum over pairs of a word of the query and a word of the document.

    It prints as a table.

    Parameters
    ----------
    query, doc_id : str
        The query as typed, and the id of the document.
    score : float
        The score that is explained.
    pairs : tuple of FeaturePair
        The strongest pairs. `pairs[i].taught_by` names the clicks that a pair was learned from.
    rest : float
        The sum of all other pairs.

    Examples
    --------
    >>> from clickbridge import PLS, example_graph
    >>> why = PLS(dim=10).fit(example_graph()).explain("nyc hotel", "hotels")
    >>> why.pairs[0].taught_by[0]
    'nyc hotel → Hotels in New York City'
    """

    query: str
    doc_id: str
    score: float
    pairs: tuple[FeaturePair, ...]
    rest: float

    def rows(self) -> list[dict[str, str]]:
        """One dict per pair: its share of the score, the two words, and the first of the clicks it was learned from."""
        return [
            {
                "share": f"{pair.share:.0%}",
                "typed": pair.query_feature,
                "met": pair.doc_feature,
                "taught by": next(iter(pair.taught_by), ""),
            }
            for pair in self.pairs
        ]

    def __str__(self) -> str:
        rows = [list(row.values()) for row in self.rows()]
        _, *wide = (max(map(len, column)) for column in zip(*rows, strict=True)) if rows else ("",)
        lines = (f"{share:>4}  {'  '.join(map(str.ljust, words, wide))}" for share, *words in rows)
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__  # an interpreter shows what a notebook does

    def _repr_html_(self) -> str:
        return html_table(self.rows())


def _numbers(values: list[float] | None) -> list[float] | None:
    return values if values is None or type(values) is list else [float(value) for value in values]


@dataclass(slots=True)
class ResultList:
    """A query with the results to re-rank: one line of a LISTS file.

    Parameters
    ----------
    query_id, query : str
        The query's id, as in runs and judgments, and its text.
    results : list of str
        Ids of the documents, in their incoming order.
    labels : list of float, optional
        Grades, one for each result; 0 means not relevant.
    scores : list of float, optional
        Scores of the search engine that made the list, one for each result.
    vectors : mapping of str to sequence of float, optional
        Dense vectors of the query by name.

    Examples
    --------
    >>> from clickbridge import ResultList
    >>> ResultList("q1", "ny pizza", ["d1", "d2"], labels=[0, 2]).results
    ['d1', 'd2']
    """

    query_id: str
    query: str
    results: list[str]
    labels: list[float] | None = None
    scores: list[float] | None = None
    vectors: Mapping[str, Sequence[float]] | None = None

    def __post_init__(self) -> None:
        check_ids("results of a list", self.results)
        self.query_id, self.results = as_id(self.query_id), as_ids(self.results)
        self.labels, self.scores = _numbers(self.labels), _numbers(self.scores)


LogRecord = Impression | PairCount | Document
"""What a log is read into."""


OPAQUE = "\x1f"
"""Prefix of the key of a query that has no text: normalised text can never contain it."""


def query_key(query: str, query_id: str | None) -> str:
    """The key of a query: its normalised text or, if it has none, its id as one opaque token."""
    return query or OPAQUE + (query_id or "")


def text_of_key(key: str) -> str:
    """The text of a query; empty if it has only an id."""
    return "" if key.startswith(OPAQUE) else key


def edge_name(key: str) -> str:
    """The name of a query as users see it: its text, or its id if it has no text."""
    return key.removeprefix(OPAQUE)
