"""Query expansion, a baseline of Wu et al. 2011 (Section 7.2): BM25 with words added to the query.

The words are the title of the document most clicked for the query; for a query without clicks, those of the most
similar known query (cosine of words and character n-grams). They count `expansion_weight` of a typed word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.log.readers import LogRecord
from clickbridge.models.base import as_key, known_number
from clickbridge.models.lexical import BM25
from clickbridge.models.sfunction import stack_rows
from clickbridge.models.tuning import LabelledLists
from clickbridge.search.index import SparseIndex
from clickbridge.types import OPAQUE, Document, text_of_key
from clickbridge.views.stack import ViewStack
from clickbridge.views.view import Source, unit_rows

DEFAULT, GRID = 0.2, (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)


class Expansion(BM25):
    """BM25 over a longer query: the query map is the typed words' plus a share of the added words'."""

    name = "expansion"
    about = "BM25 with the query expanded by what was clicked or asked before"
    paper = "11R 7.2"
    settings: ClassVar[tuple[str, ...]] = ("expansion_weight", *BM25.settings)
    expansion_weight: str

    weight_: float = 0.0
    added_: list[str]
    """For each known query the words to add: the title of its most clicked document."""
    q_views_: ViewStack
    query_rows_: sparse.csr_array

    def _fit(self, graph: ClickGraph) -> None:
        self.weight_ = 0.0  # field weights are learned on the query as typed
        super()._fit(graph)
        if "expansion_weight" not in self.tuned_:
            self.tuned_["expansion_weight"] = self._choose_weight(graph)
        self._learn_words(graph)
        self.weight_ = self.tuned_["expansion_weight"]

    def _learn_words(self, graph: ClickGraph) -> None:
        clicks = graph.matrix(rows="queries")
        known = [graph.query_idx(key) if not key.startswith(OPAQUE) else None for key in self.query_keys_]
        rows = (clicks[[i]] if i is not None else None for i in known)
        best = [int(row.indices[np.argmax(row.data)]) if row is not None and row.nnz else -1 for row in rows]
        self.added_ = [self.titles_[doc] if doc >= 0 else "" for doc in best]
        self.q_views_ = ViewStack(["word", "char"], self.language, self.stop_words)
        texts = [text_of_key(key) for key in self.query_keys_]
        self.query_rows_ = unit_rows(self.q_views_.fit(Source({"query": texts}, len(texts))))
        self._forget()

    def _choose_weight(self, graph: ClickGraph) -> float:
        """nDCG@5 on held-back lists, words learned on the rest."""
        if self.expansion_weight != "auto":
            return self._parse_weight()
        held = graph.hold_back(seed=self.seed)
        self._learn_words(held.graph)
        lists = LabelledLists(held.lists([lambda query, k: self.rank(query, k).doc_ids]))
        if len(lists) < MIN_USABLE:
            self.notes_.append(f"{self.name}: too few held-back queries; added words count {DEFAULT}")
            return DEFAULT
        columns = []
        for self.weight_ in (0.0, 1.0):  # the score is linear in the weight
            scores = np.concatenate(self.score_lists(lists.lists))
            columns.append(np.where(np.isfinite(scores), scores, 0.0))
        values = [lists.ndcg(columns[0] + w * (columns[1] - columns[0])) for w in GRID]
        best = int(np.argmax(values))
        self.notes_.append(
            f"{self.name}: added words count {GRID[best]} (nDCG@5 {values[best]:.3f} on {len(lists)} held-back lists)"
        )
        return GRID[best]

    def _parse_weight(self) -> float:
        try:
            weight = float(self.expansion_weight)
        except ValueError:
            weight = -1.0
        if not 0 <= weight < np.inf:
            raise SettingError(f"expansion_weight must be auto or a number from 0; got {self.expansion_weight!r}")
        return weight

    def update(self, log: Iterable[LogRecord] = (), docs: Iterable[Document] = (), remove: Iterable[str] = ()) -> Self:
        """As BM25; a query that came later has no title of its own to add, only the words of queries like it."""
        super().update(log, docs, remove)
        fresh = self.query_keys_[len(self.added_) :]
        rows = self.q_views_.transform(Source({"query": [text_of_key(key) for key in fresh]}, len(fresh)))
        self.added_ = [*self.added_, *[""] * len(fresh)]
        self.query_rows_ = stack_rows([self.query_rows_, unit_rows(rows)])
        return self

    # --- expanding -------------------------------------------------------------------------------

    @cached_property
    def _query_numbers(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self.query_keys_)}

    @cached_property
    def _similar(self) -> SparseIndex:
        return SparseIndex(self.query_rows_)

    def added_words(self, queries: Sequence[str]) -> list[str]:
        """What expansion adds to each query; empty where nothing is known."""
        numbers = [known_number(self._query_numbers, query) for query in queries]
        out = [self.added_[n] if n >= 0 else "" for n in numbers]
        lacking = [i for i, words in enumerate(out) if not words]
        texts = [text_of_key(as_key(queries[i])) for i in lacking]
        rows = unit_rows(self.q_views_.transform(Source({"query": texts}, len(texts))))
        found, _, counts = self._similar.search(rows, 2)
        for i, near, n in zip(lacking, found, counts, strict=True):
            # The query itself, where it is known but unclicked, is no news.
            other = [int(j) for j in near[:n] if j != numbers[i]]
            key = self.query_keys_[other[0]] if other else ""
            out[i] = text_of_key(key)
        return out

    def map_queries(self, queries: Sequence[str]) -> sparse.csr_array:
        typed = super().map_queries(queries)
        if not self.weight_ or not len(queries):
            return typed
        return sparse.csr_array(typed + self.weight_ * super().map_queries(self.added_words(queries)))

    # --- files -----------------------------------------------------------------------------------

    def _report(self) -> dict[str, Any]:
        return {**super()._report(), "weights": {"added words": self.weight_}}

    def _write(self, writer: PartWriter) -> None:
        super()._write(writer)
        writer.array("expansion_weight", np.array([self.weight_]))
        writer.strings("added", self.added_)
        self.q_views_.write(writer, "q_views")
        writer.sparse("query_rows", self.query_rows_)

    def _read(self, artifact: Artifact) -> None:
        super()._read(artifact)
        self.weight_ = float(artifact.array("expansion_weight")[0])
        self.added_ = artifact.strings("added")
        self.q_views_ = ViewStack.read(artifact, "q_views", self.language, self.stop_words)
        self.query_rows_ = artifact.sparse("query_rows")
