"""What the papers leave to future work, built small and measured on held-back training lists of msrd.

Other losses and other regularisers in the framework of 12 and 13, M-PLS with kernels (11M), and the numbers of the
S-kernel learned instead of looked up in a grid (11R). A fifth of the log's queries is the test, a tenth of the others
chooses, the rest teaches; the judged lists of msrd are not touched. 09 is in `future_work_online.py`.

    python benchmarks/future_work.py DATA --parts losses,regularisers,balance,kernels,s-kernel
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, sparse, stats

from clickbridge import PLS, ClickGraph, build_model, read_docs, read_log
from clickbridge.models.ascent import labelled
from clickbridge.models.candidates import Labelled, at_most
from clickbridge.models.latent import FittedLatent
from clickbridge.models.pls import weighted_responses
from clickbridge.models.study import Study
from clickbridge.numerics.svd import ProductOperator, randomised_svd
from clickbridge.skernel.kernel_choices import GRIDS, MOST_LISTS, Choice, Trials, climb, grids_of

Array = np.ndarray[Any, Any]
Maps = tuple[Array, Array]
DIM = 100
ROUNDS, EVERY = 20, 5
SHRINK = 1e-4


@dataclass
class Bench:
    """The three parts of msrd's training log, and features and maps of PLS learned from the first."""

    taught: Study
    tune: Labelled
    test: Labelled

    @classmethod
    def of(cls, data: Path) -> Bench:
        log = read_log(str(data / "msrd/train.log.jsonl.gz"))
        graph = ClickGraph.build(log, read_docs(str(data / "msrd/docs.jsonl.gz")))
        held, rest = Study(graph).hold_back(fraction=0.2, seed=1)
        tuned, taught = rest.hold_back(fraction=0.1, seed=2)
        return cls(taught, *(labelled(taught, part.lists(), 10_000) for part in (tuned, held)))

    @cached_property
    def pls(self) -> FittedLatent:
        """Default views; d = 100, so that every row of the tables has the same."""
        fitted = PLS(dim=DIM, sv_power=0.0).fit(self.taught.graph).fitted
        assert isinstance(fitted, FittedLatent)
        return fitted

    @cached_property
    def x(self) -> sparse.csr_array:
        return self.pls.query_features

    @cached_property
    def y(self) -> sparse.csr_array:
        return self.pls.doc_features

    @cached_property
    def r(self) -> sparse.csr_array:
        return sparse.csr_array(weighted_responses(self.pls.responses, True))

    @property
    def maps(self) -> Maps:
        space = self.pls.spaces[0]
        return np.asarray(space.l_x, dtype=np.float64), np.asarray(space.l_y, dtype=np.float64)

    def rows(self, lists: Labelled) -> tuple[sparse.csr_array, Array, Array]:
        """Features of the lists' queries, and for each shown document its query's row and its own."""
        found, of_query, items = [], [], []
        for number, (query, shown) in enumerate(lists.candidates.each()):
            row = self.pls.query_row(query)
            parts: Any = (row.values, row.columns, [0, len(row.columns)])
            found.append(sparse.csr_array(parts, shape=(1, self.x.shape[1])))
            of_query.append(np.full(len(shown), number))
            items.append(shown)
        return sparse.csr_array(sparse.vstack(found)), np.concatenate(of_query), np.concatenate(items)

    @cached_property
    def looked_up(self) -> dict[int, tuple[sparse.csr_array, Array, Array]]:
        return {id(lists): self.rows(lists) for lists in (self.tune, self.test)}

    def values(self, lists: Labelled, of_queries: Callable[[sparse.csr_array], Array], of_docs: Array) -> Array:
        """nDCG@5 of each list by the dot product of images."""
        queries, row, item = self.looked_up[id(lists)]
        return lists.values((of_queries(queries)[row] * of_docs[item]).sum(axis=1))

    def of_maps(self, lists: Labelled, maps: Maps) -> Array:
        return self.values(lists, lambda q: q @ maps[0], self.y @ maps[1])


def report(name: str, values: Array, base: Array, said: str = "") -> None:
    """Mean nDCG@5 on the test, the difference to the part's first row, and the p-value of a paired t-test."""
    gap = values - base
    p = "" if not gap.any() else f"{gap.mean():+.4f}  p {stats.ttest_1samp(gap, 0).pvalue:.2g}"
    print(f"{name:44} {values.mean():.4f}  {p:24} {said}", flush=True)


