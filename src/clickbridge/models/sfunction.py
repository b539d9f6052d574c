"""S-functions (Wu et al. 2011, Definition 1): one map for queries, one for documents, and a dot product.

Scores, exact search, similar queries and documents, and sums all follow from the two maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.models.candidates import Query
from clickbridge.models.fitted import Array, Fitted
from clickbridge.numerics.row import Row, row_of
from clickbridge.search.index import Found, Index, StackedIndex, make_index
from clickbridge.types import Document, Ranking

Images = Any
"""Rows of images: a sparse matrix or a dense array."""
Image = Any
"""The image of one query: a `Row`, a dense vector, or a list of such, one for each block of the images."""
NOISE = 1e-6
"""Dense images of unit features under orthonormal maps are of order 1; what is shorter than this is rounding."""
ONE_BY_ONE = 16
"""Up to this many queries are searched one after the other."""
S_FUNCTION = frozenset({"search", "maps", "new queries", "similar queries", "similar documents", "explain", "update"})


class FittedSFunction(Fitted):
    """A fitted S-function. Subclasses define `image` of one query, `map_keys` of many, and `map_new` of documents by
    their text. They have `images`, one row per document; `scorable`, which documents have an image; and `index`, to
    search the images."""

    can: ClassVar[frozenset[str]] = S_FUNCTION

    if TYPE_CHECKING:

        @property
        def images(self) -> Images: ...

        @property
        def scorable(self) -> Array: ...

        @property
        def index(self) -> Index: ...

    # --- maps ------------------------------------------------------------------------------------

    def image(self, query: Query) -> Image:
        """The query's image; empty if the model cannot map the query."""
        raise NotImplementedError

    def map_keys(self, queries: Sequence[Query]) -> Images:
        """Images of many queries, one row each."""
        raise NotImplementedError

    def map_new(self, documents: Sequence[Document]) -> Images:
        """Images of documents that the model has not seen, by their text."""
        raise NotImplementedError

    def normaliser(self, image: Image) -> float:
        """The number by which a sum `a+b` divides the query's image, so that one weight fits all queries."""
        return image_norm(image) or 1.0

    def map_queries(self, queries: Sequence[str]) -> Images:
        return beside(blocks_of(self.map_keys([self.query(text) for text in queries])))

    def map_documents(self, documents: Sequence[Document | str]) -> Images:
        known = np.array([self.catalogue.number(d) for d in documents if isinstance(d, str)], dtype=np.int64)
        new = self.map_new([d for d in documents if isinstance(d, Document)])
        rows = stack_rows([self.images[known], new])
        # Known rows come first in the stack; find the row of each document that was asked for.
        is_known = np.array([isinstance(d, str) for d in documents], dtype=bool)
        place = np.where(is_known, np.cumsum(is_known) - 1, len(known) + np.cumsum(~is_known) - 1)
        return rows[place]

    # --- scores and search -----------------------------------------------------------------------

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        return self.score_image(self.image(query), items)

    def score_image(self, image: Image, items: Array) -> Array:
        """Scores of one list for a query whose image is known already."""
        out = np.full(len(items), -np.inf)
        known = items >= 0
        known[known] = self.scorable[items[known]]
        if is_mapped(image) and known.any():
            out[known] = self.index.score(image, items[known])
        return out

    def score_new(self, query: Query, documents: Sequence[Document]) -> Array:
        return self.score_new_image(self.image(query), documents)

    def score_new_image(self, image: Image, documents: Sequence[Document]) -> Array:
        """Scores of documents by their text, for a query whose image is known already."""
        out = np.full(len(documents), -np.inf)
        if is_mapped(image):
            images = self.map_new(documents)
            present = np.diff(images.indptr) > 0 if sparse.issparse(images) else images.any(axis=1)
            out[present] = dot(images, image)[present]
        return out

    @property
    def text_fields(self) -> frozenset[str]:
        weights: dict[str, float] = getattr(self, "field_weights", {})
        return frozenset([max(weights, key=weights.__getitem__)] if weights else ())

    def warm(self) -> None:
        super().warm()
        self.search(Query(self.queries.keys[0] if len(self.queries) else ""), 1)

    def search(self, query: Query, k: int) -> Found:
        image = self.image(query)
        return self.index.search(image, k) if is_mapped(image) else (np.empty(0, dtype=np.int64), np.empty(0))

    def search_many(self, queries: Sequence[Query], k: int, engine: Engine | None = None) -> list[Found]:
        if len(queries) <= ONE_BY_ONE:
            return self.search_each(queries, k)
        if engine is not None and isinstance(self.index, StackedIndex):
            return super().search_many(queries, k, engine)
        return self.index.search_many(self.map_keys(queries), k, engine)

    # --- one space, three similarities -----------------------------------------------------------

    @property
    def by_dot(self) -> bool:
        """Whether two queries, or two documents, are compared by the dot product of their images (g of 11M), and not by
        the cosine."""
        return getattr(self.settings, "similarity", "cosine") == "dot"

    def compared(self, images: Images) -> Images:
        """Images in the form in which they are compared: as they are, or of length 1."""
        return images if self.by_dot else unit_images(images)

    def compared_image(self, image: Image) -> Image:
        return image if self.by_dot else unit_image(image)

    def compared_index(self, images: Any) -> Index:
        """An index for finding similar images."""
        return whole_index(images) if self.by_dot else unit_index(images)

    @cached_property
    def _query_index(self) -> Index:
        """An index of the images of the known queries, built at first use. Its size is their number times the
        dimensions."""
        return self.compared_index(self.map_keys([Query(key) for key in self.queries.keys]))

    @cached_property
    def _doc_index(self) -> Index:
        return make_index(self.compared(self.images), self.scorable)

    def similar_image(self, image: Image) -> Image:
        """A query's image in the form that the index of queries needs."""
        return self.compared_image(image)

    def document_image(self, number: int) -> Image:
        """A document's image in the form that the index of documents needs."""
        return self.compared_image(row_image(self.images, number))

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        """Compares queries by the cosine of their images, or by the dot product."""
        asked = self.query(query)
        image = self.image(asked)
        if not is_mapped(image):
            return []
        near, depth, own = list[tuple[str, float]](), k + 1, self.queries.number(asked.key)
        while True:
            items, scores = self._query_index.search(self.similar_image(image), depth)
            found = zip(items.tolist(), scores.tolist(), strict=True)
            near = self.queries.nearest(((i, s) for i, s in found if i != own and s > NOISE), k, min_clicks)
            if len(near) == k or len(items) < depth or depth >= len(self.queries):
                return near
            depth *= 8  # some of those found may not be shown

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        """Compares documents by the cosine of their images, or by the dot product."""
        number = self.catalogue.number(doc_id)
        ranking = self.ranking(self._doc_index.search(self.document_image(number), k + 1))
        return Ranking(tuple(hit for hit in ranking if hit.doc_id != doc_id and hit.score > NOISE)[:k], self.title)


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedImages(FittedSFunction):
    """An S-function whose document images are stored."""

    images: Images
    scorable: Array
    index: Index = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._derive(index=self._make_index())

    def _make_index(self) -> Index:
        return make_index(self.images, self.scorable)


