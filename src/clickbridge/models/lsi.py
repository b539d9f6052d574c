"""Latent semantic indexing, on the document-term matrix and on the query-document click matrix (13, 6.1.1).

A = U S V'. Documents by words: the query is folded in by its words, score q' U S^p V'_d. Queries by
documents: score U_q S^p V'_d, for known queries only. p = `sv_power`: 0 in the papers, 1 in textbooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clickbridge.errors import MissingPart
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.responses import clicked_queries, responses
from clickbridge.models.base import Array
from clickbridge.models.latent import COUNTING, SEARCHING, LatentModel, Space
from clickbridge.models.tuning import document_field_weights
from clickbridge.numerics.csr import csr_times_dense
from clickbridge.numerics.svd import SVD, MatrixOperator, randomised_svd
from clickbridge.views.stack import ViewStack
from clickbridge.views.view import Source


class LSI(LatentModel):
    """What both share: one truncated decomposition."""

    dim: int
    sv_power: float
    precision: str

    def _decompose(self, matrix: sparse.csr_array, start: Array | None = None) -> SVD:
        """`start`: right vectors of an earlier decomposition to begin from."""
        dtype = np.dtype(self.precision)
        svd = randomised_svd(MatrixOperator(matrix, dtype), self.dim, seed=self.seed, dtype=dtype, start=start)
        if not len(svd.s):
            raise MissingPart(f"{self.name} needs document text with at least one word: ingest with --docs")
        clipped = f" (of {self.dim} asked for: the data has no more)" if len(svd.s) < self.dim else ""
        if start is None:
            self.notes_.append(f"{self.name}: dim {len(svd.s)}{clipped}, residual {svd.residual:.1e}")
        return svd

    def _put(self, l_x: Array, l_y: Array, svd: SVD) -> None:
        maps = [np.ascontiguousarray(m, dtype=np.float32) for m in (l_x, l_y)]
        columns = [np.arange(len(m), dtype=np.int32) for m in maps]
        self.spaces_ = [Space(columns[0], columns[1], maps[0], maps[1], svd.s, svd.residual)]
        self._finish()
        self.prepare_search()


class LSIDocTerm(LSI):
    """A = documents by words, transposed: any query is folded in by its words."""

    name = "lsi-dt"
    about = "latent semantic indexing of documents by their words"
    paper = "13 6.1.1"
    settings = ("dim", "sv_power", "precision", "fields", "language", "stop_words", *SEARCHING, "seed")
    defaults: ClassVar[Mapping[str, Any]] = {"sv_power": 0.0}

    def _fit(self, graph: ClickGraph) -> None:
        if not graph.field_names:
            raise MissingPart(f"{self.name} needs document text: ingest with --docs")
        texts = {name: graph.field(name) for name in graph.field_names}
        self.field_weights_ = document_field_weights(
            graph, self.fields, self.language, self.stop_words, self.seed, self
        )
        self.d_views_ = ViewStack(["word"], self.language, self.stop_words)
        self.doc_features_ = self.d_views_.fit(Source(texts, graph.n_docs, field_weights=self.field_weights_))
        # The query is a short document: the same words, the same idf.
        self.q_views_ = ViewStack(["word"], self.language, self.stop_words)
        self.q_views_.views = self.d_views_.views
        self._know(clicked_queries(graph, graph.matrix(rows="queries")))
        self.query_features_ = self.new_query_features(self.query_keys_)
        self._learn()

    def _learn(self, start: Array | None = None) -> None:
        svd = self._decompose(sparse.csr_array(self.doc_features_.T), start)
        relative = svd.s / max(float(svd.s[0]), 1e-30)
        # d' U = V_d S for a document d of the collection: the document map is U S^(p-1).
        self._put(svd.u, svd.u * relative ** (self.sv_power - 1) / svd.s[0], svd)

    def relearn(self) -> None:
        """Documents by the words of `fit`; clicks only add known queries. V = A' U / S: where V stood before."""
        self._learn(csr_times_dense(self.doc_features_, self.spaces_[0].l_x))


class LSIQueryDoc(LSI):
    """A = queries by documents, the clicks themselves: known queries only."""

    name = "lsi-qd"
    about = "latent semantic indexing of the click graph"
    paper = "13 6.1.1, 11M"
    settings = ("dim", "sv_power", "precision", *COUNTING, *SEARCHING, "seed")
    defaults: ClassVar[Mapping[str, Any]] = {"sv_power": 0.0}
    language, stop_words = "none", "keep"

    def _fit(self, graph: ClickGraph) -> None:
        counted = responses(graph, **{name: getattr(self, name) for name in COUNTING})
        self.notes_ += counted.notes
        self._know(clicked_queries(graph, counted.matrix))
        self.field_weights_ = {}
        self._learn()

    def _learn(self, start: Array | None = None) -> None:
        n_queries, n_docs = self.responses_.shape
        # Indicator features: what 11M, 4.2 calls no features at all.
        self.q_views_, self.d_views_ = ViewStack(["id"]), ViewStack(["id"])
        self.query_features_ = self.q_views_.fit(Source({}, n_queries))
        self.doc_features_ = self.d_views_.fit(Source({}, n_docs))
        clicked = np.bincount(self.responses_.indices, minlength=n_docs) > 0
        self.doc_features_ = sparse.csr_array(sparse.diags_array(clicked.astype(np.float32)) @ self.doc_features_)
        self.doc_features_.eliminate_zeros()
        svd = self._decompose(self.responses_, start)
        scale = (svd.s / max(float(svd.s[0]), 1e-30)) ** (self.sv_power / 2)
        self._put(svd.u * scale, svd.v * scale, svd)

    def select_queries(self, keep: Array) -> None:
        super().select_queries(keep)
        space = self.spaces_[0]
        self.spaces_ = [replace(space, l_x=np.asarray(space.l_x)[keep])]

    def relearn(self) -> None:
        """Nothing is frozen where an item is its own only feature. V = R' U / S: where V stood before."""
        self._learn(np.asarray(self.responses_[: len(self.spaces_[0].l_x)].T @ self.spaces_[0].l_x))
