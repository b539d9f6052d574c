"""How many people typed a query, and whether it names a person. Queries of too few people, and queries that name
someone, are not shown to others."""

from __future__ import annotations

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.parts import Array
from clickbridge.log.personal import looks_personal


def has_users(graph: ClickGraph) -> bool:
    return any(part is not None and part.user is not None for part in (graph.impressions, graph.clicks))


def users_by_query(graph: ClickGraph) -> Array:
    """The number of different users of each query; zeros if the log has no users."""
    pairs = [
        np.stack([part.query.astype(np.uint64), part.user], axis=1)
        for part in (graph.impressions, graph.clicks)
        if part is not None and part.user is not None
    ]
    if not pairs:
        return np.zeros(graph.n_queries, dtype=np.int64)
    both = np.unique(np.concatenate(pairs), axis=0)
    return np.bincount(both[both[:, 1] != 0, 0].astype(np.int64), minlength=graph.n_queries)


def names_a_person(graph: ClickGraph) -> Array:
    """Which queries contain an e-mail address, a phone number or the like and are hidden from others; none if the GRAPH
    was built with `redact=off`."""
    if graph.redact == "off":
        return np.zeros(graph.n_queries, dtype=bool)
    return np.fromiter(map(looks_personal, graph.query_texts), dtype=bool, count=graph.n_queries)


def people_by_query(graph: ClickGraph) -> Array:
    """The number of different users of each query. If the log has no users, how often the query was searched for, by
    its pages or its clicks."""
    if has_users(graph):
        return users_by_query(graph)
    clicks = np.bincount(graph.pairs.query, graph.pairs.clicks, minlength=graph.n_queries)
    if graph.impressions is None:
        return clicks
    return np.maximum(np.bincount(graph.impressions.query, minlength=graph.n_queries), clicks)