# --- other losses: 12, Section 7; 13, Section 6.5.2 ------------------------------------------------------------------


def shown_pairs(bench: Bench) -> sparse.csr_array:
    """A row for each query that teaches: 1 where a shown document was clicked, -1 where not."""
    graph, fitted = bench.taught.graph, bench.pls
    pages = graph.impressions
    assert pages is not None
    of_page = np.array([fitted.queries.number(key) for key in graph.query_keys])[pages.query]
    row = np.repeat(of_page, np.diff(pages.indptr))
    keep = row >= 0
    sign = np.where(pages.clicked, 1.0, -1.0)
    parts: Any = (sign[keep], (row[keep], pages.doc[keep]))
    shown = sparse.csr_array(parts, shape=(bench.x.shape[0], bench.y.shape[0])).sign()
    shown.eliminate_zeros()
    return shown


def square(scores: Array, sign: Array, row: Array) -> Array:
    """Slope of (score - 1)^2 for a clicked result and score^2 for another one; both kinds weigh the same."""
    slope = 2.0 * (scores - (sign > 0))
    clicked = np.count_nonzero(sign > 0)
    return np.where(sign > 0, slope / clicked, slope / max(len(sign) - clicked, 1))


def hinge(scores: Array, sign: Array, row: Array) -> Array:
    """Slope of [1 - (clicked - other)]_+ over the pairs of each query, averaged over the pairs."""
    out = np.zeros_like(scores)
    ends = np.flatnonzero(np.diff(row, prepend=-1, append=row.max() + 1))
    n = 0
    for start, stop in pairwise(ends):
        here, good = scores[start:stop], sign[start:stop] > 0
        violated = here[good][:, None] - here[~good][None, :] < 1.0
        out[start:stop][good] = -violated.sum(axis=1)
        out[start:stop][~good] = violated.sum(axis=0)
        n += violated.size
    return out / max(n, 1)


def descend(bench: Bench, slope: Callable[[Array, Array, Array], Array]) -> Iterator[Maps]:
    """Adam over both maps from those of PLS, rows kept inside the ball of the longest, and shrunk by the l1 norm."""
    shown = shown_pairs(bench)
    row = np.repeat(np.arange(shown.shape[0]), np.diff(shown.indptr))
    maps = [np.sqrt(10.0) * m for m in bench.maps]
    theta = [2.0 * np.linalg.norm(m, axis=1).max() for m in maps]
    first, second = ([np.zeros_like(m) for m in maps] for _ in range(2))
    for t in range(1, ROUNDS + 1):
        u, v = bench.x @ maps[0], bench.y @ maps[1]
        scores = (u[row] * v[shown.indices]).sum(axis=1)
        parts: Any = (slope(scores, shown.data, row), shown.indices, shown.indptr)
        e = sparse.csr_array(parts, shape=shown.shape)
        for side, gradient in enumerate((bench.x.T @ (e @ v), bench.y.T @ (e.T @ u))):
            first[side] += 0.1 * (gradient - first[side])
            second[side] += 0.01 * (gradient**2 - second[side])
            size = np.sqrt(second[side] / (1 - 0.99**t)) + 1e-12
            m = maps[side] - 0.01 * first[side] / (1 - 0.9**t) / size
            m = np.sign(m) * np.maximum(np.abs(m) - SHRINK, 0.0)
            length = np.linalg.norm(m, axis=1, keepdims=True)
            maps[side] = m * np.minimum(1.0, theta[side] / np.maximum(length, 1e-30))
        if t % EVERY == 0:
            yield maps[0], maps[1]


def losses(bench: Bench) -> None:
    base = bench.of_maps(bench.test, bench.maps)
    report("alignment (PLS)", base, base)
    for name, slope in (("square loss", square), ("hinge loss (large margin)", hinge)):
        start, best = time.process_time(), (-1.0, 0, bench.maps)
        for step, maps in enumerate(descend(bench, slope), 1):
            reached = float(bench.of_maps(bench.tune, maps).mean())
            if reached > best[0]:
                best = (reached, EVERY * step, maps)
        said = f"{best[1]} rounds, {time.process_time() - start:.0f} s"
        report(name, bench.of_maps(bench.test, best[2]), base, said)


# --- other regularisers: 12, Section 7 -------------------------------------------------------------------------------


