"""Learns on a Ray cluster of several nodes on loopback, loses nodes on the way, and prints what came of it.

A process of its own, for Ray has one cluster a process: `python on_a_cluster.py NODES [kill] [client] [ingest]
[adding-up] [memory] [at-once]`. With `ingest` it reads a log instead of learning; with `memory` it learns by RMLS
alone, and says what every node held; with `at-once` Ray frees what nobody needs any more at once, not every second.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"

import numpy as np
import ray
from node_memory import NodeMemory
from ray.cluster_utils import Cluster
from scipy import sparse

from clickbridge import MPLS, PLS, RMLS, ClickGraph, Document, Walk, example_graph, read_docs, read_log
from clickbridge.engines import shards
from clickbridge.engines.local import Local
from clickbridge.engines.ray import Ray
from clickbridge.io.secret import Secret
from clickbridge.numerics.rmls import RELATIVE, FactoredRows, FormedRows, Shrinkage, half_iteration
from clickbridge.numerics.svd import ProductOperator, randomised_svd
from clickbridge.simulate.scale import write_log

DIM, PASSES, STORE = 40, 4, 80 << 20
ENOUGH = 400 << 20
"""Bytes of a store that holds all there is, so that nothing goes to disk."""
CLIENT_PORT = 25_101


class AtWork:
    """Loses a node in the middle of a task. What the task makes cannot be there already, for on that node it begins and
    never ends; and what was made on the node before is lost too, if it has more bytes than Ray sends with a task."""

    def __init__(self, work: Any, skip: int, node: str, lose: Callable[[], None], sign: Path) -> None:
        self.work, self.skip, self.node, self.lose_node, self.sign = work, skip, node, lose, sign
        self.armed = False
        self.given: int | None = None
        """Bytes that the task had when its node was lost; None if the node was not lost."""

    def holding(self, work: Any) -> Any:
        """The work of a task, which does not end on the node that is to be lost. The first `skip` tasks do end."""
        if work is not self.work:
            return work
        self.skip -= 1
        if self.skip >= 0 or self.given is not None:
            return work
        self.armed, node, sign = True, self.node, self.sign

        def begun(*given: Any) -> Any:
            if ray.get_runtime_context().get_node_id() == node:
                sign.write_text(str(sum(map(size_of, given))))
                time.sleep(600)
            return work(*given)

        return begun

    def lose(self) -> None:
        if self.armed and self.given is None:
            end = time.monotonic() + 120
            while not self.sign.is_file() or not self.sign.read_text():
                assert time.monotonic() < end, "no task began on the node that is to be lost"
                time.sleep(0.01)
            self.lose_node()
            self.given = int(self.sign.read_text())


class Watched(Ray):
    """Notes the largest thing that came to the driver before a result was asked for."""

    largest = 0
    losing: AtWork | None = None

    def _run(self, work: Any, place: int, *given: Any, returns: int = 1) -> Any:
        held = self.losing.holding(work) if self.losing else work
        return super()._run(held, place, *given, returns=returns)

    def _get(self, refs: Any) -> Any:
        if self.losing:
            self.losing.lose()
        found = super()._get(refs)
        if not self.fetching:
            self.largest = max(self.largest, size_of(found))
        return found

    fetching = False

    def fetch(self, held: Any) -> Any:
        self.fetching = True
        try:
            return super().fetch(held)
        finally:
            self.fetching = False


def size_of(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(map(size_of, value)) if isinstance(value, list | tuple) else 0


def received() -> int:
    """Bytes that came in over loopback, on which the nodes talk to each other."""
    with open("/proc/net/dev") as file:
        return next(int(line.split()[1]) for line in file if line.strip().startswith("lo:"))


def rows(seed: int, n: int, m: int, density: float) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    return sparse.csr_array(sparse.random_array((n, m), density=density, rng=rng, dtype=np.float32, format="csr"))


def factors() -> tuple[sparse.csr_array, sparse.csr_array, sparse.csr_array]:
    return rows(0, 9000, 12_000, 0.0008), rows(1, 9000, 8000, 0.001), rows(2, 8000, 11_000, 0.0008)


def passes(engine: Any, kill: Any = None) -> list[bytes]:
    """The printed algorithm, by W and by its factors: the maps' bytes."""
    a, middle, b = factors()
    w = sparse.csr_array(a.T @ sparse.csr_array(middle @ b))
    out = []
    ways = (
        (FormedRows(w), FormedRows(sparse.csr_array(w.T))),
        (
            FactoredRows(sparse.csr_array(a.T), middle, b, 16),
            FactoredRows(sparse.csr_array(b.T), sparse.csr_array(middle.T), a, 16),
        ),
    )
    for query_rows, doc_rows in ways:
        start = np.random.default_rng(0).standard_normal((11_000, DIM), dtype=np.float32)
        held, alignment = engine.hold(start), None
        for number in range(PASSES):
            l_x = half_iteration(query_rows, held, Shrinkage(RELATIVE, 1.0), engine=engine).maps
            made = half_iteration(doc_rows, l_x, Shrinkage(RELATIVE, 1.0), engine=engine)
            held, alignment = made.maps, made.alignment
            if kill is not None and number == 1:
                kill()
                kill = None
        for maps in (engine.fetch(l_x), engine.fetch(held)):
            out += [maps.indptr.tobytes(), maps.indices.tobytes(), maps.data.tobytes()]
        out.append(alignment.tobytes())
    return out


