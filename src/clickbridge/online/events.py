"""A GRAPH's clicks as events: a list of results, which of them were clicked, and how often that happened.

If the log has result pages, each is an event. A click without a page (from a table of clicks) becomes an event on the
list that the inner model finds for its query. If the clicked document is not on that list, it is added at the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.parts import Clicks, Impressions, Pairs
from clickbridge.models.candidates import Candidates, Query
from clickbridge.models.fitted import Fitted
from clickbridge.numerics.ragged import Ragged
from clickbridge.online.eigen import Lists

Array = np.ndarray[Any, Any]
NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Events:
    """Event e showed `docs[indptr[e]:indptr[e + 1]]`, in that order. `amounts` tells how often it happened."""

    ragged: Ragged
    docs: Array
    clicked: Array
    amounts: Array
    query: Array
    """Query numbers of the GRAPH."""
    user: Array

    def __len__(self) -> int:
        return len(self.ragged)

    @property
    def indptr(self) -> Array:
        return self.ragged.indptr

    @cached_property
    def ordering(self) -> Array:
        """Events with clicked and unclicked results. Only these say which result is better than another."""
        hits = self.ragged.sums(self.clicked > 0)
        return (hits > 0) & (hits < self.ragged.lengths)

    def with_clicks(self) -> Events:
        """Only the events of `ordering`."""
        return self.take(self.ordering)

    def take(self, keep: Array) -> Events:
        rows = self.ragged.kept_rows(keep)
        ragged = self.ragged.take(keep)
        return Events(
            ragged, self.docs[rows], self.clicked[rows], self.amounts[keep], self.query[keep], self.user[keep]
        )

    def in_order(self, inner: Fitted, keys: Sequence[str]) -> Events:
        """The same events, with the results in the order of the model. `keys` are those of all queries."""
        asked = [Query(keys[number]) for number in self.query.tolist()]
        order = self.ragged.order(inner.scores(Candidates(asked, self.ragged, self.docs)))
        return replace(self, docs=self.docs[order], clicked=self.clicked[order])


def events_of(graph: ClickGraph, found: Lists, top: int) -> Events:
    """All events of a GRAPH: pages in the order of time, then clicks without a page."""
    alone = graph.clicks if graph.clicks is not None or graph.impressions is not None else graph.pairs
    return events_from(graph.impressions, alone, found, top)


def events_from(
    pages: Impressions | None, alone: Clicks | Pairs | None, found: Lists, top: int, reachable: bool = False
) -> Events:
    """Clicks without a page, `alone`, become events on the lists of `found`. With `reachable`, clicks on documents that
    are not on their list are left out."""
    parts = []
    if pages is not None:
        parts.append(_shown(pages, top))
    if alone is not None:
        parts.append(_clicked(alone, found, reachable))
    return _joined(parts)


def _shown(pages: Impressions, top: int) -> Events:
    order = np.arange(len(pages)) if pages.time is None else np.argsort(pages.time, kind="stable")
    ragged, rows = Ragged(pages.indptr).rows_of(order, top)
    user = np.zeros(len(pages), dtype=np.uint64) if pages.user is None else pages.user
    return Events(
        ragged,
        pages.doc[rows].astype(np.int64),
        pages.clicked[rows].astype(np.float64),
        np.ones(len(pages)),
        pages.query[order].astype(np.int64),
        user[order],
    )


def _clicked(alone: Clicks | Pairs, found: Lists, reachable: bool) -> Events:
    when = getattr(alone, "time", None)
    user = getattr(alone, "user", None)
    order = np.arange(len(alone)) if when is None else np.argsort(when, kind="stable")
    query, doc = alone.query[order].astype(np.int64), alone.doc[order].astype(np.int64)
    ragged, docs = found.take(query)
    hits = docs == doc[ragged.owner]
    if not reachable:
        ragged, docs, hits = _with_last(ragged, docs, hits, doc, ragged.sums(hits) == 0)
    return Events(
        ragged,
        docs,
        hits.astype(np.float64),
        alone.clicks[order].astype(np.float64),
        query,
        np.zeros(len(alone), dtype=np.uint64) if user is None else user[order],
    )


def _with_last(ragged: Ragged, docs: Array, hits: Array, doc: Array, lacking: Array) -> tuple[Ragged, Array, Array]:
    """The lists, with the clicked document added at the end if it is missing."""
    out = Ragged.of_lengths(ragged.lengths + lacking)
    rows = np.ones(out.n_rows, dtype=bool)
    ends = out.indptr[1:][lacking] - 1
    rows[ends] = False
    all_docs, all_hits = np.empty(out.n_rows, dtype=np.int64), np.ones(out.n_rows, dtype=bool)
    all_docs[rows], all_docs[ends] = docs, doc[lacking]
    all_hits[rows] = hits
    return out, all_docs, all_hits


def _joined(parts: list[Events]) -> Events:
    if not parts:
        none = np.empty(0)
        return Events(Ragged(np.zeros(1, dtype=np.int64)), NOTHING, none, none, NOTHING, NOTHING.astype(np.uint64))
    rest = (
        np.concatenate([getattr(part, n) for part in parts]) for n in ("docs", "clicked", "amounts", "query", "user")
    )
    return Events(Ragged.of_lengths(np.concatenate([part.ragged.lengths for part in parts])), *rest)


# --- lists -----------------------------------------------------------------------------------------


def found_lists(graph: ClickGraph, inner: Fitted, top: int) -> Lists:
    """The inner model's best documents: one list for every query of the GRAPH. If the model cannot search, the lists
    are the pages of the log. If the log has no pages, they are each query's clicked documents, most clicks first."""
    if "search" in inner.abilities:
        found = [items for items, _ in inner.search_many([Query(key) for key in graph.query_keys], top)]
        return Lists(
            Ragged.of_lengths([len(items) for items in found]),
            np.concatenate([NOTHING, *found]).astype(np.int64),
            graph.n_docs,
        )
    if graph.impressions is not None:
        return Lists(Ragged(np.zeros(graph.n_queries + 1, dtype=np.int64)), NOTHING, graph.n_docs)
    return _clicked_lists(graph, top)


