"""One half of an RMLS iteration (Wu et al. 2013, Algorithm 2): new rows of one side's map from the other's.

    omega_u = L' w_u                       the rows of W L
    l_u = C_u soft(omega_u, beta)          eq. (5), (6); C_u gives the row its length

Two steps beyond the paper, both off for the printed algorithm. *Decorrelation*: omega is multiplied by
(omega' omega)^(-p/2) before the threshold, which keeps rows from all turning to one direction (p = 1 is the
nearest matrix with orthonormal columns). *Norm power*: the length of a row is |omega_u|^k instead of the
same for all, so that a feature seen once does not weigh as much as one seen a thousand times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy
from scipy import sparse

from clickbridge.engines.base import Engine, default_engine
from clickbridge.numerics.locality import neighbours_together, product_in_order
from clickbridge.numerics.qr import mirrored
from clickbridge.numerics.rows import (
    BLOCK_ROWS,
    Maps,
    SparseRows,
    block_product,
    compressed,
    dense_columns,
    images_of,
    linked_product,
    row_blocks,
    stacked,
)
from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
ABSOLUTE, RELATIVE, DENSITY = 0, 1, 2
ROWS_AT_ONCE = 128
"""Rows that go through product, threshold and packing together: they stay in the cache."""
SMALLEST_EIGENVALUE = 1e-6
"""Of the largest: what is below is rounding of the Gram matrix, whose blocks are summed in float32, and is not blown up
by decorrelation."""


@dataclass(frozen=True)
class Shrinkage:
    """How a row of omega becomes a row of a map. `value`: the threshold, a multiple of the row's root mean
    square, or the share of a row to keep, by `mode`."""

    mode: int
    value: float
    theta: float = 1.0
    norm_power: float = 0.0
    decorrelate: float = 0.0


class Omega(Protocol):
    """The rows of W L, asked for by blocks."""

    blocks: list[tuple[int, int]]

    kept: bool
    """Whether the rows are in memory, so that to ask again costs nothing."""

    def block(self, start: int, stop: int, out: Array) -> Array:
        """Some rows, not to be written to; `out` has room for them."""
        ...


class KeptRows:
    """Rows that are in memory."""

    kept = True

    def __init__(self, omega: Array, blocks: list[tuple[int, int]]) -> None:
        self._omega, self.blocks = omega, blocks

    def block(self, start: int, stop: int, out: Array) -> Array:
        return self._omega[start:stop]


class ComputedRows:
    """Rows that are computed each time they are asked for."""

    kept = False

    def __init__(self, compute: Callable[[int, int, Array], Array], blocks: list[tuple[int, int]]) -> None:
        self.block, self.blocks = compute, blocks


class ProductRows(Protocol):
    """W for one side, in some form."""

    blocks: list[tuple[int, int]]

    chain: list[sparse.csr_array]
    """The matrices that a map goes through, the last one first in W."""

    def omega(self, maps: Maps, engine: Engine) -> Omega:
        """The rows of W L, L the other side's map."""
        ...


class FormedRows:
    """W itself. One sparse row after the other is added up in a buffer that stays in the cache; for dense maps all at
    once, in an order of its own."""

    def __init__(self, w: sparse.csr_array, blocks: list[tuple[int, int]] | None = None) -> None:
        self.chain = [w]
        self.blocks = row_blocks(w.indptr) if blocks is None else blocks

    def omega(self, maps: Maps, engine: Engine) -> Omega:
        return ComputedRows(partial(block_product, self.chain[0], maps), self.blocks)

    def whole(self, maps: Array, engine: Engine) -> Array:
        """All rows, for a dense map."""
        w = self.chain[0]
        return product_in_order(w, maps, neighbours_together(w), engine)


