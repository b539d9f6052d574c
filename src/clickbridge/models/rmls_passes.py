"""The passes of RMLS over both sides (13, Algorithm 2), with the cheapest plan and one line of report for each pass.

These functions take features and settings, return maps and keep no state. `fit`, early stopping, updates and `bounds`
all use them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.errors import SettingError
from clickbridge.io.checkpoint import Checkpoint, Checkpoints
from clickbridge.models.fitted import Array
from clickbridge.models.latent import Features, Space, of_columns
from clickbridge.models.pls import LatentSettings, fitting_plan, weighted_responses, worked_by
from clickbridge.models.rmls_plan import FLOAT, CardSize, Plan, Sizes, choose, sizes_of
from clickbridge.models.svd_plan import Factors, svd_plan
from clickbridge.numerics.qr import ROWS
from clickbridge.numerics.rmls import (
    ABSOLUTE,
    DENSITY,
    RELATIVE,
    FactoredRows,
    FormedRows,
    Half,
    ImageRows,
    ProductRows,
    Shrinkage,
    effective_rank,
    half_iteration,
    kept,
)
from clickbridge.numerics.rows import Maps, SparseRows, Survey, sparse_rows
from clickbridge.numerics.svd import ProductOperator, randomised_svd
from clickbridge.settings import ADVANCED, Printed, setting, settings

MODES = {"absolute": ABSOLUTE, "relative": RELATIVE, "density": DENSITY}


PAPER = "12, 13"
AUTO = "auto"


@settings
class RMLSSettings(Printed, LatentSettings):
    printed: ClassVar[Mapping[str, Any]] = {
        "views": "word,response",
        "fields": "equal",
        "stop_words": "drop",
        "shrink": "absolute",
        # They were tuned on validation data (13, Section 6.2). The .1 that 12 chose is on the scale of its log.
        "beta": "auto",
        "gamma": "auto",
        "decorrelate": 0.0,
        "norm_power": 0.0,
        "start": "ball",
        "iterations": 10,
        "early_stop": True,
    }

    dim: int = setting(1000, "dimensions of the latent space; at most the rank of the data is used", 1, 100_000)
    iterations: int = setting(3, "passes over both sides: the papers' T plus one", 1, 10_000)
    early_stop: bool = setting(
        False, "choose the number of passes, up to `iterations`, on held-back clicks", group=ADVANCED
    )
    shrink: str = setting(
        "density",
        "how small values are dropped: keep a share of each row (density), or drop what is below a multiple of the "
        "row's root mean square (relative), or below a fixed threshold (absolute, the papers)",
        choices=("density", "relative", "absolute"),
        group=PAPER,
    )
    density: float = setting(0.02, "share of each row of the maps that is kept (shrink=density)", 1e-6, 1)
    beta: str = setting(
        "0.1",
        "threshold of query rows (shrink=absolute), or multiple of the row's root mean square (relative); auto "
        "chooses on held-back clicks",
        group=PAPER,
    )
    gamma: str = setting("0.1", "as beta, for document rows; if both are auto, they are equal", group=PAPER)
    theta_x: float = setting(1.0, "length of the longest query row", 1e-6, 1e6, group=PAPER)
    theta_y: float = setting(1.0, "length of the longest document row", 1e-6, 1e6, group=PAPER)
    balance: float = setting(
        0.0, "power of the row and column sums by which the click matrix W is divided", 0, 1, group=ADVANCED
    )
    decorrelate: float = setting(
        0.8,
        "how far the latent dimensions are decorrelated before each threshold; the papers have 0, 1 is fully",
        0,
        1,
        group=PAPER,
    )
    norm_power: float = setting(
        0.5, "a row's length is this power of its covariance; the papers have 0: equal lengths", 0, 1, group=PAPER
    )
    start: str = setting(
        "random",
        "the first map: random, random with every row inside its ball (ball, the papers), or from a singular value "
        "decomposition",
        choices=("random", "ball", "svd"),
        group=ADVANCED,
    )
    tolerance: float = setting(
        1e-4, "stop when the objective changes by less than this share of itself", 0, 1, group=ADVANCED
    )
    plan: str = setting(
        "auto",
        "how matrix products are computed; auto takes the cheapest way that fits in memory",
        choices=("auto", "w-sparse", "w-dense", "images", "factors"),
        group=ADVANCED,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("beta", "gamma"):
            value = getattr(self, name)
            if value != AUTO and not _is_threshold(value):
                raise SettingError(f"{name} must be a number, at least 0, or {AUTO}; got {value!r}")

    @property
    def thresholds(self) -> tuple[float, float]:
        """Of query rows and of document rows, once both are numbers; shrink=density has none."""
        return (0.0, 0.0) if self.shrink == "density" else (float(self.beta), float(self.gamma))

    @property
    def tunes(self) -> bool:
        """Whether something is chosen on held-back clicks."""
        return self.early_stop or (self.shrink != "density" and AUTO in (self.beta, self.gamma))


def _is_threshold(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1e9
    except ValueError:
        return False


@dataclass(frozen=True)
class Pass:
    """The maps after a pass, held by the engine; the objective and its relative change; the plan; and the numbers of
    every pass so far."""

    columns: tuple[Array, Array]
    held: tuple[Any, Any]
    alignment: Array
    objective: float
    change: float
    plan: str
    trace: tuple[dict[str, float], ...]
    engine: Engine

    @property
    def report(self) -> dict[str, float]:
        """The numbers of this pass."""
        return self.trace[-1]

    @cached_property
    def space(self) -> Space:
        """The maps in this process. They are fetched from the engine only when needed."""
        maps = [m if isinstance(m, SparseRows) else sparse_rows(m) for m in map(self.engine.fetch, self.held)]
        return Space(*self.columns, maps[0], maps[1], self.alignment.astype(np.float32), self.change)

    @property
    def line(self) -> str:
        """One line of progress."""
        now = self.report
        return (
            f"rmls iteration {now['iteration']}: effective rank {now['effective_rank']:.0f} in {len(self.alignment)} "
            f"dimensions, density {now['density']:.4f}, likeness of the maps' rows {now['cosine_to_constant']:.2f}"
        )


@dataclass(frozen=True)
class Problem:
    """W = X' R Y, given by its factors, and the number of latent dimensions to learn."""

    x: sparse.csr_array
    r: sparse.csr_array
    y: sparse.csr_array
    dim: int

    @classmethod
    def of(cls, features: Features, q_columns: Array, d_columns: Array, dim: int, s: RMLSSettings) -> Problem:
        """D_r^-p X' R Y D_c^-p for W, D the row and column sums of W, p = `balance`."""
        x, y = (
            sparse.csr_array(of_columns(f, c), dtype=np.float32)
            for f, c in ((features.query_features, q_columns), (features.doc_features, d_columns))
        )
        r = sparse.csr_array(weighted_responses(features.responses, s.mean), dtype=np.float32)
        # W is scaled to unit size, so that thresholds do not depend on the number of queries.
        if s.shrink != "absolute" and r.nnz:
            r.data /= np.float32(r.data.mean())
        if s.balance:
            sums = abs(x).T @ (r @ (abs(y) @ np.ones(y.shape[1]))), abs(y).T @ (r.T @ (abs(x) @ np.ones(x.shape[1])))
            scales = [np.where(v > 0, np.maximum(v, 1e-30) ** -s.balance, 0.0).astype(np.float32) for v in sums]
            x, y = (
                sparse.csr_array(m @ sparse.diags_array(v), dtype=np.float32)
                for m, v in zip((x, y), scales, strict=True)
            )
        return cls(x, r, y, min(dim, *x.shape, *y.shape))

    def sizes(self, s: RMLSSettings, iterations: int, engine: Engine, start: Maps | None = None) -> Sizes:
        """`start` is an L_y to start from, if it is given."""
        first = self._first_memory(s, engine) if start is None else 0.0
        rows = kept(s.density, self.dim) if s.shrink == "density" else self.dim // 4 + 1
        return sizes_of(
            self.x, self.r, self.y, dim=self.dim, iterations=iterations, kept=rows, decorrelate=s.decorrelate > 0,
            seed=s.seed, first=first,
        )  # fmt: skip

    def rows(self, plan: Plan) -> tuple[ProductRows, ProductRows]:
        """The rows of W (for queries) and of W' (for documents) in the form that a plan needs."""
        x, r, y = self.x, self.r, self.y
        if plan.name in ("images", "factors"):
            x_t, y_t, r_t = (sparse.csr_array(m.T) for m in (x, y, r))
            if plan.name == "images":
                return ImageRows(x_t, r, y), ImageRows(y_t, r_t, x)
            return FactoredRows(x_t, r, y, plan.tile), FactoredRows(y_t, r_t, x, plan.tile)
        w = sparse.csr_array(x.T @ sparse.csr_array(r @ y))
        return FormedRows(w), FormedRows(sparse.csr_array(w.T))

    def _first_memory(self, s: RMLSSettings, engine: Engine) -> float:
        """Bytes to make L_y before the first pass; 0 if it is sparse."""
        one = float(self.y.shape[1] * self.dim * 4)
        if s.start == "random":
            return 0.0 if s.shrink == "density" else one
        if s.start == "ball":
            return one
        factors = [Factors.of(self.x, self.r, self.y, self.dim)]
        if engine.name == "local":
            return svd_plan(factors, FLOAT, engine.memory).memory
        fitting_plan(factors, "float32", engine, "start=svd of rmls", instead="take start=random")
        return one  # elsewhere a decomposition does not work in this memory

    def first(self, s: RMLSSettings, engine: Engine) -> Maps:
        """L_y before the first pass."""
        n, dim = self.y.shape[1], self.dim
        if s.start == "svd":
            product = ProductOperator(self.x, self.r, self.y, np.float32, engine)
            found = randomised_svd(product, dim, seed=s.seed).v
            if found.shape[1] == dim:
                return np.ascontiguousarray(found)
            wide = np.zeros((n, dim), dtype=np.float32)
            wide[:, : found.shape[1]] = found
            return wide
        rng = np.random.default_rng(s.seed)
        if s.start == "ball":
            return _in_ball(rng, n, dim, s.theta_y)
        if s.shrink != "density":
            return rng.standard_normal((n, dim), dtype=np.float32)
        # As sparse as the maps of later passes: each row has a few numbers at random positions.
        k = kept(s.density, dim)
        columns = np.sort(rng.integers(0, dim, (n, k)), axis=1)
        values = rng.standard_normal((n, k), dtype=np.float32)
        parts: Any = (values.ravel(), columns.ravel(), np.arange(0, n * k + 1, k))
        out = sparse.csr_array(parts, shape=(n, dim))
        out.sum_duplicates()
        return sparse_rows(out)


