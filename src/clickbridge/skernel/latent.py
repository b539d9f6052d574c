"""The latent part of k_Q: the cosine of query images under a PLS map (Wu et al. 2011, eq. 7 allows any kernel).

A dot product of unit images is positive semi-definite, and an unseen query has an image by its words: neighbours that
share no word with it but led to the same documents. The map has learned from clicks, so it must be of the part of the
log that gives no preferences; a latent model inside `robust:` has seen the whole log and cannot lend its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.pls import PLS
from clickbridge.models.sfunction import unit_images
from clickbridge.numerics.csr import csr_times_dense
from clickbridge.search.index import DenseIndex
from clickbridge.types import text_of_key
from clickbridge.views.stack import ViewStack
from clickbridge.views.view import Source

Array = np.ndarray[Any, Any]
DIM = 300


class LatentMap:
    """Unit images of the known queries, and the map of new ones by their text."""

    def __init__(self, views: ViewStack, weights: Array, images: Array) -> None:
        self.views, self.weights, self.images = views, weights, images
        self.present: Array = np.asarray(images.any(axis=1))
        self._index: tuple[Array | None, DenseIndex] = None, DenseIndex(images, self.present)

    @classmethod
    def fit(cls, graph: ClickGraph, keys: Sequence[str], language: str, seed: int) -> LatentMap:
        model = PLS(dim=DIM, language=language, seed=seed).fit(graph)
        (space,) = model.spaces_
        assert len(space.q_columns) == model.q_views_.width, "one space takes all query features"
        return cls(model.q_views_, np.ascontiguousarray(space.l_x), unit_images(model.map_queries(keys)))

    def image(self, key: str) -> Array:
        """A new query's unit image; zeros where it has no known word."""
        features = self.views.transform(Source({"query": [text_of_key(key)]}, 1))
        row: Array = unit_images(csr_times_dense(features, self.weights))[0]
        return row

    def gram(self, rows: Array) -> Array:
        images = self.images[rows].astype(np.float64)
        return images @ images.T

    def cosines(self, image: Array, rows: Array) -> Array:
        """Of an image with known queries. Not a matrix product: its rounding depends on the shape."""
        return np.einsum("k,jk->j", image.astype(np.float64), self.images[rows].astype(np.float64))

    def nearest(self, image: Array, k: int, among: Array | None) -> Array:
        """Known queries by cosine; the index of the last `among` is kept."""
        if self._index[0] is not among:
            self._index = among, DenseIndex(self.images, self.present if among is None else self.present & among)
        items, scores, counts = self._index[1].search(image[None, :], k)
        found: Array = items[0, : counts[0]][scores[0, : counts[0]] > 0]
        return found.astype(np.int64)

    def write(self, writer: PartWriter, prefix: str) -> None:
        self.views.write(writer, prefix + ".view")
        writer.array(prefix + ".weights", self.weights)
        writer.array(prefix + ".images", self.images)

    @classmethod
    def read(cls, artifact: Artifact, prefix: str, language: str) -> LatentMap:
        views = ViewStack.read(artifact, prefix + ".view", language, PLS().stop_words)
        # Plain arrays over the same memory: a memory map's own class is slow to index.
        arrays = (np.asarray(artifact.array(f"{prefix}.{name}")) for name in ("weights", "images"))
        return cls(views, *arrays)
