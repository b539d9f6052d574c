"""Sparse rows of bounded width, and the blocks of rows that make them.

A map L has a row for each feature and `width` latent dimensions, few of them used: int16 column numbers
(where the width allows) and float32 values, 6 bytes a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.numerics.csr import rows_times
from clickbridge.numerics.threads import kernel, unsigned
from clickbridge.numerics.topk import add_up

Array = np.ndarray[Any, Any]
BLOCK_ROWS = 2048
"""Rows worked on at once. Fixed, so that results do not depend on the number of threads."""


@dataclass(frozen=True)
class SparseRows:
    indptr: Array
    indices: Array
    data: Array
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.width

    def check(self, shape: tuple[int, int]) -> None:
        """Refuses places that are not there, with a ValueError: the loops below do not look."""
        n, places = int(self.indptr[-1]), self.indices
        whole = self.shape == shape and places.shape == self.data.shape == (n,)
        if not whole or places.dtype.kind not in "iu" or self.data.dtype.kind != "f":
            raise ValueError("rows that do not fit together")
        if n and not 0 <= int(places.min()) <= int(places.max()) < self.width:
            raise ValueError("a place that is not there")

    @property
    def nnz(self) -> int:
        return len(self.indices)

    @cached_property
    def csr(self) -> sparse.csr_array:
        return sparse.csr_array((self.data, self.indices.astype(np.int32), self.indptr), shape=self.shape)

    def __getitem__(self, rows: Array) -> Array:
        """Some rows, dense."""
        return self.csr[rows].toarray()

    def dense(self, start: int = 0, stop: int | None = None) -> Array:
        """Columns `start` to `stop`, dense."""
        stop = self.width if stop is None else stop
        out = np.zeros((self.shape[0], stop - start), dtype=self.data.dtype)
        _spread(self.indptr, self.indices, self.data, start, stop, out)
        return out

    def scaled(self, factor: float) -> SparseRows:
        return SparseRows(self.indptr, self.indices, self.data * np.float32(factor), self.width)

    def gram(self) -> Array:
        """L'L; through dense blocks where rows are not so sparse that pairs of their entries are few."""
        if self.nnz <= 0.05 * self.shape[0] * self.width:
            return (self.csr.T @ self.csr).toarray()
        total = np.zeros((self.width, self.width))
        for start in range(0, self.shape[0], BLOCK_ROWS):
            block = self.csr[start : start + BLOCK_ROWS].toarray()
            total += block.T @ block
        return total

    def row_norms(self) -> Array:
        squares = np.add.reduceat(np.append(self.data.astype(np.float64) ** 2, 0.0), self.indptr[:-1])
        return np.sqrt(np.where(np.diff(self.indptr) > 0, squares, 0.0))


Maps = SparseRows | Array


@dataclass(frozen=True)
class Survey:
    """The rows of a map in numbers: non-zeros and the sum of their sizes, the longest row, the sum of all lengths, the
    sum of all rows; and L'L, where it was asked for. Those of parts add up to that of the whole."""

    nnz: int
    size: float
    longest: float
    lengths: float
    total: Array
    gram: Any  # an array, or None

    def __add__(self, other: Survey) -> Survey:
        gram = None if self.gram is None or other.gram is None else self.gram + other.gram
        longest, lengths = max(self.longest, other.longest), self.lengths + other.lengths
        return Survey(self.nnz + other.nnz, self.size + other.size, longest, lengths, self.total + other.total, gram)

    @property
    def cosine_to_constant(self) -> float:
        """How far all rows point one way: |sum of rows| over the sum of their lengths, 1 when collapsed."""
        return float(np.linalg.norm(self.total)) / self.lengths if self.lengths else 0.0


def surveyed(maps: Maps, gram: bool = False) -> Survey:
    rows = maps if isinstance(maps, SparseRows) else sparse_rows(maps)
    lengths, total = rows.row_norms(), np.zeros(rows.width)
    np.add.at(total, rows.indices.astype(np.int64), rows.data)
    longest = float(lengths.max(initial=0.0))
    size = float(np.abs(rows.data).sum(dtype=np.float64))
    return Survey(rows.nnz, size, longest, float(lengths.sum()), total, rows.gram() if gram else None)


