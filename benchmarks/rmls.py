"""How fast is RMLS at one-week size, next to a plain SciPy version, to ALS and to the machine's own limits?

Algorithm 2: ten passes at d = 1000 with thresholds of 2.3 times a row's root mean square, of which a random row
keeps 2%. Each way runs in a process of its own, so that peak memory is its own. `scipy` is
Algorithm 2 written straight down: W @ L, NumPy thresholds, dense maps. `als` is implicit's at as many factors
(one iteration, times ten). `default` is what `fit` does: decorrelated, three passes.

    python benchmarks/rmls.py                 the table
    python benchmarks/rmls.py --ways w-dense  some rows of it
    python benchmarks/rmls.py --growth        cost against size and d, with fitted exponents and a plot
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge import PLS, ClickGraph, load, read_docs, read_log
from clickbridge.engines.local import Local
from clickbridge.models.latent import FittedLatent
from clickbridge.models.pls import weighted_responses
from clickbridge.models.rmls_passes import RMLSSettings, passes
from clickbridge.numerics.rmls import RELATIVE, FactoredRows, FormedRows, ProductRows, Shrinkage, half_iteration
from clickbridge.numerics.rows import SparseRows, sparse_rows
from clickbridge.simulate.scale import write_log
from machine import sgemm, status_mib, triad

Array = np.ndarray[Any, Any]
PASSES = 10
THRESHOLD = 2.3
WAYS = ["scipy", "w-sparse", "w-dense", "factors", "als", "default"]
Matrices = dict[str, sparse.csr_array]


def matrices(folder: Path) -> Matrices:
    return {path.stem: sparse.csr_array(sparse.load_npz(path)) for path in folder.glob("*.npz")}


def prepare(fraction: float, folder: Path) -> None:
    """X, R, Y and W of a simulated log, and a model that holds the features."""
    write_log("one-week", folder, fraction=fraction)
    graph = ClickGraph.build(read_log(str(folder / "log.parquet")), read_docs(str(folder / "docs.jsonl.gz")))
    model = PLS(dim=2, views="word,click", fields="title,url").fit(graph)
    model.save(folder / "model")
    features = model.features_
    made = features.query_features, weighted_responses(features.responses, mean=True), features.doc_features
    x, r, y = (sparse.csr_array(m, dtype=np.float32) for m in made)
    r = sparse.csr_array(r / np.float32(r.data.mean()), dtype=np.float32)  # SciPy divides in float64
    w = sparse.csr_array(x.T @ sparse.csr_array(r @ y))
    for name, matrix in {"x": x, "r": r, "y": y, "w": w}.items():
        sparse.save_npz(folder / f"{name}.npz", matrix, compressed=False)


def first_map(n: int, dim: int) -> Array:
    return np.random.default_rng(0).standard_normal((n, dim), dtype=np.float32)


def straight(w: sparse.csr_array, dim: int, passes: int) -> tuple[Array, Array]:
    """Algorithm 2 as anyone would write it with SciPy."""
    w_t = sparse.csr_array(w.T)
    l_y = first_map(w.shape[1], dim)
    for _ in range(passes):
        l_x = _soft(w @ l_y)
        l_y = _soft(w_t @ l_x)
    return l_x, l_y


def _soft(omega: Array) -> Array:
    beta = THRESHOLD * np.sqrt((omega**2).mean(axis=1, keepdims=True))
    out = np.sign(omega) * np.maximum(np.abs(omega) - beta, 0)
    norms = np.linalg.norm(out, axis=1, keepdims=True)
    return np.divide(out, norms, out=out, where=norms > 0)


def ours(m: Matrices, plan: str, dim: int, passes: int, threads: int) -> tuple[Any, Any]:
    query_rows: ProductRows
    doc_rows: ProductRows
    if plan == "factors":
        x_t, y_t, r_t = (sparse.csr_array(m[name].T) for name in "xyr")
        query_rows, doc_rows = FactoredRows(x_t, m["r"], m["y"], dim), FactoredRows(y_t, r_t, m["x"], dim)
    else:
        query_rows, doc_rows = FormedRows(m["w"]), FormedRows(sparse.csr_array(m["w"].T))
    how = Shrinkage(RELATIVE, THRESHOLD)
    options: dict[str, Any] = {"keep_dense": plan == "w-dense", "engine": Local(threads)}
    l_y: Any = first_map(m["w"].shape[1], dim)
    for _ in range(passes):
        l_x = half_iteration(query_rows, l_y, how, **options).maps
        l_y = half_iteration(doc_rows, l_x, how, **options).maps
    return l_x, l_y


def default(fitted: FittedLatent, dim: int, threads: int) -> tuple[Any, Any]:
    """What `fit` does after the features are made."""
    (space,), s = fitted.spaces, RMLSSettings(dim=dim, tolerance=0)
    for now in passes(fitted.features, space.q_columns, space.d_columns, dim, s, s.iterations, Local(threads)):
        last = now.space
    return last.l_x, last.l_y


def als(m: Matrices, dim: int, threads: int) -> None:
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(factors=dim, iterations=1, num_threads=threads, calculate_training_loss=False)
    model.fit(sparse.csr_matrix(m["r"]), show_progress=False)


def one(folder: Path, way: str, dim: int, threads: int) -> dict[str, Any]:
    """One way, measured in this process."""
    m, fitted = matrices(folder), load(folder / "model").fitted
    assert isinstance(fitted, FittedLatent)
    _warm_up()
    before = status_mib("VmHWM")
    start = time.perf_counter()
    maps: Any = None
    if way == "scipy":
        maps = straight(m["w"], dim, 2)
    elif way == "als":
        als(m, dim, threads)
    elif way == "default":
        maps = default(fitted, dim, threads)
    else:
        maps = ours(m, way, dim, PASSES, threads)
    seconds = time.perf_counter() - start
    seconds *= {"scipy": PASSES / 2, "als": PASSES}.get(way, 1)
    peak = status_mib("VmHWM")
    row = {
        "way": way,
        "threads": threads,
        "seconds": seconds,
        "peak GiB": peak / 2**10,
        "own GiB": (peak - before) / 2**10,
    }
    if maps is not None:
        nnz = [p.nnz if isinstance(p, SparseRows) else int(np.count_nonzero(p)) for p in maps]
        row["density"] = sum(nnz) / ((maps[0].shape[0] + maps[1].shape[0]) * dim)
    return row


def _warm_up() -> None:
    """Compiles every loop on a small matrix."""
    w = sparse.csr_array(sparse.random_array((20, 10), density=0.3, dtype=np.float32))
    for maps in (first_map(10, 4), sparse_rows(first_map(10, 4))):
        half_iteration(FormedRows(w), maps, Shrinkage(RELATIVE, 0.1))
        half_iteration(FormedRows(w), maps, Shrinkage(RELATIVE, 0.1), keep_dense=True)
        half_iteration(
            FactoredRows(w, *(sparse.csr_array(np.eye(10, dtype=np.float32)),) * 2, 4), maps, Shrinkage(2, 1)
        )


def in_its_own_process(*arguments: object) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--one", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        # implicit threads over rows and asks for a BLAS of one thread.
        env=os.environ | ({"OPENBLAS_NUM_THREADS": "1"} if "als" in arguments else {}),
    )
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def agree(folder: Path, dim: int) -> float:
    """Largest difference of our maps from the plain version's after one pass."""
    m = matrices(folder)
    expected = straight(m["w"], dim, 1)[0]
    found = ours(m, "w-sparse", dim, 1, 0)[0].dense()
    return float(np.abs(found - expected).max())