class Losing(ProductOperator):
    """Loses a node between two steps."""

    kill: Any = None
    calls = 0

    def forward(self, v: Any) -> Any:
        self.calls += 1
        if self.kill is not None and self.calls == 4:
            self.kill()
        return super().forward(v)


def svd(engine: Any, kill: Any = None) -> Any:
    a, middle, b = factors()
    operator = Losing(a, middle, b, np.float32, engine)
    operator.kill = kill
    return randomised_svd(operator, 30, power_steps=8)


def learned(engine: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Scores of all documents by models that are learned on the engine, from several views."""
    graph = example_graph()
    models = {"mpls": MPLS(dim=6, response="clicks"), "pls": PLS(dim=6), "rmls": RMLS(dim=6)}
    return {
        name: np.array([model.fit(graph, engine=engine).score("nyc hotel", graph.doc_ids)])
        for name, model in models.items()
    }


def on_paper(k: int) -> tuple[int, int]:
    """Bytes that the driver's node and another node hold by docs/engines.md: the matrices, all of them or a share; the
    maps and what lies between the factors, whole; new rows, a share."""
    a, middle, b = factors()
    w = a.T @ sparse.csr_array(middle @ b)
    matrices = 2 * sum(8 * m.nnz + 4 * m.shape[0] for m in (w, a, middle, b))
    blocks = sum(m.shape[0] for m in (a, middle.T, b.T)) * DIM * 4
    new_rows = a.shape[1] * DIM * 4
    return matrices + blocks + new_rows // k, matrices // k + blocks + new_rows // k


def held(cluster: Cluster, engine: Any) -> dict[str, Any]:
    """What nodes have in memory while RMLS is learned; the driver's node is the first."""
    # Every worker has loaded and compiled what it needs before its memory is taken.
    half_iteration(
        FormedRows(rows(3, 40_000, 500, 0.001)),
        np.ones((500, DIM), np.float32),
        Shrinkage(RELATIVE, 1.0),
        engine=engine,
    )
    with NodeMemory(cluster) as memory:
        passes(engine)
    return {"store": memory.store, "workers grew by": memory.grown, "on paper": on_paper(engine.workers)}


def ingested(engine: Any, folder: Path, lose_one: Callable[[], None]) -> dict[str, Any]:
    """A log of many files, read by the workers and by this process; a node is lost once the first batch is
    there, or, with `adding-up`, once a worker adds up."""
    log = folder / "log"
    if not log.is_dir():
        write_log("one-week", log, fraction=0.05, impressions=24_000)
        lines = gzip.decompress((log / "log.jsonl.gz").read_bytes()).splitlines(keepends=True)
        for number in range(8):
            (log / f"{number}.jsonl").write_bytes(b"".join(lines[number::8]))
    files = [str(log / f"{number}.jsonl") for number in range(8)]
    secret, done = Secret(bytes(range(32))), threading.Event()
    signs = ("sums-*", "pairs-*") if "adding-up" in sys.argv else ("partition-*/*.npz",)

    def watch() -> None:
        while not done.wait(0.02):
            if any(found for sign in signs for found in folder.rglob(sign)):
                lose_one()
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        ClickGraph.build(
            read_log(*files), read_docs(str(log / "docs.jsonl.gz")), folder / "ray", engine=engine, secret=secret
        )
    finally:
        done.set()
        watcher.join()
    ClickGraph.build(read_log(*files), read_docs(str(log / "docs.jsonl.gz")), folder / "local", secret=secret)
    sums = [json.loads((folder / name / "manifest.json").read_text())["files"] for name in ("ray", "local")]
    one, two = ({name: entry["sha256"] for name, entry in own.items()} for own in sums)
    return {"files": len(one), "graph to the bit": one == two}


def small_log(folder: Path) -> ClickGraph:
    """A log, and its documents five times: more images than one worker takes at a time."""
    write_log("one-week", folder, fraction=0.02)
    docs = list(read_docs(str(folder / "docs.jsonl.gz")))
    more = [Document(f"{doc.doc_id}-{copy}", doc.fields) for copy in range(4) for doc in docs]
    return ClickGraph.build(read_log(str(folder / "log.parquet")), [*docs, *more], folder / "graph")


def lost_at_work(cluster: Cluster, folder: Path) -> dict[str, Any]:
    """A node is lost while M-PLS is learned, one while its images are searched, and one while queries walk."""
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(3)]
    cluster.wait_for_nodes()
    tasks = []

    def losing(work: Any, skip: int = 0) -> Watched:
        engine, node = Watched(threads=1, memory=1 << 30), nodes.pop()
        assert engine.workers == len(nodes) + 2
        engine._nodes.sort(key=lambda one: one != node.node_id)  # the first worker has what is too small to divide
        engine.losing = AtWork(
            work, skip, node.node_id, lambda: cluster.remove_node(node, allow_graceful=False), folder / node.node_id
        )
        tasks.append(engine.losing)
        return engine

    graph, local = small_log(folder / "log"), Local(1)
    queries = graph.query_keys[:300]
    settings = {"dim": 12, "response": "clicks", "combine": "closed", "views": "word,click", "fields": "title:1"}
    # A block is made orthonormal: what the node had made of it is nowhere else.
    with losing(shards.combined, skip=5) as engine:
        ours, theirs = (MPLS(**settings).fit(graph, engine=e) for e in (engine, local))
    one, two = (model.fitted.spaces[0].singular_values for model in (ours, theirs))
    scores = [np.array([model.score(query, graph.doc_ids) for query in queries[:9]]) for model in (ours, theirs)]
    # Here the node has copies of what the driver sent; what is lost is the best of its share.
    with losing(shards.top_k) as engine:
        images = [ours.rank_many(queries, k=20, engine=e) for e in (engine, local)]
    walk = Walk().fit(graph)
    with losing(shards.rows_done) as engine:
        walks = [walk.rank_many(queries, k=20, engine=e) for e in (engine, local)]
    return {
        "bytes given": [task.given for task in tasks],
        "mpls values": float(np.abs(one - two).max() / two[0]),
        "mpls scores": float(np.abs(scores[0] - scores[1]).max() / np.abs(scores[1]).max()),
        "images to the bit": all(images[0]) and images[0] == images[1],
        "walk to the bit": all(walks[0]) and walks[0] == walks[1],
    }


