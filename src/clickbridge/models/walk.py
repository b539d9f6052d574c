"""The backward random walk on the click graph (Craswell and Szummer 2007, as in 13 and 11M).

How likely did a walk that ends at the query begin at this document? Five steps, self-transition .9. There
is no map for a query that was never clicked: it has no score.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import InputError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.responses import clicked_queries, responses
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import Array, as_key, check_k, known_number, query_of
from clickbridge.models.latent import COUNTING
from clickbridge.models.update import Updatable
from clickbridge.numerics.walk import backward_walk
from clickbridge.types import Hit, Ranking, ResultList, edge_name


class Walk(Updatable):
    """Known queries only; scores are probabilities over the nodes a walk may have begun at."""

    name = "walk"
    about = "backward random walk on the click graph"
    paper = "13 6.1.1, 11M"
    settings = ("steps", "self_transition", "threshold", *COUNTING)

    steps: int
    self_transition: float
    threshold: float

    def _fit(self, graph: ClickGraph) -> None:
        counted = responses(graph, **{name: getattr(self, name) for name in COUNTING})
        self.notes_ += counted.notes
        known = clicked_queries(graph, counted.matrix)
        self.query_keys_, self.query_clicks_, self.responses_ = known.keys, known.clicks, known.matrix

    def relearn(self) -> None:
        """A walk learns nothing beyond the clicks themselves."""

    @cached_property
    def _adjacency(self) -> sparse.csr_array:
        """Queries first, then documents."""
        clicks = self.responses_
        return sparse.csr_array(sparse.block_array([[None, clicks], [clicks.T, None]], format="csr"))

    def walk_from(self, nodes: Array) -> sparse.csr_array:
        """Start probabilities, each row summing to 1 (a uniform prior over starts)."""
        rows = backward_walk(self._adjacency, nodes, self.self_transition, self.steps, self.threshold)
        total = np.asarray(rows.sum(axis=1)).ravel()
        return sparse.csr_array(sparse.diags_array(1 / np.where(total > 0, total, 1.0)) @ rows)

    def _from_queries(self, queries: Sequence[str]) -> tuple[Array, sparse.csr_array]:
        """Which queries are known, and the walks of those."""
        numbers = np.array([known_number(self._query_numbers, q) for q in queries], dtype=np.int64)
        return numbers >= 0, self.walk_from(numbers[numbers >= 0])

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        known, walks = self._from_queries([query_of(result) for result in lists])
        places = np.cumsum(known) - 1
        n_queries, out = len(self.query_keys_), []
        for result, is_known, place in zip(lists, known, places, strict=True):
            scores = np.full(len(result.results), -np.inf)
            if is_known:
                row = walks[[place]].toarray()[0, n_queries:]
                numbers = [self._doc_numbers.get(doc_id, -1) for doc_id in result.results]
                scores = np.array([row[n] if n >= 0 else -np.inf for n in numbers])
            out.append(scores)
        return out

    def rank_many(self, queries: Sequence[str], k: int = 10) -> list[Ranking]:
        check_k(k)
        known, walks = self._from_queries(queries)
        docs = sparse.csr_array(walks[:, len(self.query_keys_) :])
        found = iter(_top(docs, k))
        return [
            Ranking(tuple(Hit(self.doc_ids_[i], s) for i, s in next(found))) if is_known else Ranking()
            for is_known in known
        ]

    def rank(self, query: str, k: int = 10) -> Ranking:
        return self.rank_many([query], k)[0]

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        """Queries from which a walk that ends here is likely to have begun."""
        known, walks = self._from_queries([query])
        if not known[0]:
            return []
        near = _top(sparse.csr_array(walks[:, : len(self.query_keys_)]), 4 * k + 50)[0]
        key = edge_name(as_key(query))
        shown = [(edge_name(self.query_keys_[i]), s) for i, s in near if self.query_clicks_[i] >= min_clicks]
        return [(name, s) for name, s in shown if name != key][:k]

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        n_queries = len(self.query_keys_)
        number = self._doc_numbers.get(doc_id)
        if number is None:
            raise InputError(f"no document {doc_id!r} in the model: check the id")
        near = _top(sparse.csr_array(self.walk_from(np.array([n_queries + number]))[:, n_queries:]), k + 1)[0]
        return Ranking(tuple(Hit(self.doc_ids_[i], s) for i, s in near if i != number)[:k])

    def _report(self) -> dict[str, Any]:
        return {"views": ["click"]}

    def _write(self, writer: PartWriter) -> None:
        writer.strings("queries", self.query_keys_)
        writer.array("query_clicks", self.query_clicks_)
        writer.sparse("responses", self.responses_)

    def _read(self, artifact: Artifact) -> None:
        self.query_keys_ = artifact.strings("queries")
        self.query_clicks_ = artifact.array("query_clicks")
        self.responses_ = artifact.sparse("responses")


def _top(rows: sparse.csr_array, k: int) -> list[list[tuple[int, float]]]:
    """The k largest entries of each row, ties to the lower column."""
    out = []
    for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        columns, values = rows.indices[start:stop], rows.data[start:stop]
        order = np.lexsort((columns, -values))[:k]
        out.append([(int(columns[i]), float(values[i])) for i in order])
    return out
