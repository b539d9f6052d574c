"""Approximate search over dense images with FAISS (extra `ann`): inverted lists, flat, inner product.

Spherical k-means finds directions, and each image belongs to the cell of the direction with the largest inner product.
This does not depend on the length of the image, so the same cells work for ranking and for similarity, which uses unit
images. A search chooses the cells with the largest inner products with the query, each direction scaled by the mean
length of the images in its cell. The images in these cells are scored exactly.

A model's files have two plain arrays: the directions, and the cell of each item. FAISS's own lists are filled from them
when a model is fitted or loaded, in one pass over the images. So no file repeats the images or depends on the version
of FAISS. This would not be possible with a graph index (HNSW).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.errors import NotSupported
from clickbridge.io.values import expect, stored
from clickbridge.search.index import DenseIndex, Found

Array = np.ndarray[Any, Any]
LEAST_ITEMS = 20_000
"""With fewer items, exact search is fast enough."""
CELLS_PER_ROOT = 4
"""The number of cells divided by the square root of the number of items. With this many, choosing cells costs less than
scoring the items in them."""
SAMPLE_PER_CELL = 40
ROUNDS = 10
ASSIGNED_AT_ONCE = 1 << 14


def faiss() -> Any:
    """The FAISS library. If it is missing, raises an error that says how to install it."""
    try:
        import faiss as library
    except ImportError:
        raise NotSupported("search=ann needs FAISS: pip install 'clickbridge[ann]', or use search=exact") from None
    return library


@stored
@dataclass(frozen=True, eq=False)
class Cells:
    """`centres` has a unit row for each cell. `of_item` has the cell of each item; -1 for hidden items."""

    centres: Array
    of_item: Array

    def check_stored(self) -> None:
        expect("centres", self.centres, (None, None))
        cells = self.of_item + 1 if self.of_item.dtype.kind == "i" else self.of_item
        expect("cells of items", cells, (None,), "i", len(self.centres) + 1)


def learn_cells(rows: Callable[[Array], Array], there: Array, seed: int) -> Cells:
    """Learns cells for the items in the mask `there`. `rows` returns the images of some items, so that not all of them
    have to be in memory."""
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
    """A dense index that searches only a share `probe` of the cells. The scores are exact, but items in other cells are
    missed. If this finds too few items for a query, it is searched exactly."""

    def __init__(self, images: Array, scorable: Array, cells: Cells, probe: float) -> None:
        super().__init__(images, scorable)
        self.cells, self.probe = cells, probe
        self._lists = self._fill()

    def __reduce__(self) -> Any:
        """Pickles the arrays. FAISS's own lists are filled again on loading."""
        return AnnIndex, (self.images, self.scorable, self.cells, self.probe)

    def _fill(self) -> Any:
        library = faiss()
        n_cells, width = self.cells.centres.shape
        directions = library.IndexFlatIP(width)
        # A query needs large inner products, not small angles, so the length of the items in a cell counts, too.
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

    def search(self, image: Array, k: int) -> Found:
        return self.search_many(image[None, :], k)[0]

    def search_many(self, images: Array, k: int, engine: Engine | None = None) -> list[Found]:
        if k >= self.probe * self.n_items or not len(images):
            return super().search_many(images, k, engine)
        near = self._lists.search(np.ascontiguousarray(images, dtype=np.float32), k)[1]
        out: list[Found] = []
        for image, found in zip(images, near, strict=True):
            if not image.any():
                out.append((np.empty(0, dtype=np.int64), np.empty(0)))
            elif found.min() < 0:
                out.append(super().search(image, k))
            else:
                scores = self.score(image, found)
                order = np.lexsort((found, -scores))
                out.append((found[order], scores[order]))
        return out
