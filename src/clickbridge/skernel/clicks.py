"""Kernels between queries by the documents clicked for them (Wu et al. 2011, Section 6), positive semi-definite."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.numerics.gram import DOT, JENSEN_SHANNON, rows_kernel

Array = np.ndarray[Any, Any]
CLICK_KERNELS = ("pearson", "cosine", "jaccard", "jensen-shannon")


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
