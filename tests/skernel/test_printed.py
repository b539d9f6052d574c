"""Robust BM25 and the pairwise kernel to the letter of 11R: kernels, pairs, dual and score from its equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.errors import InputError
from clickbridge.log.preference import preferences
from clickbridge.models.candidates import Query
from clickbridge.types import Document, Impression
from oracles.skernel import pearson_over_union, w_matrix

WORDS = ("pizza", "slice", "york", "apple", "pie", "crust", "oven", "cheese", "tart", "bake")
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def graph() -> ClickGraph:
    rng = np.random.default_rng(3)
    docs = [Document(f"d{i}", {"title": " ".join(rng.choice(WORDS, 3))}) for i in range(20)]
    log = []
    for _ in range(400):
        shown = [f"d{n}" for n in rng.choice(20, 6, replace=False)]
        chosen = rng.choice(6, 2, replace=False)
        log.append(Impression(" ".join(rng.choice(WORDS[:5], 2)), shown, [shown[int(i)] for i in sorted(chosen)]))
    return ClickGraph.build(log, docs)


def dual_by_coordinates(w: Array, lam: float, rounds: int = 4000) -> Array:
    """(15): each beta in turn to its best value in [0, 1], the others as they are."""
    beta = np.zeros(len(w))
    for _ in range(rounds):
        before = beta.copy()
        for i in range(len(w)):
            slope = 1 - (w[i] @ beta) / lam
            if w[i, i] > 0:
                beta[i] = min(max(beta[i] + slope * lam / w[i, i], 0.0), 1.0)
        if np.abs(beta - before).max() < 1e-13:
            break
    return beta


@pytest.mark.parametrize("spec", ["robust:bm25", "pairwise"])
def test_scores_are_equation_11(spec: str, graph: ClickGraph) -> None:
    fitted: Any = build_model(spec, {"as_printed": True, "n_pairs": 60}).fit(graph).fitted
    clicks, titles = fitted.responses.toarray(), fitted.doc_rows.toarray()
    items, checked = np.arange(graph.n_docs), 0
    for key in fitted.queries.keys[:6]:
        found = fitted.neighbourhood(Query(key), items)
        if found is None:
            continue
        checked += 1
        queries, docs = fitted.training.point_query[found.points], fitted.training.point_doc[found.points]

        def g(numbers: Array, of: Array) -> Array:
            if spec == "pairwise":
                return np.ones(len(of))
            base = fitted.base
            scores = [
                base.score(fitted.queries.keys[q], [graph.doc_ids[d]])[0] for q, d in zip(numbers, of, strict=True)
            ]
            return np.array(scores) + 0.001

        def alike(one: int, two: int) -> float:
            return 1.0 if one == two else float(np.nan_to_num(pearson_over_union(clicks[one], clicks[two])))

        own = fitted.queries.number(key)
        k_q = np.array([[alike(a, b) for b in queries] for a in queries])
        k_d = titles[docs] @ titles[docs].T
        factors = g(queries, docs)
        beta = dual_by_coordinates(w_matrix(k_q, k_d, factors, found.better, found.worse), lam=1.0)
        expected = np.zeros(len(items))
        for b, plus, minus in zip(beta, found.better, found.worse, strict=True):
            near = alike(own, queries[plus])
            sides = [factors[p] * (titles[docs[p]] @ titles.T) for p in (plus, minus)]
            expected += b * near * (sides[0] - sides[1])
        expected *= g(np.full(len(items), own), items)
        np.testing.assert_allclose(fitted.score_items(Query(key), items), expected, rtol=1e-3, atol=1e-3)
    assert checked >= 4


def test_preferences_are_those_of_joachims_on_the_other_half(graph: ClickGraph) -> None:
    model: Any = build_model("pairwise", {"as_printed": True})
    training = model.fit(graph).fitted.training
    every = preferences(graph.impressions, graph.pairs, "skip-above")
    assert 0 < len(training.better) < len(every)


@pytest.mark.parametrize("spec", ["robust:bm25", "pairwise"])
def test_pairs_of_few_clicks_teach_nothing(spec: str) -> None:
    log = [Impression("pizza slice", results=["d1", "d2", "d3"], clicks=["d2"])] * 6
    log += [Impression("apple pie", results=["d4", "d5"], clicks=["d5"])]
    docs = [Document(f"d{i}", {"title": WORDS[i]}) for i in range(1, 6)]
    graph = ClickGraph.build(log, docs)
    settings = {"min_clicks": 3, "query_kernel": "word"}
    fitted: Any = build_model(spec, settings).fit(graph).fitted
    assert fitted.queries.keys == ["pizza slice"]
    assert {graph.doc_ids[d] for d in fitted.training.point_doc[fitted.training.better]} == {"d2"}
    with pytest.raises(InputError, match="min_clicks 9 keeps 0 of 2 pairs"):
        build_model(spec, {**settings, "min_clicks": 9}).fit(graph)


def test_titles_of_few_clicks_are_not_added() -> None:
    log = [Impression("pizza slice", results=["d1", "d2"], clicks=["d2"])] * 3
    log += [Impression("apple pie", results=["d4", "d3"], clicks=["d3"])]
    graph = ClickGraph.build(log, [Document(f"d{i}", {"title": WORDS[i]}) for i in range(1, 5)])
    fitted: Any = build_model("expansion", {"expansion_weight": "1", "min_clicks": 2}).fit(graph).fitted
    added = dict(zip(fitted.queries.keys, fitted.added, strict=True))
    assert added == {"pizza slice": WORDS[2], "apple pie": ""}
