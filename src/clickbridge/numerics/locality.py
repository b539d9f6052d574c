"""Sparse rows times a wide dense matrix, in an order that makes good use of the cache.

A row of W reads a row of the matrix for each of its non-zeros: 4 kB each at d = 1000, anywhere in hundreds of MB. Rows
of W with their largest value in the same column are similar and share other columns, too. If they follow each other,
most of what they read is still in the cache. The order does not change the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.numerics.csr import rows_times
from clickbridge.numerics.rows import row_blocks
from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]


@kernel
def _largest(indptr, indices, data, out):  # type: ignore[no-untyped-def]
    """The column of the largest absolute value of each row, the first of equals; -1 for an empty row."""
    for i in range(len(out)):
        out[i], most = -1, -1.0
        for p in range(indptr[i], indptr[i + 1]):
            if abs(data[p]) > most:
                out[i], most = indices[p], abs(data[p])


def neighbours_together(a: sparse.csr_array) -> Array:
    """Row numbers, ordered so that rows with their largest value in the same column follow each other."""
    columns = np.empty(a.shape[0], dtype=np.int64)
    _largest(a.indptr, a.indices, a.data, columns)
    return np.argsort(columns, kind="stable")


@kernel
def _rows_in_order(indptr, indices, data, dense, order, start, stop, out):  # type: ignore[no-untyped-def]
    for i in order[start:stop]:
        rows_times(indptr, indices, data, dense, i, i + 1, out, 0)


def product_in_order(a: sparse.csr_array, dense: Array, order: Array, engine: Engine) -> Array:
    """`a @ dense`, computed in the given order of rows, by the threads of the engine."""
    out = np.empty((a.shape[0], dense.shape[1]), dtype=dense.dtype)
    ends = np.concatenate([[0], np.cumsum(np.diff(a.indptr)[order])])

    def work(bounds: tuple[int, int]) -> None:
        _rows_in_order(a.indptr, a.indices, a.data, dense, order, *bounds, out)

    for _ in engine.map(work, row_blocks(ends)):
        pass
    return out
