"""Block randomised SVD of an operator that is only known by its products (Halko, Martinsson, Tropp 2011).

Products and orthonormalisation are the engine's: the operator brings it along.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import linalg, sparse

from clickbridge.engines.base import Engine, default_engine
from clickbridge.numerics.qr import ROWS

Array = np.ndarray[Any, Any]
OVERSAMPLE = 50
POWER_STEPS = 4
WELL_CONDITIONED = 0.1
"""Least over largest diagonal of a triangular factor from which on one pass of Cholesky QR leaves rounding alone."""


class Operator(Protocol):
    shape: tuple[int, int]
    engine: Engine

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
        self._forward = [_csr(m, dtype) for m in (b, middle, a.T)]
        self._adjoint = [_csr(m, dtype) for m in (a, middle.T, b.T)]

    @property
    def nnz(self) -> int:
        return sum(int(m.nnz) for m in self._forward)

    def forward(self, v: Any) -> Any:
        return _chain(self.engine, self._forward, v)

    def adjoint(self, u: Any) -> Any:
        return _chain(self.engine, self._adjoint, u)


class MatrixOperator:
    """An explicit sparse matrix."""

    def __init__(self, matrix: sparse.csr_array, dtype: Any, engine: Engine | None = None) -> None:
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.engine = engine or default_engine()
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
Tell = Callable[[int, int], None]


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
    power_steps: int = POWER_STEPS,
    oversample: int = OVERSAMPLE,
    start: Array | None = None,
    tell: Tell = lambda number, of: None,
) -> SVD:
    """The first `rank` singular triplets. `start` is a block of right vectors to begin from (a warm start);
    directions with no singular value left are dropped, so fewer triplets may come back. `tell` is told which power
    step begins, and how many there are."""
    n, m = operator.shape
    most = min(n, m, getattr(operator, "most_rank", n))
    rank, width = min(rank, most), min(rank + oversample, most)
    if width == 0:
        return SVD(np.zeros((n, 0), dtype), np.zeros(0, dtype), np.zeros((m, 0), dtype), 0.0)
    engine = operator.engine
    first = _random(seed, m, width, dtype, engine)
    if start is not None:
        first[:, : min(start.shape[1], width)] = start[:, :width]
    block = engine.hold(first)
    del first
    # Both sides span the same space; only the smaller one is made orthonormal at every step, which is most of the work.
    if n <= m:
        small, large = _iterate(engine, operator.forward, operator.adjoint, operator.forward(block), power_steps, tell)
        u, s, v = _triplets(engine, small, large, rank, dtype)
        residual = _residual(engine, operator.forward, u, s, v)
    else:
        small, large = _iterate(engine, operator.adjoint, operator.forward, block, power_steps + 1, tell)
        v, s, u = _triplets(engine, small, large, rank, dtype)
        residual = _residual(engine, operator.adjoint, v, s, u)
    u, v = (engine.fetch(side) for side in fix_signs(u, v, engine))
    return SVD(u, s, v, residual)


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


def _iterate(
    engine: Engine, to_small: Product, to_large: Product, block: Any, steps: int, tell: Tell
) -> tuple[Any, Any]:
    """An orthonormal block of the smaller side, and its image on the larger one: simultaneous iteration."""
    small = _orthonormal(engine, block)[0]
    for number in range(steps):
        tell(number + 1, steps)
        small = _orthonormal(engine, to_small(to_large(small)))[0]
    return small, to_large(small)


def _triplets(engine: Engine, small: Any, image: Any, rank: int, dtype: Any) -> tuple[Any, Array, Any]:
    """image = v r, and the little r gives the rest: A ~ small (v r)' = small r' v'."""
    large, r = _orthonormal(engine, image)
    left, s, right = linalg.svd(r.T.astype(np.float64))
    kept = int(np.count_nonzero(s > s[0] * _TINY[np.dtype(dtype)])) if len(s) and s[0] > 0 else 0
    k = min(rank, kept)
    turned = engine.combined(small, left[:, :k].astype(dtype)), engine.combined(large, right[:k].T.astype(dtype))
    return turned[0], s[:k].astype(dtype), turned[1]


def _orthonormal(engine: Engine, block: Any) -> tuple[Any, Array]:
    """(q, r) with q r = block. A product leaves columns as long as the squares of their singular values: at equal
    lengths one pass of Cholesky QR in single precision is mostly enough. May overwrite the block."""
    lengths = engine.lengths(block)
    lengths = np.where(lengths > 0, lengths, 1.0)
    q, r = engine.orthonormal(engine.scaled(block, 1 / lengths))
    diagonal = np.abs(np.diag(r))
    if len(diagonal) and diagonal.min() < WELL_CONDITIONED * diagonal.max():
        q, again = engine.orthonormal(q)
        r = again @ r
    return q, (r * lengths).astype(r.dtype)


_TINY = {np.dtype(np.float32): 2e-6, np.dtype(np.float64): 1e-13}


def fix_signs(u: Any, v: Any, engine: Engine | None = None) -> tuple[Any, Any]:
    """Each pair of vectors turned so that the largest entry of u is positive. May overwrite both."""
    engine = engine or default_engine()
    high, low = engine.extremes(u)
    signs = np.where(high >= -low, 1.0, -1.0)
    return engine.scaled(u, signs), engine.scaled(v, signs)


def _residual(engine: Engine, to_small: Product, small: Any, s: Array, large: Any) -> float:
    """The larger side is the image of the smaller one, so that the other product tells how far off they are."""
    if not len(s):
        return 0.0
    return float(np.max(engine.lengths(to_small(large), small, s)) / s[0])
