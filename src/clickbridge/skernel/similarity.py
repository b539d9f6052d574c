"""How alike two queries are (Wu et al. 2011, Section 6).

k_Q is a weighted sum of a click kernel, text kernels (words, character n-grams) and the cosine of latent images,
divided by the square roots of both queries' own sums: a query without clicks, or one never seen, still has its text.
Sums with weights >= 0, products and this normalisation all keep a kernel positive semi-definite. Neighbours come from
a sparse product with an inverted matrix, never from all pairs; those by latent images from a search of their index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import as_key, known_number
from clickbridge.numerics.gram import rows_kernel
from clickbridge.numerics.topk import sparse_topk
from clickbridge.skernel.clicks import ClickKernel
from clickbridge.skernel.latent import LatentMap
from clickbridge.types import text_of_key
from clickbridge.views.view import KINDS, Source, TermView, unit_rows

Array = np.ndarray[Any, Any]
TEXT_VIEWS = ("word", "char")
PARTS = ("click", *TEXT_VIEWS, "latent")
DEPTH = 4
"""Neighbours are looked for this many times deeper than asked, where what they are looked up by is not all of k_Q."""


class Asked(NamedTuple):
    """A query as neighbours are looked for: its number or -1, its features, the root of its own sum, its image."""

    number: int
    row: sparse.csr_array
    norm: float
    image: Array | None


class QueryKernel:
    """k_Q over the known queries, and between a new query and them.

    `weights` are of click, word, char and latent. A query is given by its key; `clicks` has a row for each known one.
    """

    def __init__(self, weights: Mapping[str, float], click_kernel: str = "cosine", language: str = "english") -> None:
        unknown = set(weights) - set(PARTS)
        if unknown or not any(w > 0 for w in weights.values()) or any(w < 0 for w in weights.values()):
            wanted = f"weights >= 0, not all 0, of {', '.join(PARTS)}"
            raise SettingError(f"query_kernel is made of {wanted}; got {dict(weights)}")
        self.weights = {name: float(weights.get(name, 0.0)) for name in PARTS}
        self.click_kernel = click_kernel
        self.language = language
        self._some: tuple[Array, sparse.csr_array] | None = None

    def fit(self, keys: Sequence[str], clicks: sparse.csr_array, latent: LatentMap | None = None) -> QueryKernel:
        """`latent` has the images of the same queries; without it, latent may have no weight."""
        self.keys, self.latent = list(keys), latent
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
        other.latent = self.latent
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

    @property
    def _images(self) -> LatentMap | None:
        """Where they weigh anything."""
        if self.weights["latent"] > 0 and self.latent is None:
            raise SettingError("query_kernel weighs latent, but the queries have no images: fit the kernel with a map")
        return self.latent if self.weights["latent"] > 0 else None

    @cached_property
    def _norms(self) -> Array:
        """Square roots of k(q, q) before normalisation; 1 where a query has nothing at all."""
        total = self.weights["click"] * self._click.present
        for name, block in zip(TEXT_VIEWS, self.blocks, strict=True):
            total = total + self.weights[name] * (np.diff(block.indptr) > 0)
        if self._images is not None:
            total = total + self.weights["latent"] * self._images.present
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

    def _new(self, key: str) -> Asked:
        """A query that is not known, its text features as wide as the inverted matrix is high."""
        texts, columns, values, total, width = _texts([key]), [], [], 0.0, 0
        for name, view, counter in zip(TEXT_VIEWS, self.views, self._counters, strict=True):
            row = counter.count(texts)
            data = row.data * view.idf_[row.indices]
            if self.weights[name] > 0 and len(data):
                total += self.weights[name]
                columns.append(row.indices + width)
                values.append(data * np.sqrt(self.weights[name] / (data @ data)))
            width += view.width
        image = None if self._images is None else self._images.image(key)
        total += self.weights["latent"] * float(image is not None and image.any())
        shape, norm = (1, width + self.clicks.shape[1]), float(np.sqrt(total)) or 1.0
        if not columns:
            return Asked(-1, sparse.csr_array(shape, dtype=np.float32), norm, image)
        data = (np.concatenate(values) / norm).astype(np.float32)
        parts = data, np.concatenate(columns), np.array([0, len(data)])
        return Asked(-1, sparse.csr_array(parts, shape=shape), norm, image)

    def number_of(self, query: str) -> int:
        """A known query's number, or -1."""
        return known_number(self.numbers, query)

    def _ask(self, query: str) -> Asked:
        number = self.number_of(query)
        if number < 0:
            return self._new(as_key(query))
        image = None if self._images is None else self._images.images[number]
        return Asked(number, self._rows[[number]], float(self._norms[number]), image)

    # --- values ----------------------------------------------------------------------------------

    def gram(self, rows: Array) -> Array:
        """k_Q between known queries."""
        out = rows_kernel(self._text, rows, self._text, rows)
        if self.weights["click"] > 0:
            norms = self._norms[rows]
            out += self.weights["click"] * self._click.block(rows, rows) / np.outer(norms, norms)
        if self._images is not None:
            norms = self._norms[rows]
            out += self.weights["latent"] * self._images.gram(rows) / np.outer(norms, norms)
        return out

    def against(self, query: str, rows: Array) -> Array:
        """k_Q between a query, known or not, and known ones."""
        return self._values(self._ask(query), rows)

    def _values(self, asked: Asked, rows: Array) -> Array:
        one, scale = np.zeros(1, dtype=np.int64), asked.norm * self._norms[rows]
        if asked.number < 0 or self._by_features:
            out = rows_kernel(asked.row, one, self._rows, rows)[0]
        else:
            out = rows_kernel(self._text, one + asked.number, self._text, rows)[0]
            out += self.weights["click"] * self._click.block(one + asked.number, rows)[0] / scale
        if self._images is not None and asked.image is not None:
            out += self.weights["latent"] * self._images.cosines(asked.image, rows) / scale
        return out

    @property
    def _by_features(self) -> bool:
        """Whether all but the latent part of k_Q is the dot product of what neighbours are looked up by."""
        return self.click_kernel == "cosine" or self.weights["click"] == 0

    def neighbours(self, query: str, k: int, among: Array | None = None) -> tuple[Array, Array]:
        """The k known queries most like this one (itself first, where it is known) and their k_Q.
        `among` marks those that may be found."""
        asked = self._ask(query)
        exact = self._images is None and (asked.number < 0 or self._by_features)
        depth = k if exact else DEPTH * k
        found, _, counts = sparse_topk(asked.row, self._inverted_of(among), depth)
        near = found[0, : counts[0]].astype(np.int64)
        if self._images is not None and asked.image is not None:
            near = np.union1d(near, self._images.nearest(asked.image, depth, among))
        values = self._values(asked, near)
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
        if self._images is not None:
            self._images.write(writer, prefix + ".latent")

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
        weighs = self.weights["latent"] > 0
        self.latent = LatentMap.read(artifact, prefix + ".latent", self.language) if weighs else None
        return self


def _texts(keys: Sequence[str]) -> list[str]:
    return [text_of_key(key) for key in keys]


def _scaled(matrix: sparse.csr_array, scale: Array) -> sparse.csr_array:
    out = sparse.csr_array(matrix, dtype=np.float32, copy=True)
    out.data *= np.repeat(scale, np.diff(out.indptr)).astype(np.float32)
    return out
