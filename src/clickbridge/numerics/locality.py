"""Sparse rows times a wide dense matrix, in an order that finds much of it in the cache.

A row of W reads as many rows of the matrix as it has numbers, 4 kB each at d = 1000, from all over hundreds of MB. Rows
of W whose largest number is in the same column are about the same thing and share others too: worked on one after the
other, they read again what was just read. A row of the product is the same sum whenever it is taken.
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
    """The column of the largest number of each row, the first of equals; -1 for an empty row."""
    for i in range(len(out)):
        out[i], most = -1, -1.0
        for p in range(indptr[i], indptr[i + 1]):
            if abs(data[p]) > most:
                out[i], most = indices[p], abs(data[p])


def neighbours_together(a: sparse.csr_array) -> Array:
    """Row numbers, those with the largest number in the same column one after the other."""
    columns = np.empty(a.shape[0], dtype=np.int64)
    _largest(a.indptr, a.indices, a.data, columns)
    return np.argsort(columns, kind="stable")


@kernel
def _rows_in_order(indptr, indices, data, dense, order, start, stop, out):  # type: ignore[no-untyped-def]
    for i in order[start:stop]:
        rows_times(indptr, indices, data, dense, i, i + 1, out, 0)


def product_in_order(a: sparse.csr_array, dense: Array, order: Array, engine: Engine) -> Array:
    """`a @ dense`, rows in the given order, by the engine's threads."""
    out = np.empty((a.shape[0], dense.shape[1]), dtype=dense.dtype)
    ends = np.concatenate([[0], np.cumsum(np.diff(a.indptr)[order])])

    def work(bounds: tuple[int, int]) -> None:
        _rows_in_order(a.indptr, a.indices, a.data, dense, order, *bounds, out)

    for _ in engine.map(work, row_blocks(ends)):
        pass
    return out
