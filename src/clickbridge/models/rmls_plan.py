"""The ways in which RMLS can compute its products, and the cost of each: operations, bytes and memory.

    w-sparse   W is formed; maps are sparse rows; a row of W accumulates into one buffer that stays in the cache
    w-dense    W is formed; maps are dense arrays: no index to follow, but every number is read
    w-blocks   like w-sparse, but a few rows of W at a time, formed whenever they are needed, if W does not fit in
               memory; on this machine only
    factors    X'(R(Y L)): W is never formed; dense products, as many columns at a time as memory allows

The plan depends only on sizes, settings and the engine's memory. Nothing is timed: plans differ in the last bits of a
model, and the same seed must give the same model no matter how busy the machine was. Seconds are estimates from two
nominal rates. On another machine they are off by about the same factor for all plans.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from clickbridge.errors import EngineError, SettingError
from clickbridge.graph.products import nonzeros_of_w, products_of

PLANS = ("w-sparse", "w-dense", "w-blocks", "factors")
GIB = 1 << 30
SAMPLED_ROWS = 200
FLOAT, INDEX = 4, 4
GATHER = 4.0
"""Operations of a scattered add for one of a matrix product: what a sparse row costs over a dense one."""
SCAN = 6.0
"""Passes over a row of omega to threshold it, in operations a number."""


@dataclass(frozen=True)
class Sizes:
    """The sizes that determine the cost. `nnz_w` is exact if W is small, and otherwise estimated from sampled rows.
    `nnz_half`, for R Y and R' X together, is an upper bound."""

    n_queries: int
    n_docs: int
    n_x: int
    n_y: int
    nnz_x: int
    nnz_r: int
    nnz_y: int
    nnz_w: int
    nnz_half: int
    products: float
    dim: int
    iterations: int
    kept: int
    decorrelate: bool


@dataclass(frozen=True)
class Plan:
    """The cost over all iterations. `memory` is the peak in bytes."""

    name: str
    operations: float
    bytes: float
    memory: float
    seconds: float
    tile: int


@dataclass(frozen=True)
class Rates:
    """Bytes and float32 operations per second."""

    bandwidth: float
    arithmetic: float


NOMINAL = Rates(bandwidth=3e10, arithmetic=1e11)
"""Two cores of a server of 2024, in round numbers: long arrays added and large matrices multiplied (measured there:
33.8 GB/s and 104 Gflop/s). Only their ratio decides between plans, and it changes little from machine to machine."""


def sizes_of(
    x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array, *, dim: int, iterations: int, kept: int,
    decorrelate: bool, seed: int,
) -> Sizes:  # fmt: skip
    products = products_of(x, r, y)
    nonzeros, _ = nonzeros_of_w(x, r, y, rows=SAMPLED_ROWS, seed=seed)
    clicking = np.repeat(np.arange(r.shape[0]), np.diff(r.indptr))
    half = int(np.diff(y.indptr)[r.indices].sum() + np.diff(x.indptr)[clicking].sum())
    return Sizes(
        x.shape[0], y.shape[0], x.shape[1], y.shape[1], x.nnz, r.nnz, y.nnz, nonzeros, half,
        products, dim, iterations, kept, decorrelate,
    )  # fmt: skip


def plans(sizes: Sizes, budget: float, blockwise: bool = True, rates: Rates = NOMINAL) -> list[Plan]:
    """All plans with their cost, cheapest first; those over the memory budget, in bytes, come last. `blockwise` tells
    whether the engine can form rows of W as they are needed."""
    made = [*(_w_plan(sizes, rates, budget, dense=dense) for dense in (False, True)), _factors(sizes, rates, budget)]
    if blockwise:
        made.append(_w_blocks(sizes, rates))
    return sorted(made, key=lambda plan: (plan.memory > budget, plan.seconds))


def choose(sizes: Sizes, budget: float, wanted: str = "auto", blockwise: bool = True, rates: Rates = NOMINAL) -> Plan:
    made = plans(sizes, budget, blockwise, rates)
    if wanted != "auto":
        found = next((plan for plan in made if plan.name == wanted), None)
        if found is None:
            raise SettingError(f"plan={wanted} is for --engine local: take another plan, or auto")
        return found
    if made[0].memory > budget:
        least = min(made, key=lambda plan: plan.memory)
        raise EngineError(
            f"rmls needs {least.memory / GIB:.3g} GiB at least ({least.name}) and may use {budget / GIB:.3g}: "
            "raise --memory, or lower dim or density"
        )
    return made[0]


