"""The similarity of two queries (Wu et al. 2011, Section 6).

k_Q is a weighted sum of a click kernel, text kernels (words, character n-grams) and the cosine of latent images,
divided by the square roots of both queries' own sums. So a query without clicks, or a new one, is still compared by its
text. Sums with weights >= 0, products and this normalisation all keep a kernel positive semi-definite. Neighbours are
found with an inverted index, without comparing all pairs; those by latent images with a search of all images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.io.values import stored
from clickbridge.numerics.gram import nearest_rows, row_kernel, rows_kernel
from clickbridge.numerics.row import EMPTY, Row, row_of, side_by_side
from clickbridge.skernel.click_kernel import ClickKernel
from clickbridge.skernel.latent_kernel import LatentMap
from clickbridge.types import text_of_key
from clickbridge.views.stack import ViewStack
from clickbridge.views.view import Source, unit_rows

Array = np.ndarray[Any, Any]
TEXT_VIEWS = ("word", "char")
PARTS = ("click", *TEXT_VIEWS, "latent")
DEPTH = 4
"""Neighbours are looked for this many times deeper than asked, where what they are looked up by is not all of k_Q."""


@stored
@dataclass(frozen=True, eq=False)
class QueryFeatures:
    """The features by which known queries are compared, one row each: words and character n-grams of their text, clicks
    on documents and, if there is a map, latent images."""

    views: ViewStack
    text: sparse.csr_array
    clicks: sparse.csr_array
    latent: LatentMap | None = None

    @classmethod
    def of(
        cls, keys: Sequence[str], clicks: sparse.csr_array, language: str = "english", latent: LatentMap | None = None
    ) -> QueryFeatures:
        texts = Source({"query": [text_of_key(key) for key in keys]}, len(keys))
        views, rows = ViewStack.fit(TEXT_VIEWS, texts, language, "keep")
        return cls(views, rows, sparse.csr_array(clicks, dtype=np.float32), latent)

    def __len__(self) -> int:
        return int(self.text.shape[0])

    def check_stored(self) -> None:
        n = len(self)
        whole = self.text.shape[1] == self.views.width and self.clicks.shape[0] == n
        if not whole or (self.latent is not None and len(self.latent.images) != n):
            raise ValueError("known queries do not fit together")


class Asked(NamedTuple):
    """A query whose neighbours are searched: its number or -1, its features, the root of its own sum, its image."""

    number: int
    row: Row
    norm: float
    image: Array | None


@stored
@dataclass(frozen=True, eq=False)
class QueryKernel:
    """k_Q between known queries, and between a new query and them. `weights` are those of click, word, char and
    latent."""

    features: QueryFeatures
    weights: Mapping[str, float]
    click_kernel: str = "cosine"

    norms: Array = field(init=False, repr=False)
    """Square roots of k(q, q) before normalisation; 1 where a query has nothing at all."""
    text: sparse.csr_array = field(init=False, repr=False)
    """Rows whose dot product is the text part of k_Q."""
    rows: sparse.csr_array = field(init=False, repr=False)
    """The same, and behind them clicks whose dot product is the click part by the cosine: what neighbours are looked
    up by, whichever click kernel is exact."""
    inverted: sparse.csr_array = field(init=False, repr=False)
    clicks: ClickKernel | None = field(init=False, repr=False)
    latent: LatentMap | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = checked_weights(self.weights)
        features, latent = self.features, self.features.latent if weights["latent"] > 0 else None
        if weights["latent"] > 0 and latent is None:
            raise SettingError("query_kernel weighs latent, but the queries have no images: fit the kernel with a map")
        clicks = ClickKernel.of(self.click_kernel, features.clicks) if weights["click"] > 0 else None
        own = np.zeros(len(features))
        for name, there in zip(TEXT_VIEWS, _present(features), strict=True):
            own += weights[name] * there
        own += weights["click"] * clicks.present if clicks else 0.0
        own += weights["latent"] * latent.present if latent else 0.0
        norms = np.sqrt(np.where(own > 0, own, 1.0))
        text = _scaled(features.text, 1 / norms, _by_column(features.views, weights))
        rows = text
        if clicks:
            found = _scaled(unit_rows(features.clicks), np.sqrt(weights["click"]) * clicks.present / norms)
            rows = sparse.csr_array(sparse.hstack([text, found], format="csr"))
        derived = {"weights": weights, "norms": norms, "clicks": clicks, "latent": latent, "text": text, "rows": rows}
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "inverted", sparse.csr_array(rows.T.tocsr()))

    @property
    def _by_rows(self) -> bool:
        """Whether k_Q without its latent part is exactly the dot product of the rows in the index of neighbours."""
        return self.clicks is None or self.click_kernel == "cosine"

    # --- one query -------------------------------------------------------------------------------

    def asked(self, key: str, number: int) -> Asked:
        """Prepares a query, given by its key and its number among the known ones (-1 for a new one)."""
        if number >= 0:
            image = None if self.latent is None else self.latent.images[number]
            return Asked(number, row_of(self.rows, number), float(self.norms[number]), image)
        text, own, found = text_of_key(key), 0.0, []
        for name, view in zip(TEXT_VIEWS, self.features.views.views, strict=True):
            weight = self.weights[name]
            row = view.row(text, {}).scaled(float(np.sqrt(weight))) if weight > 0 else EMPTY
            own += weight if row else 0.0
            found.append(row)
        image = None if self.latent is None else self.latent.image(key)
        own += self.weights["latent"] if image is not None and image.any() else 0.0
        norm = float(np.sqrt(own)) or 1.0
        starts = [start for start, _ in self.features.views.spans]
        return Asked(-1, side_by_side(found, starts).scaled(1 / norm), norm, image)

    def values(self, asked: Asked, rows: Array) -> Array:
        """k_Q between a query and known ones."""
        scale = asked.norm * self.norms[rows]
        if asked.number < 0 or self._by_rows:
            out = row_kernel(asked.row, self.rows, rows)
        else:
            assert self.clicks is not None
            own = np.array([asked.number])
            out = rows_kernel(self.text, own, self.text, rows)[0]
            out += self.weights["click"] * self.clicks.block(own, rows)[0] / scale
        if self.latent is not None and asked.image is not None:
            out += self.weights["latent"] * self.latent.cosines(asked.image, rows) / scale
        return out

    def neighbours(self, asked: Asked, k: int, among: Array | None = None) -> tuple[Array, Array]:
        """The k known queries that are most similar to this one, and their k_Q. The query itself comes first if it is
        known. `among` marks the queries that may be found."""
        allowed = np.ones(len(self.features), dtype=bool) if among is None else among
        if self.latent is None and (asked.number < 0 or self._by_rows):
            near, values = nearest_rows(asked.row, self.inverted, k, allowed)
        else:
            near, _ = nearest_rows(asked.row, self.inverted, DEPTH * k, allowed)
            if self.latent is not None and asked.image is not None:
                near = np.union1d(near, self.latent.nearest(asked.image, DEPTH * k, allowed))
            values = self.values(asked, near)
            order = np.lexsort((near, -values))[:k]
            near, values = near[order], values[order]
        like = values > 0
        return near[like], values[like]

    # --- known queries ---------------------------------------------------------------------------

    def gram(self, rows: Array) -> Array:
        """k_Q between known queries."""
        sums = self.rows if self._by_rows else self.text
        out = rows_kernel(sums, rows, sums, rows)
        norms = self.norms[rows]
        if self.clicks is not None and not self._by_rows:
            out += self.weights["click"] * self.clicks.block(rows, rows) / np.outer(norms, norms)
        if self.latent is not None:
            out += self.weights["latent"] * self.latent.gram(rows) / np.outer(norms, norms)
        return out


def checked_weights(weights: Mapping[str, float]) -> dict[str, float]:
    """The weights of all parts; 0 for parts that are not named."""
    unknown = set(weights) - set(PARTS)
    if unknown or not any(w > 0 for w in weights.values()) or any(w < 0 for w in weights.values()):
        wanted = f"weights >= 0, not all 0, of {', '.join(PARTS)}"
        raise SettingError(f"query_kernel is made of {wanted}; got {dict(weights)}")
    return {name: float(weights.get(name, 0.0)) for name in PARTS}


def _present(features: QueryFeatures) -> list[Array]:
    """For each text view, which queries have a feature in it."""
    columns, n = features.text.indices, len(features)
    owner = np.repeat(np.arange(n), np.diff(features.text.indptr))
    spans = features.views.spans
    return [np.bincount(owner[(columns >= a) & (columns < b)], minlength=n) > 0 for a, b in spans]


def _by_column(views: ViewStack, weights: Mapping[str, float]) -> Array:
    widths = [stop - start for start, stop in views.spans]
    return np.repeat(np.sqrt([weights[name] for name in TEXT_VIEWS]), widths)


def _scaled(matrix: sparse.csr_array, by_row: Array, by_column: Array | None = None) -> sparse.csr_array:
    data = matrix.data * np.repeat(by_row, np.diff(matrix.indptr))
    if by_column is not None:
        data = data * by_column[matrix.indices]
    # Narrow numbers where they fit: half as much to read for each query.
    kind = np.int32 if max(matrix.nnz, matrix.shape[1]) <= np.iinfo(np.int32).max else np.int64
    indices, indptr = (numbers.astype(kind, copy=False) for numbers in (matrix.indices, matrix.indptr))
    parts: Any = (data.astype(np.float32), indices, indptr)
    out = sparse.csr_array(parts, shape=matrix.shape)
    if not out.data.all():  # a part that weighs nothing
        out = out.copy()
        out.eliminate_zeros()
    return out
