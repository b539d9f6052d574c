"""Orthonormalisation of tall blocks by Cholesky QR: one symmetric product and one triangular solve. These are 2 n k^2
operations at the full speed of BLAS. Householder QR needs twice as many and is slower per operation. Both steps work on
blocks of rows, which are divided among the threads of the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy

from clickbridge.engines.base import Engine, default_engine

Array = np.ndarray[Any, Any]
MOST_PASSES, SAFETY, SMALL = 4, 10.0, 2e10
WELL_CONDITIONED = 0.1
"""If the smallest diagonal entry of the triangular factor, divided by the largest, is above this, one pass of Cholesky
QR is accurate to rounding errors."""
ROWS = 8192
"""Rows of a block: enough for the full speed of BLAS, and the same for any number of threads."""


def gram(block: Array, engine: Engine | None = None) -> Array:
    """block' block. Within a block of rows sums have the precision of the block; over blocks they are in float64."""
    width = block.shape[1]
    syrk = scipy.linalg.blas.ssyrk if block.dtype == np.float32 else scipy.linalg.blas.dsyrk
    upper = np.zeros((width, width))
    if block.size:
        for part in (engine or default_engine()).map(lambda rows: syrk(1.0, block[rows].T), _slices(block)):
            upper += part
    return mirrored(upper)


def cross(blocks: Sequence[Array], block: Array, engine: Engine | None = None) -> Array:
    """The products b' block for all blocks b, stacked vertically, summed as in `gram`."""
    total = np.zeros((sum(b.shape[1] for b in blocks), block.shape[1]))

    def part(rows: slice) -> Array:
        return np.concatenate([b[rows].T @ block[rows] for b in blocks])

    if blocks:
        for one in (engine or default_engine()).map(part, _slices(block)):
            total += one
    return total


def mixed(blocks: Sequence[Array], matrices: Sequence[Array], engine: Engine | None = None) -> Array:
    """The sum of blocks times small matrices."""
    out = np.empty((len(blocks[0]), matrices[0].shape[1]), blocks[0].dtype)

    def part(rows: slice) -> None:
        np.matmul(blocks[0][rows], matrices[0], out=out[rows])
        for block, matrix in zip(blocks[1:], matrices[1:], strict=True):
            out[rows] += block[rows] @ matrix

    for _ in (engine or default_engine()).map(part, _slices(out)):
        pass
    return out


def squares(
    block: Array, minus: Array | None = None, factors: Array | float = 1.0, engine: Engine | None = None
) -> Array:
    """Squared norms of the columns of the block, or of block - minus * factors, summed in float64. The difference is
    taken by blocks of rows, so that it needs no memory."""
    if minus is None:
        return _squares(block)
    parts = (engine or default_engine()).map(lambda rows: _squares(block[rows] - minus[rows] * factors), _slices(block))
    return sum(parts, np.zeros(block.shape[1]))


def _squares(block: Array) -> Array:
    return np.einsum("ij,ij->j", block, block, dtype=np.float64)


def turned(block: Array, matrix: Array) -> Array:
    """The block times a small matrix, in the memory of the block if the matrix has no more columns than the block. Rows
    become shorter, so each is written over rows that are no longer needed."""
    n_rows, width = len(block), matrix.shape[1]
    if not block.flags.c_contiguous or not block.flags.writeable or width > block.shape[1]:
        return block @ matrix
    room = block.reshape(-1)
    for rows in _slices(block):
        part = block[rows] @ matrix
        room[rows.start * width : (rows.start + len(part)) * width] = part.reshape(-1)
    if not block.flags.owndata:
        return room[: n_rows * width].reshape(n_rows, width)
    del room
    block.resize((n_rows, width), refcheck=False)  # gives the rest of the memory back
    return block


def mirrored(upper: Array) -> Array:
    """The symmetric matrix whose upper half is given, as BLAS returns it."""
    return np.triu(upper) + np.triu(upper, 1).T


def _slices(block: Array) -> list[slice]:
    return [slice(start, start + ROWS) for start in range(0, len(block), ROWS)]


def _divided(block: Array, r: Array, engine: Engine) -> Array:
    """Solves q r = block for q, where r is upper triangular. Overwrites the block."""
    solve = scipy.linalg.blas.strsm if block.dtype == np.float32 else scipy.linalg.blas.dtrsm
    upper = np.asfortranarray(r.astype(block.dtype))

    def work(rows: slice) -> None:
        # q r = block is r' q' = block', and block' is the Fortran-ordered view of the C-ordered block.
        block[rows] = solve(1.0, upper, block[rows].T, trans_a=1).T

    for _ in engine.map(work, _slices(block)):
        pass
    return block