def regularisers(bench: Bench) -> None:
    """Schatten norms in place of the spectral one: with |Lx|_p, |Ly|_p <= 1 the best maps are the singular vectors
    times s^(1 / (p - 2)), so the score has s^(2 / (p - 2)); p = 2, the Frobenius norm, leaves one direction. And the
    rows of W divided by their sums to some power, which bounds frequent features more."""
    l_x, l_y = bench.maps
    strength = np.linalg.norm(bench.x.T @ (bench.r @ (bench.y @ l_y)), axis=0)
    base = bench.of_maps(bench.test, (l_x, l_y))
    report("spectral norm, p = inf (PLS)", base, base)
    for p in (18.0, 10.0, 6.0, 4.0):
        report(f"Schatten norm, p = {p:g}", bench.of_maps(bench.test, (l_x * strength ** (2 / (p - 2)), l_y)), base)
    report("Frobenius norm, p = 2", bench.of_maps(bench.test, (l_x[:, :1], l_y[:, :1])), base)
    for power in (0.1, 0.25, 0.5):
        u, v, _ = balanced(bench, power, DIM)
        report(f"frequent features bounded more, power {power:g}", bench.of_maps(bench.test, (u, v)), base)
    model = build_model("rmls", dim=DIM).fit(bench.taught.graph)
    values = bench.test.values(model.fitted.scores(bench.test.candidates))
    report("l1 and l2 on rows (rmls)", values, base)


def balanced(bench: Bench, power: float, dim: int) -> tuple[Array, Array, Array]:
    """Maps of PLS, and singular values, with rows and columns of W divided by their sums to some power."""
    ones = [np.ones(m.shape[1]) for m in (bench.x, bench.y)]
    rows = abs(bench.x).T @ (bench.r @ (abs(bench.y) @ ones[1]))
    columns = abs(bench.y).T @ (bench.r.T @ (abs(bench.x) @ ones[0]))
    scales = [np.where(s > 0, np.maximum(s, 1e-30) ** -power, 0.0) for s in (rows, columns)]
    x, y = (sparse.csr_array(m @ sparse.diags_array(v)) for m, v in zip((bench.x, bench.y), scales, strict=True))
    found = randomised_svd(ProductOperator(x, bench.r, y, np.float32), dim, seed=0)
    return scales[0][:, None] * found.u, scales[1][:, None] * found.v, found.s


def balance(bench: Bench) -> None:
    """Balanced rows and columns in PLS as it is by default, d = 600 and s^0.25, and with the papers' s^0."""
    s = PLS().settings
    found = {power: balanced(bench, power, s.dim) for power in (0.0, 0.05, 0.1, 0.15, 0.25, 0.5)}
    as_fitted = PLS().fit(bench.taught.graph).fitted
    base = bench.test.values(as_fitted.scores(bench.test.candidates))
    chose = bench.tune.values(as_fitted.scores(bench.tune.candidates))
    report("pls, all settings by default", base, base, f"on the lists for choosing {chose.mean():.4f}")
    for sv_power in (s.sv_power, 0.0):
        for power, (u, v, strength) in found.items():
            maps = (u * (strength / strength[0]) ** sv_power, v)
            said = f"on the lists for choosing {bench.of_maps(bench.tune, maps).mean():.4f}"
            report(f"sv_power {sv_power:g}, balance {power:g}", bench.of_maps(bench.test, maps), base, said)


# --- kernels in place of features: 11M, Section 6 --------------------------------------------------------------------


def kernels(bench: Bench) -> None:
    """PLS between two kernel spaces: maps X' A and Y' B in the spaces of the kernels, A' K_x A = B' K_y B = 1, found by
    subspace iteration that needs the kernel matrices alone. With cosines themselves it is PLS on rows of length 1."""
    taught = [m.astype(np.float32) for m in (bench.x, bench.y)]
    alike = [_cosines(m, m) for m in taught]
    base = bench.of_maps(bench.test, bench.maps)
    report("features (PLS)", base, base)
    ways: dict[str, Callable[[Array], Array]] = {
        "cos": lambda c: c,
        "(1 + cos)^2": lambda c: (1 + c) ** 2 / 4,
        "(1 + cos)^4": lambda c: (1 + c) ** 4 / 16,
        "Gauss, exp(4 (cos - 1))": lambda c: np.exp(4 * (c - 1)),
    }
    for name, kernel in ways.items():
        start = time.process_time()
        k_x, k_y = (kernel(c) for c in alike)
        a, b = _dual_pls(k_x, k_y, bench.r.astype(np.float32))
        found = bench.values(bench.test, lambda q: kernel(_cosines(q, taught[0])) @ a, k_y @ b)  # noqa: B023
        report(f"kernel {name}", found, base, f"{time.process_time() - start:.0f} s")


