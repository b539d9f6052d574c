"""Kernels between queries by the documents clicked for them (Wu et al. 2011, Section 6), positive semi-definite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.numerics.gram import DOT, JENSEN_SHANNON, rows_kernel

Array = np.ndarray[Any, Any]
CLICK_KERNELS = ("pearson", "pearson-union", "cosine", "jaccard", "jensen-shannon")


@dataclass(frozen=True, eq=False)
class ClickKernel:
    """A kernel between queries by the documents clicked for them; 1 for a query with itself.

    pearson         correlation of click counts over *all* documents of the collection. Over the documents of the two
                    queries only, as in the paper, it is not positive semi-definite.
    pearson-union   equation (9) as printed: over the documents clicked for either query. 0 where it is undefined, such
                    as for two queries with one shared document; 1 for a query with itself
    cosine          of click counts
    jaccard         shared documents over all documents of either
    jensen-shannon  1 - the divergence, in bits, of the two distributions of clicks

    `rows` are scaled so that most of the kernel is a dot product. `present` are the queries with a kernel value. For
    pearson-union, `rows` are the counts, `shift` their sums and `size` their sums of squares.
    """

    kind: str
    rows: sparse.csr_array
    present: Array
    shift: Array
    size: Array

    @classmethod
    def of(cls, kind: str, clicks: sparse.csr_array) -> ClickKernel:
        if kind not in CLICK_KERNELS:
            raise SettingError(f"click_kernel must be one of {', '.join(CLICK_KERNELS)}; got {kind!r}")
        rows = sparse.csr_array(clicks, dtype=np.float64, copy=True)
        total, square = (np.asarray(m.sum(axis=1)).ravel() for m in (rows, rows.multiply(rows)))
        n = rows.shape[1]
        spread = square - total**2 / max(n, 1) if kind == "pearson" else square
        # A row with equal counts everywhere does not vary, so it has no correlation with anything.
        present = spread > 1e-12 * np.maximum(square, 1e-300)
        if kind == "pearson-union":
            return cls(kind, rows, present, total, square)
        spread = np.sqrt(np.where(present, spread, 1.0))
        shift = np.where(present, total / spread / np.sqrt(max(n, 1)), 0.0)
        entries = np.diff(rows.indptr)
        if kind == "jaccard":
            rows.data = np.ones(rows.nnz)
        else:
            scale = total if kind == "jensen-shannon" else spread
            rows.data = rows.data / np.repeat(np.where(scale > 0, scale, 1), entries)
        return cls(kind, rows, present, shift, entries.astype(np.float64))

    def block(self, one: Array, two: Array) -> Array:
        """Kernel values between the queries `one` and the queries `two`; 0 for a query without clicks."""
        if self.kind == "pearson-union":
            return self._over_union(one, two)
        term = JENSEN_SHANNON if self.kind == "jensen-shannon" else DOT
        out = rows_kernel(self.rows, one, self.rows, two, term)
        if self.kind == "pearson":
            out -= np.outer(self.shift[one], self.shift[two])
        elif self.kind == "jaccard":
            out /= np.maximum(self.size[one][:, None] + self.size[two][None, :] - out, 1.0)
        return out * np.outer(self.present[one], self.present[two])

    def _over_union(self, one: Array, two: Array) -> Array:
        """Equation (9) from sums: over n documents, sum (u - mean u)(v - mean v) = u'v - (sum u)(sum v) / n."""
        counts = self.rows
        marks = sparse.csr_array((np.ones(counts.nnz), counts.indices, counts.indptr), shape=counts.shape)
        lengths = np.diff(counts.indptr)
        n = lengths[one][:, None] + lengths[two] - rows_kernel(marks, one, marks, two, DOT)
        n = np.maximum(n, 1.0)
        covariance = rows_kernel(counts, one, counts, two, DOT) - np.outer(self.shift[one], self.shift[two]) / n
        spread = [
            (self.size[one] - self.shift[one] ** 2 / n.T).T,
            self.size[two] - self.shift[two] ** 2 / n,
        ]
        # Equal counts, or a single document, have no correlation.
        product = np.where((spread[0] > 1e-9) & (spread[1] > 1e-9), spread[0] * spread[1], 0.0)
        out = np.divide(covariance, np.sqrt(product), out=np.zeros_like(covariance), where=product > 0)
        out[one[:, None] == two] = 1.0
        return out * np.outer(self.present[one], self.present[two])