def _w_plan(s: Sizes, rates: Rates, budget: float, *, dense: bool) -> Plan:
    rows = s.n_x + s.n_y
    formed = 2 * s.nnz_w * (FLOAT + INDEX) + s.nnz_x * (FLOAT + INDEX)
    forming = s.products * GATHER * 4
    if dense:
        operations = 2 * 2.0 * s.nnz_w * s.dim
        moved = 2.0 * s.nnz_w * s.dim * FLOAT + 2.0 * rows * s.dim * FLOAT
        maps = rows * s.dim * FLOAT
    else:
        operations = 2 * 2.0 * s.nnz_w * s.kept * GATHER
        moved = 2.0 * s.nnz_w * (s.kept * 6 + FLOAT + INDEX)
        maps = rows * s.kept * 6
    turning, small = _turning(s)
    operations = s.iterations * (operations + SCAN * rows * s.dim + turning) + forming
    moved = s.iterations * moved
    omega = max(s.n_x, s.n_y) * s.dim * FLOAT  # kept for its second use where a quarter of the memory holds it
    kept = omega if s.decorrelate and omega <= budget / 4 else 0.0
    memory = formed + 2 * maps + small + kept + 8 * 2048 * s.dim * FLOAT
    name = "w-dense" if dense else "w-sparse"
    return Plan(name, operations, moved, memory, _seconds(operations, moved, rates), s.dim)


def _w_blocks(s: Sizes, rates: Rates) -> Plan:
    """The rows of W are formed again each time they are needed: twice per pass with decorrelation."""
    rows, times = s.n_x + s.n_y, 2 if s.decorrelate else 1
    forming = 2.0 * s.products * GATHER * 4
    operations = times * (2 * 2.0 * s.nnz_w * s.kept * GATHER + forming)
    moved = times * (2.0 * s.nnz_w * (s.kept * 6 + 2 * (FLOAT + INDEX)) + 2.0 * s.products * (FLOAT + INDEX))
    turning, small = _turning(s)
    operations = s.iterations * (operations + SCAN * rows * s.dim + turning)
    factors = (2 * (s.nnz_x + s.nnz_y) + s.nnz_r + s.nnz_half) * (FLOAT + INDEX)
    memory = factors + 2 * rows * s.kept * 6 + small + 8 * 2048 * s.dim * FLOAT
    return Plan(
        "w-blocks", operations, s.iterations * moved, memory, _seconds(operations, s.iterations * moved, rates), s.dim
    )


def _factors(s: Sizes, rates: Rates, budget: float) -> Plan:
    rows, nnz = s.n_x + s.n_y, s.nnz_x + s.nnz_r + s.nnz_y
    turning, small = _turning(s)
    fixed = 2 * nnz * (FLOAT + INDEX) + max(s.n_x, s.n_y) * s.dim * FLOAT + 2 * rows * s.kept * 6 + small
    column = (s.n_queries + s.n_docs + rows) * FLOAT
    tile = int(min(max((budget - fixed) // column, min(s.dim, 16)), s.dim))
    operations = s.iterations * (2 * 2.0 * nnz * s.dim + SCAN * rows * s.dim + turning)
    moved = s.iterations * 2.0 * (nnz * s.dim * FLOAT + (s.n_queries + s.n_docs + rows) * s.dim * FLOAT)
    memory = fixed + tile * column
    return Plan("factors", operations, moved, memory, _seconds(operations, moved, rates), tile)


def _turning(s: Sizes) -> tuple[float, float]:
    """Operations and memory of decorrelation: for each side a Gram matrix, its power, and a product."""
    if not s.decorrelate:
        return 0.0, 0.0
    return 4.0 * (s.n_x + s.n_y) * s.dim**2 + 2 * 20.0 * s.dim**3, 6.0 * s.dim**2 * 8


def _seconds(operations: float, moved: float, rates: Rates) -> float:
    return operations / rates.arithmetic + moved / rates.bandwidth
