"""Cosine of words and of clicks: the simplest similarities, and the baselines Cos_W and Cos_B of 11M.

One feature space for both sides, rows of unit length. A query's clicks are its memory of what was chosen:
for search the document is its own indicator; for similar queries the clicks themselves are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import MissingPart
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.responses import clicked_queries, responses
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import Array, known_number
from clickbridge.models.explain import explanation
from clickbridge.models.latent import COUNTING
from clickbridge.models.lexical import VSM
from clickbridge.models.sfunction import SFunction, make_index, unit_images
from clickbridge.models.tuning import document_field_weights
from clickbridge.models.update import Updatable
from clickbridge.types import Document, Explanation
from clickbridge.views.fields import FieldCounts
from clickbridge.views.view import unit_rows


class CosWord(VSM):
    """VSM with both sides of unit length."""

    name = "cos-word"
    about = "cosine of tf-idf words"
    paper = "11M (Cos_W)"

    def query_map(self, counts: sparse.csr_array) -> sparse.csr_array:
        return unit_rows(super().query_map(counts))

    def document_map(self, counts: FieldCounts, weights: Array, columns: Array | None = None) -> sparse.csr_array:
        return unit_rows(super().document_map(counts, weights, columns))

    def learn_weights(self, graph: ClickGraph, counts: FieldCounts) -> tuple[Array, str]:
        """BM25F's: the length of a document is not known from the few words that tuning looks at."""
        weights = document_field_weights(graph, "auto", self.language, self.stop_words, self.seed, self)
        return np.array([weights[name] for name in counts.names]), f"{self.name}: field weights as bm25 learned them"


class CosClick(Updatable, SFunction):
    """What people chose for the very same query before. Unseen queries have no score."""

    name = "cos-click"
    about = "clicks of the same query: its memory"
    paper = "11M (Cos_B)"
    settings = COUNTING

    def _fit(self, graph: ClickGraph) -> None:
        counted = responses(graph, **{name: getattr(self, name) for name in COUNTING})
        self.notes_ += counted.notes
        known = clicked_queries(graph, counted.matrix)
        self.query_keys_, self.query_clicks_, self.responses_ = known.keys, known.clicks, known.matrix
        self.relearn()

    def relearn(self) -> None:
        """A document is its own indicator; all else is in the clicks."""
        n_docs = self.responses_.shape[1]
        self.images_ = sparse.csr_array(sparse.eye_array(n_docs, dtype=np.float32, format="csr"))
        self.scorable_ = np.ones(n_docs, dtype=bool)

    @cached_property
    def _clicks(self) -> sparse.csr_array:
        return unit_rows(self.responses_)

    def map_queries(self, queries: Sequence[str]) -> sparse.csr_array:
        numbers = np.array([known_number(self._query_numbers, q) for q in queries], dtype=np.int64)
        rows = self._clicks[np.where(numbers >= 0, numbers, 0)] if len(self.query_keys_) else self._clicks[:0]
        out = sparse.csr_array(sparse.diags_array((numbers >= 0).astype(np.float32)) @ rows)
        out.eliminate_zeros()
        return out

    def map_new(self, documents: Sequence[Document]) -> sparse.csr_array:
        """A new document has no clicks yet."""
        return sparse.csr_array((len(documents), self.responses_.shape[1]), dtype=np.float32)

    @cached_property
    def _doc_index(self) -> Any:
        """Documents are alike where the same queries led to them."""
        by_doc = unit_images(sparse.csr_array(self._clicks.T))
        return make_index(by_doc, np.diff(by_doc.indptr) > 0)

    def unit_document(self, number: int) -> sparse.csr_array:
        return self._doc_index.images[[number]]

    def explain(self, query: str, doc_id: str, k: int = 10) -> Explanation:
        (number,) = self.doc_numbers([doc_id])
        value = float(self.map_queries([query])[0, number])
        if not value:
            raise MissingPart(f"{query!r} was never clicked on {doc_id}: cos-click has nothing to explain")
        return explanation(query, doc_id, [(f"query {query}", f"click on {self.title(doc_id)}", value, ())], k)

    def _report(self) -> dict[str, Any]:
        return {"views": ["click"]}

    def _write(self, writer: PartWriter) -> None:
        self._write_queries(writer)
        writer.sparse("responses", self.responses_)

    def _read(self, artifact: Artifact) -> None:
        self._read_queries(artifact)
        self.responses_ = artifact.sparse("responses")
        self.relearn()
