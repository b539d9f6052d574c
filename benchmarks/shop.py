"""How well does each model foresee what the visitors of a shop will click, next to recommenders and to memory?

bestbuy, the clicks in order of time: the first 80% to learn from, the rest to test. MAP@5 of the clicked
product (one over its place among the first five, else 0) over all later clicks, and over those whose query
does not occur in training. The recommenders get the same query x product counts, a query in the place of a
user; they are tuned a little on an earlier split, 64% against the next 16%. Times are CPU seconds of `fit`
(of fit and recommendations, for the rivals).
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from implicit.cpu.als import AlternatingLeastSquares
from implicit.nearest_neighbours import BM25Recommender, CosineRecommender, ItemItemRecommender, TFIDFRecommender
from implicit.utils import ParameterWarning
from scipy import sparse

from clickbridge import ClickGraph, read_docs, read_log
from clickbridge.models.fitted import order
from clickbridge.models.specs import build_model
from clickbridge.types import Document, PairCount, ResultList

K = 5
SPECS = (
    *("bm25", "cos-click", "lsi-qd", "walk", "pls", "mpls"),
    *("bm25+cos-click", "lsi-qd+bm25", "bm25+walk", "bm25+pls", "bm25+mpls", "bm25+pls+cos-click"),
)
ALS_GRID = {"factors": (32, 64, 128, 256), "alpha": (0.5, 1.0, 2.0, 5.0), "regularization": (0.1, 1.0, 3.0, 10.0)}
KNN_GRID = {
    "model": (ItemItemRecommender, CosineRecommender, TFIDFRecommender, BM25Recommender),
    "neighbours": (5, 10, 20, 50, 200),
}
Best = Mapping[str, Sequence[str]]
"""The first K products of each query; a query that has no score is left out."""


@dataclass(frozen=True)
class Split:
    train: list[PairCount]
    future: list[PairCount]
    docs: list[Document]

    @cached_property
    def graph(self) -> ClickGraph:
        return ClickGraph.build(self.train, self.docs)

    @cached_property
    def seen(self) -> dict[str, int]:
        return {query: number for number, query in enumerate(dict.fromkeys(r.query for r in self.train))}

    @cached_property
    def asked(self) -> list[str]:
        return sorted({record.query for record in self.future})

    @cached_property
    def doc_ids(self) -> list[str]:
        return sorted({d.doc_id for d in self.docs} | {r.doc_id for r in self.train})

    @cached_property
    def counts(self) -> sparse.csr_matrix:
        """Clicks of seen queries by products. (implicit wants SciPy's older matrices.)"""
        number = {doc_id: n for n, doc_id in enumerate(self.doc_ids)}
        rows, columns = [self.seen[r.query] for r in self.train], [number[r.doc_id] for r in self.train]
        clicks = np.array([r.clicks for r in self.train], dtype=np.float64)
        return sparse.csr_matrix((clicks, (rows, columns)), shape=(len(self.seen), len(number)))

    def map5(self, best: Best) -> tuple[float, float]:
        """Over all later clicks, and over those of queries not seen before."""
        places = [[*best.get(r.query, ()), r.doc_id].index(r.doc_id) for r in self.future]
        values = np.array([1 / (place + 1) if place < len(best.get(r.query, ())) else 0.0
                           for r, place in zip(self.future, places, strict=True)])  # fmt: skip
        unseen = np.array([r.query not in self.seen for r in self.future])
        return float(values.mean()), float(values[unseen].mean())


# --- what to beat -------------------------------------------------------------------------------------


def popularity(split: Split) -> Best:
    """The products clicked most, whatever the query."""
    top = [doc_id for doc_id, _ in Counter(r.doc_id for r in split.train).most_common(K)]
    return dict.fromkeys(split.asked, top)


def memory(split: Split) -> Best:
    """The products clicked most for the very same query; ties by popularity."""
    popular = Counter(r.doc_id for r in split.train)
    clicked: dict[str, Counter[str]] = defaultdict(Counter)
    for r in split.train:
        clicked[r.query][r.doc_id] += r.clicks
    return {q: sorted(c, key=lambda d: (-c[d], -popular[d], d))[:K] for q, c in clicked.items()}


def recommended(split: Split, model: Any) -> Best:
    counts = split.counts
    with warnings.catch_warnings(action="ignore", category=ParameterWarning):  # it transposes for itself
        model.fit(counts, show_progress=False)
    known = [query for query in split.asked if query in split.seen]
    rows = np.array([split.seen[query] for query in known])
    items, scores = model.recommend(rows, counts[rows], N=K, filter_already_liked_items=False)
    return {
        query: [split.doc_ids[i] for i, score in zip(row, of_row, strict=True) if i >= 0 and score > -1e30]
        for query, row, of_row in zip(known, items, scores, strict=True)
    }


def als(split: Split, factors: int, alpha: float, regularization: float) -> Best:
    model = AlternatingLeastSquares(
        factors=factors, alpha=alpha, regularization=regularization, iterations=20, random_state=0, num_threads=1
    )
    return recommended(split, model)


def item_knn(split: Split, model: type[ItemItemRecommender], neighbours: int) -> Best:
    return recommended(split, model(K=neighbours, num_threads=1))


def tuned(rival: Callable[..., Best], grid: Mapping[str, Sequence[Any]], inner: Split) -> Callable[[Split], Best]:
    """The rival with the values that do best on the earlier split, all clicks counted."""
    trials = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    best = max(trials, key=lambda trial: inner.map5(rival(inner, **trial))[0])
    words = ", ".join(f"{name} {getattr(value, '__name__', value)}" for name, value in best.items())
    print(f"{rival.__name__}: {words}, the best of {len(trials)} on the earlier split", flush=True)
    return partial(rival, **best)


def spec_best(spec: str, settings: Mapping[str, str], split: Split) -> tuple[float, Best]:
    start = time.process_time()
    model = build_model(spec, settings).fit(split.graph)
    seconds = time.process_time() - start
    # All products as one list, by id: what scores the same stays in that order.
    lists = [ResultList(str(number), query, split.doc_ids) for number, query in enumerate(split.asked)]
    scored = zip(split.asked, model.score_lists(lists), strict=True)
    best = {query: [hit.doc_id for hit in order(split.doc_ids, s)[:K] if np.isfinite(hit.score)] for query, s in scored}
    return seconds, {query: found for query, found in best.items() if found}


# --- the table ----------------------------------------------------------------------------------------


def splits(folder: Path) -> tuple[Split, Split]:
    """The outer split and the earlier one. The file is in order of time."""
    log = read_log(str(folder / "clicks.tsv.gz"), columns={"time": "click_time"})
    records = [record for record in log if isinstance(record, PairCount) and record.query]
    docs, n = list(read_docs(str(folder / "docs.jsonl.gz"))), len(records)
    inner, outer = int(0.64 * n), int(0.8 * n)
    return Split(records[:outer], records[outer:], docs), Split(records[:inner], records[inner:outer], docs)


def row(name: str, split: Split, best: Best, seconds: float | None) -> None:
    everywhere, unseen = split.map5(best)
    answers = any(query in best for query in split.asked if query not in split.seen)
    took = f"{seconds:8.1f}" if seconds is not None else " " * 8
    print(f"{name:<34}{everywhere:>8.4f}{f'{unseen:.4f}' if answers else 'no score':>10}{took}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("CLICKBRIDGE_DATA"), help="folder with bestbuy/")
    parser.add_argument("--models", default=",".join(SPECS), help="clickbridge specs, separated by commas")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="settings of the specs")
    parser.add_argument("--earlier", action="store_true", help="measure on the earlier split, where things are chosen")
    options = parser.parse_args()
    if options.data is None:
        parser.error("give --data FOLDER, or set CLICKBRIDGE_DATA: the folder that holds bestbuy/")
    split, inner = splits(Path(options.data) / "bestbuy")
    if options.earlier:
        split = inner
    future, new = len(split.future), sum(r.query not in split.seen for r in split.future)
    print(f"{len(split.train):,} clicks to learn from; {future:,} later ones, {new:,} of unseen queries")
    rivals: dict[str, Callable[[Split], Best]] = {
        "popularity": popularity,
        "same-query memory": memory,
        "implicit ALS": tuned(als, ALS_GRID, inner),
        "implicit item-kNN": tuned(item_knn, KNN_GRID, inner),
    }
    print(f"\n{'model':<34}{'all':>8}{'unseen':>10}{'CPU s':>8}")
    found: dict[str, Best] = {}
    for name, rival in rivals.items():
        start = time.process_time()
        found[name] = rival(split)
        row(name, split, found[name], time.process_time() - start)
    settings = dict(item.split("=", 1) for item in options.set)
    for spec in options.models.split(","):
        seconds, found[spec] = spec_best(spec, settings, split)
        row(spec, split, found[spec], seconds)
        if spec == "bm25":
            for name in ("same-query memory", "implicit item-kNN"):
                row(f"{name}, else bm25", split, {**found["bm25"], **found[name]}, None)


if __name__ == "__main__":
    main()
