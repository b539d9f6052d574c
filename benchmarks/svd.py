"""How fast is the decomposition behind PLS at one-week size, next to its peers and to the machine's own limits?

At d = 200: ours on the operator X' R Y, scikit-learn's randomized_svd and SciPy's svds on W = X' R Y formed
beforehand, each with the residual it reached. At d = 1000: ours alone, next to the floor: sparse bytes over
the measured triad bandwidth plus orthonormalisations times 2 n k^2 over the measured sgemm rate.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds
from sklearn.utils.extmath import randomized_svd

from clickbridge import PLS, ClickGraph, read_docs, read_log
from clickbridge.numerics.svd import OVERSAMPLE, POWER_STEPS, ProductOperator, randomised_svd
from clickbridge.simulate.scale import write_log

Array = np.ndarray[Any, Any]


def features(fraction: float) -> tuple[sparse.csr_array, sparse.csr_array, sparse.csr_array]:
    """X, R and Y of the papers: words and clicks on both sides."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        write_log("one-week", out, fraction=fraction)
        graph = ClickGraph.build(read_log(str(out / "log.parquet")), read_docs(str(out / "docs.jsonl.gz")))
        model = PLS(dim=2, views="word,click", fields="title,url").fit(graph)
        return model.query_features_, model.weighted_responses(), model.doc_features_


def triad() -> float:
    """Bytes a second of a = b + 3 c over arrays far larger than any cache."""
    a, b, c = (np.ones(1 << 25, dtype=np.float32) for _ in range(3))
    best = min(_timed(lambda: np.add(b, np.multiply(c, np.float32(3), out=a), out=a))[0] for _ in range(5))
    return 5 * a.nbytes / best  # two passes: read c, write a; read b, read a, write a


def sgemm() -> float:
    """Operations a second of a float32 product."""
    a = np.random.default_rng(0).random((3000, 3000), dtype=np.float32)
    return 2 * 3000**3 / min(_timed(lambda: a @ a)[0] for _ in range(5))


def _timed(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    out = work()
    return time.perf_counter() - start, out


def residual(w: sparse.csr_array, u: Array, s: Array, v: Array) -> float:
    return float(np.max(np.linalg.norm(w @ v - u * s, axis=0)) / s.max())


def floor_seconds(operator: ProductOperator, k: int, bandwidth: float, rate: float) -> tuple[float, float]:
    n, m = operator.shape
    halves = 2 * POWER_STEPS + 2
    sparse_bytes = halves * operator.nnz * k * 4
    orthonormal = (POWER_STEPS + 2) * 2 * n * k * k + (POWER_STEPS + 2) * 2 * m * k * k
    return sparse_bytes / bandwidth, orthonormal / rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fraction", type=float, default=1.0)
    parser.add_argument("--large", type=int, default=1000)
    parser.add_argument("--svds", type=int, default=100, help="svds at this rank (its time grows with the square)")
    options = parser.parse_args()
    x, r, y = features(options.fraction)
    w = sparse.csr_array(x.T @ r @ y, dtype=np.float32)
    bandwidth, rate = triad(), sgemm()
    print(f"W {w.shape[0]:,} x {w.shape[1]:,}, {w.nnz:,} non-zeros; factors {x.nnz + r.nnz + y.nnz:,}")
    print(f"triad {bandwidth / 1e9:.1f} GB/s, sgemm {rate / 1e9:.0f} GFLOP/s")
    operator = ProductOperator(x, r, y, np.float32)
    randomised_svd(operator, 8)  # compiles
    rows = []
    for steps in (2, POWER_STEPS):
        seconds, svd = _timed(lambda steps=steps: randomised_svd(operator, 200, power_steps=steps))
        rows.append((f"clickbridge, d=200, {steps} power steps", seconds, svd.residual))
    for steps, normaliser in ((4, "QR"), (4, "LU")):
        seconds, (u, s, vt) = _timed(
            lambda steps=steps, normaliser=normaliser: randomized_svd(
                w, 200, n_oversamples=50, n_iter=steps, power_iteration_normalizer=normaliser, random_state=0
            )
        )
        rows.append((f"scikit-learn, d=200, {steps} iterations, {normaliser}", seconds, residual(w, u, s, vt.T)))
    seconds, (u, s, vt) = _timed(lambda: svds(w, k=options.svds, random_state=0))
    rows.append((f"SciPy svds, k={options.svds}", seconds, residual(w, u, s, vt.T)))
    seconds, svd = _timed(lambda: randomised_svd(operator, options.large))
    rows.append((f"clickbridge, d={options.large}, {POWER_STEPS} power steps", seconds, svd.residual))
    for name, seconds, found in rows:
        print(f"{name:45s} {seconds:8.1f} s   residual {found:.1e}")
    of_bytes, of_flops = floor_seconds(operator, options.large + OVERSAMPLE, bandwidth, rate)
    print(f"floor at d={options.large}: sparse bytes {of_bytes:.1f} s + orthonormalisation {of_flops:.1f} s")
    print(f"ratio to the floor: {rows[-1][1] / (of_bytes + of_flops):.2f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
