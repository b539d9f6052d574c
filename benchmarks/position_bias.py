"""Position bias: known propensities recovered from simulated logs, and what each response does on clara2.

python benchmarks/position_bias.py [DATA]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import clickbridge
from clickbridge import ClickGraph, Impression, build_model
from clickbridge.graph.responses import responses
from clickbridge.log.bias import position_based
from clickbridge.measures.ranking import parse_measure

SEEDS = 3


def simulated(n_pages: int, seed: int, shuffled: float) -> float:
    """The largest error of the curve. `shuffled` is the share of pages in random order; others show the best first."""
    rng = np.random.default_rng(seed)
    truth = 1.0 / np.arange(1, 11)
    attract = rng.uniform(0.05, 0.9, size=(100, 10))
    query = rng.integers(100, size=n_pages)
    order = np.argsort(-attract, axis=1)[query]
    mixed = rng.random(n_pages) < shuffled
    order[mixed] = np.argsort(rng.random((int(mixed.sum()), 10)), axis=1)
    clicked = rng.random((n_pages, 10)) < truth * np.take_along_axis(attract[query], order, axis=1)
    indptr = np.arange(0, 10 * n_pages + 1, 10)
    found = position_based(indptr, clicked.ravel(), (query[:, None] * 10 + order).ravel(), 10).examined
    return float(np.abs(found - truth).max())


def clara2(home: Path) -> None:
    log = [r for r in clickbridge.read_log(str(home / "log.jsonl.gz")) if isinstance(r, Impression)]
    cut = int(0.7 * len(log))
    graph = ClickGraph.build(log[:cut])
    qrels = clickbridge.read_qrels(str(home / "qrels.dev.txt.gz"))
    later = {r.query_id: r for r in log[cut:] if r.results and max(qrels.get(r.query_id, {}).values(), default=0) > 0}
    ndcg = parse_measure("nDCG@10")
    for response in ("clicks", "log", "coec", "pbm", "ips"):
        notes = responses(graph, response=response).notes
        for spec in ("cos-click", "walk"):
            model = build_model(spec, {"response": response}).fit(graph)
            values, places = [], []
            for query_id, page in later.items():
                ranking = model.rerank(query_id, page.results or []).doc_ids
                grades = [qrels[query_id].get(doc_id, 0.0) for doc_id in ranking]
                values.append(ndcg(grades, [*qrels[query_id].values()]))
                places += [ranking.index(doc_id) + 1 for doc_id in page.clicks if doc_id in ranking]
            mean, place = np.mean(values), np.mean(places)
            print(f"{response:7} {spec:10} nDCG@10 {mean:.4f}  mean rank of clicks {place:.3f}  {len(values)} pages")
        print(*notes, sep="\n")


def main() -> None:
    for shuffled in (1.0, 0.1, 0.0):
        for n_pages in (300, 1_000, 3_000, 10_000, 100_000):
            errors = [simulated(n_pages, seed, shuffled) for seed in range(SEEDS)]
            print(
                f"{shuffled:.0%} in random order, {n_pages:7,} pages: largest error {np.mean(errors):.3f}", flush=True
            )
    if len(sys.argv) > 1:
        clara2(Path(sys.argv[1]) / "clara2")


if __name__ == "__main__":
    main()
