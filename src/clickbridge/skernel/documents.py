"""How alike two documents are: k_D, the cosine of rows of features (Wu et al. 2011, Section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.numerics.gram import rows_kernel
from clickbridge.views.view import KINDS, Source, unit_rows

Array = np.ndarray[Any, Any]


class DocumentKernel:
    """k_D: the cosine of documents' rows, sparse or dense."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self.present = np.diff(rows.indptr) > 0 if sparse.issparse(rows) else rows.any(axis=1)

    def block(self, one: Array, two: Array) -> Array:
        if sparse.issparse(self.rows):
            return rows_kernel(self.rows, one, self.rows, two)
        # Not a matrix product: its rounding depends on the shape, and a score must not depend on the list.
        return np.einsum("ik,jk->ij", self.rows[one].astype(np.float64), self.rows[two].astype(np.float64))


def view_rows(terms: Sequence[str], source: Source, language: str) -> sparse.csr_array:
    """Unit rows of several views of documents side by side: k_D is the mean of their cosines over what each has."""
    blocks = []
    for term in terms:
        kind, _, argument = term.partition(":")
        if kind not in KINDS:
            raise SettingError(f"no view {term!r}; there are {', '.join(KINDS)}, as word:title")
        blocks.append(KINDS[kind](argument, language, "keep").fit(source))
    return unit_rows(sparse.csr_array(sparse.hstack(blocks, format="csr")))
