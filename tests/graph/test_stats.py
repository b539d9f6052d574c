"""Table 1 against dense matrices, written out as the paper defines them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge import ClickGraph
from clickbridge.graph import stats
from clickbridge.graph.products import nonzeros_of_w
from clickbridge.graph.responses import responses
from clickbridge.graph.stats import click_bins, table1
from clickbridge.types import Document, Impression, PairCount


def random_case(seed: int) -> tuple[ClickGraph, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    n_queries, n_docs, n_words = rng.integers(2, 25), rng.integers(2, 25), rng.integers(1, 30)
    log: list[Any] = [
        PairCount(f"q{q:02d}", f"d{d:02d}", int(rng.integers(0, 3) * rng.integers(1, 2000)))
        for q in range(n_queries)
        for d in range(n_docs)
        if rng.random() < 1.5 / n_docs
    ]
    log += [PairCount("q00", "d00", 3), Impression("q00", ["d00", "shown-only"], [])]
    docs = [Document(f"d{d:02d}", {}) for d in range(n_docs)]
    graph = ClickGraph.build(log, docs)
    query_words = rng.poisson(0.2, (graph.n_queries, n_words)).astype(float)
    doc_words = rng.poisson(0.2, (graph.n_docs, n_words)).astype(float)
    return graph, query_words, doc_words


def dense_table(
    clicks: np.ndarray[Any, Any], query_words: np.ndarray[Any, Any], doc_words: np.ndarray[Any, Any]
) -> dict[str, Any]:
    r = (clicks > 0).astype(int)
    on_query, on_doc = r.sum(axis=1) > 0, r.sum(axis=0) > 0
    r, words_x, words_y = r[on_query][:, on_doc], query_words[on_query] > 0, doc_words[on_doc] > 0
    used = words_x.any(axis=0) | words_y.any(axis=0)
    x, y = np.hstack([words_x[:, used], r]), np.hstack([words_y[:, used], r.T])
    n_w = np.count_nonzero(x.T.astype(int) @ r @ y.astype(int))
    # Components by growing them: two queries are together when a path of shared documents joins them.
    reach = np.linalg.matrix_power(((r @ r.T) > 0).astype(float) + np.eye(len(r)), len(r)) > 0
    groups = {tuple(row) for row in reach.tolist()}
    return {
        "queries_with_clicks": len(r),
        "documents_with_clicks": r.shape[1],
        "pairs": int(r.sum()),
        "unique_words": int(used.sum()),
        "d_x": x.shape[1],
        "d_y": y.shape[1],
        "c_x": np.mean((x > 0).sum(axis=1)),
        "c_y": np.mean((y > 0).sum(axis=1)),
        "documents_per_query": np.mean(r.sum(axis=1)),
        "queries_per_document": np.mean(r.sum(axis=0)),
        "N_x": np.mean((x > 0).sum(axis=0)),
        "N_y": np.mean((y > 0).sum(axis=0)),
        "W_x": n_w / x.shape[1],
        "W_y": n_w / y.shape[1],
        "density": r.mean(),
        "components": len(groups),
        "isolated_queries": sum(sum(group) == 1 for group in groups),
    }


@pytest.mark.parametrize("min_clicks", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_table_1(seed: int, min_clicks: int) -> None:
    graph, query_words, doc_words = random_case(seed)
    clicks = graph.matrix(rows="queries").toarray()
    counted = responses(graph, min_clicks=min_clicks)
    found = table1(graph, counted, sparse.csr_array(query_words), sparse.csr_array(doc_words))
    wanted = dense_table(np.where(clicks >= min_clicks, clicks, 0), query_words, doc_words)
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)
    assert found["w_counted"] == "exactly"
    assert found["queries"] == graph.n_queries
    assert found["documents"] == graph.n_docs
    assert found["clicks"] == clicks.sum()
    assert found["impressions"] == 1
    per_query = clicks.sum(axis=1)
    assert found["queries_by_clicks"] == {
        "<=10": ((per_query >= 1) & (per_query <= 10)).sum(),
        "<=100": ((per_query >= 11) & (per_query <= 100)).sum(),
        "<=1000": ((per_query >= 101) & (per_query <= 1000)).sum(),
        ">1000": (per_query >= 1001).sum(),
    }


def test_click_bins() -> None:
    clicks = np.array([0, 1, 10, 11, 100, 101, 1000, 1001, 10**9])
    assert click_bins(clicks) == {"<=10": 2, "<=100": 2, "<=1000": 2, ">1000": 2}
    assert click_bins(np.zeros(0)) == {"<=10": 0, "<=100": 0, "<=1000": 0, ">1000": 0}


def test_isolated_queries() -> None:
    """p and q share a document, r has two of its own, s shares one with nobody."""
    pairs = [("p", "1"), ("q", "1"), ("q", "2"), ("r", "3"), ("r", "4"), ("s", "5")]
    graph = ClickGraph.build([PairCount(q, d) for q, d in pairs])
    no_words = [sparse.csr_array((n, 0)) for n in (graph.n_queries, graph.n_docs)]
    found = table1(graph, responses(graph), *no_words)
    assert (found["components"], found["isolated_queries"]) == (3, 2)
    assert found["unique_words"] == 0
    assert (found["d_x"], found["d_y"]) == (5, 4)


def big_case() -> tuple[sparse.csr_array, sparse.csr_array, sparse.csr_array]:
    rng = np.random.default_rng(0)
    n_x, n_y, n_words = 1500, 1200, 900
    links = sparse.random_array((n_x, n_y), density=0.003, rng=rng, format="csr")
    links.data[:] = 1
    words = [sparse.random_array((n, n_words), density=0.004, rng=rng, format="csr") for n in (n_x, n_y)]
    x, y = (sparse.csr_array(sparse.hstack([w, m], format="csr")) for w, m in zip(words, (links, links.T), strict=True))
    return x, sparse.csr_array(links), y


def test_a_sample_comes_close() -> None:
    x, r, y = big_case()
    exact = (x.T @ r @ y).nnz
    assert nonzeros_of_w(x, r, y, rows=700, exact_up_to=1e9) == (exact, True)
    assert nonzeros_of_w(x, r, y, rows=10_000) == (exact, True)
    sampled, counted = nonzeros_of_w(x, r, y, rows=700)
    assert not counted
    assert sampled == pytest.approx(exact, rel=0.05)
    assert sampled == nonzeros_of_w(x, r, y, rows=700)[0]
    assert nonzeros_of_w(x, r, y, rows=200)[0] == pytest.approx(exact, rel=0.2)
    assert nonzeros_of_w(x[:, :100], r, y, rows=200) == ((x[:, :100].T @ r @ y).nnz, True)
    empty = sparse.csr_array((5, 4)), sparse.csr_array((5, 3)), sparse.csr_array((3, 2))
    assert nonzeros_of_w(*empty, rows=200) == (0, True)


def test_few_rows_are_counted_rather_than_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "EXACT_PRODUCTS", 1)
    graph, query_words, doc_words = random_case(1)
    found = table1(graph, responses(graph), sparse.csr_array(query_words), sparse.csr_array(doc_words))
    assert found["w_counted"] == "exactly"


def test_the_sample_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "EXACT_PRODUCTS", 1)
    monkeypatch.setattr(stats, "SAMPLED_ROWS", 2)
    graph, query_words, doc_words = random_case(1)
    found = table1(graph, responses(graph), sparse.csr_array(query_words), sparse.csr_array(doc_words))
    assert found["w_counted"] == "on 2 sampled rows"
    assert found["W_x"] * found["d_x"] == pytest.approx(found["W_y"] * found["d_y"])
