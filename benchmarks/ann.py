"""What does approximate search find, and what does it cost, next to exact search and to a graph index?

Images of documents and queries come from `pls` on a simulated log with the half-year statistics, shrunk to
the number of documents asked for; or from a log of your own (`--log`, `--docs`). Recall@10 is against the
exact index. Times are ratios to it within one run, for queries one at a time and for all at once.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
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
        known = model.queries_.keys
        keys = known[:: max(len(known) // options.queries, 1)][: options.queries]
        return np.ascontiguousarray(model.images_[model.scorable_]), model.map_queries(keys)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def seconds(one: Callable[[Array], Any], many: Callable[[Array], Any], queries: Array) -> tuple[float, float, Any]:
    """A query's time one at a time and all at once, and what was found."""
    one(queries[0])
    many(queries[:2])
    start = time.perf_counter()
    for query in queries[:200]:
        one(query)
    middle = time.perf_counter()
    found = many(queries)
    return (middle - start) / min(len(queries), 200), (time.perf_counter() - middle) / len(queries), found


def ours(index: DenseIndex, queries: Array) -> tuple[float, float, list[Array]]:
    alone, batch, found = seconds(lambda q: index.search(q, 10), lambda q: index.search_many(q, 10), queries)
    return alone, batch, [items for items, _ in found]


def recall(found: Sequence[Array], exact: Sequence[Array]) -> float:
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
    there = np.ones(len(docs), dtype=bool)
    one, all_, exact = ours(DenseIndex(docs, there), queries)
    print(
        f"exact: {one * 1e3:.2f} ms a query alone, {all_ * 1e3:.2f} ms in a batch; images {docs.nbytes / 2**20:.0f} MiB"
    )
    print(f"{'index':28s} {'recall@10':>9s} {'alone':>7s} {'batch':>7s} {'build s':>8s} {'fill s':>7s} {'MiB':>6s}")
    start = time.perf_counter()
    cells = learn_cells(lambda rows: docs[rows], there, seed=0)
    build = time.perf_counter() - start
    for probe in PROBES:
        before, start = resident(), time.perf_counter()
        index = AnnIndex(docs, there, cells, probe)
        fill, memory = time.perf_counter() - start, resident() - before
        fast, faster, found = ours(index, queries)
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
        fast, faster, (_, found) = seconds(lambda q: graph.search(q[None], 10), lambda q: graph.search(q, 10), queries)
        shown = (recall(found, exact), one / fast, all_ / faster, build, 0.0, memory / 2**20)
        print(
            f"{f'HNSW {LINKS}, ef={effort}':28s} {'{:9.3f} {:6.1f}x {:6.1f}x {:8.1f} {:7.2f} {:6.0f}'.format(*shown)}"
        )


if __name__ == "__main__":
    main()
