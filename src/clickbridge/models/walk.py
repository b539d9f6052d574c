"""The backward random walk on the click graph (Craswell and Szummer 2007, as in 13 and 11M).

The score of a document is the probability that a walk that ended at the query started at this document. Five steps,
self-transition .9. A query without clicks has no score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy import sparse

from clickbridge.io.values import stored
from clickbridge.models.candidates import Query
from clickbridge.models.click_memory import ClickMemory, FittedClickMemory
from clickbridge.models.fitted import Array, Fitted
from clickbridge.numerics.row import EMPTY, Row
from clickbridge.numerics.walk import Edges, backward_walk
from clickbridge.search.index import Found
from clickbridge.settings import ADVANCED, Counting, setting, settings
from clickbridge.types import Ranking

AT_ONCE = 64
"""Walks whose ends are held at a time: as many share the room for all nodes."""


@settings
class WalkSettings(Counting):
    steps: int = setting(5, "number of steps of the walk", 1, 100)
    self_transition: float = setting(0.9, "probability of staying at a node in a step", 0, 0.999999)
    threshold: float = setting(1e-6, "probabilities below this are dropped", 0, 1, group=ADVANCED)


@stored
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedWalk(FittedClickMemory):
    can: ClassVar[frozenset[str]] = frozenset({"search", "update", "similar queries", "similar documents"})

    settings: WalkSettings
    edges: Edges = field(init=False, repr=False)

    def __post_init__(self) -> None:
        clicks = self.responses
        both = sparse.csr_array(sparse.block_array([[None, clicks], [clicks.T, None]], format="csr"))
        self._derive(edges=Edges.of(both))

    def walks_from(self, nodes: Array) -> Iterator[Row]:
        """Where walks that ended at these nodes (queries first, then documents) may have started: probabilities that
        sum to 1 (with a uniform prior over starts)."""
        s = self.settings
        for first in range(0, len(nodes), AT_ONCE):
            rows = backward_walk(self.edges, nodes[first : first + AT_ONCE], s.self_transition, s.steps, s.threshold)
            for start, stop in pairwise(rows.indptr.tolist()):
                values = rows.data[start:stop]
                yield Row(rows.indices[start:stop], values / values.sum()) if stop > start else EMPTY

    def walk_from(self, node: int) -> Row:
        return next(self.walks_from(np.array([node])))

    def queries_from(self, node: int) -> Row:
        columns, values = self.walk_from(node)
        end = np.searchsorted(columns, len(self.queries))
        return Row(columns[:end], values[:end])

    def documents_from(self, node: int) -> Row:
        return self._documents(self.walk_from(node))

    def _documents(self, walked: Row) -> Row:
        start = np.searchsorted(walked.columns, len(self.queries))
        return Row(walked.columns[start:] - len(self.queries), walked.values[start:])

    # --- scores and search -----------------------------------------------------------------------

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        node = self.queries.number(query.key)
        if node < 0:
            return np.full(len(items), -np.inf)
        reached, values = self.documents_from(node)
        scores = np.zeros(len(items))
        if len(reached):
            place = np.minimum(np.searchsorted(reached, items), len(reached) - 1)
            scores = np.where(reached[place] == items, values[place], 0.0)
        return np.where(items >= 0, scores, -np.inf)

    def search(self, query: Query, k: int) -> Found:
        node = self.queries.number(query.key)
        return top(EMPTY if node < 0 else self.documents_from(node), k)

    def search_each(self, queries: Sequence[Query], k: int) -> list[Found]:
        nodes = np.array([self.queries.number(query.key) for query in queries], dtype=np.int64)
        walked = self.walks_from(nodes[nodes >= 0])
        return [top(EMPTY if node < 0 else self._documents(next(walked)), k) for node in nodes.tolist()]

    # --- similar queries and documents -----------------------------------------------------------

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        """Queries at which a walk that ended at this query is likely to have started."""
        node = self.queries.number(self.query(query).key)
        if node < 0:
            return []
        columns, values = self.queries_from(node)
        others = columns != node
        near, likeness = top(Row(columns[others], values[others]), len(columns))
        return self.queries.nearest(zip(near.tolist(), likeness.tolist(), strict=True), k, min_clicks)

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        number = self.catalogue.number(doc_id)
        columns, values = self.documents_from(len(self.queries) + number)
        others = columns != number
        return self.ranking(top(Row(columns[others], values[others]), k))


class Walk(ClickMemory):
    """A backward random walk on the click graph.

    A document's score is the probability that a random walk that ended at the query started at this document (Craswell
    and Szummer 2007). Words are not used, so only queries of the log have a score.

    Examples
    --------
    >>> from clickbridge import Walk, example_graph
    >>> model = Walk(steps=3).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['rooms', 'hotels', 'slice']
    """

    name = "walk"
    about = "backward random walk on the click graph"
    paper = "13 6.1.1, 11M"
    Settings = WalkSettings
    fitted_type: ClassVar[type[Fitted]] = FittedWalk


def top(row: Row, k: int) -> Found:
    """The k largest entries of a row; if several are equal, those with the lower column first."""
    order = np.lexsort((row.columns, -row.values))[:k]
    return row.columns[order].astype(np.int64), row.values[order].astype(np.float64)
