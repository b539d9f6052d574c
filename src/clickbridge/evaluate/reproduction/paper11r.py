"""Tables 3 and 5 of Wu, Xu, Li, Oyama (2011), "Learning a Robust Relevance Model ...", its footnote 2, and lambda."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from clickbridge.evaluate.reproduction.bench import NDCG, Data
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.paper_table import Cell, Table, TableRow
from clickbridge.evaluate.reproduction.relevance_rows import (
    AS_PRINTED,
    Line,
    both_rows,
    own_tests,
    relevance_table,
    t_on,
)
from clickbridge.evaluate.significance import Array
from clickbridge.evaluate.similar import CLICK_KERNELS, precision, sample_queries, similar_by_clicks
from clickbridge.graph.responses import ClickedQueries, clicked_queries, responses

RELEVANCE = (
    ("Robust BM25", "robust-bm25", (0.1192, 0.2480, 0.2587, 0.2716), (0.3122, 0.4780, 0.5065, 0.5295)),
    ("Pairwise Kernel", "pairwise", (0.1123, 0.2241, 0.2418, 0.2560), (0.2766, 0.4465, 0.4769, 0.4971)),
    ("Query Expansion", "expansion", (0.0963, 0.1797, 0.2061, 0.2237), (0.2755, 0.4076, 0.4712, 0.4958)),
    ("BM25", "bm25", (0.0908, 0.1728, 0.2019, 0.2180), (0.2745, 0.4246, 0.4531, 0.4741)),
)
SHOWN = 5
LAMBDAS = (0.01, 0.1, 1.0, 10.0, 100.0)
MOST_JUDGED = 300
"""The number of judged queries for the test of lambda: each value needs a model for each of them."""


def lines_of(at: int) -> tuple[Line, ...]:
    """Rows of Table 5: web search (2) or enterprise search (3)."""
    return tuple(Line(row[0], row[1], row[2] if at == 2 else row[3], AS_PRINTED, {}) for row in RELEVANCE)


def table_3(lab: Lab) -> Iterator[Table]:
    """Similar queries by Pearson correlation of clicks, of the most clicked queries of each set: (9), and over all
    URLs."""
    for data in lab.similarity_sets("one-week"):
        counted = _counted(data)
        most = [counted.keys[i] for i in np.argsort(-counted.clicks, kind="stable")[:SHOWN]]
        found = [
            similar_by_clicks(name, counted.matrix, counted.keys, most, k=4) for name in ("Pearson (9)", "Pearson")
        ]
        rows = [TableRow(query, tuple(", ".join(own[query]) or "none" for own in found)) for query in most]
        columns = ("as printed, (9)", "over all URLs")
        yield Table("11R-3", "Similar queries by Pearson correlation of clicks", data.about, columns, rows)


def _counted(data: Data) -> ClickedQueries:
    least = int(data.settings.get("min_clicks", 1))
    return clicked_queries(data.graph, responses(data.graph, min_clicks=least).matrix)


def footnote_2(lab: Lab) -> Iterator[Table]:
    """Precision of the first three by each measure of similarity on clicks."""
    order: dict[str, tuple[Cell, ...]] = {
        "Pearson (9)": ("works best",), "Pearson": (), "Jensen-Shannon": ("works best",), "Jaccard": ("follows",),
        "cosine": ("not named",),
    }  # fmt: skip
    shown = {"Pearson (9)": "Pearson, as printed", "Pearson": "Pearson over all URLs"}
    for data in lab.similarity_sets("one-week"):
        if data.alike is None:
            continue
        found = precisions(data, lab.seed)
        rows = [TableRow(shown.get(name, name), (found[name],), says) for name, says in order.items()]
        yield Table("11R-n2", "Precision of similarity on clicks (footnote 2)", data.about, ("P@3",), rows)


def precisions(data: Data, seed: int) -> dict[str, float]:
    """P@3 of each measure of similarity on clicks, over a sample of queries; empty where nothing is judged."""
    return {name: float(found.mean()) for name, found in each_precision(data, seed).items()}


def each_precision(data: Data, seed: int) -> dict[str, Array]:
    """The same query by query, in one order for all measures."""
    return data.once(("P@3", seed), lambda: _each_precision(data, seed))


def _each_precision(data: Data, seed: int) -> dict[str, Array]:
    if data.alike is None:
        return {}
    counted = _counted(data)
    known, out = {*counted.keys}, {}
    queries = sample_queries([q for q in data.alike.queries if q in known], seed=seed)
    for name in CLICK_KERNELS:
        answers = similar_by_clicks(name, counted.matrix, counted.keys, queries)
        out[name] = np.array([precision({query: answers[query]}, data.alike) for query in queries])
    return out


def table_5(lab: Lab) -> Iterator[Table]:
    for scale, name, at in (("one-week", "web search", 2), ("enterprise", "enterprise search", 3)):
        lines = lines_of(at)
        for data in lab.relevance_sets(scale):
            title = f"Ranking accuracy, {name}"
            yield relevance_table("11R-5", title, data, both_rows(lines), with_map=True, compare="MAP")
            yield own_tests("11R-5", data, lines, ("Robust BM25", "Pairwise Kernel"), t_on(data.map_name))


def by_lambda(lab: Lab) -> Iterator[Table]:
    """Section 7.4: the value of lambda, 1 in the paper, makes hardly any difference."""
    for data in lab.relevance_sets("one-week"):
        some = some_judged(data)
        rows = [
            TableRow(f"{label}, as printed, lambda {lam:g}", some.means(spec, (some.map_name, *NDCG), lambda_of(lam)))
            for label, spec in (("Robust BM25", "robust-bm25"), ("Pairwise Kernel", "pairwise"))
            for lam in LAMBDAS
        ]
        about = f"{data.about}; {len(some.lists['seen'])} of them here"
        yield Table("11R-lambda", "The weight of the regulariser", about, ("MAP", *NDCG), rows)


def lambda_of(lam: float) -> dict[str, Any]:
    return {**AS_PRINTED, "ridge": f"{lam:g}"}


def some_judged(data: Data) -> Data:
    """The same data with a few of its judged queries, the same each time."""
    few = {kind: lists[:MOST_JUDGED] for kind, lists in data.lists.items()}
    name = f"{data.name}-few"
    return data.once("few judged", lambda: replace(data, name=name, lists=few, _trials={}, _kept={}))
