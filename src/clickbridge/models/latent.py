"""What latent models share: features of both sides, linear maps into one or more spaces, dense images.

A space has its own features and its own maps: PLS has one, M-PLS one for each type of feature. The image of
a query is the images of all spaces side by side; weights are in the maps already, as the square root on both
sides, so that query-query similarity has them too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from scipy import sparse

from clickbridge.errors import InputError, MissingPart, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.dense import Encoder, document_text, fill_vectors
from clickbridge.graph.responses import ClickedQueries, clicked_queries, responses
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import Array, as_key, known_number, query_of
from clickbridge.models.explain import Part, explanation
from clickbridge.models.sfunction import Images, SFunction
from clickbridge.models.tuning import document_field_weights
from clickbridge.models.update import FrozenFeatures, texts_of
from clickbridge.numerics.csr import csr_times_dense
from clickbridge.numerics.rows import Maps, SparseRows
from clickbridge.search import ann
from clickbridge.types import Document, Explanation, ResultList, edge_name
from clickbridge.views.stack import ViewStack, parse_views
from clickbridge.views.view import Source

COUNTING = ("min_clicks", "min_users", "response", "half_life", "max_clicks_per_user")
SEARCHING = ("search", "probe")
TEACHERS, PAIRS_WITH_TEACHERS = 3, 10


@dataclass
class Space:
    """Linear maps of some views: columns `q_columns` of the query features times `l_x`, and likewise."""

    q_columns: Array
    d_columns: Array
    l_x: Any  # Maps: a dense array, or SparseRows
    l_y: Any
    singular_values: Array
    residual: float

    @property
    def dim(self) -> int:
        return len(self.singular_values)


class LatentModel(FrozenFeatures, SFunction):
    """Subclasses say how spaces are learned from X, R and Y."""

    language: str
    stop_words: str
    fields: str
    seed: int
    min_clicks: int
    min_users: int
    response: str
    half_life: float
    max_clicks_per_user: int

    field_weights_: dict[str, float]
    spaces_: list[Space]

    encode: Mapping[str, Encoder] = MappingProxyType({})
    """Functions of texts that make the vectors of `dense:NAME` views, by name; never saved."""

    def __init__(self, *, encode: Mapping[str, Encoder] | None = None, **params: Any) -> None:
        super().__init__(**params)
        if encode:
            self.encode = encode

    # --- settings --------------------------------------------------------------------------------

    def _check_params(self) -> None:
        super()._check_params()
        if self.search == "ann":
            ann.faiss()  # said before the work, not after it
        terms = re.split("[,&]", getattr(self, "views", ""))
        idle = set(self.encode) - {term.strip().partition("dense:")[2] for term in terms}
        if idle:
            name = min(idle)
            raise SettingError(
                f"encode has {name!r}, but views have no dense:{name}: add it, as views=word,dense:{name}"
            )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return super().get_params(deep) | ({"encode": self.encode} if self.encode else {})

    def set_params(self, **params: Any) -> Self:
        if "encode" in params:
            self.encode = params.pop("encode") or {}
        super().set_params(**params)
        for name in ("index", "query_index", "_doc_index"):
            self.__dict__.pop(name, None)  # made anew as the settings now say
        return self

    def refit(self, graph: ClickGraph) -> Self:
        return super().refit(graph.encoded(self.encode) if self.encode else graph)

    # --- features --------------------------------------------------------------------------------

    def _learn_features(self, graph: ClickGraph, groups: Sequence[str]) -> list[tuple[Array, Array]]:
        """Fits the views named by `groups` and returns each group's columns on both sides. Only queries
        with a counted click are known; documents all are."""
        counted = responses(graph, **{name: getattr(self, name) for name in COUNTING})
        self.notes_ += counted.notes
        known = self._know(clicked_queries(graph, counted.matrix))
        terms = [parse_views(group.replace("&", ",")) for group in groups]
        self.q_views_ = ViewStack(_union(q for q, _ in terms), self.language, self.stop_words)
        self.d_views_ = ViewStack(_union(d for _, d in terms), self.language, self.stop_words)
        self.field_weights_ = {}
        if graph.field_names and any(view.of_text for view in self.d_views_.views):
            self.field_weights_ = self._tuned_field_weights(graph)
        texts = {name: graph.field(name) for name in graph.field_names}
        query_texts = {"query": texts_of(self.query_keys_)}
        names = [title or doc_id for title, doc_id in zip(self.titles_, self.doc_ids_, strict=True)]
        vectors = graph.vectors_of("query", known.numbers), graph.vectors_of("doc", None)
        self.query_features_ = self.q_views_.fit(
            Source(query_texts, len(known.keys), self.responses_, texts, names, vectors[0])
        )
        clicks = sparse.csr_array(self.responses_.T)
        self.doc_features_ = self.d_views_.fit(
            Source(texts, graph.n_docs, clicks, query_texts, self.query_keys_, vectors[1], self.field_weights_)
        )
        if not self.query_features_.nnz or not self.doc_features_.nnz:
            raise MissingPart(f"{self.name} has nothing to learn from: the views {', '.join(groups)} are empty here")
        return [(_columns(self.q_views_, q), _columns(self.d_views_, d)) for q, d in terms]

    def _tuned_field_weights(self, graph: ClickGraph) -> dict[str, float]:
        """Learned once, and kept by `refit` with what there was to say of them."""
        if "field_weights" not in self.tuned_:
            said = len(self.notes_)
            learned = document_field_weights(graph, self.fields, self.language, self.stop_words, self.seed, self)
            self.tuned_["field_weights"], self.tuned_["field_notes"] = learned, self.notes_[said:]
            return learned
        self.notes_ += self.tuned_["field_notes"]
        weights: dict[str, float] = self.tuned_["field_weights"]
        return weights

    def _know(self, known: ClickedQueries) -> ClickedQueries:
        self.query_keys_, self.query_clicks_, self.responses_ = known.keys, known.clicks, known.matrix
        # Which click column stands for each item: itself, until an update brings items without one.
        self.query_slots_, self.doc_slots_ = (np.arange(n) for n in known.matrix.shape)
        return known

    def _finish(self) -> None:
        """Document images from the maps; searched exactly until `prepare_search`."""
        self.doc_cells_ = self.query_cells_ = None
        self.scorable_ = np.diff(self.doc_features_.indptr) > 0
        self.images_ = self._apply(self.doc_features_, "d_columns", "l_y")

    def _apply(self, features: sparse.csr_array, columns: str, maps: str) -> Array:
        blocks = []
        for space in self.spaces_:
            own, width = getattr(space, columns), features.shape[1]
            part = features if len(own) == width else sparse.csr_array(features[:, own])
            blocks.append(csr_times_dense(part, np.ascontiguousarray(getattr(space, maps))))
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)

    def prepare_search(self) -> None:
        """With `search=ann`, cells of the documents and of the known queries, where there are enough of them."""
        self.doc_cells_ = self.query_cells_ = None
        if self.search == "exact" or sparse.issparse(self.images_):
            return
        n_docs, n_queries = int(self.scorable_.sum()), len(self.query_keys_)
        if not self.alone:
            self.notes_.append(f"{self.name}: a sum is searched exactly; search=ann serves a model by itself")
        elif n_docs < ann.LEAST_ITEMS:
            self.notes_.append(
                f"{self.name}: search is exact, since {n_docs:,} documents are few (under {ann.LEAST_ITEMS:,})"
            )
        else:
            self.doc_cells_ = ann.learn_cells(lambda rows: self.images_[rows], self.scorable_, self.seed)
            self.notes_.append(f"{self.name}: {len(self.doc_cells_.centres):,} cells for approximate search")
        if self.alone and n_queries >= ann.LEAST_ITEMS:
            keys, there = self.query_keys_, np.ones(n_queries, dtype=bool)
            self.query_cells_ = ann.learn_cells(
                lambda rows: self.map_queries([keys[n] for n in rows]), there, self.seed
            )

    # --- maps ------------------------------------------------------------------------------------

    def query_features(self, queries: Sequence[str], vectors: dict[str, Array] | None = None) -> sparse.csr_array:
        """Known queries have all their views, the click view among them; new ones what their text allows."""
        keys = [as_key(query) for query in queries]
        numbers = np.array([known_number(self._query_numbers, key) for key in keys], dtype=np.int64)
        new = self.new_query_features(["" if n >= 0 else key for key, n in zip(keys, numbers, strict=True)], vectors)
        known = numbers >= 0
        if not known.any():
            return new
        rows = np.where(known, numbers, 0)
        old = sparse.csr_array(sparse.diags_array(known.astype(np.float32)) @ self.query_features_[rows])
        old.eliminate_zeros()
        if vectors:
            new = sparse.csr_array(sparse.diags_array((~known).astype(np.float32)) @ new)
        return sparse.csr_array(old + new)

    def map_queries(self, queries: Sequence[str]) -> Images:
        return self._apply(self.query_features(queries), "q_columns", "l_x")

    def map_lists(self, lists: Sequence[ResultList]) -> Images:
        vectors = brought_vectors(lists, self.q_views_.vector_names)
        features = self.query_features([query_of(result) for result in lists], vectors)
        return self._apply(features, "q_columns", "l_x")

    def new_query_features(self, keys: Sequence[str], vectors: dict[str, Array] | None = None) -> sparse.csr_array:
        """Features of new queries, as far as their text and their vectors give them."""
        texts = texts_of(keys)
        return self.q_views_.transform(
            Source({"query": texts}, len(keys), vectors=self._encoded(self.q_views_, texts, vectors or {}))
        )

    def _encoded(self, stack: ViewStack, texts: Sequence[str], vectors: dict[str, Array]) -> dict[str, Array]:
        """Vectors that came along and, where there is a function for them, those made from the texts."""
        out = dict(vectors)
        for name in stack.vector_names:
            made = fill_vectors(name, self.encode[name], texts, out.get(name)) if name in self.encode else None
            if made is not None:
                out[name] = made
        return out

    def new_features(self, documents: Sequence[Document]) -> sparse.csr_array:
        """Features of new documents, as far as their text and their vectors give them."""
        names = list(self.field_weights_) or sorted({name for d in documents for name in d.fields})
        texts = {name: [d.fields.get(name, "") for d in documents] for name in names}
        read = [document_text(d.fields) for d in documents] if self.encode else []
        vectors = self._encoded(self.d_views_, read, brought_vectors(documents, self.d_views_.vector_names))
        return self.d_views_.transform(
            Source(texts, len(documents), vectors=vectors, field_weights=self.field_weights_)
        )

    def map_new(self, documents: Sequence[Document]) -> Images:
        return self._apply(self.new_features(documents), "d_columns", "l_y")

    # --- explain ---------------------------------------------------------------------------------

    def explain(self, query: str, doc_id: str, k: int = 10) -> Explanation:
        """x' Lx Ly' y = sum over features u of the query and v of the document of x_u (Lx Ly')_uv y_v."""
        (number,) = self.doc_numbers([doc_id])
        x, y = self.query_features([query]).tocoo(), self.doc_features_[[number]].tocoo()
        parts: list[tuple[float, int, int]] = []
        for space in self.spaces_:
            u, x_u = _within(x, space.q_columns)
            v, y_v = _within(y, space.d_columns)
            values = (space.l_x[u] * x_u[:, None]) @ (space.l_y[v] * y_v[:, None]).T
            for i, j in np.ndindex(values.shape):
                parts.append((float(values[i, j]), int(space.q_columns[u[i]]), int(space.d_columns[v[j]])))
        parts.sort(key=lambda part: -abs(part[0]))
        named: list[Part] = []
        for place, (value, u_, v_) in enumerate(parts):
            taught = self._teachers(u_, v_) if place < min(k, PAIRS_WITH_TEACHERS) else ()
            names = (_named(self.q_views_, u_), _named(self.d_views_, v_)) if place < k else ("", "")
            named.append((*names, value, taught))
        return explanation(query, doc_id, named, k)

    @cached_property
    def _by_column(self) -> tuple[sparse.csc_array, sparse.csc_array]:
        return self.query_features_.tocsc(), self.doc_features_.tocsc()

    def _teachers(self, u: int, v: int) -> tuple[str, ...]:
        """The clicked pairs that put most into W_uv = sum over pairs of x_qu r_qd y_dv."""
        x, y = self._by_column
        x_u, y_v = x[:, [u]], y[:, [v]]
        rows, columns = x_u.indices, y_v.indices
        if not len(rows) or not len(columns):
            return ()
        block = self.responses_[rows][:, columns].toarray() * x_u.data[:, None] * y_v.data[None, :]
        best = np.argsort(-block, axis=None, kind="stable")[:TEACHERS]
        pairs = (np.unravel_index(i, block.shape) for i in best if block.flat[i] > 0)
        return tuple(
            f"{edge_name(self.query_keys_[rows[i]])} → {self.titles_[columns[j]] or self.doc_ids_[columns[j]]}"
            for i, j in pairs
        )

    # --- files -----------------------------------------------------------------------------------

    def _header(self) -> dict[str, Any]:
        header = super()._header()
        header["params"].pop("encode", None)
        return header

    def _report(self) -> dict[str, Any]:
        return {
            "dim": [s.dim for s in self.spaces_] if len(self.spaces_) > 1 else self.spaces_[0].dim,
            "views": {"query": self.q_views_.terms, "document": self.d_views_.terms},
            "residual": max(space.residual for space in self.spaces_),
            "fields": self.field_weights_ or None,
        }

    def _write(self, writer: PartWriter) -> None:
        self._write_queries(writer)
        self.q_views_.write(writer, "query_view")
        self.d_views_.write(writer, "doc_view")
        writer.strings("field_names", self.field_weights_)
        writer.array("field_weights", np.array(list(self.field_weights_.values()), dtype=np.float64))
        for name in ("query_features", "doc_features", "responses"):
            writer.sparse(name, getattr(self, name + "_"))
        self._write_images(writer)
        self._write_cells(writer)
        writer.array("query_slots", self.query_slots_)
        writer.array("doc_slots", self.doc_slots_)
        writer.array("residuals", np.array([space.residual for space in self.spaces_]))
        for number, space in enumerate(self.spaces_):
            for name in ("q_columns", "d_columns", "singular_values"):
                writer.array(f"space.{number}.{name}", getattr(space, name))
            for name in ("l_x", "l_y"):
                write_maps(writer, f"space.{number}.{name}", getattr(space, name))

    def _write_images(self, writer: PartWriter) -> None:
        (writer.sparse if sparse.issparse(self.images_) else writer.array)("images", self.images_)

    def _read_images(self, artifact: Artifact) -> None:
        self.images_ = artifact.array("images") if artifact.has("images") else artifact.sparse("images")

    def _read(self, artifact: Artifact) -> None:
        self._read_queries(artifact)
        self.q_views_ = ViewStack.read(artifact, "query_view", self.language, self.stop_words)
        self.d_views_ = ViewStack.read(artifact, "doc_view", self.language, self.stop_words)
        weights = artifact.array("field_weights").tolist()
        self.field_weights_ = dict(zip(artifact.strings("field_names"), weights, strict=True))
        for name in ("query_features", "doc_features", "responses"):
            setattr(self, name + "_", artifact.sparse(name))
        self._read_images(artifact)
        self._read_cells(artifact)
        self.query_slots_, self.doc_slots_ = artifact.array("query_slots"), artifact.array("doc_slots")
        self.scorable_ = np.diff(self.doc_features_.indptr) > 0
        self.spaces_ = []
        for number, residual in enumerate(artifact.array("residuals")):
            prefix = f"space.{number}."
            arrays: dict[str, Any] = {
                name: artifact.array(prefix + name) for name in ("q_columns", "d_columns", "singular_values")
            }
            maps: dict[str, Any] = {name: read_maps(artifact, prefix + name) for name in ("l_x", "l_y")}
            self.spaces_.append(Space(**arrays, **maps, residual=float(residual)))


def write_maps(writer: PartWriter, name: str, maps: Maps) -> None:
    if not isinstance(maps, SparseRows):
        writer.array(name, maps)
        return
    writer.array(name + ".width", np.array([maps.width]))
    for part in ("indptr", "indices", "data"):
        writer.array(f"{name}.{part}", getattr(maps, part))


def read_maps(artifact: Artifact, name: str) -> Maps:
    if artifact.has(name):
        return artifact.array(name)
    indptr, indices, data = (artifact.array(f"{name}.{part}") for part in ("indptr", "indices", "data"))
    return SparseRows(indptr, indices, data, int(artifact.array(name + ".width")[0]))


def brought_vectors(items: Sequence[ResultList] | Sequence[Document], names: Sequence[str]) -> dict[str, Array]:
    """The dense vectors that lists or documents bring along, NaN where one has none."""
    out = {}
    for name in names:
        given = [None if item.vectors is None else item.vectors.get(name) for item in items]
        width = next((len(v) for v in given if v is not None), None)
        if any(v is not None and len(v) != width for v in given):
            raise InputError(f"vectors {name!r} must all have one length; got {sorted({len(v) for v in given if v})}")
        if width is not None:
            out[name] = np.array([[np.nan] * width if v is None else v for v in given], dtype=np.float32)
    return out


def _union(lists: Any) -> list[str]:
    return list(dict.fromkeys(term for terms in lists for term in terms))


def _columns(stack: ViewStack, terms: Sequence[str]) -> Array:
    spans = dict(zip(stack.terms, stack.spans, strict=True))
    # In the order of the stack, whatever that of the terms: a space over all columns is the features as they are.
    return np.sort(np.concatenate([np.arange(*spans[term], dtype=np.int32) for term in terms]))


def _within(row: Any, columns: Array) -> tuple[Array, Array]:
    """Places in `columns` of a sparse row's entries, and their values."""
    if not len(columns):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=row.data.dtype)
    place = np.searchsorted(columns, row.coords[1])
    place = np.minimum(place, len(columns) - 1)
    hit = columns[place] == row.coords[1]
    return place[hit], row.data[hit]


def _named(stack: ViewStack, column: int) -> str:
    view, feature = stack.feature(column)
    return feature if view == "word" else f"{view} {feature}"