def scaled_block(block: Maps, factors: Array | float) -> Maps:
    """Columns, or everything, times a factor; a dense block in its place."""
    if isinstance(block, SparseRows):
        return block.scaled(float(factors))
    block *= np.asarray(factors, dtype=block.dtype)
    return block


def index_type(width: int) -> Any:
    return np.int16 if width <= np.iinfo(np.int16).max else np.int32


def sparse_rows(matrix: Any) -> SparseRows:
    """From a dense array or a SciPy matrix."""
    csr = sparse.csr_array(matrix)
    csr.eliminate_zeros()
    width = int(csr.shape[1])
    return SparseRows(csr.indptr.astype(np.int64), csr.indices.astype(index_type(width)), csr.data, width)


def stacked(blocks: list[SparseRows], width: int, dtype: Any = np.float32) -> SparseRows:
    """Blocks of rows, one below the other."""
    if not blocks:
        return SparseRows(np.zeros(1, np.int64), np.empty(0, index_type(width)), np.empty(0, dtype), width)
    ends = np.cumsum([0, *(block.nnz for block in blocks)])
    indptr = np.concatenate([[0], *(b.indptr[1:] + end for b, end in zip(blocks, ends[:-1], strict=True))])
    return SparseRows(
        indptr, np.concatenate([b.indices for b in blocks]), np.concatenate([b.data for b in blocks]), width
    )


def joined(parts: list[Any], width: int, dense: bool) -> Maps:
    """Parts of a map, one below the other."""
    if not dense:
        return stacked(parts, width)
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros((0, width), np.float32)


def dense_columns(maps: Maps, start: int, stop: int) -> Array:
    """Some columns of a map, dense."""
    return maps.dense(start, stop) if isinstance(maps, SparseRows) else np.ascontiguousarray(maps[:, start:stop])


def compressed(block: Array) -> SparseRows:
    """The non-zeros of a dense block."""
    counts = np.zeros(len(block), dtype=np.int64)
    _count(block, counts)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(int(indptr[-1]), dtype=index_type(block.shape[1]))
    data = np.empty(int(indptr[-1]), dtype=block.dtype)
    _compress(block, indptr, indices, data)
    return SparseRows(indptr, indices, data, block.shape[1])