def _in_ball(rng: np.random.Generator, n: int, dim: int, radius: float) -> Array:
    """Rows drawn uniformly from the ball of the constraint |l_u| <= theta."""
    rows = rng.standard_normal((n, dim), dtype=np.float32)
    lengths = radius * rng.random(n) ** (1.0 / max(dim, 1))
    for start in range(0, n, ROWS):  # norms of all rows at once would take two arrays as large
        part, own = rows[start : start + ROWS], lengths[start : start + ROWS]
        own /= np.maximum(np.linalg.norm(part, axis=1), 1e-30)
        part *= own.astype(np.float32)[:, None]
    return rows


def passes(
    features: Features, q_columns: Array, d_columns: Array, dim: int, s: RMLSSettings, iterations: int, engine: Engine,
    start: Maps | None = None, checkpoints: Checkpoints | None = None,
) -> Iterator[Pass]:  # fmt: skip
    """Runs at most `iterations` passes, until the objective hardly changes. `start` is an L_y to start from. With
    `checkpoints` each pass is saved, and a restarted run continues after the last one saved."""
    problem = Problem.of(features, q_columns, d_columns, dim, s)
    plan = choose(problem.sizes(s, iterations, engine, start), wanted=s.plan, **limits_of(engine))
    columns, dense = (q_columns, d_columns), plan.name == "w-dense"
    checkpoint = None
    if checkpoints is not None:
        work = (*columns, problem.x, problem.r, problem.y, asdict(s), iterations, plan.name, *worked_by(engine))
        checkpoint = checkpoints.of("rmls", *work, *([] if start is None else _arrays(start)))
    now = None if checkpoint is None else _restored(checkpoint, columns, plan.name, engine)
    if now is None:
        l_y = problem.first(s, engine) if start is None else start
        held = engine.hold(l_y.dense() if dense and isinstance(l_y, SparseRows) else l_y)
        width = l_y.shape[1]
        del l_y
    else:
        held, width = now.held[1], len(now.alignment)
        yield now
        if _done(now, iterations, s.tolerance):
            return
    query_rows, doc_rows = problem.rows(plan)
    beta, gamma = s.thresholds
    while now is None or not _done(now, iterations, s.tolerance):
        queries, of_x = _half(query_rows, held, beta, s.theta_x, width, s, dense, engine)
        docs, of_y = _half(doc_rows, queries.maps, gamma, s.theta_y, width, s, dense, engine, with_gram=True)
        held = docs.maps
        objective = float(docs.alignment.sum()) - _penalty(s, of_x, of_y)
        before, trace = (0.0, ()) if now is None else (now.objective, now.trace)
        change = abs(objective - before) / max(abs(objective), 1e-300)
        report = {
            "iteration": len(trace) + 1,
            "alignment": float(docs.alignment.sum()),
            "density": (of_x.nnz + of_y.nnz) / max((len(q_columns) + len(d_columns)) * width, 1),
            "effective_rank": effective_rank(of_y.gram),
            "cosine_to_constant": of_y.cosine_to_constant,
        }
        maps = (queries.maps, held)
        now = Pass(columns, maps, docs.alignment, objective, change, plan.name, (*trace, report), engine)
        if checkpoint is not None:
            _keep(checkpoint, now)
        yield now


