"""One sparse row as two plain arrays, for single queries.

Creating a SciPy matrix takes tens of microseconds, however small it is. Answering one query creates none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

Array = np.ndarray[Any, Any]


class Row(NamedTuple):
    """Column numbers in increasing order, and their values."""

    columns: Array
    values: Array

    def __bool__(self) -> bool:
        return len(self.columns) > 0

    def unit(self) -> Row:
        """The row scaled to length 1. An empty row, or one of zeros, is returned unchanged."""
        length = float(np.sqrt(self.values @ self.values)) if len(self.values) else 0.0
        return Row(self.columns, self.values / np.float32(length)) if length > 0 else self

    def scaled(self, factor: float) -> Row:
        return Row(self.columns, self.values * factor)


NO_COLUMNS = np.empty(0, dtype=np.int32)
EMPTY = Row(NO_COLUMNS, np.empty(0, dtype=np.float32))


def row_of(matrix: sparse.csr_array, number: int) -> Row:
    """Row `number` of a matrix, without a copy."""
    start, stop = matrix.indptr[number], matrix.indptr[number + 1]
    return Row(matrix.indices[start:stop], matrix.data[start:stop])


def counted(columns: Sequence[int]) -> Row:
    """How often each number occurs."""
    if not columns:
        return EMPTY
    counts: dict[int, int] = {}
    for column in columns:
        counts[column] = counts.get(column, 0) + 1
    there = sorted(counts)
    return Row(np.array(there, dtype=np.int32), np.array([counts[c] for c in there], dtype=np.float32))


def side_by_side(rows: Sequence[Row], starts: Sequence[int]) -> Row:
    """Joins one row of each of several matrices into a row of the matrices stacked horizontally. `starts` has the first
    column of each matrix."""
    full = [(row, start) for row, start in zip(rows, starts, strict=True) if row]
    if not full:
        return EMPTY
    if len(full) == 1 and full[0][1] == 0:
        return full[0][0]
    return Row(
        np.concatenate([row.columns + np.int32(start) for row, start in full]),
        np.concatenate([row.values for row, _ in full]),
    )


def as_matrix(rows: Sequence[Row], width: int) -> sparse.csr_array:
    """A matrix of these rows."""
    indptr = np.concatenate([[0], np.cumsum([len(row.columns) for row in rows], dtype=np.int64)])
    columns = np.concatenate([NO_COLUMNS, *(row.columns for row in rows)])
    values = np.concatenate([EMPTY.values, *(row.values for row in rows)])
    parts: Any = (values, columns, indptr)
    return sparse.csr_array(parts, shape=(len(rows), width))


def gathered(indptr: Array, rows: Array) -> tuple[Array, Array]:
    """Positions of the entries of the given rows of a sparse matrix, row by row, and where each row begins."""
    starts = indptr[rows]
    lengths = indptr[rows + 1] - starts
    ends = np.cumsum(lengths)
    begins = ends - lengths
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - begins, lengths) + np.arange(total), begins


def segment_sums(values: Array, begins: Array) -> Array:
    """Sums of the segments that begin at `begins`; 0 for an empty segment."""
    if not len(values):
        return np.zeros(len(begins))
    out = np.add.reduceat(np.append(values, 0.0), begins)
    # reduceat gives an empty segment the value that follows it.
    empty = np.diff(begins, append=len(values)) == 0
    out[empty] = 0.0
    return out