# --- images of one query -------------------------------------------------------------------------


def is_mapped(image: Image) -> bool:
    """Whether the query has an image. An image multiplied by a weight of 0 still counts as one."""
    if isinstance(image, list):
        return any(is_mapped(block) for block in image)
    return bool(image) if isinstance(image, Row) else bool(image.any())


def image_norm(image: Image) -> float:
    if isinstance(image, list):
        return float(np.sqrt(sum(image_norm(block) ** 2 for block in image)))
    values = image.values if isinstance(image, Row) else image
    return float(np.sqrt(np.dot(values, values)))


def scaled_image(image: Image, factor: float) -> Image:
    if isinstance(image, list):
        return [scaled_image(block, factor) for block in image]
    return image.scaled(factor) if isinstance(image, Row) else image * image.dtype.type(factor)


def unit_image(image: Image) -> Image:
    norm = image_norm(image)
    dense = not isinstance(image, Row | list)
    return scaled_image(image, 1 / norm) if norm > (NOISE if dense else 0.0) else scaled_image(image, 0.0)


def row_image(images: Images, number: int) -> Image:
    return row_of(images, number) if sparse.issparse(images) else images[number]


def dot(images: Images, image: Row | Array) -> Array:
    """Every row times the image of one query."""
    if not isinstance(image, Row):
        return np.einsum("ij,j->i", images, image).astype(np.float64)
    wide = np.zeros(images.shape[1])
    wide[image.columns] = image.values
    return np.asarray(images @ wide, dtype=np.float64)


# --- images of many --------------------------------------------------------------------------------


def blocks_of(images: Any) -> list[Images]:
    return images if isinstance(images, list) else [images]


def stack_rows(blocks: list[Images]) -> Images:
    if sparse.issparse(blocks[0]):
        return sparse.csr_array(sparse.vstack(blocks, format="csr"))
    return np.concatenate(blocks)


def beside(blocks: Sequence[Images]) -> Images:
    """Maps side by side: dense where all are, else sparse."""
    if len(blocks) == 1:
        return blocks[0]
    if any(sparse.issparse(block) for block in blocks):
        return sparse.csr_array(sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr"))
    return np.concatenate(blocks, axis=1)


def scaled_rows(images: Images, scale: Array) -> Images:
    if sparse.issparse(images):
        # Entry by entry: a product of matrices would drop rows times 0, and a mapped query would count as unmapped.
        out = images.copy()
        out.data = out.data * np.repeat(scale, np.diff(out.indptr))
        return out
    return images * scale[:, None].astype(images.dtype)


def row_norms(images: Images) -> Array:
    if sparse.issparse(images):
        return np.sqrt(np.asarray(images.multiply(images).sum(axis=1)).ravel())
    return np.sqrt(np.einsum("ij,ij->i", images, images))


def unit_images(images: Images) -> Images:
    """Rows scaled to length 1; rows of length 0 stay. A dense row that consists only of rounding errors (an item
    outside the kept dimensions) counts as length 0: scaled up, it would look similar to some arbitrary item."""
    norms = row_norms(images)
    long = norms > (0.0 if sparse.issparse(images) else NOISE)
    return scaled_rows(images, np.where(long, 1 / np.where(long, norms, 1.0), 0.0).astype(np.float32))


def whole_index(images: Any) -> Index:
    """An index of images, with their lengths as they are."""
    blocks = blocks_of(images)
    there = np.any([row_norms(block) > 0 for block in blocks], axis=0)
    indexes = [make_index(block, there) for block in blocks]
    return StackedIndex(indexes, there) if isinstance(images, list) else indexes[0]


def unit_index(images: Any) -> Index:
    """An index of images scaled to length 1. The blocks of one map share one length."""
    if not isinstance(images, list):
        units = unit_images(images)
        return make_index(units, row_norms(units) > 0)
    norms = np.sqrt(np.sum([row_norms(block) ** 2 for block in images], axis=0))
    there = norms > 0
    scale = np.where(there, 1 / np.where(there, norms, 1.0), 0.0).astype(np.float32)
    return StackedIndex([make_index(scaled_rows(block, scale), there) for block in images], there)
