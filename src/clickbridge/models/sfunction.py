"""S-functions (Wu et al. 2011, Definition 1): one map for queries, one for documents, and a dot product.

Everything else follows from the two maps: scores, exact search, similar queries and documents, sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import InputError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.responses import clicked_queries
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import Array, Model, as_key, check_k, query_of
from clickbridge.search.ann import AnnIndex, Cells
from clickbridge.search.index import DenseIndex, Index, SparseIndex
from clickbridge.types import Document, Hit, Ranking, ResultList, edge_name

Images = Any
"""Rows of images: a sparse matrix or a dense array."""
NOISE = 1e-6
"""Dense images of unit features under orthonormal maps are of order 1; what is shorter than this is rounding."""


class SFunction(Model):
    """Subclasses give `map_queries`, `map_documents` and, after `fit`, `images_` (one row a document) and
    `scorable_` (which documents have an image at all)."""

    images_: Images
    scorable_: Array
    query_keys_: list[str]
    query_clicks_: Array
    doc_cells_: Cells | None = None
    query_cells_: Cells | None = None
    """Where search is approximate; None where it is exact."""
    search: str = "exact"
    probe: float = 1.0
    alone: bool = True
    """False for a part of a sum, which is searched as a whole."""

    def map_queries(self, queries: Sequence[str]) -> Images:
        """One row a query; an empty (or zero) row for a query the model cannot map."""
        raise NotImplementedError

    def map_documents(self, documents: Sequence[Document | str]) -> Images:
        """One row a document: a known id, or a new document by its text."""
        known = self.doc_numbers([d for d in documents if isinstance(d, str)])
        new = self.map_new([d for d in documents if isinstance(d, Document)])
        rows = stack_rows([self.images_[known], new])
        # Known rows come first in the stack: say where each asked-for document went.
        is_known = np.array([isinstance(d, str) for d in documents], dtype=bool)
        place = np.where(is_known, np.cumsum(is_known) - 1, len(known) + np.cumsum(~is_known) - 1)
        return rows[place]

    def map_new(self, documents: Sequence[Document]) -> Images:
        """Images of documents the model has not seen, by their text."""
        raise NotImplementedError

    def doc_numbers(self, doc_ids: Sequence[str]) -> list[int]:
        for doc_id in doc_ids:
            if doc_id not in self._doc_numbers:
                raise InputError(f"no document {doc_id!r} in the model: give its text, as a Document")
        return [self._doc_numbers[doc_id] for doc_id in doc_ids]

    def map_lists(self, lists: Sequence[ResultList]) -> Images:
        """Query images of lists, in the form the index takes; lists may bring vectors along."""
        return self.map_queries([query_of(result) for result in lists])

    def normaliser(self, queries: Images) -> Array:
        """What `a+b` divides each query's map by, so that weights mean the same for all queries."""
        norms = row_norms(queries)
        return np.where(norms > 0, norms, 1.0)

    @cached_property
    def index(self) -> Index:
        return self.index_over(self.images_, self.scorable_, self.doc_cells_)

    def index_over(self, images: Images, scorable: Array, cells: Cells | None) -> Index:
        if cells is not None and self.search == "ann":
            return AnnIndex(images, scorable, cells, self.probe)
        return make_index(images, scorable)

    def remember_queries(self, graph: ClickGraph) -> None:
        """Known queries and their clicks, for similar queries."""
        known = clicked_queries(graph, graph.matrix(rows="queries"))
        self.query_keys_, self.query_clicks_ = known.keys, known.clicks

    # --- scores and search -----------------------------------------------------------------------

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        if not lists:
            return []
        queries = self.map_lists(lists)
        indptr = np.concatenate([[0], np.cumsum([len(result.results) for result in lists], dtype=np.int64)])
        number, total = self._doc_numbers.get, int(indptr[-1])
        items = np.fromiter((number(d, -1) for r in lists for d in r.results), dtype=np.int64, count=total)
        known = items >= 0
        known[known] = self.scorable_[items[known]]
        scores = self.index.score(queries, indptr, np.where(known, items, 0)) if self.doc_ids_ else np.zeros(total)
        mapped = np.repeat(self.index.mapped(queries), np.diff(indptr))
        return np.split(np.where(known & mapped, scores, -np.inf), indptr[1:-1])

    def rank(self, query: str, k: int = 10) -> Ranking:
        return self.rank_many([query], k)[0]

    def rank_many(self, queries: Sequence[str], k: int = 10) -> list[Ranking]:
        check_k(k)
        found = self.index.search(self.map_lists([ResultList("", query, []) for query in queries]), k)
        return _rankings(self.doc_ids_, *found)

    # --- one space, three similarities -----------------------------------------------------------

    @cached_property
    def query_index(self) -> Index:
        """Unit images of the known queries. Memory: their number times the dimensions."""
        images = unit_images(self.map_queries(self.query_keys_))
        return self.index_over(images, row_norms(images) > 0, self.query_cells_)

    def unit_query(self, query: str) -> Images:
        """The query's image as the query index takes it."""
        return unit_images(self.map_queries([query]))

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        """By cosine of query images."""
        n = len(self.query_keys_)
        depth = k + 1 if min_clicks <= 1 else n
        items, scores, counts = self.query_index.search(self.unit_query(query), min(n, depth))
        key = edge_name(as_key(query))
        found = zip(items[0, : counts[0]], scores[0, : counts[0]], strict=True)
        shown = [
            (edge_name(self.query_keys_[i]), float(s))
            for i, s in found
            if edge_name(self.query_keys_[i]) != key and self.query_clicks_[i] >= min_clicks and s > NOISE
        ]
        return shown[:k]

    @cached_property
    def _doc_index(self) -> Index:
        return self.index_over(unit_images(self.images_), self.scorable_, self.doc_cells_)

    def unit_document(self, number: int) -> Images:
        return unit_images(self.images_[[number]])

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        """By cosine of document images."""
        (number,) = self.doc_numbers([doc_id])
        ranking = _rankings(self.doc_ids_, *self._doc_index.search(self.unit_document(number), k + 1))[0]
        return Ranking(tuple(hit for hit in ranking if hit.doc_id != doc_id and hit.score > NOISE)[:k])

    # --- files -----------------------------------------------------------------------------------

    def _write_cells(self, writer: PartWriter) -> None:
        for name in ("doc_cells", "query_cells"):
            cells: Cells | None = getattr(self, name + "_")
            if cells is not None:
                cells.write(writer, name)

    def _read_cells(self, artifact: Artifact) -> None:
        self.doc_cells_, self.query_cells_ = (Cells.read(artifact, name) for name in ("doc_cells", "query_cells"))

    def _write_queries(self, writer: PartWriter) -> None:
        writer.strings("queries", self.query_keys_)
        writer.array("query_clicks", self.query_clicks_)

    def _read_queries(self, artifact: Artifact) -> None:
        self.query_keys_ = artifact.strings("queries")
        self.query_clicks_ = artifact.array("query_clicks")


