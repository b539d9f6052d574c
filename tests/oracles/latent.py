"""What latent models compute, written down slowly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from clickbridge import ClickGraph
from clickbridge.graph.parts import Pairs
from clickbridge.numerics.row import as_matrix
from clickbridge.types import PairCount
from oracles.graphs import WORDS, random_docs

Array = np.ndarray[Any, Any]


def random_clicks(seed: int, n_queries: int = 25, n_docs: int = 20, vectors: int = 0) -> ClickGraph:
    """Queries and documents of a dozen words, a few clicks a query; with `vectors`, dense ones called m."""
    rng = np.random.default_rng(seed)
    docs = random_docs(seed, n_docs)
    queries = [f"{' '.join(rng.choice(WORDS, rng.integers(1, 4)))} q{i}" for i in range(n_queries)]
    pairs = []
    for q in range(n_queries):
        for d in rng.choice(n_docs, rng.integers(1, 4), replace=False):
            pairs.append((q, int(d), int(rng.integers(1, 6))))
    pairs.sort()
    query, doc, clicks = (np.array(column, dtype=np.int32) for column in zip(*pairs, strict=True))
    columns = {name: [fields[name] for fields in docs.values()] for name in ("title", "body")}
    made = {}
    if vectors:
        made = {"m": {s: rng.standard_normal((n, vectors)) for s, n in (("query", n_queries), ("doc", n_docs))}}
    table = pa.table({"doc_id": list(docs), **columns})
    return ClickGraph(queries, table, Pairs(query, doc, clicks, np.zeros_like(clicks)), vectors=made)


def w_by_loops(x: Array, y: Array, responses: Array, mean: bool) -> Array:
    """13, eq. (2): (1 / n^x) sum over queries of (1 / n_i^y) sum over their documents of r_ij x_i y_ij'."""
    out = np.zeros((x.shape[1], y.shape[1]))
    for i in range(len(x)):
        clicked = [j for j in range(len(y)) if responses[i, j] > 0]
        for j in clicked:
            share = 1 / len(clicked) if mean else 1.0
            out += share * responses[i, j] * np.outer(x[i], y[j]) / len(x)
    return out


def query_rows(model: Any, queries: list[str]) -> Any:
    """Features of queries, known and new, as a fitted model has them."""
    fitted = model.fitted
    return as_matrix([fitted.query_row(fitted.query(query)) for query in queries], fitted.q_views.width)


def pair_log(*pairs: tuple[str, str, int]) -> list[PairCount]:
    return [PairCount(query, doc, clicks) for query, doc, clicks in pairs]
