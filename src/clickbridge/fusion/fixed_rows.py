"""Sparse rows as three read-only arrays of fixed types, which compiled loops can use directly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from clickbridge.fusion.fixed_arrays import Array, Value, frozen
from clickbridge.io.values import stored
from clickbridge.numerics.list_features import unit_data
from clickbridge.numerics.ragged import Ragged


@stored
@dataclass(frozen=True, eq=False, repr=False)
class FixedRows(Value):
    """Row i has the terms `indices[indptr[i]:indptr[i + 1]]`; `data` holds a number, or several, for each."""

    indptr: Array
    indices: Array
    data: Array

    def __post_init__(self) -> None:
        for name, kind in (("indptr", np.int64), ("indices", np.int32), ("data", np.float32)):
            object.__setattr__(self, name, frozen(getattr(self, name), kind))

    def fits(self, n_rows: int, width: int, several: bool = False) -> bool:
        """Whether the numbers of rows and terms are right, with one number or several for each entry, so that all
        indexes are in range."""
        ends = self.indptr
        if self.data.ndim != 1 + several:
            return False
        whole = ends.shape == (n_rows + 1,) and self.indices.shape == (ends[-1],) and len(self.data) == ends[-1]
        if not whole or ends[0] != 0 or (np.diff(ends) < 0).any():
            return False
        return not len(self.indices) or 0 <= self.indices.min() <= self.indices.max() < width

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> Self:
        matrix.sum_duplicates()
        return cls(matrix.indptr, matrix.indices, matrix.data)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        return self.indptr, self.indices, self.data

    @property
    def owner(self) -> Array:
        """The row of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def matrix(self, width: int) -> sparse.csr_array:
        return sparse.csr_array((self.data, self.indices, self.indptr), shape=(len(self), width))

    def transposed(self, width: int) -> FixedRows:
        """A row for each of the `width` terms."""
        return FixedRows.of(sparse.csr_array(self.matrix(width).T))

    def take(self, rows: Array) -> FixedRows:
        ragged, entries = Ragged(self.indptr).rows_of(rows)
        return FixedRows(ragged.indptr, self.indices[entries], self.data[entries])

    def with_data(self, data: Array) -> FixedRows:
        return FixedRows(self.indptr, self.indices, data)

    def column(self, number: int) -> FixedRows:
        """A copy with only one of the several numbers for each entry."""
        return self.with_data(self.data[:, number])

    def unit(self, scale: Array | None = None) -> FixedRows:
        """Rows of length 1, after each number is multiplied by the `scale` of its term. Zero rows stay zero."""
        return FixedRows(*self.unit_arrays(scale))

    def unit_arrays(self, scale: Array | None = None) -> tuple[Array, Array, Array]:
        """The same as plain arrays, for compiled loops."""
        return self.indptr, self.indices, unit_data(*self.arrays, scale)

    def frequency(self, width: int) -> Array:
        """The number of rows in which each of `width` terms occurs."""
        return np.bincount(self.indices, minlength=width)

    def sums(self) -> Array:
        return np.bincount(self.owner, weights=self.data, minlength=len(self))
