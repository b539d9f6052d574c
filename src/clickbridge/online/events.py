"""A GRAPH's clicks as events of one kind: a list of results, which of them were clicked, how often that happened.

Where the log has result pages, those are the events. A click without a page (a table of clicks) happens on the
list that the inner model makes for its query, with the clicked document at the end where it is not on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.parts import Clicks, Impressions, Pairs
from clickbridge.models.base import Model
from clickbridge.online.eigen import Lists
from clickbridge.types import ResultList

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Events:
    """Event e showed `docs[indptr[e]:indptr[e + 1]]`, in that order; `amounts` is how often it happened."""

    indptr: Array
    docs: Array
    clicked: Array
    amounts: Array
    query: Array
    """Query numbers of the GRAPH."""
    user: Array

    def __len__(self) -> int:
        return len(self.amounts)

    def with_clicks(self) -> Events:
        """Only events on which something was clicked, and something not: others order nothing."""
        total = np.concatenate([[0], np.cumsum(self.clicked > 0)])
        hits = total[self.indptr[1:]] - total[self.indptr[:-1]]
        return self.take((hits > 0) & (hits < np.diff(self.indptr)))

    def take(self, keep: Array) -> Events:
        length = np.diff(self.indptr)
        shown = np.repeat(keep, length)
        indptr = np.concatenate([[0], np.cumsum(length[keep], dtype=np.int64)])
        return Events(
            indptr, self.docs[shown], self.clicked[shown], self.amounts[keep], self.query[keep], self.user[keep]
        )

    def in_order(self, model: Model, graph: ClickGraph) -> Events:
        """The same events, each in the order that the model gives its documents."""
        ids, keys = graph.doc_ids, graph.query_keys
        lists = [
            ResultList("", keys[int(query)], [ids[d] for d in self.docs[first:last]])
            for query, (first, last) in zip(self.query, pairwise(self.indptr), strict=True)
        ]
        scores = model.score_lists(lists)
        places = [np.argsort(-own, kind="stable") + first for own, first in zip(scores, self.indptr[:-1], strict=True)]
        order = np.concatenate(places) if places else np.empty(0, dtype=np.int64)
        return replace(self, docs=self.docs[order], clicked=self.clicked[order])


def searches(model: Model) -> bool:
    """Whether the model finds documents by itself; `given` and what is built on it alone do not."""
    inner = getattr(model, "parts", [])
    return type(model).rank is not Model.rank and all(searches(part) for part in inner)


def events_of(graph: ClickGraph, found: dict[int, Array], top: int) -> Events:
    """All that happened in a GRAPH: pages in the order of their time, then clicks without a page."""
    alone = graph.clicks if graph.clicks is not None or graph.impressions is not None else graph.pairs
    return events_from(graph.impressions, alone, found, top)


def events_from(
    pages: Impressions | None, alone: Clicks | Pairs | None, found: dict[int, Array], top: int, reachable: bool = False
) -> Events:
    """Clicks `alone` happen on the lists of `found`; with `reachable`, one that its list lacks is no click."""
    parts = []
    if pages is not None:
        parts.append(_shown(pages, top))
    if alone is not None:
        parts.append(_clicked(alone, found, reachable))
    return _joined(parts)


def _shown(pages: Impressions, top: int) -> Events:
    order = np.arange(len(pages)) if pages.time is None else np.argsort(pages.time, kind="stable")
    length = np.minimum(np.diff(pages.indptr)[order], top)
    indptr = np.concatenate([[0], np.cumsum(length, dtype=np.int64)])
    shown = np.repeat(pages.indptr[order] - indptr[:-1], length) + np.arange(indptr[-1])
    user = np.zeros(len(pages), dtype=np.uint64) if pages.user is None else pages.user
    return Events(
        indptr,
        pages.doc[shown].astype(np.int64),
        pages.clicked[shown].astype(np.float64),
        np.ones(len(pages)),
        pages.query[order].astype(np.int64),
        user[order],
    )


def _clicked(alone: Clicks | Pairs, found: dict[int, Array], reachable: bool) -> Events:
    nothing = np.empty(0, dtype=np.int64)
    when = getattr(alone, "time", None)
    user = getattr(alone, "user", None)
    order = np.arange(len(alone)) if when is None else np.argsort(when, kind="stable")
    docs, flags, ends = [], [], [0]
    for q, doc in zip(alone.query[order].tolist(), alone.doc[order].tolist(), strict=True):
        listed = found.get(q, nothing)
        if not reachable and doc not in listed:
            listed = np.append(listed, doc)
        docs.append(listed)
        flags.append(listed == doc)
        ends.append(ends[-1] + len(listed))
    return Events(
        np.array(ends, dtype=np.int64),
        np.concatenate([nothing, *docs]),
        np.concatenate([np.empty(0), *flags]),
        alone.clicks[order].astype(np.float64),
        alone.query[order].astype(np.int64),
        np.zeros(len(alone), dtype=np.uint64) if user is None else user[order],
    )


def _joined(parts: list[Events]) -> Events:
    if not parts:
        none = np.empty(0, dtype=np.int64)
        return Events(np.zeros(1, dtype=np.int64), none, np.empty(0), np.empty(0), none, none.astype(np.uint64))
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    rest = (
        np.concatenate([getattr(part, n) for part in parts]) for n in ("docs", "clicked", "amounts", "query", "user")
    )
    return Events(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), *rest)


def found_lists(graph: ClickGraph, inner: Model, top: int) -> dict[int, Array]:
    """The inner model's first documents for every query of the GRAPH. Where it cannot search, the log's pages are
    the lists, and where the log has none, what was clicked for a query, most clicked first."""
    if not searches(inner):
        return {} if graph.impressions is not None else _clicked_lists(graph.pairs, top)
    number = {doc_id: i for i, doc_id in enumerate(graph.doc_ids)}
    keys = list(graph.query_keys)
    out = {}
    for q, ranking in enumerate(inner.rank_many(keys, top)):
        out[q] = np.array([number[d] for d in ranking.doc_ids if d in number], dtype=np.int64)
    return out


def _clicked_lists(pairs: Pairs, top: int) -> dict[int, Array]:
    by_clicks = np.lexsort((pairs.doc, -pairs.clicks, pairs.query))
    query, doc = pairs.query[by_clicks], pairs.doc[by_clicks].astype(np.int64)
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    return {int(query[a]): doc[a : min(b, a + top)] for a, b in pairwise([*starts, len(query)])}


def distinct_lists(pages: Impressions | None, found: Iterable[Array], n_docs: int, top: int) -> Lists:
    """Every list once, however often it was shown: a popular query must not count as many."""
    shown = [] if pages is None else (pages.doc[a:b] for a, b in pairwise(pages.indptr))
    # As they came first: most pages are shown again and again in one order.
    orders = {listed[:top].tobytes(): listed[:top] for listed in (*shown, *found)}
    unique: dict[bytes, Array] = {}
    for listed in orders.values():
        # A page twice on one list is there once.
        once = np.unique(listed.astype(np.int64))
        if len(once):
            unique.setdefault(once.tobytes(), once)
    ends = np.cumsum([0, *(len(v) for v in unique.values())])
    return Lists(ends, np.concatenate([np.empty(0, dtype=np.int64), *unique.values()]), n_docs)


def query_hashes(keys: Sequence[str]) -> Array:
    """64 bits that stand for each query."""
    return np.array([query_hash(key) for key in keys], dtype=np.uint64)


def query_hash(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode("utf8", "surrogatepass"), digest_size=8).digest(), "little")
