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

from clickbridge.engines.base import Engine
from clickbridge.numerics.csr import rows_times
from clickbridge.numerics.threads import kernel, over_rows, prefetch, unsigned

Array = np.ndarray[Any, Any]
BLOCK_ROWS = 2048
"""Rows worked on at once. Fixed, so that results do not depend on the number of threads."""
AHEAD = 2
"""How many turns ahead a row of a map is fetched. Rows lie anywhere in memory, and waiting for one takes longer than
adding it up."""
LINKS = 256
"""Links of a row that are collected before what they lead to is added up."""


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
        return self._as_csr()

    def _as_csr(self) -> sparse.csr_array:
        """Not kept. Its indices are a copy, as large as the numbers."""
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
        csr = self._as_csr()
        if self.nnz <= 0.05 * self.shape[0] * self.width:
            return (csr.T @ csr).toarray()
        total = np.zeros((self.width, self.width))
        for start in range(0, self.shape[0], BLOCK_ROWS):
            block = csr[start : start + BLOCK_ROWS].toarray()
            total += block.T @ block
        return total

    def row_norms(self) -> Array:
        return np.sqrt(self.sums()[0])

    def sums(self) -> tuple[Array, Array]:
        """The sum of squares of each row, and the sum of all rows."""
        squares, total = np.zeros(self.shape[0]), np.zeros(self.width)
        _sum_rows(self.indptr, unsigned(self.indices), self.data, squares, total)
        return squares, total


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
    squares, total = rows.sums()
    lengths = np.sqrt(squares)
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
        row, own = out[i - start], slice(indptr[i], indptr[i + 1])
        row[:] = 0
        _add_rows(indices[own], data[own], l_indptr, l_indices, l_data, row)


@kernel
def _add_rows(items, values, l_indptr, l_indices, l_data, total):  # type: ignore[no-untyped-def]
    """Adds rows of a map, times a value each, to a dense row."""
    for t in range(len(items)):
        if t + AHEAD < len(items):
            first, end = l_indptr[items[t + AHEAD]], l_indptr[items[t + AHEAD] + 1]
            for q in range(first, end, 16):  # a line of the cache has 64 bytes
                prefetch(l_data, q)
            for q in range(first, end, 32):
                prefetch(l_indices, q)
        value, first, end = values[t], l_indptr[items[t]], l_indptr[items[t] + 1]
        columns, entries = l_indices[first:end], l_data[first:end]
        for q in range(len(columns)):
            total[columns[q]] += value * entries[q]


def images_of(features: sparse.csr_array, maps: Maps, engine: Engine) -> Maps:
    """features @ maps: a dense array if the map is dense, or if sparse rows would take more memory."""
    if not isinstance(maps, SparseRows):
        return engine.times(features, maps)
    n_rows, width = features.shape[0], maps.width
    own = features.indptr, features.indices, features.data, maps.indptr, unsigned(maps.indices), maps.data
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    over_rows(n_rows, engine, lambda start, stop: _count_images(*own[:2], *own[3:5], width, start, stop, indptr[1:]))
    np.cumsum(indptr, out=indptr)
    n, places = int(indptr[-1]), index_type(width)
    if n * (places(0).itemsize + 4) > n_rows * width * 4:
        return engine.times(features, maps.dense())
    indices, data = np.empty(n, dtype=places), np.empty(n, dtype=maps.data.dtype)
    over_rows(n_rows, engine, lambda start, stop: _fill_images(*own, width, start, stop, indptr, indices, data))
    return SparseRows(indptr, indices, data, width)


@kernel
def _count_images(indptr, indices, l_indptr, l_indices, width, start, stop, counts):  # type: ignore[no-untyped-def]
    last = np.full(width, -1, dtype=np.int64)
    for i in range(start, stop):
        n = 0
        for p in range(indptr[i], indptr[i + 1]):
            for column in l_indices[l_indptr[indices[p]] : l_indptr[indices[p] + 1]]:
                if last[column] != i:
                    last[column] = i
                    n += 1
        counts[i] = n


@kernel
def _fill_images(  # type: ignore[no-untyped-def]
    indptr, indices, data, l_indptr, l_indices, l_data, width, start, stop, out_indptr, out_indices, out_data
):
    """Columns are in the order in which a row meets them."""
    last, place = np.full(width, -1, dtype=np.int64), np.empty(width, dtype=np.int64)
    for i in range(start, stop):
        end = out_indptr[i]
        for p in range(indptr[i], indptr[i + 1]):
            value, first = data[p], l_indptr[indices[p]]
            columns, entries = l_indices[first : l_indptr[indices[p] + 1]], l_data[first : l_indptr[indices[p] + 1]]
            for q in range(len(columns)):
                column = columns[q]
                if last[column] == i:
                    out_data[place[column]] += value * entries[q]
                else:
                    last[column], place[column] = i, end
                    out_indices[end], out_data[end] = column, value * entries[q]
                    end += 1


def linked_product(
    a: sparse.csr_array, links: sparse.csr_array, images: Maps, start: int, stop: int, out: Array
) -> Array:
    """Rows `start` to `stop` of a @ links @ images, dense, into the first rows of `out`. For sparse images, a @ links
    is not formed."""
    if not isinstance(images, SparseRows):
        return block_product(_rows_of_product(a, links, start, stop), images, 0, stop - start, out)
    block = out[: stop - start]
    own = a.indptr, a.indices, a.data, links.indptr, links.indices, links.data
    _linked_times_sparse(*own, images.indptr, unsigned(images.indices), images.data, start, stop, block)
    return block


def _rows_of_product(a: sparse.csr_array, b: sparse.csr_array, start: int, stop: int) -> sparse.csr_array:
    """Rows `start` to `stop` of a @ b. Only columns that occur take part: SciPy's product clears an array as long as a
    row, which for few rows and millions of columns takes far longer than the product."""
    own = a[start:stop]
    rows, row_of = np.unique(own.indices, return_inverse=True)
    used = b[rows]
    columns, column_of = np.unique(used.indices, return_inverse=True)
    left = sparse.csr_array((own.data, row_of, own.indptr), shape=(stop - start, len(rows)))
    right = sparse.csr_array((used.data, column_of, used.indptr), shape=(len(rows), len(columns)))
    made = left @ right
    return sparse.csr_array((made.data, columns[made.indices], made.indptr), shape=(stop - start, b.shape[1]))


@kernel
def _linked_times_sparse(  # type: ignore[no-untyped-def]
    a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, l_indptr, l_indices, l_data, start, stop, out
):
    items, values = np.empty(LINKS, dtype=np.int64), np.empty(LINKS, dtype=l_data.dtype)
    for i in range(start, stop):
        row, n = out[i - start], 0
        row[:] = 0
        for p in range(a_indptr[i], a_indptr[i + 1]):
            for s in range(b_indptr[a_indices[p]], b_indptr[a_indices[p] + 1]):
                items[n], values[n] = b_indices[s], a_data[p] * b_data[s]
                n += 1
                if n == LINKS:
                    _add_rows(items[:n], values, l_indptr, l_indices, l_data, row)
                    n = 0
        _add_rows(items[:n], values, l_indptr, l_indices, l_data, row)


@kernel
def _sum_rows(indptr, indices, data, squares, total):  # type: ignore[no-untyped-def]
    for i in range(len(squares)):
        square = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[p])
            square += value * value
            total[indices[p]] += value
        squares[i] = square


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
