"""What latent models share: features of both sides, linear maps into one or more spaces, dense images.

A space has its own features and its own maps: PLS has one, M-PLS one for each type of feature. The image of a query
is the images of all spaces side by side. The weights are part of the maps: each side has the square root, so that the
similarity of two queries is weighted, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import InputError
from clickbridge.graph.dense import Encoder, document_text, fill_vectors
from clickbridge.io.values import expect, stored
from clickbridge.models.candidates import Query, Vectors
from clickbridge.models.explain import NO_FEATURE, Contributions, Feature, Part, contributions
from clickbridge.models.fitted import Array, Choices
from clickbridge.models.sfunction import FittedImages, Image, Images
from clickbridge.numerics.csr import compact, csr_times_dense
from clickbridge.numerics.row import EMPTY, Row, as_matrix, gathered, row_of
from clickbridge.numerics.rows import Maps, SparseRows
from clickbridge.search.ann import AnnIndex, Cells
from clickbridge.search.index import Index, make_index
from clickbridge.types import Document, text_of_key
from clickbridge.views.stack import ViewStack
from clickbridge.views.view import Source

TEACHERS, PAIRS_WITH_TEACHERS = 3, 10
SPARSE_IMAGES = 0.25
"""Share of non-zeros up to which document images of sparse maps are kept sparse, with an inverted index."""
stored(SparseRows)  # here: numerics know nothing of files


@stored
@dataclass(frozen=True, eq=False)
class Space:
    """Linear maps of some views: columns `q_columns` of the query features times `l_x`, and the same for documents."""

    q_columns: Array
    d_columns: Array
    l_x: Any  # Maps: a dense array, or SparseRows
    l_y: Any
    singular_values: Array
    residual: float

    @property
    def dim(self) -> int:
        return len(self.singular_values)

    def check_stored(self) -> None:
        expect("singular values", self.singular_values, (None,))
        for columns, maps in ((self.q_columns, self.l_x), (self.d_columns, self.l_y)):
            expect("columns", columns, (None,), "iu", 2**31)
            if (columns[1:] <= columns[:-1]).any():
                raise ValueError("columns that do not rise")
            if isinstance(maps, SparseRows):
                maps.check((len(columns), self.dim))
            else:
                expect("a map", maps, (len(columns), self.dim))


@stored
@dataclass(frozen=True, eq=False)
class Features:
    """The features of both sides. Known queries and all documents have a row each. `responses` has a row for each known
    query and a column for each document. The slots give the column of the other side's click view for each item; -1 for
    an item that was added after `fit`."""

    q_views: ViewStack
    d_views: ViewStack
    query_features: sparse.csr_array
    doc_features: sparse.csr_array
    responses: sparse.csr_array
    query_slots: Array
    doc_slots: Array

    def check_stored(self) -> None:
        n_queries, n_docs = self.responses.shape
        sides = ((self.query_features, n_queries, self.q_views), (self.doc_features, n_docs, self.d_views))
        for rows, n, views in sides:
            if rows.shape != (n, views.width):
                raise ValueError("features of other rows or views")
        for slots, n in ((self.query_slots, n_queries), (self.doc_slots, n_docs)):
            expect("slots", slots + 1 if slots.dtype.kind in "iu" else slots, (n,), "iu", 2**31)


@stored
@dataclass(frozen=True, kw_only=True)
class LatentChoices(Choices):
    """The weights of the documents' fields, empty if no view uses text, and the groups of views, one for each space."""

    field_weights: dict[str, float]
    groups: tuple[str, ...]