def _clicked_lists(graph: ClickGraph, top: int) -> Lists:
    pairs = graph.pairs
    by_clicks = np.lexsort((pairs.doc, -pairs.clicks, pairs.query))
    every = Ragged.of_lengths(np.bincount(pairs.query, minlength=graph.n_queries))
    ragged, rows = every.rows_of(np.arange(graph.n_queries), top)
    return Lists(ragged, pairs.doc[by_clicks][rows].astype(np.int64), graph.n_docs)


def distinct_lists(pages: Impressions | None, found: Lists, top: int) -> Lists:
    """Every list once, no matter how often it was shown, so that a popular query does not count many times."""
    shown = [] if pages is None else (pages.doc[a:b] for a, b in pairwise(pages.indptr))
    own = (found.pages[a:b] for a, b in pairwise(found.indptr))
    # As they came first: most pages are shown again and again in one order.
    orders = {listed[:top].tobytes(): listed[:top] for listed in (*shown, *own)}
    unique: dict[bytes, Array] = {}
    for listed in orders.values():
        # A page twice on one list is there once.
        once = np.unique(listed.astype(np.int64))
        if len(once):
            unique.setdefault(once.tobytes(), once)
    lengths = [len(listed) for listed in unique.values()]
    return Lists(Ragged.of_lengths(lengths), np.concatenate([NOTHING, *unique.values()]), found.n_pages)


def query_lists(pages: Impressions | None, found: Lists, top: int) -> Lists:
    """One list for each query (09, Section 4): the first page shown for it, or what the inner model finds. Two queries
    with the same results have two lists."""
    first: dict[int, Array] = {}
    if pages is not None:
        for query, (a, b) in zip(pages.query.tolist(), pairwise(pages.indptr), strict=True):
            first.setdefault(query, pages.doc[a:b])
    for query, (a, b) in enumerate(pairwise(found.indptr)):
        first.setdefault(query, found.pages[a:b])
    own = [np.unique(listed[:top].astype(np.int64)) for _, listed in sorted(first.items()) if len(listed)]
    lengths = [len(listed) for listed in own]
    return Lists(Ragged.of_lengths(lengths), np.concatenate([NOTHING, *own]), found.n_pages)


# --- who asked -------------------------------------------------------------------------------------


def query_hashes(keys: Sequence[str]) -> Array:
    """A 64-bit hash of each query."""
    return np.array([query_hash(key) for key in keys], dtype=np.uint64)


def query_hash(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode("utf8", "surrogatepass"), digest_size=8).digest(), "little")
