"""The leading space of a large symmetric operator by block Lanczos with full reorthogonalisation.

Power iteration keeps only the last block. If all blocks are kept, some twenty narrow ones span more of the leading
space than one wide block after ten steps, with a third of the products and of the orthonormalisation
(docs/benchmarks.md). A block of p columns cannot find an eigenvalue more than p times. So at the end a few new random
directions, orthogonal to everything found, are followed for some steps. If they lead to an eigenvalue that belongs
among the first, eigenvalues are repeated, and the caller must use another method.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from clickbridge.engines.base import Engine
from clickbridge.numerics.qr import at_equal_lengths
from clickbridge.progress import Progress

Array = np.ndarray[Any, Any]
BLOCK = 32
"""Columns that go through the operator at once."""
NEAR, JOINED = 2, 8
"""The image of the last block has components in this many blocks only. Earlier blocks are joined, this many at a time,
because products with narrow blocks are slow."""
FIRST, MOST, MOST_BLOCKS = 2.0, 2.5, 16
"""Columns per eigenvector when the residual is first checked, and the most columns per eigenvector. The most is
increased by this many blocks: for a few eigenvectors, more steps are needed, not more columns each."""
ROUNDING = 30.0
"""A remainder is rounding error if it is below this many times the machine precision of the original."""
LOOK = 0.1
"""The basis grows by this share between two checks of the residual."""
TINY = 1e-300
PROBE, PROBE_STEPS = 8, 6
"""New directions, and for how many steps they are followed. At each step a missed eigenvector grows by the ratio of its
eigenvalue to the largest remaining one. Six steps are enough for a component of one in a million at the start."""


def basis_columns(rank: int, n_rows: int) -> int:
    """The most columns that a basis for `rank` eigenvectors can have."""
    return min(_most(rank) + BLOCK + (PROBE_STEPS + 1) * PROBE, n_rows)


def columns_kept(rank: int) -> int:
    """About how many columns a basis has at the end. Click graphs need 2.2 to 2.6 per eigenvector."""
    return int(2.4 * rank) + PROBE_STEPS * PROBE


def _most(rank: int) -> int:
    return int(MOST * rank) + MOST_BLOCKS * BLOCK


class Basis:
    """Orthonormal blocks Q, and the operator G projected onto them: `projected` is Q'GQ."""

    def __init__(self, engine: Engine, operator: Callable[[Any], Any], dtype: Any) -> None:
        self.engine, self.operator, self.dtype = engine, operator, dtype
        self.blocks: list[Any] = []
        self.ends = [0]
        self.narrow = 1
        self.projected = np.zeros((0, 0))

    @property
    def width(self) -> int:
        return self.ends[-1]

    def begin(self, block: Any) -> bool:
        """Makes a block orthonormal to the basis and adds it. Returns False if nothing of it is left."""
        size = self._size(block)
        for _ in range(2 if self.blocks else 0):
            block = self._without(block, 0)[0]
        left = self._size(block) > ROUNDING * np.finfo(self.dtype).eps * size
        if left:
            self.grow(at_equal_lengths(self.engine, block)[0])
        return left

    def step(self, new: bool = False) -> tuple[Any, Array] | None:
        """Applies the operator to the last block. Returns what it adds to the space, with its triangular factor; None
        if that is only rounding error. Unless `new`, the image is orthogonal to all but the last two blocks, up to
        rounding errors. A second pass over all blocks removes these."""
        first = 0 if new else max(len(self.blocks) - NEAR, 0)
        image = self.operator(self.blocks[-1])
        size = self._size(image)
        rest, inner = self._without(image, first)
        a, b = self.ends[first], self.ends[-2]
        self.projected[a:, b:] = inner
        self.projected[b:, a:] = inner.T
        rest = self._without(rest, 0)[0]
        if self._size(rest) <= ROUNDING * np.finfo(self.dtype).eps * size:
            return None
        return at_equal_lengths(self.engine, rest)

    def grow(self, block: Any) -> None:
        self.blocks.append(block)
        self.ends.append(self.ends[-1] + block.shape[1])
        if self.narrow == JOINED + NEAR:
            first = len(self.blocks) - self.narrow
            self.blocks[first:-NEAR] = [self.engine.joined(self.blocks[first:-NEAR])]
            del self.ends[first + 1 : -1 - NEAR]
            self.narrow = NEAR
        self.narrow += 1
        grown = np.zeros((self.width, self.width))
        grown[: len(self.projected), : len(self.projected)] = self.projected
        self.projected = grown

    def leading(self, rank: int) -> tuple[Array, Array]:
        """The largest eigenvalues of the projected operator, and their vectors in the basis."""
        n = self.width
        values, vectors = scipy.linalg.eigh(self.projected, subset_by_index=(max(n - rank, 0), n - 1))
        return values[::-1], np.ascontiguousarray(vectors[:, ::-1])

    def space(self, vectors: Array) -> Any:
        parts = [vectors[a:b].astype(self.dtype) for a, b in pairwise(self.ends)]
        return self.engine.mixed(self.blocks, parts)

    def _size(self, block: Any) -> float:
        return float(self.engine.lengths(block).max(initial=0.0))

    def _without(self, block: Any, first: int) -> tuple[Any, Array]:
        """A block without its components in the blocks from number `first` on, and these components."""
        others = self.blocks[first:]
        inner = self.engine.cross(others, block)
        cuts = np.array(self.ends[first + 1 : -1]) - self.ends[first]
        parts = [np.eye(block.shape[1]), *(-part for part in np.split(inner, cuts))]
        return self.engine.mixed([block, *others], [part.astype(self.dtype) for part in parts]), inner


