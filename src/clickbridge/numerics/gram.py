"""Kernels between chosen rows of sparse matrices: small dense blocks out of large sparse data.

One loop serves all: a row is spread out once, then met by every other row's entries. What an entry adds is
the product (dot products, cosines), or the Jensen-Shannon term of two shares p and q,

    (p ln((p + q)/p) + q ln((p + q)/q)) / (2 ln 2),

whose sum over shared entries is 1 - JSD(p, q) in bits: entries that only one row has add nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
DOT, JENSEN_SHANNON = 0, 1


@kernel
def _block(  # type: ignore[no-untyped-def]
    a_indptr, a_indices, a_data, a_rows, b_indptr, b_indices, b_data, b_rows, width, term, symmetric, out
):
    wide = np.zeros(width, dtype=np.float64)
    for i in range(len(a_rows)):
        start, stop = a_indptr[a_rows[i]], a_indptr[a_rows[i] + 1]
        for p in range(start, stop):
            wide[a_indices[p]] = a_data[p]
        for j in range(i if symmetric else 0, len(b_rows)):
            total = 0.0
            for p in range(b_indptr[b_rows[j]], b_indptr[b_rows[j] + 1]):
                x, y = wide[b_indices[p]], np.float64(b_data[p])
                if term == DOT:
                    total += x * y
                elif x > 0.0 and y > 0.0:
                    total += (x * np.log((x + y) / x) + y * np.log((x + y) / y)) / (2 * np.log(2.0))
            out[i, j] = total
            if symmetric:
                out[j, i] = total
        for p in range(start, stop):
            wide[a_indices[p]] = 0.0


def rows_kernel(a: sparse.csr_array, a_rows: Array, b: sparse.csr_array, b_rows: Array, term: int = DOT) -> Array:
    """out[i, j] = sum over shared columns of term(a[a_rows[i]], b[b_rows[j]]); rows with themselves: half the work."""
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"rows of {a.shape[1]} and {b.shape[1]} columns have no kernel")
    out = np.zeros((len(a_rows), len(b_rows)))
    one, two = (np.ascontiguousarray(rows, dtype=np.int64) for rows in (a_rows, b_rows))
    symmetric = a is b and a_rows is b_rows
    left, right = ((m.indptr, m.indices, m.data) for m in (a, b))
    _block(*left, one, *right, two, a.shape[1], term, symmetric, out)
    return out
