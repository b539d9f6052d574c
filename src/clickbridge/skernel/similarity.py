"""Similarity kernels: how alike two queries are, and how alike two documents (Wu et al. 2011, Section 6).

k_Q is a weighted sum of a click kernel and text kernels (words, character n-grams), divided by the square roots
of both queries' own sums: a query without clicks, or one never seen, still has its text. k_D is the same with
views of documents. Sums with weights >= 0, products and this normalisation all keep a kernel positive
semi-definite. Neighbours come from a sparse product with an inverted matrix, never from all pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import as_key, known_number
from clickbridge.numerics.gram import DOT, JENSEN_SHANNON, rows_kernel
from clickbridge.numerics.topk import sparse_topk
from clickbridge.types import text_of_key
from clickbridge.views.view import KINDS, Source, TermView, unit_rows

Array = np.ndarray[Any, Any]
CLICK_KERNELS = ("pearson", "cosine", "jaccard", "jensen-shannon")
TEXT_VIEWS = ("word", "char")
DEPTH = 4
"""Neighbours are looked for this many times deeper than asked, where the exact click kernel is not the cosine."""


class ClickKernel:
    """A kernel between queries by the documents clicked for them; 1 for a query with itself.

    pearson         correlation of click counts over *all* documents of the collection. Over the union of the two
                    queries' own documents, as the paper has it, it is not positive semi-definite.
    cosine          of click counts
    jaccard         shared documents over all documents of either
    jensen-shannon  1 - the divergence, in bits, of the two distributions of clicks
    """

    def __init__(self, kind: str, clicks: sparse.csr_array) -> None:
        if kind not in CLICK_KERNELS:
            raise SettingError(f"click_kernel must be {', '.join(CLICK_KERNELS)}; got {kind!r}")
        self.kind = kind
        rows = sparse.csr_array(clicks, dtype=np.float64, copy=True)
        total, square = (np.asarray(m.sum(axis=1)).ravel() for m in (rows, rows.multiply(rows)))
        n = rows.shape[1]
        spread = square - total**2 / max(n, 1) if kind == "pearson" else square
        # A row that clicks everything alike does not vary: no correlation with anything.
        self.present = spread > 1e-12 * np.maximum(square, 1e-300)
        spread = np.sqrt(np.where(self.present, spread, 1.0))
        self.shift = np.where(self.present, total / spread / np.sqrt(max(n, 1)), 0.0)
        self.size = np.diff(rows.indptr).astype(np.float64)
        scale = {"jaccard": None, "jensen-shannon": total}.get(kind, spread)
        entries = np.diff(rows.indptr)
        rows.data = (
            np.ones(rows.nnz) if scale is None else rows.data / np.repeat(np.where(scale > 0, scale, 1), entries)
        )
        self.rows = rows

    def block(self, one: Array, two: Array) -> Array:
        """Kernel values between the queries `one` and the queries `two`; 0 for a query without clicks."""
        term = JENSEN_SHANNON if self.kind == "jensen-shannon" else DOT
        out = rows_kernel(self.rows, one, self.rows, two, term)
        if self.kind == "pearson":
            out -= np.outer(self.shift[one], self.shift[two])
        elif self.kind == "jaccard":
            out /= np.maximum(self.size[one][:, None] + self.size[two][None, :] - out, 1.0)
        return out * np.outer(self.present[one], self.present[two])


class QueryKernel:
    """k_Q over the known queries, and between a new query and them.

    `weights` are of click, word and char. A query is given by its key; `clicks` has a row for each known one.
    """

    def __init__(self, weights: Mapping[str, float], click_kernel: str = "cosine", language: str = "english") -> None:
        unknown = set(weights) - {"click", *TEXT_VIEWS}
        if unknown or not any(w > 0 for w in weights.values()) or any(w < 0 for w in weights.values()):
            wanted = f"weights >= 0, not all 0, of {', '.join(('click', *TEXT_VIEWS))}"
            raise SettingError(f"query_kernel is made of {wanted}; got {dict(weights)}")
        self.weights = {name: float(weights.get(name, 0.0)) for name in ("click", *TEXT_VIEWS)}
        self.click_kernel = click_kernel
        self.language = language
        self._some: tuple[Array, sparse.csr_array] | None = None

    def fit(self, keys: Sequence[str], clicks: sparse.csr_array) -> QueryKernel:
        self.keys = list(keys)
        self.clicks = sparse.csr_array(clicks, dtype=np.float32)
        self.views: list[TermView] = []
        texts = Source({"query": _texts(self.keys)}, len(self.keys))
        self.blocks = []
        for name in TEXT_VIEWS:
            view = KINDS[name]("", self.language, "keep")
            assert isinstance(view, TermView)
            self.blocks.append(view.fit(texts))
            self.views.append(view)
        return self

    def with_weights(self, weights: Mapping[str, float], click_kernel: str) -> QueryKernel:
        """The same queries under other weights; what was counted is shared."""
        other = QueryKernel(weights, click_kernel, self.language)
        other.keys, other.clicks, other.views, other.blocks = self.keys, self.clicks, self.views, self.blocks
        other._counters = self._counters
        return other

    # --- rows ------------------------------------------------------------------------------------

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self.keys)}

    @cached_property
    def _counters(self) -> list[Any]:
        return [view.counter(frozen=True) for view in self.views]

    @cached_property
    def _click(self) -> ClickKernel:
        return ClickKernel(self.click_kernel, self.clicks)

    @cached_property
    def _norms(self) -> Array:
        """Square roots of k(q, q) before normalisation; 1 where a query has nothing at all."""
        total = self.weights["click"] * self._click.present
        for name, block in zip(TEXT_VIEWS, self.blocks, strict=True):
            total = total + self.weights[name] * (np.diff(block.indptr) > 0)
        return np.sqrt(np.where(total > 0, total, 1.0))

    @cached_property
    def _text(self) -> sparse.csr_array:
        """Text features whose dot product is the text part of k_Q."""
        blocks = [b * np.sqrt(self.weights[n]) for n, b in zip(TEXT_VIEWS, self.blocks, strict=True)]
        return _scaled(sparse.csr_array(sparse.hstack(blocks, format="csr")), 1 / self._norms)

    @cached_property
    def _search_clicks(self) -> sparse.csr_array:
        """Click features of the cosine: what neighbours are looked up by, whichever click kernel is exact."""
        rows = unit_rows(self.clicks) * np.sqrt(self.weights["click"])
        return _scaled(sparse.csr_array(rows), self._click.present / self._norms)

    @cached_property
    def _rows(self) -> sparse.csr_array:
        both = sparse.csr_array(sparse.hstack([self._text, self._search_clicks], format="csr"))
        both.eliminate_zeros()
        return both

    @cached_property
    def _inverted(self) -> sparse.csr_array:
        return sparse.csr_array(self._rows.T.tocsr())

    def _inverted_of(self, among: Array | None) -> sparse.csr_array:
        """The inverted matrix of some queries; the last choice is kept."""
        if among is None or among.all():
            return self._inverted
        if self._some is None or self._some[0] is not among:
            kept = sparse.csr_array(sparse.diags_array(among.astype(np.float32)) @ self._rows)
            kept.eliminate_zeros()
            self._some = among, sparse.csr_array(kept.T.tocsr())
        return self._some[1]

    def _new_text(self, key: str) -> sparse.csr_array:
        """Text features of a query that is not known, as wide as the inverted matrix is high."""
        texts, columns, values, total, width = _texts([key]), [], [], 0.0, 0
        for name, view, counter in zip(TEXT_VIEWS, self.views, self._counters, strict=True):
            row = counter.count(texts)
            data = row.data * view.idf_[row.indices]
            if self.weights[name] > 0 and len(data):
                total += self.weights[name]
                columns.append(row.indices + width)
                values.append(data * np.sqrt(self.weights[name] / (data @ data)))
            width += view.width
        shape = (1, width + self.clicks.shape[1])
        if not total:
            return sparse.csr_array(shape, dtype=np.float32)
        data = (np.concatenate(values) / np.sqrt(total)).astype(np.float32)
        return sparse.csr_array((data, np.concatenate(columns), np.array([0, len(data)])), shape=shape)

    def number_of(self, query: str) -> int:
        """A known query's number, or -1."""
        return known_number(self.numbers, query)

    def _row(self, query: str) -> tuple[int, sparse.csr_array]:
        """A query's number, or -1, and its features as neighbours are looked up by."""
        number = self.number_of(query)
        return number, self._new_text(as_key(query)) if number < 0 else self._rows[[number]]

    # --- values ----------------------------------------------------------------------------------

    def gram(self, rows: Array) -> Array:
        """k_Q between known queries."""
        out = rows_kernel(self._text, rows, self._text, rows)
        if self.weights["click"] > 0:
            norms = self._norms[rows]
            out += self.weights["click"] * self._click.block(rows, rows) / np.outer(norms, norms)
        return out

    def against(self, query: str, rows: Array) -> Array:
        """k_Q between a query, known or not, and known ones."""
        return self._values(*self._row(query), rows)

    def _values(self, number: int, row: sparse.csr_array, rows: Array) -> Array:
        one = np.zeros(1, dtype=np.int64)
        if number < 0 or self._by_features:
            return rows_kernel(row, one, self._rows, rows)[0]
        out = rows_kernel(self._text, one + number, self._text, rows)[0]
        clicks = self._click.block(one + number, rows)[0]
        return out + self.weights["click"] * clicks / (self._norms[number] * self._norms[rows])

    @property
    def _by_features(self) -> bool:
        """Whether k_Q is the dot product of what neighbours are looked up by."""
        return self.click_kernel == "cosine" or self.weights["click"] == 0

    def neighbours(self, query: str, k: int, among: Array | None = None) -> tuple[Array, Array]:
        """The k known queries most like this one (itself first, where it is known) and their k_Q.
        `among` marks those that may be found."""
        number, row = self._row(query)
        exact = number < 0 or self._by_features
        found, _, counts = sparse_topk(row, self._inverted_of(among), k if exact else DEPTH * k)
        near = found[0, : counts[0]].astype(np.int64)
        values = self._values(number, row, near)
        order = np.lexsort((near, -values))[:k]
        order = order[values[order] > 0]
        return near[order], values[order]

    # --- files -----------------------------------------------------------------------------------

    def write(self, writer: PartWriter, prefix: str) -> None:
        writer.strings(prefix + ".keys", self.keys)
        writer.sparse(prefix + ".clicks", self.clicks)
        for name, view, block in zip(TEXT_VIEWS, self.views, self.blocks, strict=True):
            view.write(writer, f"{prefix}.{name}")
            writer.sparse(f"{prefix}.{name}", block)

    def read(self, artifact: Artifact, prefix: str) -> QueryKernel:
        self.keys = artifact.strings(prefix + ".keys")
        self.clicks = artifact.sparse(prefix + ".clicks")
        self.views, self.blocks = [], []
        for name in TEXT_VIEWS:
            view = KINDS[name]("", self.language, "keep")
            assert isinstance(view, TermView)
            view.read(artifact, f"{prefix}.{name}")
            self.views.append(view)
            self.blocks.append(artifact.sparse(f"{prefix}.{name}"))
        return self