def orthonormal(block: Array, engine: Engine | None = None) -> tuple[Array, Array]:
    """(q, r) with q r = block and q'q = 1, by Cholesky QR. May overwrite the block.

    One pass squares the condition number. If that is too much, a small block first gets a pass in double precision, or
    Householder QR if it already is in float64. This also drops dependent columns. A large block is divided by the
    Cholesky factor of its shifted Gram matrix, which reduces the condition number, as often as needed (Fukaya et al.
    2020).
    """
    engine = engine or default_engine()
    block = np.ascontiguousarray(block)
    if not block.any():
        return np.zeros((len(block), 0), block.dtype), np.zeros((0, block.shape[1]), block.dtype)
    unit = float(np.finfo(block.dtype).eps)
    total = np.eye(block.shape[1])
    for _ in range(MOST_PASSES):
        square = gram(block, engine)
        sound = True
        try:
            r = scipy.linalg.cholesky(square)
            diagonal = np.diag(r)
            sound = bool(diagonal.min() > diagonal.max() * np.sqrt(unit) * SAFETY)
        except scipy.linalg.LinAlgError:
            sound = False
        if not sound and block.size * block.shape[1] <= SMALL:
            if block.dtype == np.float64:
                return _householder(block, total)
            block, r = _in_double(block, engine)
            total = r @ total
            continue
        if not sound:
            shift = SAFETY * unit * float(np.trace(square))
            r = scipy.linalg.cholesky(square + np.eye(len(square)) * shift)
        block = _divided(block, r, engine)
        total = r @ total
        if sound:
            return block, total.astype(block.dtype)
    return _householder(block, total)


def _in_double(block: Array, engine: Engine) -> tuple[Array, Array]:
    """One pass in float64, with the result in float32. Directions below a millionth of the largest are dropped: in a
    float32 block they are rounding errors."""
    wide = block.astype(np.float64)
    square = gram(wide, engine)
    try:
        r = scipy.linalg.cholesky(square)
        diagonal = np.diag(r)
        if diagonal.min() > diagonal.max() * 1e-6:
            return _divided(wide, r, engine).astype(block.dtype), r
    except scipy.linalg.LinAlgError:
        pass  # not of full rank: eigenvectors are used below
    values, vectors = scipy.linalg.eigh(square)
    keep = values > values[-1] * 1e-12
    roots = np.sqrt(values[keep])
    q = wide @ (vectors[:, keep] / roots)
    return np.ascontiguousarray(q, dtype=block.dtype), (vectors[:, keep] * roots).T


def _householder(block: Array, total: Array) -> tuple[Array, Array]:
    q, r = np.linalg.qr(block)
    keep, least = _independent(r)
    if np.abs(r[~keep]).max(initial=0.0) > least:
        # A dependent column has an arbitrary direction, which affects independent columns after it: use pivoting.
        q, pivoted, columns = scipy.linalg.qr(block, mode="economic", pivoting=True)
        keep, _ = _independent(pivoted)
        r = np.empty_like(pivoted)
        r[:, columns] = pivoted
    return np.ascontiguousarray(q[:, keep]), (r[keep] @ total).astype(block.dtype)


def _independent(r: Array) -> tuple[Array, float]:
    """Which columns are linearly independent of the others, and the threshold for that."""
    diagonal = np.abs(np.diag(r))
    least = float(diagonal.max()) * 100 * float(np.finfo(r.dtype).eps)
    return diagonal > least, least


def at_equal_lengths(engine: Engine, block: Any) -> tuple[Any, Array]:
    """(q, r) with q r = block, by scaling all columns to equal length first. After a product, the columns are as long
    as the squares of the singular values. At equal length, one pass of Cholesky QR in single precision is usually
    enough. May overwrite the block."""
    lengths = engine.lengths(block)
    lengths = np.where(lengths > 0, lengths, 1.0)
    q, r = engine.orthonormal(engine.scaled(block, 1 / lengths))
    diagonal = np.abs(np.diag(r))
    if len(diagonal) and diagonal.min() < WELL_CONDITIONED * diagonal.max():
        q, again = engine.orthonormal(q)
        r = again @ r
    return q, (r * lengths).astype(r.dtype)
