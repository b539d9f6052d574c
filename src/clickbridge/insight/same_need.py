"""Queries with the same intent: the words and spellings that people typed before they clicked one document."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.people import people_by_query
from clickbridge.log.personal import redacted
from clickbridge.models.catalogue import Catalogue

MOSTLY = 0.6
"""The share of a query's clicks that must be on one document."""
LEAST_CLICKS = 2
SHOWN = 12


@dataclass(frozen=True)
class SameNeed:
    doc_id: str
    title: str
    clicks: int
    queries: tuple[str, ...]
    """The queries to show, those with the most clicks first."""
    all_queries: int


def same_need(graph: ClickGraph, *, min_users: int = 2, most: int = 200) -> list[SameNeed]:
    """Groups of two or more queries whose clicks are mostly on the same document; those with the most clicks first."""
    pairs, catalogue = graph.pairs, Catalogue.of(graph)
    total = np.bincount(pairs.query, pairs.clicks, minlength=graph.n_queries)
    enough = people_by_query(graph) >= min_users
    mostly = (pairs.clicks >= MOSTLY * total[pairs.query]) & (pairs.clicks >= LEAST_CLICKS) & enough[pairs.query]
    chosen = np.flatnonzero(mostly)
    chosen = chosen[np.lexsort((-pairs.clicks[chosen], pairs.doc[chosen]))]
    out = []
    for places in np.split(chosen, np.flatnonzero(np.diff(pairs.doc[chosen])) + 1):
        if len(places) < 2:
            continue
        doc = int(pairs.doc[places[0]])
        names = tuple(redacted(graph.query_names[int(q)]) for q in pairs.query[places[:SHOWN]])
        clicks = int(pairs.clicks[places].sum())
        out.append(SameNeed(graph.doc_ids[doc], catalogue.titles[doc], clicks, names, len(places)))
    return sorted(out, key=lambda need: -need.clicks)[:most]
