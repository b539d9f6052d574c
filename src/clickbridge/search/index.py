"""An index of document images with exact top-k."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.numerics.topk import paired_dots, sparse_topk

Array = np.ndarray[Any, Any]


class SparseIndex:
    """Images are the rows of a sparse matrix. The inverted form is made on the first search."""

    def __init__(self, images: sparse.csr_array, threads: int = 0) -> None:
        self.images = images
        self.threads = threads

    @cached_property
    def _inverted(self) -> sparse.csr_array:
        return sparse.csr_array(self.images.T.tocsr())

    def search(self, queries: sparse.csr_array, k: int) -> tuple[Array, Array, Array]:
        """(items, scores, counts) of the k best images that share a feature with each query row."""
        return sparse_topk(queries, self._inverted, k, self.threads)

    def score(self, queries: sparse.csr_array, indptr: Array, items: Array) -> Array:
        """Scores of given items, list after list; -inf where the item is -1 (unknown)."""
        known = items >= 0
        scores = paired_dots(queries, self.images, indptr, np.where(known, items, 0), self.threads)
        return np.where(known, scores, -np.inf)
