"""Leading eigenpairs of a symmetric operator by block Lanczos with thick restarts (Wu and Simon 2000).

The basis V grows by K times its last block, orthonormalised against all of V, so that

    K V = V H + Q B E',     E' picking the last block,

and a Ritz vector V y of H has the residual ||B y_last||: no product is needed to know it. A full basis is cut down to
its best Ritz vectors and grows on from the same Q. Subspace iteration, Chebyshev-filtered or not, applies each product
to a block as wide as what is wanted and forgets all but the last; here every column adds to what the Ritz vectors
are chosen from, and some 4 to 7 times fewer columns are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from clickbridge.engines.base import Engine, default_engine

Array = np.ndarray[Any, Any]
ROWS = 8192
"""Rows of the basis that a restart turns at once, in place."""
MOST_RESTARTS = 20


def block_width(rank: int) -> int:
    """Columns of a product. 32 float32 are two cache lines of every row that a sparse product touches; a wider block
    needs more columns in all, a narrower one more passes over the basis."""
    return int(np.clip(rank // 4, 8, 32))


def basis_width(rank: int) -> int:
    return 5 * rank // 2 + max(2 * block_width(rank), 32)


def fewest_rows(rank: int) -> int:
    """Smaller operators have no room for a basis and the block after it."""
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
    """The `rank` largest eigenvalues (falling), their vectors as columns, and the largest ||K v - lambda v||, in
    float32; n must be `fewest_rows(rank)` or more. Stops at the tolerance or after MOST_RESTARTS."""
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
    """(Q, B, V' image) of image = V (V' image) + Q B, with Q as wide as the image and orthogonal to V. Twice: what
    rounding leaves of V in the difference is large where the difference is small."""
    width = image.shape[1]
    inner = basis.T @ image
    image -= basis @ inner
    found, upper = engine.orthonormal(image)
    again = basis.T @ found
    # A direction that lies in V after all is what rounding left of nothing.
    outside = np.linalg.norm(again, axis=0) < 0.9
    found, upper, again = found[:, outside], upper[outside], again[:, outside]
    found -= basis @ again
    if found.shape[1] < width:
        # V holds an invariant space: go on in any direction outside of it, which nothing couples to V.
        extra = rng.standard_normal((len(image), width - found.shape[1])).astype(np.float32)
        extra -= basis @ (basis.T @ extra)
        extra -= basis @ (basis.T @ extra)
        found = np.hstack([found, extra])
        upper = np.vstack([upper, np.zeros((extra.shape[1], width), dtype=upper.dtype)])
        again = np.hstack([again, np.zeros((len(again), extra.shape[1]), dtype=again.dtype)])
    fresh, corrected = engine.orthonormal(found)
    return fresh, corrected.astype(np.float64) @ upper, inner + again.astype(np.float64) @ upper


def _turn(basis: Array, size: int, turn: Array) -> None:
    """The first columns become V turn, a few rows at a time."""
    turn = turn.astype(np.float32)
    for start in range(0, len(basis), ROWS):
        rows = basis[start : start + ROWS]
        rows[:, : turn.shape[1]] = rows[:, :size] @ turn