class DocumentKernel:
    """k_D: the cosine of documents' rows, sparse or dense."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self.present = np.diff(rows.indptr) > 0 if sparse.issparse(rows) else rows.any(axis=1)

    def block(self, one: Array, two: Array) -> Array:
        if sparse.issparse(self.rows):
            return rows_kernel(self.rows, one, self.rows, two)
        # Not a matrix product: its rounding depends on the shape, and a score must not depend on the list.
        return np.einsum("ik,jk->ij", self.rows[one].astype(np.float64), self.rows[two].astype(np.float64))


def view_rows(terms: Sequence[str], source: Source, language: str) -> sparse.csr_array:
    """Unit rows of several views of documents side by side: k_D is the mean of their cosines over what each has."""
    blocks = []
    for term in terms:
        kind, _, argument = term.partition(":")
        if kind not in KINDS:
            raise SettingError(f"no view {term!r}; there are {', '.join(KINDS)}, as word:title")
        blocks.append(KINDS[kind](argument, language, "keep").fit(source))
    return unit_rows(sparse.csr_array(sparse.hstack(blocks, format="csr")))


def _texts(keys: Sequence[str]) -> list[str]:
    return [text_of_key(key) for key in keys]


def _scaled(matrix: sparse.csr_array, scale: Array) -> sparse.csr_array:
    out = sparse.csr_array(matrix, dtype=np.float32, copy=True)
    out.data *= np.repeat(scale, np.diff(out.indptr)).astype(np.float32)
    return out
