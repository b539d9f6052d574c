"""Keeps some queries of a GRAPH, or what at least n people did, so that one person's searches are neither learned nor
shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.parts import Array, Clicks, Impressions
from clickbridge.graph.responses import kept_pairs
from clickbridge.graph.sums import pair_keys, sum_pairs
from clickbridge.numerics.ragged import Ragged


def of_several(graph: ClickGraph, min_users: int) -> ClickGraph:
    """The clicks on pairs with at least this many different users, and the queries that have such a pair.

    A clicked result whose pair has fewer users is removed from its page: left there without its click, it would look
    like a result that nobody wanted. A page without any click left is removed. Doing this twice changes nothing.
    """
    if min_users <= 1:
        return graph
    keep, _ = kept_pairs(graph.pairs, 1, min_users)
    common = pair_keys(graph.pairs.query[keep], graph.pairs.doc[keep])
    known = np.zeros(graph.n_queries, dtype=bool)
    known[graph.pairs.query[keep]] = True
    pages = None if graph.impressions is None else _pages(graph.impressions, known, common)
    clicks = None if graph.clicks is None else _clicks(graph.clicks, common)
    return of_queries(graph, known, pages, clicks)


def of_queries(graph: ClickGraph, keep: Array, impressions: Impressions | None, clicks: Clicks | None) -> ClickGraph:
    """A copy with only the queries in `keep`, with new numbers, and these events."""
    number = np.cumsum(keep) - 1
    if impressions is not None:
        impressions = replace(impressions, query=number[impressions.query].astype(np.int32))
    if clicks is not None:
        clicks = replace(clicks, query=number[clicks.query].astype(np.int32))
    keys = [key for key, kept in zip(graph.query_keys, keep.tolist(), strict=True) if kept]
    vectors = {
        name: {side: values[keep] if side == "query" else values for side, values in sides.items()}
        for name, sides in graph.vectors.items()
    }
    pairs = sum_pairs(impressions, clicks)
    return graph.like(queries=keys, pairs=pairs, impressions=impressions, clicks=clicks, vectors=vectors)


def _pages(pages: Impressions, known: Array, common: Array) -> Impressions:
    some = pages.take(known[pages.query])
    lists = some.lists
    on = some.clicked > 0
    rare = on & ~np.isin(pair_keys(some.query[lists.owner], some.doc), common)
    left = lists.sums(on & ~rare)
    whole = (left > 0) | (lists.sums(on) == 0)
    rows = ~rare
    shorter = Impressions(
        some.query,
        Ragged.of_lengths(lists.sums(rows).astype(np.int64)).indptr,
        some.doc[rows],
        some.clicked[rows],
        some.time,
        some.user,
    )
    return shorter.take(whole)


def _clicks(clicks: Clicks, common: Array) -> Clicks:
    return clicks.take(np.isin(pair_keys(clicks.query, clicks.doc), common))
