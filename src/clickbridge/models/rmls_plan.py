"""The ways in which RMLS can compute its products, and the cost of each: operations, bytes and memory.

    w-sparse   W is formed; maps are sparse rows; a row of W accumulates into one buffer that stays in the cache
    w-dense    W is formed; maps are dense arrays: no index to follow, but every number is read
    images     X'R (Y L): W is never formed; Y L, the images of the other side's items, are sparse rows, and a new row
               is a sum of some of them; on this machine only
    factors    X'(R(Y L)): W is never formed; dense products, as many columns at a time as memory allows

A card multiplies dense rows whatever is zero in them: there the first two are the same work.

The plan depends only on sizes, settings and the engine's memory. Nothing is timed: plans differ in the last bits of a
model, and the same seed must give the same model no matter how busy the machine was. Seconds are estimates from nominal
rates. On another machine they are off by about the same factor for all plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from scipy import sparse

from clickbridge.errors import NoRoom, SettingError
from clickbridge.graph.products import nonzeros_of_w, products_of

PLANS = ("w-sparse", "w-dense", "images", "factors")
GIB = 1 << 30
SAMPLED_ROWS = 200
FLOAT, INDEX = 4, 4
GATHER = 28.0
"""Operations of a scattered add for one of a matrix product: what a sparse row costs over a dense one."""
FORM = 16.0
"""The same for a product that is summed while W is formed, where the row does not stay in the cache."""
SCAN = 6.0
"""Passes over a row of omega to threshold it, in operations a number."""
CACHE = 32e6
"""Bytes of a map from which on its rows come from memory, each by itself."""


@dataclass(frozen=True)
class Sizes:
    """The sizes that determine the cost. `nnz_w` is exact if W is small, and otherwise estimated from sampled rows.
    `links` counts the steps from features to items of the other side, X'R and Y'R', with repetitions. `images` are the
    numbers in the images of the side that has more of them, and `linked` those in the images at the end of all links:
    upper bounds. `first` is the memory in bytes that a dense first map takes while it is made; 0 if it is sparse."""

    n_queries: int
    n_docs: int
    n_x: int
    n_y: int
    nnz_x: int
    nnz_r: int
    nnz_y: int
    nnz_w: int
    links: int
    images: int
    linked: float
    products: float
    dim: int
    iterations: int
    kept: int
    decorrelate: bool
    first: float = 0.0

    @property
    def first_map(self) -> float:
        """Bytes of a dense first map, which stays until the end of the first pass."""
        return float(self.n_y * self.dim * FLOAT) if self.first else 0.0


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
class CardSize:
    """The memory of a card in bytes, and the bytes of a number of a map on it."""

    memory: float = inf
    stored: int = FLOAT


NO_LIMIT = CardSize()


@dataclass(frozen=True)
class Rates:
    """Bytes and float32 operations per second, and rows that are fetched from anywhere in memory. For a card also the
    bytes per second between its memory and this machine's, the operations per second on small square matrices, which
    the processor decomposes, and the seconds before anything runs."""

    bandwidth: float
    arithmetic: float
    fetches: float
    host: float = inf
    small: float = 0.0
    start: float = 0.0

    def seconds(
        self, operations: float, moved: float, fetched: float = 0.0, small: float = 0.0, host: float = 0.0
    ) -> float:
        cubes = small / (self.small or self.arithmetic)
        work = operations / self.arithmetic + moved / self.bandwidth + fetched / self.fetches
        return self.start + work + cubes + host / self.host


NOMINAL = Rates(bandwidth=3e10, arithmetic=2e11, fetches=2e7)
"""Two cores of a server of 2024, in round numbers: long arrays added, large matrices multiplied, short rows gathered
(measured there: 34 GB/s, 104 Gflop/s a core, 80 ns a row of 640 bytes). Only their ratios decide between plans, and
they change little from machine to machine."""
CARD = Rates(bandwidth=4e12, arithmetic=2e13, fetches=1e9, host=3e9, small=5e10, start=0.2)
"""A data-centre card of 2024, in round numbers. Random starts and maps go through this machine's memory, which takes
longer than the work on the card. They were fitted at one size on one card, an H200 (docs/benchmarks.md)."""


def sizes_of(
    x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array, *, dim: int, iterations: int, kept: int,
    decorrelate: bool, seed: int, first: float = 0.0,
) -> Sizes:  # fmt: skip
    products = products_of(x, r, y)
    nonzeros, _ = nonzeros_of_w(x, r, y, rows=SAMPLED_ROWS, seed=seed)
    of_x, of_y = np.diff(x.indptr), np.diff(y.indptr)
    per_query, per_doc = (np.minimum(of.astype(np.int64) * kept, dim) for of in (of_x, of_y))
    clicking = np.repeat(np.arange(r.shape[0]), np.diff(r.indptr))
    links = int(of_y[r.indices].sum() + of_x[clicking].sum())
    linked = float(of_x[clicking] @ per_doc[r.indices] + of_y[r.indices] @ per_query[clicking])
    return Sizes(
        x.shape[0], y.shape[0], x.shape[1], y.shape[1], x.nnz, r.nnz, y.nnz, nonzeros, links,
        int(max(per_query.sum(), per_doc.sum())), linked, products, dim, iterations, kept, decorrelate, first,
    )  # fmt: skip


def plans(
    sizes: Sizes, budget: float, home: str = "local", rates: Rates = NOMINAL, card: CardSize = NO_LIMIT
) -> list[Plan]:
    """All plans with their cost, cheapest first; those over the memory budget, in bytes, come last. `home` is the name
    of the engine, `card` says what its card holds, and `rates` are those of a processor.

    The printed algorithm has the same bits on every engine. So a plan that only this machine has is its last choice."""
    if home == "gpu":
        made = [_on_a_card(sizes, name, rates, card) for name in PLANS if name != "images"]
    else:
        formed = (_w_plan(sizes, rates, budget, home, dense=dense) for dense in (False, True))
        made = [*formed, _factors(sizes, rates, budget)]
    if home == "local":
        made.append(_images(sizes, rates, budget))

    def rank(plan: Plan) -> tuple[bool, bool, float]:
        return plan.memory > budget, plan.name == "images" and not sizes.decorrelate, plan.seconds

    return sorted(made, key=rank)


def choose(
    sizes: Sizes,
    budget: float,
    wanted: str = "auto",
    home: str = "local",
    rates: Rates = NOMINAL,
    card: CardSize = NO_LIMIT,
) -> Plan:
    """The cheapest plan that fits, or the one that is wanted. Refused where it does not fit."""
    made = plans(sizes, budget, home, rates, card)
    allowed = [plan for plan in made if wanted in ("auto", plan.name)]
    if not allowed:
        raise SettingError(f"plan={wanted} is for --engine local: take another plan, or auto")
    if allowed[0].memory > budget:
        least = min(allowed, key=lambda plan: plan.memory)
        other = "" if wanted == "auto" else "take plan=auto, "
        raise NoRoom(
            f"rmls needs {least.memory / GIB:.3g} GiB at least ({least.name}) and may use {budget / GIB:.3g}: "
            f"{other}raise --memory, or lower dim or density"
        )
    return allowed[0]


def _w_plan(s: Sizes, rates: Rates, budget: float, home: str, *, dense: bool) -> Plan:
    rows = s.n_x + s.n_y
    formed = 2 * s.nnz_w * (FLOAT + INDEX) + s.nnz_x * (FLOAT + INDEX)
    forming = s.products * FORM * 2
    if dense:
        operations = 2 * 2.0 * s.nnz_w * s.dim
        moved = 2.0 * s.nnz_w * s.dim * FLOAT + 2.0 * rows * s.dim * FLOAT
        maps, first, fetched = rows * s.dim * FLOAT, 0.0, 0.0
    else:
        operations = 2 * 2.0 * s.nnz_w * s.kept * GATHER
        moved = 2.0 * s.nnz_w * (s.kept * 6 + FLOAT + INDEX)
        maps, first, fetched = rows * s.kept * 6, s.first_map, _fetched(2.0 * s.nnz_w, rows * s.kept * 3)
    turning, cubes, small = _turning(s)
    if home == "ray":
        kept, times = 0.0, 2.0 if s.decorrelate else 1.0  # workers keep nothing
    elif dense:
        kept, times = 0.0, 1.0  # omega becomes the new map where it is
    else:
        kept, times = _omega(s, budget)
    operations = s.iterations * (times * operations + SCAN * rows * s.dim + turning + cubes) + forming
    moved, fetched = s.iterations * times * moved, s.iterations * times * fetched
    memory = formed + 2 * maps + first + small + kept + 8 * 2048 * s.dim * FLOAT
    name = "w-dense" if dense else "w-sparse"
    return Plan(name, operations, moved, max(memory, s.first), rates.seconds(operations, moved, fetched), s.dim)


def _images(s: Sizes, rates: Rates, budget: float) -> Plan:
    rows = s.n_x + s.n_y
    turning, cubes, small = _turning(s)
    kept, times = _omega(s, budget)
    made = 2.0 * (s.nnz_x + s.nnz_y) * s.kept * GATHER  # the images themselves
    operations = s.iterations * (times * 2.0 * s.linked * GATHER + made + SCAN * rows * s.dim + turning + cubes)
    moved = s.iterations * (times * 6.0 * s.linked + 12.0 * s.images)
    fetched = s.iterations * times * _fetched(s.links, s.images * 6)
    factors = 2 * (s.nnz_x + s.nnz_y + s.nnz_r) * (FLOAT + INDEX)
    # A dense first map has dense images.
    images = max(6.0 * s.images, s.n_docs * s.dim * FLOAT if s.first else 0.0)
    memory = factors + images + 2 * rows * s.kept * 6 + s.first_map + small + kept + 8 * 2048 * s.dim * FLOAT
    return Plan("images", operations, moved, max(memory, s.first), rates.seconds(operations, moved, fetched), s.dim)


def _factors(s: Sizes, rates: Rates, budget: float) -> Plan:
    rows, nnz = s.n_x + s.n_y, s.nnz_x + s.nnz_r + s.nnz_y
    turning, cubes, small = _turning(s)
    fixed = 2 * nnz * (FLOAT + INDEX) + max(s.n_x, s.n_y) * s.dim * FLOAT + 2 * rows * s.kept * 6 + small + s.first_map
    column = (s.n_queries + s.n_docs + rows) * FLOAT
    tile = int(min(max((budget - fixed) // column, min(s.dim, 16)), s.dim))
    operations = s.iterations * (2 * 2.0 * nnz * s.dim + SCAN * rows * s.dim + turning + cubes)
    moved = s.iterations * 2.0 * (nnz * s.dim * FLOAT + (s.n_queries + s.n_docs + rows) * s.dim * FLOAT)
    memory = fixed + tile * column
    return Plan("factors", operations, moved, max(memory, s.first), rates.seconds(operations, moved), tile)


def _on_a_card(s: Sizes, name: str, rates: Rates, card: CardSize) -> Plan:
    """W is formed by the processor. The memory is this machine's. A card of any size will do; where it is too small,
    what is not in use waits here: beside both maps the new one, before and after the thresholds."""
    rows, nnz = s.n_x + s.n_y, s.nnz_x + s.nnz_r + s.nnz_y
    numbers, between = (nnz, s.n_queries + s.n_docs) if name == "factors" else (s.nnz_w, 0)
    forming = 0.0 if name == "factors" else s.products * FORM * 2
    turning, cubes, _ = _turning(s)
    operations = s.iterations * (2 * 2.0 * numbers * s.dim + SCAN * rows * s.dim + turning)
    moved = s.iterations * 2.0 * (numbers + between + rows) * s.dim * FLOAT
    maps, larger = float(rows * s.dim * FLOAT), max(s.n_x, s.n_y) * s.dim * FLOAT
    there = (rows + between) * s.dim * card.stored + numbers * (FLOAT + INDEX) + (larger if s.decorrelate else 0)
    memory = 2 * numbers * (FLOAT + INDEX) + maps + s.first_map + (2 * larger if there > card.memory else 0)
    seconds = CARD.seconds(operations, moved, small=s.iterations * cubes, host=maps + s.first_map)
    operations += s.iterations * cubes + forming
    return Plan(name, operations, moved, max(memory, s.first), seconds + rates.seconds(forming, 0.0), s.dim)


def _turning(s: Sizes) -> tuple[float, float, float]:
    """Decorrelation: for each side a Gram matrix and a product, then the power of that matrix; and the memory."""
    if not s.decorrelate:
        return 0.0, 0.0, 0.0
    return 4.0 * (s.n_x + s.n_y) * s.dim**2, 2 * 20.0 * s.dim**3, 6.0 * s.dim**2 * 8


def _omega(s: Sizes, budget: float) -> tuple[float, float]:
    """Decorrelation uses omega twice: of each side it is kept where a quarter of the memory holds it, and else computed
    twice. The memory it takes, and how often it is computed in a pass, on average of both sides."""
    if not s.decorrelate:
        return 0.0, 1.0
    sides = [n * s.dim * FLOAT for n in (s.n_x, s.n_y)]
    kept = [size for size in sides if size <= budget / 4]
    return float(max(kept, default=0)), 2 - len(kept) / 2


def _fetched(rows: float, size: float) -> float:
    """Rows that are waited for: none if what they belong to stays in the cache."""
    return rows if size > CACHE else 0.0
