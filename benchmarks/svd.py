"""How fast is the decomposition behind PLS at one-week size, next to its peers and to the machine's own limits?

At d = 200 every solver is brought to the same residual, ours and SciPy's svds by the tolerance, scikit-learn's
randomized_svd by iterations, and the times are compared. Ours works on the operator X' R Y, the peers on W = X' R Y,
formed beforehand and not counted. At d = 1000 ours stands alone, next to the floor: sparse bytes over the measured
triad bandwidth, plus 2 n k^2 operations to keep a basis of k columns orthonormal over the measured sgemm rate. Each
run is a process of its own, so that its peak memory is its own.

The residual is the larger of |W v - s u| and |W' u - s v| over s_1, the largest over all d triplets. One of
the two is zero by construction in a randomised method, and which one depends on the side it starts from.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds
from sklearn.utils.extmath import randomized_svd

from clickbridge import PLS, ClickGraph, read_docs, read_log
from clickbridge.models.pls import weighted_responses
from clickbridge.numerics.krylov import columns_kept
from clickbridge.numerics.svd import OVERSAMPLE, TOLERANCE, ProductOperator, randomised_svd
from clickbridge.simulate.scale import write_log
from machine import sgemm, status_mib, triad

Array = np.ndarray[Any, Any]
Triplets = tuple[Array, Array, Array]
SMALL = 200
MOST_STEPS = 40
TOLERANCES = {
    "clickbridge": (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5),
    "SciPy svds": (0.3, 0.1, 3e-2, 1e-2, 1e-3, 1e-4, 0.0),
}


# --- the matrix ---------------------------------------------------------------------------------------


def write_matrices(folder: Path, fraction: float) -> None:
    """X, R and Y of the papers, words and clicks on both sides, and their product."""
    write_log("one-week", folder, fraction=fraction)
    graph = ClickGraph.build(read_log(str(folder / "log.parquet")), read_docs(str(folder / "docs.jsonl.gz")))
    model = PLS(dim=2, views="word,click", fields="title,url").fit(graph)
    features = model.features_
    x, r, y = features.query_features, weighted_responses(features.responses, mean=True), features.doc_features
    w = sparse.csr_array(x.T @ r @ y, dtype=np.float32)
    for name, matrix in zip("xryw", (x, r, y, w), strict=True):
        sparse.save_npz(folder / f"{name}.npz", matrix, compressed=False)
    print(f"W {w.shape[0]:,} x {w.shape[1]:,}, {w.nnz:,} non-zeros; factors {x.nnz + r.nnz + y.nnz:,}")


def read_matrix(folder: Path, name: str) -> sparse.csr_array:
    return sparse.csr_array(sparse.load_npz(folder / f"{name}.npz"))


# --- one run, in a process of its own -----------------------------------------------------------------


def ours(folder: Path, d: int, tolerance: float) -> Callable[[], Triplets]:
    operator = ProductOperator(*(read_matrix(folder, name) for name in "xry"), np.float32)
    randomised_svd(operator, 8)  # compiles

    def work() -> Triplets:
        found = randomised_svd(operator, d, tolerance=tolerance)
        return found.u, found.s, found.v

    return work


def scikit_learn(normaliser: str) -> Callable[[Path, int, float], Callable[[], Triplets]]:
    def prepare(folder: Path, d: int, steps: float) -> Callable[[], Triplets]:
        w, how = read_matrix(folder, "w"), {"n_oversamples": OVERSAMPLE, "power_iteration_normalizer": normaliser}

        def work() -> Triplets:
            u, s, vt = randomized_svd(w, d, n_iter=int(steps), random_state=0, **how)
            return u, s, vt.T

        return work

    return prepare


def scipy_svds(folder: Path, d: int, tolerance: float) -> Callable[[], Triplets]:
    w = read_matrix(folder, "w")

    def work() -> Triplets:
        u, s, vt = svds(w, k=d, tol=tolerance, rng=np.random.default_rng(0))
        return u, s, vt.T

    return work


SOLVERS = {
    "clickbridge": ours,
    "scikit-learn, LU": scikit_learn("LU"),
    "scikit-learn, QR": scikit_learn("QR"),
    "SciPy svds": scipy_svds,
}


def residual(w: sparse.csr_array, u: Array, s: Array, v: Array) -> float:
    sides = (np.linalg.norm(a @ q - p * s, axis=0).max() for a, q, p in ((w, v, u), (w.T, u, v)))
    return float(max(sides) / s.max())


def worker(solver: str, folder: Path, d: int, setting: float) -> None:
    """Prints seconds, CPU seconds, peak GiB and the residual, which is measured after the peak is read."""
    work = SOLVERS[solver](folder, d, setting)
    start, cpu = time.perf_counter(), time.process_time()
    found = work()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = status_mib("VmHWM") / 2**10
    print(json.dumps([seconds, cpu, peak, residual(read_matrix(folder, "w"), *found)]))


@dataclass(frozen=True)
class Run:
    solver: str
    setting: float
    seconds: float
    cpu: float
    peak: float
    residual: float

    def __str__(self) -> str:
        what = f"{'tol' if self.solver in TOLERANCES else 'steps'} {self.setting:g}"
        times = f"{self.seconds:>8.1f} s, CPU {self.cpu:>6.1f} s"
        return f"{self.solver:<18}{what:<12}{times}{self.peak:>8.2f} GiB   residual {self.residual:.1e}"


def run(solver: str, folder: Path, d: int, setting: float) -> Run:
    command = [sys.executable, __file__, "--worker", solver, "--folder", folder, "--rank", d, "--setting", setting]
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
    out = Run(solver, setting, *json.loads(done.stdout.splitlines()[-1]))
    print(f"d = {d}: {out}", flush=True)
    return out


# --- the comparison -----------------------------------------------------------------------------------


def settings(solver: str, first: int) -> Iterator[float]:
    """From cheap to dear."""
    yield from TOLERANCES.get(solver, range(first, MOST_STEPS))


def reach(solver: str, folder: Path, target: float, first: int) -> Run:
    """The cheapest setting whose residual is at most the target."""
    for setting in settings(solver, first):
        found = run(solver, folder, SMALL, setting)
        if found.residual <= target:
            return found
    raise SystemExit(f"{solver} does not reach {target}")


def compare(folder: Path, target: float, solvers: list[str], first: int, limits: tuple[float, float]) -> None:
    best = reach("clickbridge", folder, target, first)
    runs = [best, *(reach(s, folder, target, first) for s in solvers if s != "clickbridge")]
    print(f"\nresidual at most {target:g}, d = {SMALL}")
    for found in runs:
        print(f"{found}   {found.seconds / best.seconds:.1f} times ours, CPU {found.cpu / best.cpu:.1f}")
    print_floor(folder, SMALL, best, limits)


def print_floor(folder: Path, d: int, found: Run, limits: tuple[float, float]) -> None:
    operator = ProductOperator(*(read_matrix(folder, name) for name in "xry"), np.float32)
    k = columns_kept(d)
    of_bytes = 2 * (k + d) * operator.nnz * 4 / limits[0]
    of_flops = 2 * min(operator.shape) * k * k / limits[1]
    total = of_bytes + of_flops
    print(f"floor: sparse bytes {of_bytes:.1f} s + a basis of {k:,} columns {of_flops:.1f} s = {total:.1f} s")
    print(f"ours is {found.seconds / total:.2f} times the floor\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fraction", type=float, default=1.0, help="share of the one-week log")
    parser.add_argument("--targets", default="1e-3,1e-4", help="residuals to reach at d = 200")
    parser.add_argument("--solvers", default=";".join(SOLVERS), help="separated by semicolons")
    parser.add_argument("--first", type=int, default=1, help="fewest iterations of scikit-learn to try")
    parser.add_argument("--large", type=int, default=1000, help="ours alone at this d; 0: not at all")
    parser.add_argument("--folder", type=Path, help="keep the matrices here, and use them again")
    parser.add_argument("--worker", choices=SOLVERS, help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--setting", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.folder, options.rank, options.setting)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        if not (folder / "w.npz").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            write_matrices(folder, options.fraction)
        limits = triad(), sgemm()
        print(f"triad {limits[0] / 1e9:.1f} GB/s, sgemm {limits[1] / 1e9:.0f} GFLOP/s", flush=True)
        for target in options.targets.split(",") if options.targets else ():
            compare(folder, float(target), options.solvers.split(";"), options.first, limits)
        if options.large:
            print_floor(folder, options.large, run("clickbridge", folder, options.large, TOLERANCE), limits)


if __name__ == "__main__":
    main()