class ImageRows:
    """The factors of W = A M B. The map goes through B first, which gives sparse images of the other side's items. A
    row of W L is then a sum of images: of the items that are linked to it by clicks. W is never formed."""

    def __init__(self, outer: sparse.csr_array, middle: sparse.csr_array, inner: sparse.csr_array) -> None:
        self.chain = [inner, middle, outer]
        added = np.concatenate([[0], np.cumsum(np.diff(middle.indptr)[outer.indices], dtype=np.int64)])
        # Blocks add up about equal numbers of images: a common word has many.
        self.blocks = row_blocks(added[outer.indptr])

    def omega(self, maps: Maps, engine: Engine) -> Omega:
        inner, middle, outer = self.chain
        return ComputedRows(partial(linked_product, outer, middle, images_of(inner, maps, engine)), self.blocks)


class FactoredRows:
    """The same factors, W L = A (M (B L)). The two inner products are dense, `tile` columns at a time; the outer one is
    kept."""

    def __init__(self, outer: sparse.csr_array, middle: sparse.csr_array, inner: sparse.csr_array, tile: int) -> None:
        self.chain = [inner, middle, outer]
        self._tile = tile
        self.blocks = row_blocks(outer.indptr)

    def tiles(self, width: int) -> list[tuple[int, int]]:
        """The columns that go through together."""
        return [(start, min(start + self._tile, width)) for start in range(0, width, self._tile)]

    def through(self, part: Any, engine: Engine) -> Any:
        """Some columns of W L from the same columns of L, dense."""
        for matrix in self.chain:
            part = engine.times(matrix, part)
        return part

    def omega(self, maps: Maps, engine: Engine) -> Omega:
        tiles = self.tiles(maps.shape[1])
        if len(tiles) == 1:
            return KeptRows(self.through(dense_columns(maps, *tiles[0]), engine), self.blocks)
        out = np.empty((self.chain[-1].shape[0], maps.shape[1]), dtype=np.float32)
        for start, stop in tiles:
            out[:, start:stop] = self.through(dense_columns(maps, start, stop), engine)
        return KeptRows(out, self.blocks)


@dataclass(frozen=True)
class Half:
    """A side's new map, and what each latent dimension adds to the objective, sum_u l_u omega_u."""

    maps: Maps
    alignment: Array


def half_iteration(
    rows: ProductRows, maps: Maps, how: Shrinkage, *, keep_dense: bool = False, engine: Engine | None = None
) -> Half:
    """New rows of one side. `keep_dense` keeps the result as a dense array (the dense plan)."""
    return (engine or default_engine()).half(rows, maps, how, keep_dense)


def half_by_blocks(rows: ProductRows, maps: Maps, how: Shrinkage, keep_dense: bool, engine: Engine) -> Half:
    """The same in this process, blocks of rows by the engine's threads."""
    width, room = maps.shape[1], None
    if keep_dense and isinstance(rows, FormedRows) and not isinstance(maps, SparseRows):
        room = rows.whole(maps, engine)
        omega: Omega = KeptRows(room, rows.blocks)
    else:
        omega = rows.omega(maps, engine)
    turn = None
    if how.decorrelate:
        omega, gram = with_gram(omega, width, engine)
        turn = decorrelation(gram, how.decorrelate)
    made, alignments = shrunk(omega, width, how, turn, keep_dense, engine, room)
    return Half(made, added(alignments, width))


def shrunk(
    rows: Omega, width: int, how: Shrinkage, turn: Array | None, keep_dense: bool, engine: Engine,
    room: Array | None = None,
) -> tuple[Maps, list[Array]]:  # fmt: skip
    """New rows of a map from those of W L, and what each block of them adds to the alignment. A dense result goes into
    `room` if there is one, which may hold the rows themselves."""
    n_rows = rows.blocks[-1][1] if rows.blocks else 0
    if keep_dense and room is None:
        room = np.empty((n_rows, width), dtype=np.float32)

    def work(bounds: tuple[int, int]) -> tuple[SparseRows, Array]:
        raw, turned, new = (np.empty((ROWS_AT_ONCE, width), dtype=np.float32) for _ in range(3))
        alignment = np.zeros(width)
        parts: list[SparseRows] = []
        for start in range(*bounds, ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, bounds[1])
            block, made = rows.block(start, stop, raw), new[: stop - start]
            source = block if turn is None else np.matmul(block, turn, out=turned[: stop - start])
            _shrink(source, block, made, how.mode, how.value, how.theta, how.norm_power, alignment)
            if room is None:
                parts.append(compressed(made))
            else:
                room[start:stop] = made
        return stacked(parts, width), alignment

    made = list(engine.map(work, rows.blocks))
    whole = stacked([part for part, _ in made], width) if room is None else room
    return whole, [a for _, a in made]


