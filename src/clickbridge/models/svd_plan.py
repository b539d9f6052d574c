"""Estimates the cost of a block SVD of W = X' R Y before it starts: operations, bytes, memory and time.

Blocks of d + 50 columns are multiplied by the factors and back, as many columns at once as memory allows, and the
smaller side is orthonormalised at every step. Large matrices use a basis of narrow blocks if it fits in memory and
nothing forbids it (numerics/svd.py). Seconds are estimates from nominal rates, those of rmls_plan.py or of a card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from scipy import sparse

from clickbridge.errors import NoRoom
from clickbridge.models.rmls_plan import GIB, INDEX, NOMINAL, Plan, Rates
from clickbridge.numerics.krylov import BLOCK, columns_kept
from clickbridge.numerics.svd import OVERSAMPLE, POWER_STEPS, basis_memory, basis_pays, tile_width
from clickbridge.wording import count_of

DOUBLE = 8
TAKE_RMLS = "take rmls, whose maps are sparse"


@dataclass(frozen=True)
class Factors:
    """The sizes of one space's X (queries by features), R and Y, and the number of dimensions to compute. `inner` are
    the rows between the factors of a product; a single matrix has none."""

    n_x: int
    n_y: int
    inner: int
    nnz: int
    dim: int
    most: int
    """No more singular values are there than this."""

    @classmethod
    def of(cls, x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array, dim: int) -> Factors:
        nnz = int(x.nnz + r.nnz + y.nnz)
        return cls(x.shape[1], y.shape[1], x.shape[0] + y.shape[0], nnz, dim, min(*x.shape, *y.shape))

    @classmethod
    def of_matrix(cls, a: sparse.csr_array, dim: int) -> Factors:
        return cls(a.shape[0], a.shape[1], 0, int(a.nnz), dim, min(a.shape))

    @property
    def width(self) -> int:
        return min(self.dim + OVERSAMPLE, self.most)

    def memory(self, size: int, tile: int) -> float:
        """The memory of both blocks, of intermediate products, and of the matrices with their transposes."""
        sides, whole = self.n_x + self.n_y, tile >= self.width
        columns = tile * (sides + self.inner) + (0 if whole else sides * self.width)
        return columns * size + 2 * self.nnz * (size + INDEX) + 6 * self.width**2 * DOUBLE

    def copies(self, workers: int, columns: int, size: int) -> float:
        """What workers hold besides: each has the largest block twice, as it is put together from the others' parts and
        while it is multiplied (measured: 1.7 blocks with two workers, 2.1 with four)."""
        return 2 * workers * max(self.n_x, self.n_y, self.inner) * columns * size


def svd_plan(
    spaces: Sequence[Factors],
    size: int,
    budget: float = inf,
    rates: Rates = NOMINAL,
    basis: bool = True,
    workers: int = 0,
) -> Plan:
    """The cost of all spaces, one after the other. `size` is the bytes per number, 4 or 8; `budget` is the memory
    limit in bytes. `basis` is false where only power steps will do: on a card, from a start, or with checkpoints.

    Processes that share this machine are `workers`: what one process would hold is in their store, once, and each has
    the whole block that it multiplies besides. They take no tiles."""
    operations = moved = memory = cubes = host = 0.0
    tiles = []
    for s in spaces:
        rows, small = s.n_x + s.n_y + s.inner, min(s.n_x, s.n_y)
        sizes, rank = ((s.n_x, s.n_y), s.inner, s.nnz), min(s.dim, s.most)
        if basis and basis_pays(*sizes, rank, s.most, size, budget):
            columns = columns_kept(rank)
            operations += 4.0 * s.nnz * (columns + rank) + 4.0 * small * columns**2
            cubes += 20.0 * columns**3
            moved += 2.0 * (s.nnz + rows) * (columns + rank) * size + columns**2 / BLOCK * small * size
            copies = s.copies(workers, max(BLOCK, rank), size)
            memory = max(memory, basis_memory(*sizes, rank, size) + copies)
            tiles.append(s.width)
            continue
        tiles.append(s.width if workers else tile_width(*sizes, s.width, size, budget))
        chains = 2 * (POWER_STEPS + 1) + 3  # there and back at every step, the image, and the residual
        orthonormal = POWER_STEPS + 2
        operations += chains * 2.0 * s.nnz * s.width + orthonormal * 4.0 * small * s.width**2
        cubes += 20.0 * s.width**3
        moved += chains * (s.nnz + rows) * s.width * size + orthonormal * 4.0 * small * s.width * size
        memory = max(memory, s.memory(size, tiles[-1]) + s.copies(workers, s.width, size))
        host += (small * s.width + (s.n_x + s.n_y) * rank) * size  # the random start, and both maps
    kept = sum((s.n_x + s.n_y) * min(s.dim, s.width) * size for s in spaces[:-1])
    seconds = rates.seconds(operations, moved, small=cubes, host=host)
    return Plan("block svd", operations + cubes, moved, memory + kept, seconds, min(tiles, default=0))


def checked_for_workers(
    plan: Plan, workers: int, memory: float, machine: float, name: str, instead: str = TAKE_RMLS
) -> Plan:
    """Returns the plan of workers on this machine if it fits into the memory of each and into the machine's."""
    room = min(workers * memory, machine)
    if plan.memory > room:
        has, more = ("may use", "raise --memory") if room < machine else ("this machine has", "lower --threads")
        raise NoRoom(
            f"{name} needs {plan.memory / GIB:.3g} GiB for {count_of(workers, 'Ray worker')} and {has} "
            f"{room / GIB:.3g}: {more}, lower dim, or {instead}"
        )
    return plan


def checked(plan: Plan, budget: float, name: str, instead: str = TAKE_RMLS) -> Plan:
    """Returns the plan if it fits into this many bytes, and refuses it otherwise."""
    if plan.memory > budget:
        raise NoRoom(
            f"{name} needs {plan.memory / GIB:.3g} GiB and may use {budget / GIB:.3g}: raise --memory, "
            f"lower dim ({plan.tile} columns at once are the fewest already), or {instead}"
        )
    return plan
