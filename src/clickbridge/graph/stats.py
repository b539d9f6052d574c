"""The papers' Table 1 (Wu et al. 2013, Section 6.1) for a GRAPH, and what else one asks first of a log."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.products import nonzeros_of_w
from clickbridge.graph.responses import Responses

BINS = (10, 100, 1000)
EXACT_PRODUCTS = 2e8
SAMPLED_ROWS = 2000


def table1(
    graph: ClickGraph, responses: Responses, query_words: sparse.csr_array, doc_words: sparse.csr_array
) -> dict[str, Any]:
    """Statistics over queries and documents with a counted click. X has a query's words, then its clicked
    documents; Y a document's words, then its clicking queries; W = X' R Y (13, eq. (2))."""
    matrix = responses.matrix
    on_query, on_doc = np.diff(matrix.indptr) > 0, np.bincount(matrix.indices, minlength=graph.n_docs) > 0
    links = sparse.csr_array(matrix[on_query][:, on_doc])
    links.data[:] = 1
    n_x, n_y = links.shape
    words_x, words_y = _pattern(query_words[on_query]), _pattern(doc_words[on_doc])
    used = np.zeros(words_x.shape[1], dtype=bool)
    used[words_x.indices] = used[words_y.indices] = True
    words_x, words_y = sparse.csr_array(words_x[:, used]), sparse.csr_array(words_y[:, used])
    x = sparse.csr_array(sparse.hstack([words_x, links], format="csr"))
    y = sparse.csr_array(sparse.hstack([words_y, links.T], format="csr"))
    d_x, d_y = x.shape[1], y.shape[1]
    nnz_w, exact = nonzeros_of_w(x, links, y, rows=SAMPLED_ROWS, exact_up_to=EXACT_PRODUCTS)
    n_components, isolated = _components(links)
    clicks = np.zeros(graph.n_queries)
    np.add.at(clicks, graph.pairs.query, graph.pairs.clicks)
    return {
        "queries": graph.n_queries,
        "documents": graph.n_docs,
        "clicks": int(graph.pairs.clicks.sum()),
        "impressions": 0 if graph.impressions is None else len(graph.impressions),
        "queries_with_clicks": n_x,
        "documents_with_clicks": n_y,
        "pairs": int(links.nnz),
        "unique_words": int(used.sum()),
        "d_x": d_x,
        "d_y": d_y,
        "c_x": x.nnz / n_x,
        "c_y": y.nnz / n_y,
        "documents_per_query": links.nnz / n_x,
        "queries_per_document": links.nnz / n_y,
        "N_x": x.nnz / d_x,
        "N_y": y.nnz / d_y,
        "W_x": nnz_w / d_x,
        "W_y": nnz_w / d_y,
        "w_counted": "exactly" if exact else f"on {SAMPLED_ROWS:,} sampled rows",
        "density": links.nnz / (n_x * n_y),
        "queries_by_clicks": click_bins(clicks),
        "components": n_components,
        "isolated_queries": isolated,
    }


def click_bins(clicks: np.ndarray[Any, Any]) -> dict[str, int]:
    """How many queries have 1 to 10, 11 to 100, 101 to 1000, and more clicks."""
    edges = (0, *BINS, np.inf)
    names = [f"<={high}" for high in BINS] + [f">{BINS[-1]}"]
    spans = zip(names, edges[:-1], edges[1:], strict=True)
    return {name: int(((clicks > low) & (clicks <= high)).sum()) for name, low, high in spans}


def _pattern(matrix: Any) -> sparse.csr_array:
    out = sparse.csr_array(matrix, copy=True)
    out.data = np.ones(len(out.data))
    return out


def _components(links: sparse.csr_array) -> tuple[int, int]:
    """Connected components of the bipartite graph, and the queries that share a component with no other."""
    n_x = links.shape[0]
    both = sparse.block_array([[None, links], [links.T, None]], format="csr")
    count, label = connected_components(both, directed=False)
    queries_in = np.bincount(label[:n_x], minlength=count)
    return int(count), int((queries_in == 1).sum())