def added(alignments: list[Array], width: int) -> Array:
    """Block after block, so that the sum does not depend on who made which."""
    return np.sum(alignments, axis=0) if alignments else np.zeros(width)


def with_gram(rows: Omega, width: int, engine: Engine) -> tuple[Omega, Array]:
    """omega' omega; and the rows, kept where a quarter of the memory holds them, for they are needed once more."""
    n_rows = rows.blocks[-1][1] if rows.blocks else 0
    keep = not rows.kept and n_rows * width * 4 <= engine.memory // 4
    omega = np.empty((n_rows, width), dtype=np.float32) if keep else None

    def work(bounds: tuple[int, int]) -> Array:
        room = np.empty((BLOCK_ROWS, width), dtype=np.float32) if omega is None else omega[slice(*bounds)]
        return scipy.linalg.blas.ssyrk(1.0, rows.block(*bounds, room).T)

    upper = np.zeros((width, width))
    for part in engine.map(work, rows.blocks):
        upper += part
    return rows if omega is None else KeptRows(omega, rows.blocks), mirrored(upper)


def decorrelation(gram: Array, power: float) -> Array:
    """gram^(-power/2), of directions that are there at all."""
    values, vectors = scipy.linalg.eigh(gram)
    if not len(values) or values[-1] <= 0:
        return np.eye(len(gram), dtype=np.float32)
    values = np.maximum(values / values[-1], SMALLEST_EIGENVALUE)
    return ((vectors * values ** (-power / 2)) @ vectors.T).astype(np.float32)


@kernel
def _shrink(source, raw, out, mode, value, theta, norm_power, alignment):  # type: ignore[no-untyped-def]
    """Soft threshold and length of every row of `source`, into `out`; adds `out` times `raw` to `alignment`."""
    n_rows, width = source.shape
    sizes = np.empty(width, dtype=np.float32)
    for i in range(n_rows):
        row, new = source[i], out[i]
        squares = 0.0
        for c in range(width):
            squares += row[c] * row[c]
        threshold = np.float32(value)
        if mode == RELATIVE:
            threshold = np.float32(value * np.sqrt(squares / width))
        elif mode == DENSITY:
            threshold = _kth_largest(row, int(value), sizes)
        left = 0.0
        for c in range(width):
            size = max(abs(row[c]) - threshold, np.float32(0))
            new[c] = size if row[c] > 0 else -size
            left += size * size
        if left > 0:
            scale = np.float32(theta * squares ** (0.5 * norm_power) / np.sqrt(left))
            for c in range(width):
                new[c] *= scale
                alignment[c] += raw[i, c] * new[c]


@kernel
def _kth_largest(row, k, sizes):  # type: ignore[no-untyped-def]
    """The (k + 1)-th largest absolute value, so that k at most are above it; 0 where there are not so many."""
    n = 0
    for c in range(len(row)):
        if row[c] != 0:
            sizes[n] = abs(row[c])
            n += 1
    if n <= k:
        return np.float32(0)
    low, high = 0, n - 1
    while low < high:
        pivot = sizes[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while sizes[i] > pivot:
                i += 1
            while sizes[j] < pivot:
                j -= 1
            if i <= j:
                sizes[i], sizes[j] = sizes[j], sizes[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return sizes[k]


def kept(density: float, width: int) -> int:
    """Entries a row keeps at a target density; one at least."""
    return max(int(density * width), 1)


def effective_rank(gram: Array) -> float:
    """exp of the entropy of the eigenvalues of L'L, as shares: how many directions the rows really use."""
    values = np.maximum(scipy.linalg.eigvalsh(gram), 0.0)
    total = values.sum()
    if total <= 0:
        return 0.0
    shares = values / total
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))
