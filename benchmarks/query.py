"""What does one query cost: re-ranked lists, a search of all documents, a load, and memory over many queries?

Milliseconds of CPU (`process_time`, all threads), median of 100 queries of the log, one at a time. A list holds the
model's own best documents and as many drawn at random. `load` is from the start of a fresh process to a model that is
ready, imports included; `first` is the first list after that. Each model runs in a process of its own.

    python benchmarks/query.py --graph GRAPH            fits the models first; --keep FOLDER keeps them for later
    python benchmarks/query.py --models MODEL MODEL     models that are there
    python benchmarks/query.py --graph GRAPH --growth   memory over 100,000 different queries
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

SPECS = "bm25,pls,bm25+pls,robust-bm25,online:bm25,mart"
LISTS = (24, 100)
K = 10
MEDIAN_OF = 100
LIBRARIES = ("duckdb", "pyarrow", "numba")
STEPS = (0.01, 0.1, 1.0)
"""Shares of the queries after which memory is looked at; before the first, caches fill."""


# --- one model, in a process of its own ----------------------------------------------------------------


def cost(folder: str) -> dict[str, Any]:
    start = time.process_time()
    from clickbridge import load

    model = load(folder)
    row: dict[str, Any] = {"spec": model.spec, "load": 1000 * (time.process_time() - start)}
    row["imported"] = [name for name in LIBRARIES if name in sys.modules]
    queries, docs = asked(model), model.doc_ids_[: LISTS[0]]
    row["first"] = cpu_ms(lambda: model.rerank(queries[0], docs))
    lists = {n: [candidates(model, query, n, seed) for seed, query in enumerate(queries)] for n in LISTS}
    for n, own in lists.items():
        pairs = zip(queries, own, strict=True)
        row[f"re-rank {n}"] = median_ms([lambda q=q, d=d: model.rerank(q, d) for q, d in pairs])
    if "search" in model.fitted.abilities:
        row["search"] = median_ms([lambda q=q: model.rank(q, K) for q in queries])
    row["documents"] = len(model.doc_ids_)
    return row


def asked(model: Any) -> list[str]:
    """Known queries, evenly picked; where the model knows none, titles of documents."""
    known = [key for key in model.queries_.keys if not key.startswith("\x1f")] or list(model.catalogue_.titles)
    step = max(len(known) // MEDIAN_OF, 1)
    return (known[::step] * MEDIAN_OF)[:MEDIAN_OF]


def candidates(model: Any, query: str, n: int, seed: int) -> list[str]:
    import numpy as np

    ids = model.doc_ids_
    found = model.rank(query, n // 2).doc_ids if "search" in model.fitted.abilities else []
    drawn = np.random.default_rng(seed).choice(len(ids), min(n, len(ids)), replace=False)
    return list(dict.fromkeys([*found, *(ids[i] for i in drawn)]))[:n]


def cpu_ms(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def median_ms(work: Sequence[Callable[[], Any]]) -> float:
    return statistics.median(map(cpu_ms, work))


def growth(folder: str, n: int) -> dict[str, Any]:
    """MiB of the process's own memory (mapped files do not count) after a share of `n` different queries."""
    from clickbridge import load
    from machine import status_mib

    model = load(folder)
    row: dict[str, Any] = {"spec": model.spec, "loaded": status_mib("RssAnon")}
    docs, marks = model.doc_ids_[:K], {max(int(n * share), 1): share for share in STEPS}
    for number, query in enumerate(different(asked(model), n), 1):
        model.rerank(query, docs)
        if number in marks:
            row[f"{number:,}"] = status_mib("RssAnon")
    row["grown"] = row[f"{n:,}"] - row[f"{int(n * STEPS[0]):,}"]
    return row


def different(known: Sequence[str], n: int) -> Iterator[str]:
    """Words of known queries in ever new company, and a word that nobody has used."""
    words = sorted({word for query in known for word in query.split()})
    for number in range(n):
        yield f"{words[number % len(words)]} {words[(number * 7919) % len(words)]} x{number}y"


# --- all of them ---------------------------------------------------------------------------------------


def fitted(graph: str, specs: Sequence[str], home: Path) -> list[str]:
    """Folders of the models; one that is there is not fitted again."""
    from clickbridge import ClickGraph, build_model

    opened, folders = ClickGraph.open(graph), []
    for spec in specs:
        folder = home / spec.replace(":", ".")
        if not folder.exists():
            print(f"fitting {spec}", file=sys.stderr, flush=True)
            build_model(spec).fit(opened).save(folder)
        folders.append(str(folder))
    return folders


def in_its_own_process(*arguments: object) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(rows: Sequence[dict[str, Any]], columns: Sequence[str], unit: str) -> None:
    print(f"{unit:<14}" + "".join(f"{name:>13}" for name in columns))
    for row in rows:
        cells = (row.get(name) for name in columns)
        print(f"{row['spec']:<14.14}" + "".join(f"{c:>13.2f}" if c is not None else f"{'-':>13}" for c in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", help="a GRAPH folder: the models are fitted on it")
    parser.add_argument("--specs", default=SPECS, help=f"with --graph, separated by commas (default: {SPECS})")
    parser.add_argument("--keep", type=Path, help="with --graph: keep the models here, and use them again")
    parser.add_argument("--models", nargs="*", default=[], help="MODEL folders")
    parser.add_argument("--growth", action="store_true", help="memory over many different queries")
    parser.add_argument("--queries", type=int, default=100_000, help="with --growth: how many")
    parser.add_argument("--cost-of", help=argparse.SUPPRESS)
    parser.add_argument("--growth-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cost_of or options.growth_of:
        one = cost(options.cost_of) if options.cost_of else growth(options.growth_of, options.queries)
        print(json.dumps(one))
        return
    if not options.graph and not options.models:
        parser.error("give --graph GRAPH, or --models MODEL ...")
    with tempfile.TemporaryDirectory() as scratch:
        home = options.keep or Path(scratch)
        home.mkdir(parents=True, exist_ok=True)
        folders = [*options.models, *(fitted(options.graph, options.specs.split(","), home) if options.graph else ())]
        if options.growth:
            rows = [in_its_own_process("--growth-of", f, "--queries", options.queries) for f in folders]
            counts = [f"{max(int(options.queries * share), 1):,}" for share in STEPS]
            table(rows, ["loaded", *counts, "grown"], "own MiB after")
            return
        rows = [in_its_own_process("--cost-of", folder) for folder in folders]
    print(f"{rows[0]['documents']:,} documents")
    table(rows, [*(f"re-rank {n}" for n in LISTS), "search", "first", "load"], "CPU ms")
    for row in rows:
        imported = ", ".join(row["imported"]) or f"none of {', '.join(LIBRARIES)}"
        print(f"{row['spec']}: load imports {imported}")


if __name__ == "__main__":
    main()
