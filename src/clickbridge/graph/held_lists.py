"""Held-back clicks as lists with labels, on which models are tuned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from typing import Protocol

import numpy as np

from clickbridge.errors import InputError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.parts import Array, Impressions, Pairs
from clickbridge.graph.sums import sum_pairs
from clickbridge.numerics.ragged import Ragged
from clickbridge.types import ResultList

POOL = 50


class Ranked(Protocol):
    """The part of a Ranking that counts here."""

    @property
    def doc_ids(self) -> list[str]: ...


class RanksMany(Protocol):
    """A fitted model, as far as it is asked here."""

    def rank_many(self, queries: list[str], k: int, /) -> Sequence[Ranked]: ...


Ranker = RanksMany | Callable[[list[str], int], list[list[str]]]
"""A fitted model; or a function of query keys and k that gives the k best documents of each. All queries at once, so
that a model searches in one batch."""


@dataclass(frozen=True)
class HoldBack:
    """The result of `graph.hold_back`: the clicks that were held back, and the rest as a GRAPH.

    `lists` turns what was held back into labelled lists, to measure on.

    Parameters
    ----------
    graph : ClickGraph
        The rest, to learn from.
    by : str
        How the clicks were chosen: "time", "query" or "click".
    shown : Impressions, optional
        The held-back result pages. None if the log has no pages.
    clicked : Pairs, optional
        The held-back clicks without a page, counted for each query and document. None if the log has none.

    Examples
    --------
    >>> from clickbridge import example_graph
    >>> held = example_graph().hold_back(fraction=0.1)
    >>> held.by, len(held.lists())
    ('time', 6)
    """

    graph: ClickGraph
    by: str
    shown: Impressions | None
    clicked: Pairs | None

    def lists(
        self,
        rankers: Sequence[Ranker] = (),
        pool: int = POOL,
        *,
        pages: bool = True,
        missed: bool = True,
        at_most: int | None = None,
        seed: int = 0,
    ) -> list[ResultList]:
        """Labelled lists of what was held back.

        A held-back page with a click becomes a list in the order shown, with label 1 for clicked results and 0 for
        others. Without pages there is one list for each query: the best documents of the rankers and the clicked ones.
        Its labels are clicks, divided by those of the most clicked document. A list also has the dense vectors of its
        query, which models fitted on the rest do not know.

        Parameters
        ----------
        rankers : sequence of models or functions
            Fitted models, or functions of queries and a number of documents that return the ids of the best
            documents for each query. Their results are pooled. Needed if the log has no result pages.
        pool : int
            The number of documents from each ranker.
        pages : bool
            Use held-back pages if there are any.
        missed : bool
            Add clicked documents that no ranker found.
        at_most : int, optional
            If there are more pages or queries than this, draw a random sample.
        seed : int
            The random seed of the sample.

        Returns
        -------
        list of ResultList
        """
        if self.shown is not None and pages:
            return self._shown_lists(self.shown, at_most, seed)
        if not rankers and self.clicked is not None and len(self.clicked):
            raise InputError(
                "the log has no result pages: give models whose best documents are to be re-ranked, such as "
                "lists([BM25().fit(held.graph)])"
            )
        return list(self._pooled_lists(rankers, pool, missed, at_most, seed))

    def _shown_lists(self, shown: Impressions, at_most: int | None, seed: int) -> list[ResultList]:
        lists = shown.lists
        hits = lists.sums(shown.clicked)
        usable = _drawn(np.flatnonzero((hits > 0) & (hits < lists.lengths)), at_most, seed)
        own, rows = lists.rows_of(usable)
        ids = list(map(self.graph.doc_ids.__getitem__, shown.doc[rows].tolist()))
        labels = shown.clicked[rows].astype(float).tolist()
        queries = shown.query[usable]
        keys = map(self.graph.query_keys.__getitem__, queries.tolist())
        return [
            ResultList(str(page), key, ids[start:end], labels[start:end], vectors=vectors)
            for page, key, (start, end), vectors in zip(
                usable.tolist(), keys, pairwise(own.indptr.tolist()), self._vectors(queries), strict=True
            )
        ]

    def searches(self, at_most: int | None = None, seed: int = 0) -> list[ResultList]:
        """What a search of the whole collection should find: one list for each held-back query.

        Parameters
        ----------
        at_most : int, optional
            If there are more queries than this, draw a random sample.
        seed : int
            The random seed of the sample.

        Returns
        -------
        list of ResultList
            One list for each held-back query, with only its clicked documents. Labels are clicks, divided by those
            of the most clicked document.
        """
        held = self.clicked if self.shown is None else sum_pairs(self.shown, None)
        if held is None:
            return []
        by_query = Ragged(np.append(np.flatnonzero(np.diff(held.query, prepend=-1)), len(held)))
        # A row of a table may say that a document was shown and never clicked.
        drawn = _drawn(np.flatnonzero(by_query.sums(held.clicks)), at_most, seed)
        own, rows = by_query.rows_of(drawn)
        most = own.reduce(np.maximum, held.clicks[rows].astype(float))
        grades = (held.clicks[rows] / most[own.owner]).tolist()
        ids = list(map(self.graph.doc_ids.__getitem__, held.doc[rows].tolist()))
        starts = by_query.indptr[drawn]
        queries = held.query[starts]
        keys = map(self.graph.query_keys.__getitem__, queries.tolist())
        bounds = pairwise(own.indptr.tolist())
        return [
            ResultList(str(place), key, ids[start:end], grades[start:end], vectors=vectors)
            for place, key, (start, end), vectors in zip(
                starts.tolist(), keys, bounds, self._vectors(queries), strict=True
            )
        ]

    def _pooled_lists(
        self, rankers: Sequence[Ranker], pool: int, missed: bool, at_most: int | None, seed: int
    ) -> Iterator[ResultList]:
        searches = self.searches(at_most, seed)
        found = _pooled([search.query for search in searches], rankers, pool)
        for search, others in zip(searches, found, strict=True):
            grades = dict(zip(search.results, search.labels or (), strict=True))
            results = sorted({*grades, *others} if missed else {*others})
            labels = [grades.get(doc_id, 0.0) for doc_id in results]
            if 0 < np.count_nonzero(labels) < len(results):
                yield ResultList(search.query_id, search.query, results, labels, vectors=search.vectors)

    def times_asked(self, lists: Sequence[ResultList]) -> Array:
        """How often each list was searched for.

        Parameters
        ----------
        lists : sequence of ResultList
            Lists that the method `lists` gave.

        Returns
        -------
        array of float
            1 for a page; for a pooled list, the held-back clicks of its query. If only counts are known, one search may
            have led to clicks on several documents, so only the clicks on the most clicked document are counted.
        """
        if self.shown is not None or self.clicked is None:
            return np.ones(len(lists))
        held, count = self.clicked, np.zeros(self.graph.n_queries)
        (np.maximum if self.graph.clicks is None else np.add).at(count, held.query, held.clicks)
        return count[[int(held.query[int(result.query_id)]) for result in lists]]

    def _vectors(self, queries: Array) -> Iterator[dict[str, list[float]] | None]:
        """The dense vectors of each query, by name."""
        found = self.graph.vectors_of("query", queries)
        if not found:
            return repeat(None, len(queries))
        known = {name: np.asarray(~np.isnan(rows).any(axis=1)) for name, rows in found.items()}
        return (
            {name: rows[i].tolist() for name, rows in found.items() if known[name][i]} or None
            for i in range(len(queries))
        )


def _drawn(numbers: Array, at_most: int | None, seed: int) -> Array:
    """All numbers, or a random sample of `at_most` if there are more, in the order given."""
    if at_most is None or len(numbers) <= at_most:
        return numbers
    return numbers[np.sort(np.random.default_rng(seed).choice(len(numbers), at_most, replace=False))]


def _pooled(keys: list[str], rankers: Sequence[Ranker], pool: int) -> Iterator[Iterable[str]]:
    """What all rankers found for each query."""
    found = [_best(ranker, keys, pool) for ranker in rankers] if keys else []
    for lists in found:
        if len(lists) != len(keys):
            raise ValueError(f"a ranker must give one list for each of {len(keys)} queries; got {len(lists)}")
    return map(chain.from_iterable, zip(*found, strict=True)) if found else repeat((), len(keys))


def _best(ranker: Ranker, keys: list[str], k: int) -> list[list[str]]:
    if callable(ranker):
        return ranker(keys, k)
    return [ranking.doc_ids for ranking in ranker.rank_many(keys, k)]
