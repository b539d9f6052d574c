"""Lists to score, by document number: the input of every model. Ids and texts stay at the edge."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from clickbridge.errors import InputError
from clickbridge.models.catalogue import Catalogue, KnownQueries
from clickbridge.numerics.ndcg import ndcg_of_lists
from clickbridge.numerics.ragged import Ragged
from clickbridge.types import ResultList, query_key, text_of_key

Array = np.ndarray[Any, Any]
Vectors = Mapping[str, Sequence[float]]
NO_VECTORS: Vectors = {}
MEASURED_AT = 5
MOST_LISTS = 20_000
"""Lists that choices are made on; the mean nDCG of this many is known to three places, and more only cost time."""


class Query(NamedTuple):
    """A query: its key, and its dense vectors, if any."""

    key: str
    vectors: Vectors = NO_VECTORS


@dataclass(frozen=True)
class Candidates:
    """List i is `items[indptr[i]:indptr[i + 1]]` for `queries[i]`: numbers of documents, -1 for unknown ones."""

    queries: Sequence[Query]
    lists: Ragged
    items: Array
    incoming: Sequence[Sequence[float] | None] = field(default_factory=list)
    """Scores that the lists came with, where they did; empty where none did."""

    @classmethod
    def of(cls, lists: Sequence[ResultList], catalogue: Catalogue, known: KnownQueries) -> Candidates:
        ragged = Ragged.of_lengths([len(result.results) for result in lists])
        items = catalogue.items([doc_id for result in lists for doc_id in result.results])
        queries = [asked(result, known) for result in lists]
        incoming = [result.scores for result in lists]
        for result in lists:
            if result.scores is not None and len(result.scores) != len(result.results):
                counts = f"{len(result.scores)} for {len(result.results)}"
                raise InputError(f"a list has one score for each result; got {counts}")
        return cls(queries, ragged, items, incoming if any(s is not None for s in incoming) else [])

    @classmethod
    def one(cls, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Candidates:
        lists = Ragged(np.array([0, len(items)]))
        return cls([query], lists, items, [] if incoming is None else [incoming])

    def __len__(self) -> int:
        return len(self.queries)

    def each(self) -> Iterator[tuple[Query, Array]]:
        ends = self.lists.indptr.tolist()
        for query, start, stop in zip(self.queries, ends[:-1], ends[1:], strict=True):
            yield query, self.items[start:stop]

    def split(self, values: Array) -> list[Array]:
        """A column as one array for each list."""
        return np.split(values, self.lists.indptr[1:-1]) if len(self) else []

    def some(self, start: int, stop: int) -> Candidates:
        """Lists `start` to `stop`."""
        if (start, stop) == (0, len(self)):
            return self
        indptr = self.lists.indptr[start : stop + 1]
        items = self.items[indptr[0] : indptr[-1]]
        return Candidates(self.queries[start:stop], Ragged(indptr - indptr[0]), items, self.incoming[start:stop])

    def taking(self, keep: Array) -> Candidates:
        """The lists with those documents alone that `keep` marks."""
        lengths = self.lists.sums(keep).astype(np.int64)
        marked = zip(self.incoming, self.split(keep), strict=True) if self.incoming else ()
        incoming = [None if own is None else np.asarray(own)[some].tolist() for own, some in marked]
        return Candidates(self.queries, Ragged.of_lengths(lengths), self.items[keep], incoming)

    @property
    def keys(self) -> list[str]:
        return [query.key for query in self.queries]

    @property
    def texts(self) -> list[str]:
        """Query texts; empty for a query known by its id alone."""
        return [text_of_key(query.key) for query in self.queries]


def asked(result: ResultList, known: KnownQueries) -> Query:
    key = query_key(known.key_of(result.query), result.query_id) if result.query else query_key("", result.query_id)
    return Query(key, result.vectors or NO_VECTORS)


class Labelled:
    """Labelled lists that choices are made on.

    Results are shuffled first. Pages come in the order of some engine, and people click what is at the top. In that
    order, a model with many ties would look good just because it keeps the order. If there are more than `most` lists,
    a sample of that size is drawn, always the same.
    """

    def __init__(
        self, lists: Sequence[ResultList], catalogue: Catalogue, known: KnownQueries, most: int = MOST_LISTS
    ) -> None:
        usable = [result for result in lists if result.labels and max(result.labels) > 0]
        self.lists = [shuffled(result) for result in at_most(most, usable, seed=0)]
        self.candidates = Candidates.of(self.lists, catalogue, known)
        self.labels = np.array([label for r in self.lists for label in r.labels or ()], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.lists)

    def values(self, scores: Array) -> Array:
        """nDCG@5 of each list in the order of these scores."""
        return ndcg_of_lists(scores, self.labels, self.candidates.lists.indptr, MEASURED_AT)

    def ndcg(self, scores: Array) -> float:
        """The mean of `values`."""
        return float(np.nanmean(self.values(scores)))

    @cached_property
    def n_rows(self) -> int:
        return len(self.labels)


def at_most(n: int, lists: list[ResultList], seed: int) -> list[ResultList]:
    """All lists, or a random sample of `n` if there are more, in the order given."""
    if len(lists) <= n:
        return lists
    drawn = np.random.default_rng(seed).choice(len(lists), n, replace=False)
    return [lists[i] for i in np.sort(drawn)]


def shuffled(result: ResultList) -> ResultList:
    """The same list in an order that depends only on the query and the ids. The original order is kept as scores, for
    models that use it."""
    salt = zlib.crc32(result.query.encode())
    order = sorted(range(len(result.results)), key=lambda i: zlib.crc32(result.results[i].encode(), salt))
    labels = result.labels or []
    scores = result.scores or [float(-i) for i in range(len(labels))]
    return ResultList(
        result.query_id,
        result.query,
        [result.results[i] for i in order],
        [labels[i] for i in order],
        [scores[i] for i in order],
        result.vectors,
    )


def without_gaps(scores: Array, fill: float = 0.0) -> Array:
    """The scores, with `fill` in place of missing ones."""
    return np.where(np.isfinite(scores), scores, fill)


def behind(near: Array, first: Array, others: Array) -> Array:
    """The scores of one list. `first` are the scores of the documents marked in `near`. All others are ranked after
    those, by the scores `others` of the whole list. Documents without a score still have none."""
    out = np.full(len(near), -np.inf)
    out[near] = first
    rest = ~near & np.isfinite(others)
    if rest.any():
        least = np.min(first, where=np.isfinite(first), initial=0.0)
        out[rest] = least - 1.0 - (others[rest].max() - others[rest])
    return out
