"""Approximate search over dense images with FAISS (extra `ann`): inverted lists, flat, inner product.

Images are cut into cells around directions found by spherical k-means. A search looks into the cells whose
directions, at the mean length of the images there, have the largest inner products with the query, and
scores what it finds exactly. An item's cell is the direction with
the largest inner product, which does not change with the item's length: the cells of images are those of
unit images, so one set serves ranking and similarity alike.

What is kept in a file are two plain arrays, the directions and each item's cell. FAISS's own lists are
filled from them when first searched, which takes one pass over the images: no opaque file, no file that
repeats the images, and none that depends on the version of FAISS. A graph index (HNSW) could not be kept so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from clickbridge.errors import NotSupported
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.search.index import DenseIndex

Array = np.ndarray[Any, Any]
LEAST_ITEMS = 20_000
"""With fewer items exact search is fast enough, and nothing needs to be approximate."""
CELLS_PER_ROOT = 4
"""Cells for each square root of the number of items: looking for cells then costs less than looking into them."""
SAMPLE_PER_CELL = 40
ROUNDS = 10
ASSIGNED_AT_ONCE = 1 << 14


def faiss() -> Any:
    """The library, or one line that says how to get it."""
    try:
        import faiss as library
    except ImportError:
        raise NotSupported("search=ann needs FAISS: pip install 'clickbridge[ann]', or use search=exact") from None
    return library


@dataclass(frozen=True)
class Cells:
    """`centres` has a unit row a cell; `of_item` says which cell each item is in, -1 for one that is hidden."""

    centres: Array
    of_item: Array

    def write(self, writer: PartWriter, prefix: str) -> None:
        writer.array(prefix + ".centres", self.centres)
        writer.array(prefix + ".of_item", self.of_item)

    @classmethod
    def read(cls, artifact: Artifact, prefix: str) -> Cells | None:
        """None where none were written."""
        if f"{prefix}.centres.npy" not in artifact.manifest["files"]:
            return None
        return cls(artifact.array(prefix + ".centres"), artifact.array(prefix + ".of_item"))


def learn_cells(rows: Callable[[Array], Array], there: Array, seed: int) -> Cells:
    """Cells of the items that are `there`. `rows` gives the images of some items, so that not all need be at hand."""
    numbers = np.flatnonzero(there)
    n_cells = max(round(CELLS_PER_ROOT * len(numbers) ** 0.5), 1)
    rng = np.random.default_rng(seed)
    sample = rng.choice(numbers, min(len(numbers), SAMPLE_PER_CELL * n_cells), replace=False)
    images = np.ascontiguousarray(rows(np.sort(sample)), dtype=np.float32)
    limits = {"min_points_per_centroid": 1, "max_points_per_centroid": SAMPLE_PER_CELL}
    clustering = faiss().Kmeans(images.shape[1], n_cells, niter=ROUNDS, spherical=True, seed=seed, **limits)
    clustering.train(images)
    centres = np.array(clustering.centroids, dtype=np.float32)
    of_item = np.full(len(there), -1, dtype=np.int32)
    for start in range(0, len(numbers), ASSIGNED_AT_ONCE):
        block = numbers[start : start + ASSIGNED_AT_ONCE]
        of_item[block] = np.argmax(rows(block) @ centres.T, axis=1)
    return Cells(centres, of_item)


class AnnIndex(DenseIndex):
    """A dense index whose search looks only into the share `probe` of the cells. Scores are exact; only which
    items are looked at is approximate. A query for which that finds too few is searched exactly."""

    def __init__(self, images: Array, scorable: Array | None, cells: Cells, probe: float) -> None:
        super().__init__(images, scorable)
        self.cells, self.probe = cells, probe

    @cached_property
    def _lists(self) -> Any:
        library = faiss()
        n_cells, width = self.cells.centres.shape
        directions = library.IndexFlatIP(width)
        # A query looks for large inner products, not small angles: a cell is as near as its items are long.
        directions.add(np.ascontiguousarray(self.cells.centres * self._mean_lengths()[:, None]))
        lists = library.IndexIVFFlat(directions, width, n_cells, library.METRIC_INNER_PRODUCT)
        by_cell = np.argsort(self.cells.of_item, kind="stable")
        ends = np.searchsorted(self.cells.of_item[by_cell], np.arange(n_cells + 1))
        for cell in range(n_cells):
            items = by_cell[ends[cell] : ends[cell + 1]].astype(np.int64)
            if len(items):
                codes = np.ascontiguousarray(self.images[items], dtype=np.float32).view(np.uint8)
                lists.invlists.add_entries(cell, len(items), library.swig_ptr(items), library.swig_ptr(codes))
        lists.ntotal = int(ends[-1] - ends[0])
        lists.is_trained = True
        lists.nprobe = max(int(np.ceil(self.probe * n_cells)), 1)
        return lists

    def _mean_lengths(self) -> Array:
        n_cells = len(self.cells.centres)
        total, count = np.zeros(n_cells), np.zeros(n_cells)
        for start in range(0, self.n_items, ASSIGNED_AT_ONCE):
            block, cell = self.images[start : start + ASSIGNED_AT_ONCE], self.cells.of_item[start:][:ASSIGNED_AT_ONCE]
            lengths, there = np.sqrt(np.einsum("ij,ij->i", block, block)), cell >= 0
            total += np.bincount(cell[there], lengths[there], minlength=n_cells)
            count += np.bincount(cell[there], minlength=n_cells)
        return (total / np.maximum(count, 1)).astype(np.float32)

    def search(self, queries: Array, k: int) -> tuple[Array, Array, Array]:
        if k >= self.probe * self.n_items or not len(queries):
            return super().search(queries, k)
        near = self._lists.search(np.ascontiguousarray(queries, dtype=np.float32), k)[1]
        found = near >= 0
        items = np.where(found, near, 0)
        indptr = np.arange(0, near.size + 1, k)
        scores = np.where(found, self.score(queries, indptr, items.ravel()).reshape(near.shape), -np.inf)
        order = np.lexsort((items, -scores), axis=1)
        items = np.take_along_axis(np.where(found, items, -1), order, axis=1).astype(np.int32)
        values, counts = np.take_along_axis(scores, order, axis=1), found.sum(axis=1)
        few = counts < k
        if few.any():
            items[few], values[few], counts[few] = super().search(queries[few], k)
        counts[~self.mapped(queries)] = 0
        return items, values, counts