@stored
@dataclass(frozen=True, eq=False)
class SearchCells:
    """The cells of approximate search, for documents and for known queries; None if search is exact."""

    documents: Cells | None = None
    queries: Cells | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedLatent(FittedImages):
    """Linear maps of features of both sides."""

    choices: Any  # a LatentChoices of the model's own kind
    features: Features
    spaces: tuple[Space, ...]
    cells: SearchCells = field(default_factory=SearchCells)
    encode: Mapping[str, Encoder] = field(default_factory=dict, metadata={"stored": False})
    """Functions of texts that make the vectors of `dense:NAME` views, by name; never saved."""

    def check_stored(self) -> None:
        super().check_stored()
        if self.responses.shape[0] != len(self.queries) or not self.spaces:
            raise ValueError("features of other queries")
        for space in self.spaces:
            expect("columns of queries", space.q_columns, (None,), "iu", self.q_views.width)
            expect("columns of documents", space.d_columns, (None,), "iu", self.d_views.width)
        self._check_images()

    def _check_images(self) -> None:
        if self.images.shape[1] != sum(space.dim for space in self.spaces):
            raise ValueError("images of other dimensions")

    # Shortcuts to attributes of `features` and `choices`.
    @property
    def q_views(self) -> ViewStack:
        return self.features.q_views

    @property
    def d_views(self) -> ViewStack:
        return self.features.d_views

    @property
    def vector_names(self) -> set[str]:
        """The names of the dense vectors that the views use."""
        return {*self.q_views.vector_names, *self.d_views.vector_names}

    @property
    def query_features(self) -> sparse.csr_array:
        return self.features.query_features

    @property
    def doc_features(self) -> sparse.csr_array:
        return self.features.doc_features

    @property
    def responses(self) -> sparse.csr_array:
        return self.features.responses

    @property
    def field_weights(self) -> dict[str, float]:
        weights: dict[str, float] = self.choices.field_weights
        return weights

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = all(len(space.q_columns) == self.q_views.width for space in self.spaces)
        self._derive(_whole=whole)

    _whole: Any = field(init=False, repr=False)

    def _make_index(self) -> Index:
        return self._index_over(self.images, self.scorable, self.cells.documents)

    def _index_over(self, images: Images, scorable: Array, cells: Cells | None) -> Index:
        if cells is not None and getattr(self.settings, "search", "exact") == "ann":
            return AnnIndex(images, scorable, cells, self.settings.probe)  # type: ignore[attr-defined]
        return make_index(images, scorable)

    # --- maps ------------------------------------------------------------------------------------

    def warm(self) -> None:
        """Answers a known query and a new one: the first has stored features, the second is read from its words."""
        super().warm()
        self.q_views.row("a", {})

    def query_row(self, query: Query) -> Row:
        """The features of one query. A known query has all views, including clicks. A new one has those that follow
        from its text and its vectors."""
        number = self.queries.number(query.key)
        if number >= 0:
            return row_of(self.query_features, number)
        text = text_of_key(query.key)
        return self.q_views.row(text, self._query_vectors(text, query.vectors)) if text or query.vectors else EMPTY

    def _query_vectors(self, text: str, vectors: Vectors) -> Vectors:
        missing = [name for name in self.q_views.vector_names if name in self.encode and name not in vectors]
        if not missing:
            return vectors
        made = {name: fill_vectors(name, self.encode[name], [text]) for name in missing}
        return {**vectors, **{name: rows[0] for name, rows in made.items() if rows is not None}}

    def image(self, query: Query) -> Image:
        return self.row_image(self.query_row(query))

    def row_image(self, row: Row) -> Image:
        """The image of a query with these features."""
        blocks = [times(row if self._whole else within(row, s.q_columns), s.l_x) for s in self.spaces]
        image = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        if not sparse.issparse(self.images):
            return image
        there = np.flatnonzero(image)
        return Row(there.astype(np.int32), image[there])

    def map_keys(self, queries: Sequence[Query]) -> Images:
        rows = [self.query_row(query) for query in queries]
        features = as_matrix(rows, self.q_views.width)
        return mapped(features, self.spaces, "q_columns", "l_x", sparse.issparse(self.images))

    def new_features(self, documents: Sequence[Document]) -> sparse.csr_array:
        """Features of new documents, as far as they follow from their text and vectors."""
        return new_document_features(self.d_views, documents, self.field_weights, self.encode)

    def map_new(self, documents: Sequence[Document]) -> Images:
        return mapped(self.new_features(documents), self.spaces, "d_columns", "l_y", sparse.issparse(self.images))

    # --- similar queries -------------------------------------------------------------------------

    @cached_property
    def _query_index(self) -> Index:
        features, sparse_images = self.query_features, sparse.issparse(self.images)
        images = self.compared(mapped(features, self.spaces, "q_columns", "l_x", sparse_images))
        present = np.diff(images.indptr) > 0 if sparse.issparse(images) else images.any(axis=1)
        return self._index_over(images, present, self.cells.queries)

    @cached_property
    def _doc_index(self) -> Index:
        return self._index_over(self.compared(self.images), self.scorable, self.cells.documents)

    # --- explain ---------------------------------------------------------------------------------

    def contributions(self, query: str, doc_id: str, k: int) -> Contributions:
        """x' Lx Ly' y = sum over features u of the query and v of the document of x_u (Lx Ly')_uv y_v."""
        return contributions(self.explained_pairs(query, doc_id, k), k)

    def explained_pairs(self, query: str, doc_id: str, k: int) -> list[Part]:
        x, y = self.query_row(self.query(query)), row_of(self.doc_features, self.catalogue.number(doc_id))
        parts: list[tuple[float, int, int]] = []
        for space in self.spaces:
            one, two = within(x, space.q_columns), within(y, space.d_columns)
            values = (space.l_x[one.columns] * one.values[:, None]) @ (space.l_y[two.columns] * two.values[:, None]).T
            u, v = space.q_columns[one.columns].tolist(), space.d_columns[two.columns].tolist()
            parts += [(float(values[i, j]), u[i], v[j]) for i, j in np.ndindex(values.shape)]
        parts.sort(key=lambda part: -abs(part[0]))
        named: list[Part] = []
        for place, (value, u_, v_) in enumerate(parts):
            taught = self._teachers(u_, v_) if place < min(k, PAIRS_WITH_TEACHERS) else ()
            sides = (self.q_views.feature(u_), self.d_views.feature(v_)) if place < k else (NO_FEATURE, NO_FEATURE)
            named.append(Part(Feature(*sides[0]), Feature(*sides[1]), value, taught))
        return named

    @cached_property
    def _by_column(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Which queries, and which documents, have each feature."""
        return sparse.csr_array(self.query_features.T), sparse.csr_array(self.doc_features.T)

    def _teachers(self, u: int, v: int) -> tuple[str, ...]:
        """The clicked pairs that contribute most to W_uv = sum over pairs of x_qu r_qd y_dv."""
        x, y = self._by_column
        queries, documents = row_of(x, u), row_of(y, v)
        if not queries or not documents:
            return ()
        # Over the clicks of the queries that have u, never over all pairs of items that have u and v.
        entries, begins = gathered(self.responses.indptr, queries.columns)
        clicked, weight = self.responses.indices[entries], self.responses.data[entries]
        place = np.minimum(np.searchsorted(documents.columns, clicked), len(documents.columns) - 1)
        lengths = np.diff(begins, append=len(entries))
        worth = np.where(documents.columns[place] == clicked, documents.values[place], 0.0) * weight
        worth = worth * np.repeat(queries.values, lengths)
        owner = np.repeat(queries.columns, lengths)
        best = np.lexsort((clicked, owner, -worth))[:TEACHERS]
        return tuple(
            f"{self.queries.shown(int(owner[i]))} → {self.catalogue.named(int(clicked[i]))}"
            for i in best.tolist()
            if worth[i] > 0
        )

    def describe(self) -> dict[str, Any]:
        dims = [s.dim for s in self.spaces]
        return {
            "dim": dims if len(dims) > 1 else dims[0],
            "views": {"query": self.q_views.terms, "document": self.d_views.terms},
            "residual": max(space.residual for space in self.spaces),
            "fields": self.field_weights or None,
        }


# --- features and maps -----------------------------------------------------------------------------


def new_document_features(
    views: ViewStack, documents: Sequence[Document], weights: Mapping[str, float], encode: Mapping[str, Encoder]
) -> sparse.csr_array:
    names = list(weights) or sorted({name for d in documents for name in d.fields})
    texts = {name: [d.fields.get(name, "") for d in documents] for name in names}
    vectors = brought_vectors(documents, views.vector_names)
    for name in views.vector_names:
        if name in encode:
            made = fill_vectors(name, encode[name], [document_text(d.fields) for d in documents], vectors.get(name))
            if made is not None:
                vectors[name] = made
    return views.transform(Source(texts, len(documents), vectors=vectors, field_weights=weights))


def of_columns(features: sparse.csr_array, columns: Array) -> sparse.csr_array:
    """Some columns of the features; the features themselves, not a copy, if these are all."""
    return features if len(columns) == features.shape[1] else sparse.csr_array(features[:, columns])


def mapped(
    features: sparse.csr_array, spaces: Sequence[Space], columns: str, maps: str, as_sparse: bool = False
) -> Images:
    """Images of many rows of features: those of all spaces side by side."""
    blocks = []
    for space in spaces:
        part = of_columns(features, getattr(space, columns))
        table = getattr(space, maps)
        if isinstance(table, SparseRows):
            blocks.append(sparse.csr_array(compact(part) @ compact(table.csr)))
        else:
            blocks.append(csr_times_dense(part, np.ascontiguousarray(table)))
    if not isinstance(blocks[0], np.ndarray):
        images = sparse.csr_array(sparse.hstack(blocks, format="csr") if len(blocks) > 1 else blocks[0])
        return images if as_sparse else images.toarray()
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


def document_images(features: sparse.csr_array, spaces: Sequence[Space]) -> tuple[Images, Array]:
    """The images of all documents, and which documents have one. Sparse images stay sparse if that is smaller."""
    images = mapped(features, spaces, "d_columns", "l_y", as_sparse=True)
    scorable = np.diff(features.indptr) > 0
    if sparse.issparse(images):
        images.sort_indices()  # as a saved model has them: sums of rows then are the same to the bit
        if images.nnz <= SPARSE_IMAGES * images.shape[0] * images.shape[1]:
            return images, scorable & (np.diff(images.indptr) > 0)
        images = images.toarray()
        scorable &= images.any(axis=1)
    return images, scorable


def times(row: Row, maps: Maps) -> Array:
    """One sparse row times a map."""
    if isinstance(maps, SparseRows):
        entries, begins = gathered(maps.indptr, row.columns)
        lengths = np.diff(begins, append=len(entries))
        weights = maps.data[entries] * np.repeat(row.values, lengths)
        return np.bincount(maps.indices[entries], weights, minlength=maps.width).astype(np.float32)
    # One thread, the same sum whatever else is asked.
    return np.einsum("i,ij->j", row.values, maps[row.columns])


def within(row: Row, columns: Array) -> Row:
    """The entries of a row whose column is in `columns`, by their position in `columns`."""
    if not len(columns) or not row:
        return EMPTY
    place = np.minimum(np.searchsorted(columns, row.columns), len(columns) - 1)
    hit = columns[place] == row.columns
    return Row(place[hit], row.values[hit])


def brought_vectors(items: Sequence[Document], names: Sequence[str]) -> dict[str, Array]:
    """The dense vectors given with documents; NaN for a document without one."""
    out = {}
    for name in names:
        given = [None if item.vectors is None else item.vectors.get(name) for item in items]
        width = next((len(v) for v in given if v is not None), None)
        if any(v is not None and len(v) != width for v in given):
            raise InputError(f"vectors {name!r} must all have one length; got {sorted({len(v) for v in given if v})}")
        if width is not None:
            out[name] = np.array([[np.nan] * width if v is None else v for v in given], dtype=np.float32)
    return out
