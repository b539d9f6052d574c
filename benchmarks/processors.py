"""Figure 2 of Wu, Lu, Li 2013 (time of RMLS against the number of processors) from our own runs, with the bytes that
nodes of a cluster send each other.

    python benchmarks/processors.py [--fraction 1.0] [--most 2] [--figure docs/figures/processors.svg]

Algorithm 2 at one-week size, d = 1000, W formed, thresholds as in rmls.py. *local*: threads of one process. *ray*: as
many Ray nodes on this machine, each with processes, one core and an object store of its own; bytes are those that came
in over loopback while it learned. Each run is a process of its own. All maps must have the same bits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.engines.local import Local
from clickbridge.engines.ray import Ray
from clickbridge.numerics.rmls import RELATIVE, FormedRows, Shrinkage, half_iteration
from clickbridge.numerics.rows import sparse_rows
from rmls import THRESHOLD, first_map, matrices, prepare

PAPER = {1: 1380.0, 20: 277.0}
"""Threads and seconds that the paper reports for one week, d = 1000."""
STORE = 2 << 30


@contextmanager
def engine_of(kind: str, workers: int) -> Iterator[Engine]:
    if kind == "local":
        with Local(workers) as engine:
            yield engine
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(workers - 1):
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    with Ray(threads=1) as engine:
        yield engine


def received() -> int:
    """Bytes that came in over loopback, on which the nodes talk to each other."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.strip().startswith("lo:"))


def learn(engine: Engine, folder: Path, dim: int, passes: int) -> dict[str, Any]:
    w = matrices(folder)["w"]
    query_rows, doc_rows = FormedRows(w), FormedRows(sparse.csr_array(w.T))
    how, first = Shrinkage(RELATIVE, THRESHOLD), engine.hold(sparse_rows(first_map(w.shape[1], dim)))
    # Compiles, starts workers, and sends them both W and its transpose.
    half_iteration(doc_rows, half_iteration(query_rows, first, how, engine=engine).maps, how, engine=engine)
    start, before, held = time.perf_counter(), received(), first
    for _ in range(passes):
        l_x = half_iteration(query_rows, held, how, engine=engine).maps
        held = half_iteration(doc_rows, l_x, how, engine=engine).maps
    engine.survey(held, False)  # the last half may still be under way
    seconds, moved = time.perf_counter() - start, received() - before
    maps = [engine.fetch(side) for side in (l_x, held)]
    digest = hashlib.sha256(b"".join(part.tobytes() for m in maps for part in (m.indptr, m.indices, m.data)))
    on_paper = sent(engine, query_rows, doc_rows, first, how, passes)
    return {"seconds": seconds, "bytes": moved, "maps": digest.hexdigest(), "to one more node": on_paper}


def sent(engine: Engine, query_rows: FormedRows, doc_rows: FormedRows, held: Any, how: Shrinkage, passes: int) -> int:
    """Bytes of the maps that one half of a pass makes and another reads, by the same passes once more. The first map is
    where it is needed before time is taken, and nobody reads the last."""
    total = 0
    for rows in ((query_rows, doc_rows) * passes)[:-1]:
        held = half_iteration(rows, held, how, engine=engine).maps
        total += 6 * engine.survey(held, False).nnz + 8 * held.shape[0]
    return total


def run(*words: object) -> dict[str, Any]:
    line = [sys.executable, __file__, "--one", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def draw(found: dict[str, dict[int, float]], figure: Path) -> None:
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(figsize=(5, 3.2))
    for name, points in {**found, "the paper": PAPER}.items():
        axes.plot(list(points), list(points.values()), marker="o", label=name)
    axes.set(xlabel="threads, or nodes of one core", ylabel="seconds", xscale="log", yscale="log")
    axes.legend()
    fig.tight_layout()
    fig.savefig(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fraction", type=float, default=1.0, help="share of the one-week log")
    parser.add_argument("--dim", type=int, default=1000)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--most", type=int, default=len(os.sched_getaffinity(0)), help="threads, or nodes")
    parser.add_argument("--figure", type=Path, help="an SVG file to draw")
    parser.add_argument("--one", nargs=5, metavar=("KIND", "N", "FOLDER", "DIM", "PASSES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, n, folder, dim, passes = options.one
        with engine_of(kind, int(n)) as engine:
            print(json.dumps(learn(engine, Path(folder), int(dim), int(passes))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        prepare(options.fraction, Path(scratch))
        rows = [
            (kind, n, run(kind, n, scratch, options.dim, options.passes))
            for kind in ("local", "ray")
            for n in range(1, options.most + 1)
        ]
    print(f"{'engine':<8}{'workers':>8}{'seconds':>10}{'MB moved':>10}{'MB on paper':>13}")
    for kind, n, row in rows:
        on_paper = row["to one more node"] * (n - 1) if kind == "ray" else 0
        print(f"{kind:<8}{n:>8}{row['seconds']:>10.1f}{row['bytes'] / 1e6:>10.1f}{on_paper / 1e6:>13.1f}")
    print("the same bits" if len({row["maps"] for *_, row in rows}) == 1 else "THE MAPS DIFFER")
    if options.figure:
        seconds = {kind: {n: row["seconds"] for k, n, row in rows if k == kind} for kind in ("local", "ray")}
        draw(seconds, options.figure)


if __name__ == "__main__":
    main()