def row_blocks(indptr: Array, most: int = BLOCK_ROWS) -> list[tuple[int, int]]:
    """Consecutive rows in blocks of at most `most` rows and about equal non-zeros."""
    n_rows, nnz = len(indptr) - 1, int(indptr[-1])
    share = max(2 * nnz * most // max(n_rows, 1), 1)
    bounds = [0]
    while bounds[-1] < n_rows:
        heavy = int(np.searchsorted(indptr, indptr[bounds[-1]] + share, side="right")) - 1
        bounds.append(min(max(heavy, bounds[-1] + 1), bounds[-1] + most, n_rows))
    return list(pairwise(bounds))


def block_product(a: sparse.csr_array, maps: Maps, start: int, stop: int, out: Array) -> Array:
    """Rows `start` to `stop` of a @ maps, dense, into the first rows of `out`."""
    block = out[: stop - start]
    if isinstance(maps, SparseRows):
        own = maps.indptr, unsigned(maps.indices), maps.data
        _times_sparse(a.indptr, a.indices, a.data, *own, start, stop, block)
    else:
        rows_times(a.indptr, a.indices, a.data, maps, start, stop, block, start)
    return block


@kernel
def _times_sparse(indptr, indices, data, l_indptr, l_indices, l_data, start, stop, out):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        row = out[i - start]
        row[:] = 0
        for p in range(indptr[i], indptr[i + 1]):
            value, first, end = data[p], l_indptr[indices[p]], l_indptr[indices[p] + 1]
            columns, entries = l_indices[first:end], l_data[first:end]
            for q in range(len(columns)):
                row[columns[q]] += value * entries[q]


LINE = 16
"""Numbers of four bytes in a line of the cache."""
FETCHED = 256
"""Rows that are fetched from memory before they are used: they come while others are still on their way."""
WIDEST = 128
"""Numbers of the longest row that is packed."""


class PackedRows:
    """A sparse map whose rows have about as many numbers each: numbers and columns of a row in one place, whole lines
    of the cache. Where rows are needed in no order, memory is asked for once a row."""

    def __init__(self, maps: SparseRows, most: int) -> None:
        self.most = most
        width = -(-(most + (most + 1) // 2) // LINE) * LINE
        self.numbers = np.zeros((len(maps.indptr) - 1, width), dtype=np.float32)
        columns = self.numbers.view(np.uint16)
        _pack(maps.indptr, unsigned(maps.indices), maps.data, self.numbers, columns, 2 * most)


def packed(maps: SparseRows) -> PackedRows | None:
    """None where rows differ too much, or are too long: most of it would be empty."""
    most = int(np.diff(maps.indptr).max(initial=0))
    even = 0 < most <= WIDEST and most * (len(maps.indptr) - 1) <= 2 * maps.nnz and maps.width <= 2**15
    return PackedRows(maps, most) if even and maps.data.dtype == np.float32 else None


class RowRoom:
    """Room for one row of a product of sparse matrices: its sums by column, and the columns it has."""

    def __init__(self, width: int, dtype: Any) -> None:
        self.sums = np.zeros(width, dtype=dtype)
        self.seen = np.zeros(width, dtype=np.uint8)
        self.columns = np.empty(width, dtype=np.int32)


def formed_product(
    a: sparse.csr_array, b: sparse.csr_array, maps: PackedRows, start: int, stop: int, out: Array, room: RowRoom
) -> Array:
    """Rows `start` to `stop` of a @ b @ maps, dense, into the first rows of `out`; a @ b a row at a time, each with its
    columns in the order in which SciPy has them, so that the sums have the bits of `block_product`."""
    block = out[: stop - start]
    fetched = np.empty((FETCHED, maps.numbers.shape[1]), dtype=np.float32)
    own = maps.numbers, fetched, fetched.view(np.uint16), maps.most
    rows = a.indptr, a.indices, a.data, b.indptr, b.indices, b.data
    _formed_times_packed(*rows, *own, start, stop, block, room.sums, room.seen, room.columns)
    return block


@kernel
def _pack(indptr, indices, data, numbers, columns, first):  # type: ignore[no-untyped-def]
    for i in range(numbers.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            place = p - indptr[i]
            numbers[i, place], columns[i, first + place] = data[p], indices[p]


@kernel
def _formed_times_packed(  # type: ignore[no-untyped-def]
    a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, numbers, fetched, fetched_columns, most, start, stop, out,
    sums, seen, found,
):  # fmt: skip
    for i in range(start, stop):
        own = slice(a_indptr[i], a_indptr[i + 1])
        n = add_up(a_indices[own], a_data[own], b_indptr, b_indices, b_data, sums, seen, found)
        row = out[i - start]
        row[:] = 0
        while n > 0:
            some = min(n, len(fetched))
            for p in range(some):
                for q in range(numbers.shape[1]):
                    fetched[p, q] = numbers[found[n - 1 - p], q]
            for p in range(some):
                column = found[n - 1 - p]
                value = sums[column]
                sums[column], seen[column] = 0, 0
                for q in range(most):
                    row[fetched_columns[p, 2 * most + q]] += value * fetched[p, q]
            n -= some


@kernel
def _spread(indptr, indices, data, start, stop, out):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            if start <= indices[p] < stop:
                out[i, indices[p] - start] = data[p]


@kernel
def _count(block, counts):  # type: ignore[no-untyped-def]
    for i in range(block.shape[0]):
        n = 0
        for c in range(block.shape[1]):
            n += block[i, c] != 0
        counts[i] = n


@kernel
def _compress(block, indptr, indices, data):  # type: ignore[no-untyped-def]
    for i in range(block.shape[0]):
        at = indptr[i]
        for c in range(block.shape[1]):
            if block[i, c] != 0:
                indices[at], data[at] = c, block[i, c]
                at += 1