def limits_of(engine: Engine) -> dict[str, Any]:
    """What a plan of RMLS has to keep to."""
    card = CardSize(getattr(engine, "card_size", inf), getattr(engine, "stored_bytes", FLOAT))
    return {"budget": engine.memory, "home": engine.name, "card": card}


def _done(now: Pass, iterations: int, tolerance: float) -> bool:
    return len(now.trace) >= iterations or (len(now.trace) > 1 and now.change < tolerance)


def _arrays(maps: Maps) -> tuple[Array, ...]:
    return (maps.indptr, maps.indices, maps.data) if isinstance(maps, SparseRows) else (maps,)


def _keep(checkpoint: Checkpoint, now: Pass) -> None:
    maps = tuple(now.engine.fetch(side) for side in now.held)
    checkpoint.write((maps, now.alignment, now.objective, now.change, now.trace))


def _restored(checkpoint: Checkpoint, columns: tuple[Array, Array], plan: str, engine: Engine) -> Pass | None:
    """The pass that was saved, equal to the last bit."""
    state = checkpoint.read()
    if state is None:
        return None
    maps, alignment, objective, change, trace = state
    held = (engine.hold(maps[0]), engine.hold(maps[1]))
    return Pass(columns, held, alignment, objective, change, plan, trace, engine)