def leading_space(
    engine: Engine,
    operator: Callable[[Any], Any],
    first: Any,
    probe: Any,
    rank: int,
    *,
    tolerance: float,
    dtype: Any,
    progress: Progress | None = None,
) -> Any:
    """Orthonormal columns that span the first `rank` eigenvectors of a positive semi-definite operator; None if
    eigenvalues among the first are repeated, or all are zero. `first` and `probe` are random blocks. Stops when no
    residual |G q - l q|, divided by the roots of l and of the largest eigenvalue, is above the tolerance. `progress`
    is called at each step."""
    basis = Basis(engine, operator, dtype)
    if not basis.begin(first):
        return None  # the operator is zero
    look, most, off = FIRST * rank, _most(rank), 0.0
    while True:
        more = basis.step()
        if progress is not None:
            progress(f"decomposition: {basis.width} columns")
        if more is None or basis.width >= most:
            break
        block, r = more
        if basis.width >= look:
            look = basis.width * (1 + LOOK)
            values, vectors = basis.leading(rank)
            rests = np.linalg.norm(r @ vectors[-r.shape[1] :], axis=0)
            off = float((rests / np.maximum(_roots(values) * _roots(values[:1]), TINY)).max())
            if off <= tolerance:
                break
        basis.grow(block)
    known, (found, _) = basis.width, basis.leading(rank)
    more = basis.step(new=True) if basis.begin(probe) else None
    for _ in range(PROBE_STEPS):
        if more is None:
            break
        basis.grow(more[0])
        more = basis.step(new=True)
    values, vectors = basis.leading(rank)
    # A missed eigenvector lies in the new directions only. One close to the last eigenvalue may not have converged yet.
    clear = _roots(values) > _roots(found[-1:]) + max(tolerance, off) * _roots(found[:1])
    if np.square(vectors[known:, clear]).sum() > 0.5:
        return None
    return basis.space(vectors)


def _roots(values: Array) -> Array:
    """Singular values from eigenvalues. Rounding may have made a zero negative."""
    roots: Array = np.sqrt(np.maximum(values, 0))
    return roots
