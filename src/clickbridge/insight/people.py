"""How many people stand behind a query: nothing that too few typed is shown to others."""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph

Array = np.ndarray[Any, Any]


def people_by_query(graph: ClickGraph) -> Array:
    """Different users of each query; where the log has no users, its pages, or its clicks where it has no pages."""
    queries, users = [], []
    for part in (graph.impressions, graph.clicks):
        if part is not None and part.user is not None:
            queries.append(np.asarray(part.query))
            users.append(np.asarray(part.user))
    if not queries:
        return uses_by_query(graph)
    known = np.concatenate(users) != 0
    both = np.stack([np.concatenate(queries).astype(np.uint64), np.concatenate(users)])[:, known]
    return np.bincount(np.unique(both, axis=1)[0].astype(np.int64), minlength=graph.n_queries)


def uses_by_query(graph: ClickGraph) -> Array:
    """How often each query was asked, as far as the log tells: its pages, or its clicks."""
    clicks = np.bincount(graph.pairs.query, graph.pairs.clicks, minlength=graph.n_queries)
    if graph.impressions is None:
        return clicks
    return np.maximum(np.bincount(graph.impressions.query, minlength=graph.n_queries), clicks)


def has_users(graph: ClickGraph) -> bool:
    parts = (graph.impressions, graph.clicks)
    return any(part is not None and part.user is not None for part in parts)
