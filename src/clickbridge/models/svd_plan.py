"""What a block SVD of W = X' R Y would cost, before it is begun: operations, bytes, memory and time.

Blocks of d + 50 columns go through the factors and back, and the smaller side is made orthonormal at every step
(numerics/svd.py). Seconds are estimates from the nominal rates of rmls_plan.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clickbridge.errors import SettingError
from clickbridge.models.rmls_plan import GIB, INDEX, NOMINAL, Plan, Rates
from clickbridge.numerics.svd import OVERSAMPLE, POWER_STEPS

DOUBLE = 8


@dataclass(frozen=True)
class Factors:
    """The sizes of one space's X (queries by features), R and Y, and how many dimensions are looked for."""

    n_queries: int
    n_docs: int
    n_x: int
    n_y: int
    nnz: int
    dim: int

    @property
    def width(self) -> int:
        return min(self.dim + OVERSAMPLE, self.n_x, self.n_y, self.n_queries, self.n_docs)


def svd_plan(spaces: Sequence[Factors], size: int, rates: Rates = NOMINAL) -> Plan:
    """All spaces, one after the other; `size` is that of a number, 4 or 8 bytes."""
    operations = moved = memory = 0.0
    for s in spaces:
        rows, small = s.n_x + s.n_y + s.n_queries + s.n_docs, min(s.n_x, s.n_y)
        chains = 2 * (POWER_STEPS + 1) + 3  # there and back at every step, the image, and the residual
        orthonormal = POWER_STEPS + 2
        operations += chains * 2.0 * s.nnz * s.width + orthonormal * 4.0 * small * s.width**2 + 20.0 * s.width**3
        moved += chains * (s.nnz + rows) * s.width * size + orthonormal * 4.0 * small * s.width * size
        # Both blocks, what lies between them, and the factors with their transposes.
        held = rows * s.width * size + 2 * s.nnz * (size + INDEX) + 6 * s.width**2 * DOUBLE
        memory = max(memory, held)
    kept = sum((s.n_x + s.n_y) * min(s.dim, s.width) * size for s in spaces[:-1])
    seconds = operations / rates.arithmetic + moved / rates.bandwidth
    return Plan("block svd", operations, moved, memory + kept, seconds, max((s.width for s in spaces), default=0))


def checked(plan: Plan, budget: float, name: str) -> Plan:
    """The plan, if it fits in so many bytes."""
    if plan.memory > budget:
        raise SettingError(
            f"{name} needs {plan.memory / GIB:.3g} GiB and may use {budget / GIB:.3g}: give the engine more memory, "
            f"lower dim (now {plan.tile} columns at once), or take rmls, whose maps are sparse"
        )
    return plan
