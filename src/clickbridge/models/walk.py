"""The backward random walk on the click graph (Craswell and Szummer 2007, as in 13 and 11M).

The score of a document is the probability that a walk that ended at the query started at this document. Five steps,
self-transition .9. A query without clicks has no score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from clickbridge.io.values import stored
from clickbridge.models.candidates import Query
from clickbridge.models.click_memory import ClickMemory, FittedClickMemory
from clickbridge.models.fitted import Array, Fitted
from clickbridge.numerics.row import EMPTY, Row
from clickbridge.numerics.walk import _walk
from clickbridge.search.index import Found
from clickbridge.settings import ADVANCED, Counting, setting, settings
from clickbridge.types import Ranking


@settings
class WalkSettings(Counting):
    steps: int = setting(5, "number of steps of the walk", 1, 100)
    self_transition: float = setting(0.9, "probability of staying at a node in a step", 0, 0.999999)
    threshold: float = setting(1e-6, "probabilities below this are dropped", 0, 1, group=ADVANCED)


class Edges(NamedTuple):
    """The click graph in the form that the compiled walk needs: queries first, then documents."""

    indptr: Array
    indices: Array
    weights: Array
    out_weight: Array

    @classmethod
    def of(cls, clicks: sparse.csr_array) -> Edges:
        both = sparse.csr_array(sparse.block_array([[None, clicks], [clicks.T, None]], format="csr"))
        total = np.asarray(both.sum(axis=1)).ravel()
        return cls(both.indptr, both.indices, both.data.astype(np.float64), np.where(total > 0, total, 1.0))


@stored
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedWalk(FittedClickMemory):
    can: ClassVar[frozenset[str]] = frozenset({"search", "update", "similar queries", "similar documents"})

    settings: WalkSettings
    edges: Edges = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._derive(edges=Edges.of(self.responses))

    def walk_from(self, node: int) -> Row:
        """Where a walk that ended at a node may have started: probabilities that sum to 1 (with a uniform prior over
        starts)."""
        s = self.settings
        how = (np.array([node]), s.self_transition, s.steps, s.threshold, 0, 1)
        # The first call only counts.
        ends = np.zeros(2, dtype=np.int64)
        _walk(*self.edges, *how, ends, np.empty(0, np.int32), np.empty(0))
        columns, values = np.empty(int(ends[1]), np.int32), np.empty(int(ends[1]))
        if not len(columns):
            return EMPTY
        _walk(*self.edges, *how, ends, columns, values)
        order = np.argsort(columns)
        return Row(columns[order], values[order] / values.sum())

    def queries_from(self, node: int) -> Row:
        columns, values = self.walk_from(node)
        end = np.searchsorted(columns, len(self.queries))
        return Row(columns[:end], values[:end])

    def documents_from(self, node: int) -> Row:
        columns, values = self.walk_from(node)
        start = np.searchsorted(columns, len(self.queries))
        return Row(columns[start:] - len(self.queries), values[start:])

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