def table(fraction: float, dim: int, wanted: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(fraction, folder)
        m = matrices(folder)
        nnz, rows = m["w"].nnz, sum(m["w"].shape)
        factors = sum(m[part].nnz for part in "xry")
        print(f"W {m['w'].shape[0]:,} x {m['w'].shape[1]:,}, {nnz:,} non-zeros; its factors {factors:,}")
        print(f"largest difference from the plain version after a pass: {agree(folder, min(dim, 100)):.1e}")
        bandwidth = triad()
        floor = PASSES * (2 * nnz * dim * 4 + 2 * rows * dim * 4) / bandwidth
        print(f"triad {bandwidth / 1e9:.1f} GB/s, sgemm {sgemm() / 1e9:.0f} GFLOP/s")
        print(f"floor of the dense plan, bytes over the triad: {floor:.1f} s")
        ways = [("scipy", 1), *product(("w-sparse", "w-dense", "factors"), (1, 2)), ("als", 2), ("default", 2)]
        if find_spec("implicit") is None:
            print("als is left out: it needs implicit")
            ways.remove(("als", 2))
        found = [in_its_own_process(folder, way, dim, threads) for way, threads in ways if way in wanted]
        base = next((row["seconds"] for row in found if row["way"] == "scipy"), float("nan"))
        print(f"{'way':9} threads  seconds  scipy/this  peak GiB  own GiB  density")
        for row in found:
            ratio, density = base / row["seconds"], row.get("density", float("nan"))
            print(f"{row['way']:9} {row['threads']:7} {row['seconds']:8.2f} {ratio:11.1f} {row['peak GiB']:9.2f} "
                  f"{row['own GiB']:8.2f} {density:8.4f}")  # fmt: skip
        for row in found:
            if row["way"] == "w-dense":
                print(f"w-dense over its byte floor, threads {row['threads']}: {row['seconds'] / floor:.2f}")


def growth(figure: Path | None) -> None:
    """Seconds of the sparse plan and of the default against size and d."""
    found: dict[tuple[str, float, int], float] = {}
    for fraction in (1 / 8, 1 / 4, 1 / 2, 1):
        with tempfile.TemporaryDirectory() as name:
            prepare(fraction, Path(name))
            for way, dim in product(("w-sparse", "default"), (100, 300, 1000)):
                found[way, fraction, dim] = in_its_own_process(name, way, dim, 2)["seconds"]
                print(f"{way:9} fraction {fraction:.3f} d {dim:5}: {found[way, fraction, dim]:8.2f} s", flush=True)
    for way in ("w-sparse", "default"):
        rows = np.array([(1, np.log(f), np.log(d), np.log(s)) for (w, f, d), s in found.items() if w == way])
        exponents = np.linalg.lstsq(rows[:, :3], rows[:, 3], rcond=None)[0]
        print(f"{way}: seconds ~ size^{exponents[1]:.2f} d^{exponents[2]:.2f}")
    if figure:
        _plot(found, figure)


def _plot(found: dict[tuple[str, float, int], float], figure: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(figsize=(6, 4))
    words = {"w-sparse": "ten sparse passes", "default": "default, three passes"}
    for way, dim in product(words, (100, 300, 1000)):
        points = sorted((f, s) for (w, f, d), s in found.items() if w == way and d == dim)
        style = "-" if way == "w-sparse" else "--"
        axes.loglog(*zip(*points, strict=True), marker="o", linestyle=style, label=f"{words[way]}, d = {dim}")
    axes.set(xlabel="share of the one-week log", ylabel="seconds")
    axes.legend(fontsize=7)
    fig.tight_layout()
    fig.savefig(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fraction", type=float, default=1.0)
    parser.add_argument("--dim", type=int, default=1000)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(Path(options.one[0]), options.one[1], int(options.one[2]), int(options.one[3]))))
    elif options.growth:
        growth(options.figure)
    else:
        table(options.fraction, options.dim, options.ways)
