"""Regularised mapping to latent structures (Wu et al. 2013, Section 4; Wu et al. 2012): sparse maps of bounded
row length, learned by alternating over the two sides.

As printed, the objective's optimum is a useless point: with iterations all rows turn to one direction and the
score becomes mere feature mass. So the default decorrelates the latent dimensions before each threshold
(`numerics/rmls.py`); `docs/models/rmls.md` shows the experiment and the settings that give the printed
algorithm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE
from clickbridge.io.artifact import Artifact
from clickbridge.models.base import Array
from clickbridge.models.latent import COUNTING, SEARCHING, Space
from clickbridge.models.plan import Plan, choose, measure_rates, memory_budget, plans, sizes_of
from clickbridge.models.pls import PLS
from clickbridge.models.tuning import LabelledLists
from clickbridge.numerics.rmls import (
    ABSOLUTE,
    DENSITY,
    RELATIVE,
    FactoredRows,
    FormedRows,
    Half,
    Rows,
    Shrinkage,
    cosine_to_constant,
    effective_rank,
    half_iteration,
    kept,
)
from clickbridge.numerics.rows import Maps, SparseRows, sparse_rows
from clickbridge.numerics.svd import ProductOperator, randomised_svd

MODES = {"absolute": ABSOLUTE, "relative": RELATIVE, "density": DENSITY}
COLLAPSED = 0.5
"""Cosine of the rows to one direction from which on the maps have collapsed."""
SPARSE_IMAGES = 0.25
"""Share of non-zeros up to which document images are kept sparse, with an inverted index."""


class RMLS(PLS):
    """Sparse rows for every feature, all views side by side in one space."""

    name = "rmls"
    about = "regularised mapping to latent structures: sparse maps, scalable"
    paper = "13 4, 12"
    settings: ClassVar[tuple[str, ...]] = (
        "dim", "views", "mean", "iterations", "early_stop", "shrink", "density", "beta", "gamma", "theta_x", "theta_y",
        "balance", "decorrelate", "norm_power", "start", "tolerance", "plan", "memory", "threads", *SEARCHING,
        *COUNTING, "fields", "language", "stop_words", "seed",
    )  # fmt: skip
    defaults: ClassVar[dict[str, Any]] = {"dim": 1000}

    iterations: int
    early_stop: bool
    shrink: str
    density: float
    beta: float
    gamma: float
    theta_x: float
    theta_y: float
    balance: float
    decorrelate: float
    norm_power: float
    start: str
    tolerance: float
    plan: str
    memory: float
    threads: int

    trace_: list[dict[str, float]]
    sparse_images_: bool

    # --- learning --------------------------------------------------------------------------------

    def _fit(self, graph: ClickGraph) -> None:
        if self.early_stop and "iterations" not in self.tuned_:
            self.tuned_["iterations"] = self._stop_at(graph)
        group = "&".join(self._groups(graph))
        space = self.learn_space(*self._learn_features(graph, [group])[0], self.dim)
        self.spaces_ = [space]
        words = f"{self.name}: views {group.replace('&', ', ')}; plan {self.plan_.name}; {self._dim_note(space)}"
        self.notes_.append(f"{words}, density {self.map_density:.4f}")
        self._warn()
        self._finish()
        self.prepare_search()

    def learn_space(self, q_columns: Array, d_columns: Array, dim: int, start: Any = None) -> Space:
        self.trace_ = []
        steps = self.tuned_.get("iterations", self.iterations)
        spaces = self._iterate(q_columns, d_columns, dim, start)
        space = next(spaces)
        for _ in range(1, steps):
            space = next(spaces)
            if space.residual < self.tolerance:
                break
        return space

    def scaled_space(self, space: Space, weight: float = 1.0) -> Space:
        return space

    def _iterate(self, q_columns: Array, d_columns: Array, dim: int, start: Maps | None) -> Iterator[Space]:
        """A space after each iteration of Algorithm 2; `residual` is the relative change of the objective."""
        x, y, r = self._balanced(q_columns, d_columns)
        dim = min(dim, *x.shape, *y.shape)
        l_y = self._first(x, r, y, dim) if start is None else start
        self.plan_, query_rows, doc_rows = self._planned(x, r, y, dim)
        dense = self.plan_.name == "w-dense"
        if dense and isinstance(l_y, SparseRows):
            l_y = l_y.dense()
        before = 0.0
        while True:
            l_x = self._half(query_rows, l_y, self.beta, self.theta_x, dim, dense).maps
            made = self._half(doc_rows, l_x, self.gamma, self.theta_y, dim, dense)
            l_y = made.maps
            objective = float(made.alignment.sum())
            change = abs(objective - before) / max(abs(objective), 1e-300)
            before = objective
            maps = [m if isinstance(m, SparseRows) else sparse_rows(m) for m in (l_x, l_y)]
            self._note_iteration(objective, *maps)
            yield Space(q_columns, d_columns, maps[0], maps[1], made.alignment.astype(np.float32), change)

    def _half(self, rows: Rows, other: Maps, threshold: float, theta: float, dim: int, dense: bool) -> Half:
        mode = MODES[self.shrink]
        value = kept(self.density, dim) if mode == DENSITY else threshold
        how = Shrinkage(mode, float(value), theta, self.norm_power, self.decorrelate)
        half = half_iteration(rows, other, how, keep_dense=dense, threads=self.threads)
        if not self.norm_power:
            return half
        # Lengths by |omega_u|: the longest row gets theta.
        maps = half.maps
        lengths = maps.row_norms() if isinstance(maps, SparseRows) else np.linalg.norm(maps, axis=1)
        factor = theta / max(float(lengths.max(initial=0.0)), 1e-30)
        longest = maps.scaled(factor) if isinstance(maps, SparseRows) else maps * np.float32(factor)
        return Half(longest, half.alignment * factor)

    def _balanced(self, q_columns: Array, d_columns: Array) -> tuple[sparse.csr_array, ...]:
        """X, Y and R with D_r^-p X' R Y D_c^-p for W, D the row and column sums of W."""
        x, y = (
            sparse.csr_array(f[:, c], dtype=np.float32)
            for f, c in ((self.query_features_, q_columns), (self.doc_features_, d_columns))
        )
        r = sparse.csr_array(self.weighted_responses(), dtype=np.float32)
        # W of unit scale: thresholds do not depend on how many queries there are.
        if self.shrink != "absolute" and r.nnz:
            r = sparse.csr_array(r / np.float32(r.data.mean()))
        if self.balance:
            sums = abs(x).T @ (r @ (abs(y) @ np.ones(y.shape[1]))), abs(y).T @ (r.T @ (abs(x) @ np.ones(x.shape[1])))
            scales = [np.where(s > 0, np.maximum(s, 1e-30) ** -self.balance, 0.0).astype(np.float32) for s in sums]
            x, y = (
                sparse.csr_array(m @ sparse.diags_array(s), dtype=np.float32)
                for m, s in zip((x, y), scales, strict=True)
            )
        return x, y, r

    def _first(self, x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array, dim: int) -> Maps:
        """L_y before the first iteration."""
        if self.start == "svd":
            first = randomised_svd(ProductOperator(x, r, y, np.float32), dim, seed=self.seed).v
            wide = np.zeros((y.shape[1], dim), dtype=np.float32)
            wide[:, : first.shape[1]] = first
            return wide
        rng = np.random.default_rng(self.seed)
        if self.shrink != "density":
            return rng.standard_normal((y.shape[1], dim), dtype=np.float32)
        # As sparse as what follows: each row has its few numbers in random places.
        k = kept(self.density, dim)
        columns = np.sort(rng.integers(0, dim, (y.shape[1], k)), axis=1)
        values = rng.standard_normal((y.shape[1], k), dtype=np.float32)
        indptr = np.arange(0, y.shape[1] * k + 1, k)
        first = sparse.csr_array((values.ravel(), columns.ravel(), indptr), shape=(y.shape[1], dim))
        first.sum_duplicates()
        return sparse_rows(first)

    # --- plans -----------------------------------------------------------------------------------

    plan_: Plan

    def _sizes(self, x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array, dim: int) -> Any:
        rows = kept(self.density, dim) if self.shrink == "density" else dim // 4 + 1
        steps = self.tuned_.get("iterations", self.iterations)
        return sizes_of(x, r, y, dim=dim, iterations=steps, kept=rows, decorrelate=self.decorrelate > 0, seed=self.seed)

    def _planned(
        self, x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array, dim: int
    ) -> tuple[Plan, Rows, Rows]:
        """The plan, and the rows of W (for queries) and of W' (for documents) as it wants them."""
        plan = choose(self._sizes(x, r, y, dim), measure_rates(), memory_budget(self.memory), self.plan)
        if plan.name == "factors":
            x_t, y_t, r_t = (sparse.csr_array(m.T) for m in (x, y, r))
            return plan, FactoredRows(x_t, r, y, plan.tile), FactoredRows(y_t, r_t, x, plan.tile)
        w = sparse.csr_array(x.T @ sparse.csr_array(r @ y))
        return plan, FormedRows(w), FormedRows(sparse.csr_array(w.T))

    def plans(self, graph: ClickGraph) -> list[dict[str, Any]]:
        """What each plan would cost on this GRAPH, without running it; the one `fit` would take is first."""
        self._check_params()
        self.tuned_, self.notes_ = {}, []
        self.doc_ids_, self.titles_ = graph.doc_ids, [""] * graph.n_docs
        columns = self._learn_features(graph, ["&".join(self._groups(graph))])[0]
        x, y, r = self._balanced(*columns)
        sizes = self._sizes(x, r, y, min(self.dim, *x.shape, *y.shape))
        budget, rates = memory_budget(self.memory), measure_rates()
        chosen = choose(sizes, rates, budget, self.plan)
        rest = [plan for plan in plans(sizes, rates, budget) if plan.name != chosen.name]
        return [asdict(plan) for plan in (chosen, *rest)]

    # --- stopping and warnings -------------------------------------------------------------------

    def _stop_at(self, graph: ClickGraph) -> int:
        """The number of iterations with the best nDCG@5 on held-back lists, up to `iterations`."""
        held = graph.hold_back(seed=self.seed)
        columns = self._learn_features(held.graph, ["&".join(self._groups(held.graph))])[0]
        lists: LabelledLists | None = None
        found: list[float] = []
        self.trace_ = []
        for space, _ in zip(self._iterate(*columns, self.dim, None), range(self.iterations), strict=False):
            self.spaces_ = [space]
            self._forget()
            self._finish()
            if lists is None:
                lists = LabelledLists(held.lists([lambda query, k: self.rank(query, k).doc_ids]))
                if len(lists) < MIN_USABLE:
                    self.notes_.append(f"{self.name}: {len(lists)} usable held-back queries are too few to stop early")
                    return self.iterations
            scores = np.concatenate(self.score_lists(lists.lists))
            found.append(lists.ndcg(np.where(np.isfinite(scores), scores, 0.0)))
        self._forget()
        best = int(np.argmax(found)) + 1
        values = ", ".join(f"{value:.3f}" for value in found)
        self.notes_.append(
            f"{self.name}: stops after {best} of {self.iterations} iterations (held-back nDCG@5 {values})"
        )
        return best

    def _note_iteration(self, objective: float, l_x: SparseRows, l_y: SparseRows) -> None:
        self.trace_.append(
            {
                "iteration": len(self.trace_) + 1,
                "alignment": objective,
                "density": (l_x.nnz + l_y.nnz) / max((l_x.shape[0] + l_y.shape[0]) * l_x.width, 1),
                "effective_rank": effective_rank(l_y.gram()),
                "cosine_to_constant": cosine_to_constant(l_y),
            }
        )
        last = self.trace_[-1]
        self.watch(
            f"rmls iteration {last['iteration']}: effective rank {last['effective_rank']:.0f} of {l_x.width}, "
            f"density {last['density']:.4f}, cosine to constant {last['cosine_to_constant']:.2f}"
        )

    def _warn(self) -> None:
        last = self.trace_[-1]
        if last["cosine_to_constant"] >= COLLAPSED:
            self.notes_.append(
                f"{self.name}: the maps have collapsed: rows point one way (cosine {last['cosine_to_constant']:.2f}, "
                f"effective rank {last['effective_rank']:.0f} of {self.spaces_[0].dim}), and scores are little more "
                "than feature mass; use fewer iterations, or decorrelate"
            )

    @property
    def map_density(self) -> float:
        """Share of non-zeros in both maps."""
        maps = [m for space in self.spaces_ for m in (space.l_x, space.l_y) if isinstance(m, SparseRows)]
        return sum(m.nnz for m in maps) / max(sum(m.shape[0] * m.width for m in maps), 1)

    # --- images ----------------------------------------------------------------------------------

    def _finish(self) -> None:
        self.doc_cells_ = self.query_cells_ = None
        self.sparse_images_ = True
        images = self._apply(self.doc_features_, "d_columns", "l_y")
        self.sparse_images_ = images.nnz <= SPARSE_IMAGES * images.shape[0] * images.shape[1]
        self.images_ = images if self.sparse_images_ else images.toarray()
        self.scorable_ = np.diff(self.doc_features_.indptr) > 0
        if self.sparse_images_:
            self.scorable_ &= np.diff(images.indptr) > 0

    def _apply(self, features: sparse.csr_array, columns: str, maps: str) -> Any:
        """Sums of a few sparse rows: sparse themselves, or dense where documents are long."""
        blocks = [features[:, getattr(space, columns)] @ getattr(space, maps).csr for space in self.spaces_]
        images = sparse.csr_array(sparse.hstack(blocks, format="csr") if len(blocks) > 1 else blocks[0])
        return images if self.sparse_images_ else images.toarray()

    def _report(self) -> dict[str, Any]:
        report = super()._report()
        return report | {"density": self.map_density, "plan": self.plan_.name, "trace": self.trace_}

    # --- files -----------------------------------------------------------------------------------

    def _read(self, artifact: Artifact) -> None:
        super()._read(artifact)
        self.sparse_images_ = sparse.issparse(self.images_)
