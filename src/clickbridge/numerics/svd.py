"""Block randomised SVD of an operator that is only known by its products (Halko, Martinsson, Tropp 2011).

Products and orthonormalisation are the engine's: the operator brings it along. In this process the columns of a block
go through the products in tiles, as many at once as the engine's memory holds; each column is computed by itself, so
tiles change no bit.
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

Array = np.ndarray[Any, Any]
OVERSAMPLE = 50
POWER_STEPS = 4
TOLERANCE = 1e-3
LARGE = 50_000
"""Rows of the smaller side from which on an operator is large."""
NARROW = 400
"""Singular vectors up to which a basis pays: for more, the eigenvectors of what it projects to are most of the work."""
FEWEST_COLUMNS = 16
"""Of a tile: with fewer, the numbers of a matrix are read too often."""


class Operator(Protocol):
    shape: tuple[int, int]
    engine: Engine
    inner: int
    """Rows of what lies between the two sides while a block goes through."""
    nnz: int

    def forward(self, v: Any) -> Any: ...

    def adjoint(self, u: Any) -> Any: ...


class ProductOperator:
    """A' M B, never formed: `forward(v)` is A'(M(B v)). The transposes are made once."""

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
    # A copy: a change of type alone would share the indices, and sorting them would spoil the original.
    out = sparse.csr_array(matrix, dtype=dtype, copy=True)
    out.sort_indices()
    return out


def _chain(engine: Engine, matrices: list[sparse.csr_array], block: Any) -> Any:
    for matrix in matrices:
        block = engine.times(matrix, block)
    return block


Product = Callable[[Any], Any]


class Keeper(Protocol):
    """Where a long decomposition keeps its block after every step: a `Checkpoint` of io is one."""

    def read(self) -> Any: ...

    def write(self, state: Any) -> None: ...


def tile_width(shape: tuple[int, int], inner: int, nnz: int, width: int, size: int, memory: float) -> int:
    """Columns that go through the products at once: all of them if memory allows. Beside them there are the matrices
    with their transposes, and a block on each side; `size` is that of a number."""
    matrices, column = 2 * nnz * (size + 4), size * (sum(shape) + inner)
    if matrices + column * width <= memory:
        return width
    left = memory - matrices - size * width * sum(shape)
    return int(min(max(left // max(column, 1), FEWEST_COLUMNS), width))


def basis_memory(shape: tuple[int, int], inner: int, nnz: int, rank: int, size: int) -> float:
    """Bytes for the matrices with their transposes, a basis of the smaller side with what is taken from it, and one
    block on its way."""
    columns = basis_columns(rank, min(shape)) + rank
    return 2 * nnz * (size + 4) + size * (columns * min(shape) + max(BLOCK, rank) * (max(shape) + inner))


def basis_pays(shape: tuple[int, int], inner: int, nnz: int, rank: int, most: int, size: int, memory: float) -> bool:
    """Whether the leading space is taken from a basis that is kept: for large operators of far more dimensions than
    are looked for. Small ones take no time either way."""
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
    watch: Callable[[str], None] | None = None,
) -> SVD:
    """The first `rank` singular triplets. `start` is a block of right vectors to begin from (a warm start);
    directions with no singular value left are dropped, so fewer triplets may come back. With a `keeper` the block is
    kept after every step, and what is kept there already is gone on with; `watch` is told of every step.

    A large operator is decomposed to the `tolerance` by a basis of narrow blocks, where it fits in memory and no
    singular value is repeated too often; any other, and one that is begun warm or kept, by `power_steps`."""
    n, m = operator.shape
    most = min(n, m, getattr(operator, "most_rank", n))
    rank, width = min(rank, most), min(rank + oversample, most)
    if width == 0:
        return SVD(np.zeros((n, 0), dtype), np.zeros(0, dtype), np.zeros((m, 0), dtype), 0.0)
    engine, size = operator.engine, np.dtype(dtype).itemsize
    sizes = operator.shape, operator.inner, operator.nnz
    tile = tile_width(*sizes, width, size, engine.memory)
    # Both sides span the same space; only the smaller one is made orthonormal at every step, which is most of the work.
    wide = n <= m
    to_small, to_large = (operator.forward, operator.adjoint) if wide else (operator.adjoint, operator.forward)
    small = None
    cold = power_steps is None and start is None and keeper is None
    if cold and engine.narrow and basis_pays(*sizes, rank, most, size, engine.memory):
        small = _by_basis(engine, to_small, to_large, max(n, m), rank, seed, dtype, tolerance, watch)
    if small is None:
        first = _random(seed, m, width, dtype, engine)
        if start is not None:
            first[:, : min(start.shape[1], width)] = start[:, :width]
        steps = POWER_STEPS if power_steps is None else power_steps
        small = _by_steps(engine, to_small, to_large, engine.hold(first), n if wide else 0, steps, tile, keeper, watch)
        del first
    # The image of the small side is v r, and the little r gives the rest: A ~ small (v r)' = small r' v'. Each side is
    # let go as soon as it is turned: at this point most memory is in use.
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
    watch: Callable[[str], None] | None,
) -> Any:
    """The leading space of the smaller side from a basis of narrow blocks; None where singular values are repeated."""
    drawn = _random(seed, n_large, BLOCK + PROBE, dtype, engine)
    first, probe = (to_small(engine.hold(np.ascontiguousarray(part))) for part in np.split(drawn, [BLOCK], axis=1))
    del drawn
    return leading_space(
        engine, lambda block: to_small(to_large(block)), first, probe, rank, tolerance=tolerance, dtype=dtype,
        watch=watch,
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
    watch: Callable[[str], None] | None,
) -> Any:
    """The leading space of the smaller side by power steps. The block to begin from is of right vectors; `n_small` is
    0 where the right side is the smaller one."""
    done, small = (0, None) if keeper is None else _kept(keeper, engine)
    if small is None:
        small = at_equal_lengths(engine, _through(to_small, block, n_small, tile) if n_small else block)[0]
    del block
    steps = steps if n_small else steps + 1
    for step in range(done, steps):
        small = at_equal_lengths(engine, _there_and_back(to_large, to_small, small, tile))[0]
        if watch is not None:
            watch(f"decomposition: step {step + 1} of {steps}")
        if keeper is not None:
            keeper.write((step + 1, engine.fetch(small)))
    return small


def _kept(keeper: Keeper, engine: Engine) -> tuple[int, Any]:
    """Steps that are done, and the block after them."""
    state = keeper.read()
    return (0, None) if state is None else (state[0], engine.hold(np.array(state[1])))


def _tiles(block: Any, tile: int) -> list[slice]:
    """Columns that go through together; those of a block that an engine holds elsewhere all go at once."""
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
    """A block through both products; in its own place where that is done by tiles."""
    tiles = _tiles(small, tile)
    if len(tiles) == 1:
        return to_small(to_large(small))
    for columns in tiles:
        small[:, columns] = to_small(to_large(np.ascontiguousarray(small[:, columns])))
    return small


def _random(seed: int, n_rows: int, width: int, dtype: Any, engine: Engine) -> Array:
    """Normal numbers by blocks of rows, each with a generator of its own: threads share them. The first block has that
    of the seed itself."""
    out = np.empty((n_rows, width), dtype=dtype)

    def fill(start: int) -> None:
        own = np.random.default_rng((seed, start) if start else seed)
        rows = out[start : start + ROWS]
        own.standard_normal(dtype=dtype, out=rows)

    for _ in engine.map(fill, range(0, n_rows, ROWS)):
        pass
    return out


def _turns(r: Array, rank: int, dtype: Any) -> tuple[Array, Array, Array]:
    """What turns both sides into singular vectors, and the singular values that are left."""
    left, s, right = scipy.linalg.svd(r.T.astype(np.float64))
    kept = int(np.count_nonzero(s > s[0] * _TINY[np.dtype(dtype)])) if len(s) and s[0] > 0 else 0
    k = min(rank, kept)
    return left[:, :k].astype(dtype), s[:k].astype(dtype), right[:k].T.astype(dtype)


_TINY = {np.dtype(np.float32): 2e-6, np.dtype(np.float64): 1e-13}


def fix_signs(u: Any, v: Any, engine: Engine | None = None) -> tuple[Any, Any]:
    """Each pair of vectors turned so that the largest entry of u is positive. May overwrite both."""
    engine = engine or default_engine()
    high, low = engine.extremes(u)
    signs = np.where(high >= -low, 1.0, -1.0)
    return engine.scaled(u, signs), engine.scaled(v, signs)


def _residual(engine: Engine, to_small: Product, small: Any, s: Array, large: Any, tile: int) -> float:
    """The larger side is the image of the smaller one, so that the other product tells how far off they are."""
    if not len(s):
        return 0.0
    tiles = _tiles(large, tile)
    if len(tiles) == 1:
        return float(np.max(engine.lengths(to_small(large), small, s)) / s[0])
    found = [engine.lengths(to_small(np.ascontiguousarray(large[:, c])), small[:, c], s[c]) for c in tiles]
    return float(max(lengths.max() for lengths in found) / s[0])
