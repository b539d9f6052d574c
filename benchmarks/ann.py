"""What does approximate search find, and what does it cost, next to exact search and to a graph index?

Images of documents and queries come from `pls` on a simulated log with the half-year statistics, shrunk to
the number of documents asked for; or from a log of your own (`--log`, `--docs`). Recall@10 is against the
exact index. Times are ratios to it within one run, for queries one at a time and for all at once.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from clickbridge import PLS, ClickGraph, read_docs, read_log
from clickbridge.search.ann import AnnIndex, learn_cells
from clickbridge.search.index import DenseIndex
from clickbridge.simulate.scale import SCALES, write_log

Array = np.ndarray[Any, Any]
PROBES = (0.01, 0.02, 0.05, 0.1, 0.2)
EFFORTS = (32, 64, 128, 256)
LINKS = 32


def images(options: argparse.Namespace) -> tuple[Array, Array]:
    """Document images, and images of held-out-like queries: known ones, evenly picked."""
    with tempfile.TemporaryDirectory() as folder:
        out, settings = Path(folder), {"fields": "auto"}
        if not options.log:
            write_log("half-year", out, fraction=options.documents / SCALES["half-year"].n_docs)
            options.log, options.docs = [str(out / "log.parquet")], [str(out / "docs.jsonl.gz")]
            settings = {"fields": "title,url", "views": "word,click"}
        graph = ClickGraph.build(read_log(*options.log), read_docs(*options.docs))
        model = PLS(dim=options.dim, **settings).fit(graph)
        print(*model.notes_, sep="\n")
        keys = model.query_keys_[:: max(len(model.query_keys_) // options.queries, 1)][: options.queries]
        return np.ascontiguousarray(model.images_[model.scorable_]), model.map_queries(keys)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def seconds(search: Callable[[Array], Any], queries: Array) -> tuple[float, float, Any]:
    """A query's time one at a time and all at once, and what was found."""
    search(queries[:2])
    start = time.perf_counter()
    for row in range(min(len(queries), 200)):
        search(queries[row : row + 1])
    middle = time.perf_counter()
    found = search(queries)
    return (middle - start) / min(len(queries), 200), (time.perf_counter() - middle) / len(queries), found


def recall(found: Array, exact: Array) -> float:
    return float(np.mean([len({*one} & {*two}) / len(two) for one, two in zip(found, exact, strict=True)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--log", nargs="*", default=[])
    parser.add_argument("--docs", nargs="*", default=[])
    parser.add_argument("--no-graph", action="store_true", help="leave HNSW out, which takes long to build")
    options = parser.parse_args()
    docs, queries = images(options)
    lengths = np.percentile(np.linalg.norm(docs, axis=1), (1, 50, 99)).round(3)
    print(
        f"{len(docs):,} x {docs.shape[1]} images, lengths at 1, 50, 99%: {lengths.tolist()}; {len(queries):,} queries"
    )
    one, all_, (exact, _, _) = seconds(lambda q: DenseIndex(docs).search(q, 10), queries)
    print(
        f"exact: {one * 1e3:.2f} ms a query alone, {all_ * 1e3:.2f} ms in a batch; images {docs.nbytes / 2**20:.0f} MiB"
    )
    print(f"{'index':28s} {'recall@10':>9s} {'alone':>7s} {'batch':>7s} {'build s':>8s} {'fill s':>7s} {'MiB':>6s}")
    start = time.perf_counter()
    cells = learn_cells(lambda rows: docs[rows], np.ones(len(docs), dtype=bool), seed=0)
    build = time.perf_counter() - start
    for probe in PROBES:
        index, before, start = AnnIndex(docs, None, cells, probe), resident(), time.perf_counter()
        index.search(queries[:1], 10)
        fill, memory = time.perf_counter() - start, resident() - before
        fast, faster, (found, _, _) = seconds(lambda q, index=index: index.search(q, 10), queries)
        shown = (recall(found, exact), one / fast, all_ / faster, build, fill, memory / 2**20)
        print(f"{f'cells, probe={probe:g}':28s} {'{:9.3f} {:6.1f}x {:6.1f}x {:8.1f} {:7.2f} {:6.0f}'.format(*shown)}")
        del index
    if options.no_graph:
        return
    before, start = resident(), time.perf_counter()
    graph = faiss.IndexHNSWFlat(docs.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    graph.add(docs)
    build, memory = time.perf_counter() - start, resident() - before
    for effort in EFFORTS:
        graph.hnsw.efSearch = effort
        fast, faster, (_, found) = seconds(lambda q: graph.search(q, 10), queries)
        shown = (recall(found, exact), one / fast, all_ / faster, build, 0.0, memory / 2**20)
        print(
            f"{f'HNSW {LINKS}, ef={effort}':28s} {'{:9.3f} {:6.1f}x {:6.1f}x {:8.1f} {:7.2f} {:6.0f}'.format(*shown)}"
        )


if __name__ == "__main__":
    main()