def make_index(images: Images, scorable: Array) -> Index:
    return SparseIndex(images) if sparse.issparse(images) else DenseIndex(images, scorable)


def stack_rows(blocks: list[Images]) -> Images:
    if sparse.issparse(blocks[0]):
        return sparse.csr_array(sparse.vstack(blocks, format="csr"))
    return np.concatenate(blocks)


def row_norms(images: Images) -> Array:
    if sparse.issparse(images):
        return np.sqrt(np.asarray(images.multiply(images).sum(axis=1)).ravel())
    return np.sqrt(np.einsum("ij,ij->i", images, images))


def unit_images(images: Images) -> Images:
    """Rows of length 1; rows of length 0 stay. A dense row of rounding errors alone (an item outside the kept
    dimensions) counts as one of length 0: at full length it would look like some arbitrary other."""
    norms = row_norms(images)
    if sparse.issparse(images):
        return sparse.csr_array(sparse.diags_array(1 / np.where(norms > 0, norms, 1.0)) @ images)
    scale = np.where(norms > NOISE, 1 / np.maximum(norms, NOISE), 0.0)
    return images * scale[:, None].astype(images.dtype)


def _rankings(doc_ids: Sequence[str], items: Array, scores: Array, counts: Array) -> list[Ranking]:
    return [
        Ranking(tuple(Hit(doc_ids[i], float(s)) for i, s in zip(row[:n], values[:n], strict=True)))
        for row, values, n in zip(items, scores, counts, strict=True)
    ]