def _dual_pls(k_x: Array, k_y: Array, r: sparse.csr_array) -> Maps:
    b = np.random.default_rng(0).standard_normal((len(k_y), DIM), dtype=np.float32)
    for _ in range(6):
        a = _orthonormal(k_x, r @ (k_y @ b))
        b = _orthonormal(k_y, r.T @ (k_x @ a))
    u, _, vt = np.linalg.svd((k_x @ a).T @ (r @ (k_y @ b)))
    return a @ u, b @ vt.T


def _orthonormal(k: Array, a: Array) -> Array:
    """Coefficients of the same span with a' k a = 1."""
    value, vector = np.linalg.eigh(np.asarray(a.T @ (k @ a), dtype=np.float64))
    out: Array = (a @ (vector / np.sqrt(np.maximum(value, 1e-9 * value[-1])))).astype(np.float32)
    return out


def _cosines(a: sparse.csr_array, b: sparse.csr_array) -> Array:
    lengths = [np.sqrt(np.asarray(m.multiply(m).sum(axis=1)).ravel()) for m in (a, b)]
    out: Array = (a @ b.T).toarray() / np.maximum(np.outer(*lengths), 1e-30)
    return out.astype(np.float32)


# --- the numbers of the S-kernel: 11R, Section 8 ---------------------------------------------------------------------


def s_kernel(bench: Bench) -> None:
    """Epsilon, ridge, prior, rho and the weight of words against characters: the best of small grids one by one, and
    from there all together by Nelder and Mead on the same lists."""
    model = build_model("robust-bm25", family="exponential")
    tuned, rest = bench.taught.hold_back(seed=0)
    grids = grids_of(model.settings, ("titles",), tuned.by)
    first = Choice(**{name: grid[0] for name, grid in grids.items()})
    trials = Trials(model, rest, model.choices(rest, first))
    lists = labelled(bench.taught, at_most(MOST_LISTS, tuned.lists(), 0))
    by_grid, _ = climb(trials, lists, first, grids)
    names = [name for name in GRIDS if name != "n_neighbours"]

    def at(point: Array) -> Choice:
        share = 1 / (1 + np.exp(-point[0]))
        kernel = f"word:{share:.4f},char:{1 - share:.4f}"
        return replace(by_grid, query_kernel=kernel, **dict(zip(names, np.exp(point[1:]).tolist(), strict=True)))

    weights = by_grid.query_weights
    start = np.array([np.log(weights["word"] / weights["char"]), *(np.log(getattr(by_grid, n)) for n in names)])
    began = time.process_time()
    found = optimize.minimize(
        lambda point: -trials.values([at(point)], lists)[0], start, method="Nelder-Mead",
        options={"maxfev": 30, "initial_simplex": start + np.vstack([np.zeros(len(start)), 0.5 * np.eye(len(start))])},
    )  # fmt: skip
    learned = at(found.x)
    test = labelled(bench.taught, at_most(MOST_LISTS, bench.test.lists, 1))
    scored = [test.values(trials.fitted(c).scores(test.candidates)) for c in (by_grid, learned)]
    chose = trials.values([by_grid, learned], lists)
    report("grid", scored[0], scored[0], f"on the lists that chose {chose[0]:.4f}")
    said = f"on the lists that chose {chose[1]:.4f}; {time.process_time() - began:.0f} s"
    report("learned", scored[1], scored[0], said)
    print("  ", {n: round(float(getattr(learned, n)), 3) for n in names}, learned.query_kernel)


PARTS = {
    "losses": losses, "regularisers": regularisers, "balance": balance, "kernels": kernels, "s-kernel": s_kernel,
}  # fmt: skip

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with msrd")
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    made = Bench.of(options.data)
    print(f"{made.taught.graph.n_queries:,} queries teach, {len(made.tune)} lists choose, {len(made.test)} test")
    for part in options.parts.split(","):
        print(f"\n{part}: nDCG@5, difference to the first row, p of a paired t-test")
        PARTS[part](made)