def _half(
    rows: ProductRows, other: Any, threshold: float, theta: float, dim: int, s: RMLSSettings, dense: bool,
    engine: Engine, with_gram: bool = False,
) -> tuple[Half, Survey]:  # fmt: skip
    """The new rows of one side, and statistics of them."""
    mode = MODES[s.shrink]
    value = kept(s.density, dim) if mode == DENSITY else threshold
    how = Shrinkage(mode, float(value), theta, s.norm_power, s.decorrelate)
    half = half_iteration(rows, other, how, keep_dense=dense, engine=engine)
    found: Survey = engine.survey(half.maps, with_gram)
    if not s.norm_power:
        return half, found
    # Lengths by |omega_u|: the longest row gets theta.
    factor = theta / max(found.longest, 1e-30)
    return Half(engine.scaled(half.maps, factor), half.alignment * factor), replace(found, size=found.size * factor)


def _penalty(s: RMLSSettings, of_x: Survey, of_y: Survey) -> float:
    """beta |L_x| + gamma |L_y| of the objective (4), where thresholds are the paper's."""
    beta, gamma = s.thresholds
    return beta * of_x.size + gamma * of_y.size if s.shrink == "absolute" else 0.0


def map_density(*maps: SparseRows) -> float:
    """The share of non-zero numbers."""
    return sum(m.nnz for m in maps) / max(sum(m.shape[0] * m.width for m in maps), 1)
