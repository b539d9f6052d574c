"""Estimates the size of W = X' R Y (13, eq. (2)) without forming it: counts multiplications, and samples non-zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def products_of(x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array) -> float:
    """The number of multiplications to form X' R Y."""
    return float(np.diff(x.indptr) @ _entries_reached(r, y))


def _entries_reached(r: sparse.csr_array, y: sparse.csr_array) -> Any:
    """For each query, the features of all its clicked documents."""
    return np.asarray((r != 0).astype(np.float64) @ np.diff(y.indptr).astype(np.float64))


def nonzeros_of_w(
    x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array, *, rows: int, exact_up_to: float = 0.0, seed: int = 0
) -> tuple[int, bool]:
    """nnz(X' R Y), and whether it is exact. It is exact if W has at most `rows` non-empty rows, or needs at most
    `exact_up_to` multiplications. Otherwise it is estimated from `rows` rows, stratified by their multiplications."""
    x_t = sparse.csr_array(x.T)
    weight = np.asarray(abs(x_t) @ _entries_reached(r, y))
    filled = np.flatnonzero(weight)
    products = products_of(x, r, y)
    exact = len(filled) <= rows or products <= exact_up_to
    picked = filled
    if not exact:
        # Equal steps along the rows in order of their weight: every stratum is there.
        by_weight = filled[np.argsort(weight[filled], kind="stable")]
        offset = np.random.default_rng(seed).random()
        picked = np.sort(by_weight[((np.arange(rows) + offset) * len(filled) / rows).astype(int)])
    if not len(picked):
        return 0, True
    found = int(sparse.csr_array(x_t[picked] @ r @ y).nnz)
    return min(int(found * len(filled) / len(picked)), int(products)), exact
