"""Do trees over models beat the models and their sums? The layout of 13's Tables 2, 4 and 6, with significance.

MSRD: lists of queries that are not in the log, nDCG and AP, and the paired t-test against a baseline.
Best Buy: the first 80% of the clicks in time to learn from, MAP@5 of the clicked product for the rest, over
all clicks, over queries not seen in training, and by how many clicks the query had in training.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from clickbridge import ClickGraph, build_model, read_docs, read_log
from clickbridge.evaluate.significance import paired
from clickbridge.io.lists import read_lists
from clickbridge.measures.ranking import evaluate_run, parse_measures
from clickbridge.models.model import Model
from clickbridge.types import ResultList

DATA = Path(os.environ.get("CLICKBRIDGE_DATA", "../shared/data"))
MSRD = "bm25,lmir,pls,mpls,ssi,svdfeature,bltm,bm25+pls,rrf:bm25+pls,mart:bm25,mart:bm25+pls"
SHOP = "bm25,cos-click,pls,bm25+pls+cos-click,ssi,svdfeature,mart:bm25+pls"
BINS = (("unseen", 0, 0), ("1-10", 1, 10), ("11-100", 11, 100), ("101-1000", 101, 1000))


def msrd(specs: list[str], baseline: str) -> None:
    folder = DATA / "msrd"
    graph = ClickGraph.build(read_log(str(folder / "train.log.jsonl.gz")), read_docs(str(folder / "docs.jsonl.gz")))
    lists = read_lists(str(folder / "dev.lists.jsonl.gz"))
    grades = {r.query_id: dict(zip(r.results, r.labels or [], strict=True)) for r in lists}
    base: dict[str, float] = {}
    for spec in specs:
        seconds, model = fitted(spec, graph)
        run = {r.query_id: ranking.doc_ids for r, ranking in zip(lists, model.rerank_lists(lists), strict=True)}
        values = evaluate_run(run, grades, parse_measures("nDCG@1,nDCG@3,nDCG@5,AP"))
        base = base or (values["nDCG@5"] if spec == baseline else {})
        cells = [f"{name} {np.mean(list(found.values())):.3f}" for name, found in values.items()]
        test = paired(values["nDCG@5"], base)
        cells.append(f"{test.difference:+.3f} p {test.p_value:.4f} {test.wins}/{test.ties}/{test.losses}")
        line(spec, seconds, cells)


def shop(specs: list[str]) -> None:
    log = read_log(str(DATA / "bestbuy" / "clicks.tsv.gz"), format="triples", columns={"time": "click_time"})
    held = ClickGraph.build(log, read_docs(str(DATA / "bestbuy" / "docs.jsonl.gz"))).hold_back(0.2, by="time")
    graph, future = held.graph, held.clicked
    assert future is not None
    seen = np.bincount(graph.pairs.query, graph.pairs.clicks, minlength=graph.n_queries)[future.query]
    for spec in specs:
        seconds, model = fitted(spec, graph)
        numbers = np.unique(future.query)
        lists = [ResultList(str(n), graph.query_keys[int(n)], graph.doc_ids) for n in numbers]
        top = [ranking.doc_ids[:5] for ranking in model.rerank_lists(lists)]
        of = dict(zip(numbers.tolist(), top, strict=True))
        pairs = zip(future.query.tolist(), (graph.doc_ids[d] for d in future.doc), strict=True)
        gains = np.array([1 / (of[q].index(d) + 1) if d in of[q] else 0.0 for q, d in pairs])
        cells = [f"all {np.average(gains, weights=future.clicks):.3f}"]
        for name, low, high in BINS:
            inside = (seen >= low) & (seen <= high)
            value = f"{np.average(gains[inside], weights=future.clicks[inside]):.3f}" if inside.any() else "-"
            cells.append(f"{name} {value}")
        line(spec, seconds, cells)


def fitted(spec: str, graph: ClickGraph) -> tuple[float, Model]:
    start = time.perf_counter()
    model = build_model(spec).fit(graph)
    return time.perf_counter() - start, model


def line(spec: str, seconds: float, cells: list[str]) -> None:
    print(f"{spec:40s} {'  '.join(cells)}  {seconds:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", choices=("msrd", "bestbuy"), default="msrd")
    parser.add_argument("--models", help="specs, separated by commas")
    parser.add_argument("--baseline", default="bm25+pls")
    options: Any = parser.parse_args()
    if options.on == "msrd":
        specs = (options.models or MSRD).split(",")
        # The baseline first: the others are tested against it.
        msrd(sorted(specs, key=lambda spec: spec != options.baseline), options.baseline)
    else:
        shop((options.models or SHOP).split(","))


if __name__ == "__main__":
    main()
