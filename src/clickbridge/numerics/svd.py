"""Randomised block SVD of an operator that is given only by its products (Halko, Martinsson, Tropp 2011).

The engine does the products and the orthonormalisation; the operator knows its engine. In this process, the columns of
a block go through the products in tiles, as many columns at a time as fit in the memory of the engine. Each column is
computed independently, so tiles do not change the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy
from scipy import sparse

from clickbridge.engines.base import Engine, default_engine
from clickbridge.numerics.krylov import BLOCK, PROBE, basis_columns, leading_space
from clickbridge.numerics.qr import ROWS, at_equal_lengths
from clickbridge.progress import Progress

Array = np.ndarray[Any, Any]
OVERSAMPLE = 50
POWER_STEPS = 4
TOLERANCE = 1e-3
LARGE = 50_000
"""An operator is large if its smaller side has at least this many rows."""
NARROW = 400
"""A basis pays off for up to this many singular vectors. For more, most of the work is in the eigenvectors of the
projected operator."""
FEWEST_COLUMNS = 16
"""The fewest columns of a tile. With fewer, the sparse matrix would be read too often."""


class Operator(Protocol):
    shape: tuple[int, int]
    engine: Engine
    inner: int
    """Rows of the intermediate result of a product."""
    nnz: int

    def forward(self, v: Any) -> Any: ...

    def adjoint(self, u: Any) -> Any: ...


class ProductOperator:
    """A' M B, which is never formed: `forward(v)` is A'(M(B v)). The transposes are computed once."""

    def __init__(
        self,
        a: sparse.csr_array,
        middle: sparse.csr_array,
        b: sparse.csr_array,
        dtype: Any,
        engine: Engine | None = None,
    ) -> None:
        self.shape = (a.shape[1], b.shape[1])
        self.engine = engine or default_engine()
        self.most_rank = min(*a.shape, *b.shape)
        self.inner = a.shape[0] + b.shape[0]
        self._forward = [_csr(m, dtype) for m in (b, middle, a.T)]
        self._adjoint = [_csr(m, dtype) for m in (a, middle.T, b.T)]
        self.nnz = sum(int(m.nnz) for m in self._forward)

    def forward(self, v: Any) -> Any:
        return _chain(self.engine, self._forward, v)

    def adjoint(self, u: Any) -> Any:
        return _chain(self.engine, self._adjoint, u)


class MatrixOperator:
    """An explicit sparse matrix."""

    def __init__(self, matrix: sparse.csr_array, dtype: Any, engine: Engine | None = None) -> None:
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.engine = engine or default_engine()
        self.inner, self.nnz = 0, int(matrix.nnz)
        self._matrix, self._transpose = _csr(matrix, dtype), _csr(matrix.T, dtype)

    def forward(self, v: Any) -> Any:
        return self.engine.times(self._matrix, v)

    def adjoint(self, u: Any) -> Any:
        return self.engine.times(self._transpose, u)


def _csr(matrix: Any, dtype: Any) -> sparse.csr_array:
    # A copy: astype alone would share the indices, and sorting them would damage the original.
    out = sparse.csr_array(matrix, dtype=dtype, copy=True)
    out.sort_indices()
    return out


def _chain(engine: Engine, matrices: list[sparse.csr_array], block: Any) -> Any:
    for matrix in matrices:
        block = engine.times(matrix, block)
    return block


Product = Callable[[Any], Any]


class Keeper(Protocol):
    """Stores the block of a long decomposition after every step. `Checkpoint` of io is one."""

    def read(self) -> Any: ...

    def write(self, state: Any) -> None: ...


def tile_width(shape: tuple[int, int], inner: int, nnz: int, width: int, size: int, memory: float) -> int:
    """Columns that go through the products at once: all, if memory allows. The matrices with their transposes and a
    block on each side need memory, too. `size` is the number of bytes of a number."""
    matrices, column = 2 * nnz * (size + 4), size * (sum(shape) + inner)
    if matrices + column * width <= memory:
        return width
    left = memory - matrices - size * width * sum(shape)
    return int(min(max(left // max(column, 1), FEWEST_COLUMNS), width))


def basis_memory(shape: tuple[int, int], inner: int, nnz: int, rank: int, size: int) -> float:
    """Bytes for the matrices with their transposes, a basis of the smaller side, the vectors computed from it, and one
    block in a product."""
    columns = basis_columns(rank, min(shape)) + rank
    return 2 * nnz * (size + 4) + size * (columns * min(shape) + max(BLOCK, rank) * (max(shape) + inner))


def basis_pays(shape: tuple[int, int], inner: int, nnz: int, rank: int, most: int, size: int, memory: float) -> bool:
    """Whether to compute the leading space with a Lanczos basis. It pays off for large operators with far more
    dimensions than are wanted. Small operators are fast either way."""
    large = min(shape) >= LARGE and rank <= NARROW and most >= 2 * basis_columns(rank, min(shape))
    return large and basis_memory(shape, inner, nnz, rank, size) <= memory


@dataclass(frozen=True)
class SVD:
    """u diag(s) v'; `residual` is the largest ||A v_i - s_i u_i||, or ||A' u_i - s_i v_i||, over s_1."""

    u: Array
    s: Array
    v: Array
    residual: float


def randomised_svd(
    operator: Operator,
    rank: int,
    *,
    seed: int = 0,
    dtype: Any = np.float32,
    power_steps: int | None = None,
    oversample: int = OVERSAMPLE,
    tolerance: float = TOLERANCE,
    start: Array | None = None,
    keeper: Keeper | None = None,
    progress: Progress | None = None,
) -> SVD:
    """The first `rank` singular triplets. There may be fewer, because directions with a singular value of zero are
    dropped. `start` is a block of right vectors for a warm start. A `keeper` stores the block after every step; if it
    already has one, the work continues from there. `progress` is called at each step.

    A large operator is decomposed to the `tolerance` by a basis of narrow blocks, if it fits in memory and no singular
    value is repeated too often. All others, and those with `start` or `keeper`, are decomposed by `power_steps`."""
    n, m = operator.shape
    most = min(n, m, getattr(operator, "most_rank", n))
    rank, width = min(rank, most), min(rank + oversample, most)
    if width == 0:
        return SVD(np.zeros((n, 0), dtype), np.zeros(0, dtype), np.zeros((m, 0), dtype), 0.0)
    engine, size = operator.engine, np.dtype(dtype).itemsize
    sizes = operator.shape, operator.inner, operator.nnz
    tile = tile_width(*sizes, width, size, engine.memory)
    # Both sides span the same space. Only the smaller one is made orthonormal at every step, the most expensive part.
    wide = n <= m
    to_small, to_large = (operator.forward, operator.adjoint) if wide else (operator.adjoint, operator.forward)
    small = None
    cold = power_steps is None and start is None and keeper is None
    if cold and engine.narrow and basis_pays(*sizes, rank, most, size, engine.memory):
        small = _by_basis(engine, to_small, to_large, max(n, m), rank, seed, dtype, tolerance, progress)
    if small is None:
        first = _random(seed, m, width, dtype, engine)
        if start is not None:
            first[:, : min(start.shape[1], width)] = start[:, :width]
        steps = POWER_STEPS if power_steps is None else power_steps
        n_small = n if wide else 0
        small = _by_steps(engine, to_small, to_large, engine.hold(first), n_small, steps, tile, keeper, progress)
        del first
    # The image of the small side is v r, and the small matrix r gives the rest: A ~ small (v r)' = small r' v'. Memory
    # use is highest here, so each side is released as soon as it has been multiplied.
    large, r = at_equal_lengths(engine, _through(to_large, small, max(n, m), tile))
    left, s, right = _turns(r, rank, dtype)
    small = engine.combined(small, left)
    large = engine.combined(large, right)
    residual = _residual(engine, to_small, small, s, large, tile)
    u, v = (small, large) if wide else (large, small)
    del small, large
    u, v = (engine.fetch(side) for side in fix_signs(u, v, engine))
    return SVD(u, s, v, residual)


def _by_basis(
    engine: Engine,
    to_small: Product,
    to_large: Product,
    n_large: int,
    rank: int,
    seed: int,
    dtype: Any,
    tolerance: float,
    progress: Progress | None,
) -> Any:
    """The leading space of the smaller side from a basis of narrow blocks; None if singular values are repeated,
    or all are zero."""
    drawn = _random(seed, n_large, BLOCK + PROBE, dtype, engine)
    first, probe = (to_small(engine.hold(np.ascontiguousarray(part))) for part in np.split(drawn, [BLOCK], axis=1))
    del drawn
    return leading_space(
        engine, lambda block: to_small(to_large(block)), first, probe, rank, tolerance=tolerance, dtype=dtype,
        progress=progress,
    )  # fmt: skip


def _by_steps(
    engine: Engine,
    to_small: Product,
    to_large: Product,
    block: Any,
    n_small: int,
    steps: int,
    tile: int,
    keeper: Keeper | None,
    progress: Progress | None,
) -> Any:
    """The leading space of the smaller side by power iteration. The starting block has right vectors. `n_small` is 0 if
    the right side is the smaller one."""
    done, small = (0, None) if keeper is None else _kept(keeper, engine)
    if small is None:
        small = at_equal_lengths(engine, _through(to_small, block, n_small, tile) if n_small else block)[0]
    del block
    steps = steps if n_small else steps + 1
    for step in range(done, steps):
        small = at_equal_lengths(engine, _there_and_back(to_large, to_small, small, tile))[0]
        if progress is not None:
            progress(f"decomposition: step {step + 1} of {steps}")
        if keeper is not None:
            keeper.write((step + 1, engine.fetch(small)))
    return small


def _kept(keeper: Keeper, engine: Engine) -> tuple[int, Any]:
    """The number of finished steps, and the block after them."""
    state = keeper.read()
    return (0, None) if state is None else (state[0], engine.hold(np.array(state[1])))


def _tiles(block: Any, tile: int) -> list[slice]:
    """The tiles of a block, as slices of columns. A block that the engine holds elsewhere is one tile."""
    width = block.shape[1]
    whole = not isinstance(block, np.ndarray) or tile >= width
    return [slice(None)] if whole else [slice(at, min(at + tile, width)) for at in range(0, width, tile)]


def _through(product: Product, block: Any, n_rows: int, tile: int) -> Any:
    tiles = _tiles(block, tile)
    if len(tiles) == 1:
        return product(block)
    out = np.empty((n_rows, block.shape[1]), block.dtype)
    for columns in tiles:
        out[:, columns] = product(np.ascontiguousarray(block[:, columns]))
    return out


def _there_and_back(to_large: Product, to_small: Product, small: Any, tile: int) -> Any:
    """Applies both products to a block. If this is done by tiles, the block is overwritten."""
    tiles = _tiles(small, tile)
    if len(tiles) == 1:
        return to_small(to_large(small))
    for columns in tiles:
        small[:, columns] = to_small(to_large(np.ascontiguousarray(small[:, columns])))
    return small


def _random(seed: int, n_rows: int, width: int, dtype: Any, engine: Engine) -> Array:
    """Normal random numbers, by blocks of rows that are divided among threads. Each block has its own generator. That
    of the first block has the seed itself."""
    out = np.empty((n_rows, width), dtype=dtype)

    def fill(start: int) -> None:
        own = np.random.default_rng((seed, start) if start else seed)
        rows = out[start : start + ROWS]
        own.standard_normal(dtype=dtype, out=rows)

    for _ in engine.map(fill, range(0, n_rows, ROWS)):
        pass
    return out


def _turns(r: Array, rank: int, dtype: Any) -> tuple[Array, Array, Array]:
    """The matrices that turn both sides into singular vectors, and the singular values that are not zero."""
    left, s, right = scipy.linalg.svd(r.T.astype(np.float64))
    kept = int(np.count_nonzero(s > s[0] * _TINY[np.dtype(dtype)])) if len(s) and s[0] > 0 else 0
    k = min(rank, kept)
    return left[:, :k].astype(dtype), s[:k].astype(dtype), right[:k].T.astype(dtype)


_TINY = {np.dtype(np.float32): 2e-6, np.dtype(np.float64): 1e-13}


def fix_signs(u: Any, v: Any, engine: Engine | None = None) -> tuple[Any, Any]:
    """Changes the signs of each pair of vectors so that the largest entry of u is positive. May overwrite both."""
    engine = engine or default_engine()
    high, low = engine.extremes(u)
    signs = np.where(high >= -low, 1.0, -1.0)
    return engine.scaled(u, signs), engine.scaled(v, signs)


def _residual(engine: Engine, to_small: Product, small: Any, s: Array, large: Any, tile: int) -> float:
    """The largest relative residual. The larger side is the image of the smaller one, so only the other product has an
    error."""
    if not len(s):
        return 0.0
    tiles = _tiles(large, tile)
    if len(tiles) == 1:
        return float(np.max(engine.lengths(to_small(large), small, s)) / s[0])
    found = [engine.lengths(to_small(np.ascontiguousarray(large[:, c])), small[:, c], s[c]) for c in tiles]
    return float(max(lengths.max() for lengths in found) / s[0])
