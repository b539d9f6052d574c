"""Leading eigenpairs of a symmetric operator by block Lanczos with thick restarts (Wu and Simon 2000).

The basis V grows by K times its last block, orthonormalised against all of V, so that

    K V = V H + Q B E',     where E' selects the last block.

The residual of a Ritz vector V y of H is ||B y_last||, so it is known without another product. A full basis is reduced
to its best Ritz vectors, and continues to grow from the same Q. Subspace iteration, with or without a Chebyshev filter,
multiplies a block as wide as the wanted space and keeps only the last block. Here every column remains in the basis,
and 4 to 7 times fewer columns are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from clickbridge.engines.base import Engine, default_engine

Array = np.ndarray[Any, Any]
ROWS = 8192
"""Rows of the basis that a restart multiplies at once, in place."""
MOST_RESTARTS = 20


def block_width(rank: int) -> int:
    """Columns of a product. 32 numbers of float32 are two cache lines of each row that a sparse product reads. A wider
    block needs more columns in total, a narrower one more passes over the basis."""
    return int(np.clip(rank // 4, 8, 32))


def basis_width(rank: int) -> int:
    return 5 * rank // 2 + max(2 * block_width(rank), 32)


def fewest_rows(rank: int) -> int:
    """The smallest operator that has room for a basis and the block after it."""
    return basis_width(rank) + block_width(rank)


def leading_eigenpairs(
    product: Callable[[Array], Array],
    n: int,
    rank: int,
    *,
    tolerance: float,
    seed: int = 0,
    engine: Engine | None = None,
) -> tuple[Array, Array, float]:
    """The `rank` largest eigenvalues in decreasing order, their vectors as columns in float32, and the largest
    ||K v - lambda v||. `n` must be at least `fewest_rows(rank)`. Stops at the tolerance or after MOST_RESTARTS."""
    width, most = block_width(rank), basis_width(rank)
    engine, rng = engine or default_engine(), np.random.default_rng(seed)
    basis = np.empty((n, most), dtype=np.float32)
    small = np.zeros((most, most))
    size, restarts = 0, 0
    fresh = engine.orthonormal(rng.standard_normal((n, width)).astype(np.float32))[0]
    while True:
        last = slice(size, size + width)
        basis[:, last] = fresh
        size += width
        fresh, coupling, inner = _extend(basis[:, :size], product(fresh), rng, engine)
        small[:size, last] = inner
        small[last, :size] = inner.T
        full = size + width > most
        if size < 2 * rank and not full:
            continue
        values, turn = scipy.linalg.eigh((small[:size, :size] + small[:size, :size].T) / 2)
        values, turn = values[::-1], turn[:, ::-1]
        residual = float(np.max(np.linalg.norm(coupling @ turn[last, :rank], axis=0)))
        if residual <= tolerance or (full and restarts == MOST_RESTARTS):
            _turn(basis, size, turn[:, :rank])
            return values[:rank], np.ascontiguousarray(basis[:, :rank]), residual
        if full:
            restarts += 1
            kept = rank + width
            _turn(basis, size, turn[:, :kept])
            small[:] = 0.0
            small[range(kept), range(kept)] = values[:kept]
            size = kept


def _extend(basis: Array, image: Array, rng: np.random.Generator, engine: Engine) -> tuple[Array, Array, Array]:
    """(Q, B, V' image) of image = V (V' image) + Q B, with Q as wide as the image and orthogonal to V. V is removed
    twice: if little is left of the image, the first time leaves a relatively large rounding error."""
    width = image.shape[1]
    inner = basis.T @ image
    image -= basis @ inner
    found, upper = engine.orthonormal(image)
    again = basis.T @ found
    # A direction that still lies in V is only rounding error.
    outside = np.linalg.norm(again, axis=0) < 0.9
    found, upper, again = found[:, outside], upper[outside], again[:, outside]
    found -= basis @ again
    if found.shape[1] < width:
        # V is an invariant space: continue with random directions outside of it. They are not coupled to V.
        extra = rng.standard_normal((len(image), width - found.shape[1])).astype(np.float32)
        extra -= basis @ (basis.T @ extra)
        extra -= basis @ (basis.T @ extra)
        found = np.hstack([found, extra])
        upper = np.vstack([upper, np.zeros((extra.shape[1], width), dtype=upper.dtype)])
        again = np.hstack([again, np.zeros((len(again), extra.shape[1]), dtype=again.dtype)])
    fresh, corrected = engine.orthonormal(found)
    return fresh, corrected.astype(np.float64) @ upper, inner + again.astype(np.float64) @ upper


def _turn(basis: Array, size: int, turn: Array) -> None:
    """Replaces the first columns of the basis by V turn, some rows at a time."""
    turn = turn.astype(np.float32)
    for start in range(0, len(basis), ROWS):
        rows = basis[start : start + ROWS]
        rows[:, : turn.shape[1]] = rows[:, :size] @ turn
