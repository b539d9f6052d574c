"""Failing searches: those without a click or with clicks far down the page, and the documents clicked there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.people import people_by_query
from clickbridge.log.personal import redacted
from clickbridge.models.catalogue import Catalogue
from clickbridge.views.char import CharCounter
from clickbridge.views.word import Vocabulary

Array = np.ndarray[Any, Any]
ASKED = 3
"""The number of pages from which a search counts as frequent."""
RARELY = 0.1
"""A search is dead if a smaller share of its pages has a click."""
DEEP = 8.0
"""The mean rank from which clicks count as far down the page."""
LOW = 5.0
"""The mean rank of its clicks from which a document counts as buried."""
WORKS = 0.5
"""A search works if at least this share of its pages has a click."""
ALIKE = 0.3
BLOCK = 2000


@dataclass(frozen=True)
class DeadSearch:
    query: str
    asked: int
    clicked: int
    """The number of pages with a click."""
    place: float | None
    """The mean rank of the clicks; None if there are none."""
    people: int
    instead: str
    """The most similar query that works; empty if there is none."""


@dataclass(frozen=True)
class BuriedDocument:
    doc_id: str
    title: str
    query: str
    """The query with the most clicks on it."""
    clicks: int
    place: float
    """The mean rank of those clicks."""
    people: int


def dead_searches(graph: ClickGraph, *, min_users: int = 2, most: int = 200) -> list[DeadSearch]:
    """Frequent searches without clicks, or with clicks far down the page; the most frequent first. The log needs result
    pages."""
    if graph.impressions is None:
        return []
    pages = _PageFigures(graph)
    people = people_by_query(graph)
    never = pages.clicked < RARELY * pages.asked
    deep = pages.place >= DEEP
    chosen = np.flatnonzero((pages.asked >= ASKED) & (people >= min_users) & (never | deep))
    chosen = chosen[np.argsort(-pages.asked[chosen], kind="stable")][:most]
    works = np.flatnonzero((pages.clicked >= WORKS * pages.asked) & (pages.asked > 0) & (people >= min_users))
    near = nearest_queries(graph.query_texts, chosen, works)
    return [
        DeadSearch(
            redacted(graph.query_names[q]),
            int(pages.asked[q]),
            int(pages.clicked[q]),
            float(pages.place[q]) if pages.clicked[q] else None,
            int(people[q]),
            "" if other is None else redacted(graph.query_names[other]),
        )
        for q, other in zip(chosen.tolist(), near, strict=True)
    ]


def buried_documents(graph: ClickGraph, *, min_users: int = 2, most: int = 200) -> list[BuriedDocument]:
    """Documents that people clicked far down the page, with the query that has the most such clicks for each."""
    pages = graph.impressions
    if pages is None:
        return []
    lists, people, catalogue = pages.lists, people_by_query(graph), Catalogue.of(graph)
    on = np.flatnonzero(pages.clicked)
    queries, docs = np.asarray(pages.query)[lists.owner[on]].astype(np.int64), np.asarray(pages.doc)[on]
    places = on - np.asarray(pages.indptr)[lists.owner[on]] + 1
    pair, inverse = np.unique(queries * graph.n_docs + docs, return_inverse=True)
    clicks = np.bincount(inverse)
    mean = np.bincount(inverse, places) / clicks
    query, doc = pair // graph.n_docs, pair % graph.n_docs
    low = np.flatnonzero((mean >= LOW) & (clicks >= min_users) & (people[query] >= min_users))
    order = low[np.argsort(-clicks[low] * np.log(mean[low]), kind="stable")]
    out: dict[int, BuriedDocument] = {}
    for i in order.tolist():
        d, q = int(doc[i]), int(query[i])
        if d not in out and len(out) < most:
            name = redacted(graph.query_names[q])
            out[d] = BuriedDocument(
                graph.doc_ids[d], catalogue.titles[d], name, int(clicks[i]), float(mean[i]), int(people[q])
            )
    return list(out.values())


class _PageFigures:
    """For each query: its pages, those with a click, and the mean rank of its clicks."""

    def __init__(self, graph: ClickGraph) -> None:
        pages = graph.impressions
        assert pages is not None
        lists = pages.lists
        n, query = graph.n_queries, np.asarray(pages.query)
        on = np.flatnonzero(pages.clicked)
        owner = lists.owner[on]
        places = on - np.asarray(pages.indptr)[owner] + 1
        has_click = np.bincount(owner, minlength=len(pages)) > 0
        clicks = np.bincount(query[owner], minlength=n)
        self.asked = np.bincount(query, minlength=n)
        self.clicked = np.bincount(query[has_click], minlength=n)
        self.place = np.bincount(query[owner], places, minlength=n) / np.maximum(clicks, 1)


def nearest_queries(texts: Sequence[str], asked: Array, among: Array) -> list[int | None]:
    """For each query, the most similar query of `among` by character n-grams; None if there is none."""
    if not len(asked) or not len(among):
        return [None] * len(asked)
    counter = CharCounter(Vocabulary(), joined=True)
    rows = [_units(counter.count([texts[i] for i in numbers.tolist()])) for numbers in (asked, among)]
    width = max(matrix.shape[1] for matrix in rows)
    one, two = (sparse.csr_array((m.data, m.indices, m.indptr), shape=(m.shape[0], width)) for m in rows)
    out: list[int | None] = []
    for start in range(0, one.shape[0], BLOCK):
        likeness = sparse.csr_array(one[start : start + BLOCK] @ two.T)
        for i in range(likeness.shape[0]):
            begin, end = likeness.indptr[i], likeness.indptr[i + 1]
            found = [
                (float(v), int(among[j]))
                for v, j in zip(likeness.data[begin:end], likeness.indices[begin:end], strict=True)
                if int(among[j]) != int(asked[start + i])
            ]
            best = max(found, default=(0.0, -1))
            out.append(best[1] if best[0] >= ALIKE else None)
    return out


def _units(counts: sparse.csr_array) -> sparse.csr_array:
    matrix = sparse.csr_array(counts, dtype=np.float64)
    norms = np.sqrt(np.asarray(matrix.power(2).sum(axis=1)).ravel())
    matrix.data /= np.repeat(np.maximum(norms, 1e-12), np.diff(matrix.indptr))
    return matrix