def ended(cluster: Cluster, report: dict[str, Any]) -> None:
    """Prints the report last: at the end of a cluster Ray prints what a lost node had to say."""
    ray.shutdown()
    cluster.shutdown()
    print(json.dumps(report))


def main() -> None:
    n_nodes, kill, client = int(sys.argv[1]), "kill" in sys.argv, "client" in sys.argv
    store = ENOUGH if "memory" in sys.argv else STORE
    given: dict[str, Any] = {"num_cpus": 1, "object_store_memory": store, "include_dashboard": False}
    if "at-once" in sys.argv:
        given["_system_config"] = {"free_objects_period_milliseconds": 10}
    elif kill:  # Ray takes a node for lost after five checks without an answer, which are 3 s apart otherwise
        given["_system_config"] = {"health_check_period_ms": 300}
    cluster = Cluster(
        initialize_head=True, head_node_args=given | ({"ray_client_server_port": CLIENT_PORT} if client else {})
    )
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=store) for _ in range(n_nodes - 1)]
    cluster.wait_for_nodes()
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if not client:
        ray.init(address=cluster.address, **quiet)
    local = Local(1)
    killed = []

    def lose_one() -> None:
        cluster.remove_node(nodes.pop(0), allow_graceful=False)
        killed.append(True)

    address = f"ray://127.0.0.1:{CLIENT_PORT}" if client else ""
    with Watched(threads=1, memory=1 << 30, address=address) as engine:
        workers = engine.workers
        if "ingest" in sys.argv:
            with tempfile.TemporaryDirectory() as folder:
                made = ingested(engine, Path(folder), lose_one if kill else lambda: None)
            ended(cluster, {"workers": workers, "killed": bool(killed), **made})
            return
        if "memory" in sys.argv:
            ended(cluster, {"workers": workers, **held(cluster, engine)})
            return
        before, started = received(), time.perf_counter()
        found = passes(engine, lose_one if kill else None)
        seconds, moved = time.perf_counter() - started, received() - before
        report = {
            "workers": workers,
            "workers here": engine.workers_here,
            "rmls to the bit": found == passes(local),
            "rmls seconds": round(seconds, 2),
            "rmls bytes on loopback": moved,
            "largest to the driver": engine.largest,
            "smallest map": 11_000 * DIM * 4,
        }
        one, two = svd(engine, lose_one if kill else None), svd(local)
        report["killed"] = len(killed)
        report["svd values"] = float(np.abs(one.s - two.s).max() / two.s[0])
        report["svd maps"] = float(np.abs(one.u * one.s @ one.v[:50].T - two.u * two.s @ two.v[:50].T).max() / two.s[0])
        ours, theirs = learned(engine), learned(local)
        report["models"] = {name: float(np.abs(ours[name] - theirs[name]).max()) for name in ours}
        model = Walk().fit(example_graph())
        one_walk, two_walks = (model.rank_many(model.queries_.keys * 40, engine=e) for e in (engine, local))
        report["walk to the bit"] = any(one_walk) and one_walk == two_walks
        rng = np.random.default_rng(0)
        queries, images = (rng.standard_normal((n, 16), dtype=np.float32) for n in (300, 30_000))
        tops = [e.top_k(queries, images, 7, None) for e in (engine, local)]
        report["top-k to the bit"] = all(x.tobytes() == y.tobytes() for x, y in zip(*tops, strict=True))
    if kill:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            report["lost at work"] = lost_at_work(cluster, Path(folder))
        report["lost at work"]["seconds"] = round(time.perf_counter() - started, 2)
    ended(cluster, report)


if __name__ == "__main__":
    main()
