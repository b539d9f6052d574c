"""The incremental re-ranker to the letter of 09: one decomposition, its clusters, f alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.models.candidates import Query
from clickbridge.online.events import distinct_lists, found_lists, query_lists
from clickbridge.types import Impression
from oracles.online import dense_k, soft_k_means_step

Array = np.ndarray[Any, Any]
ALPHA = 0.95


@pytest.fixture(scope="module")
def pages() -> list[Impression]:
    """Two groups of documents that never meet on a page, so that K has two blocks."""
    rng = np.random.default_rng(4)
    out = []
    for query in range(60):
        first = 0 if query % 3 else 14
        shown = [f"d{first + n}" for n in rng.choice(14, 5, replace=False)]
        out.append(Impression(f"q{query}", shown, [shown[int(rng.integers(5))]]))
    return out


def fresh(pages: list[Impression], **more: Any) -> Any:
    settings = {"as_printed": True, "min_lists": 4, "dim": 6, "clusters": 3, **more}
    return build_model("online:given", settings).fit(ClickGraph.build(pages))


def printed(pages: list[Impression], **more: Any) -> Any:
    return fresh(pages, **more).fitted


def test_f_alone_is_equations_5_to_26(pages: list[Impression]) -> None:
    fitted = printed(pages)
    ids, layout = fitted.catalogue.doc_ids, fitted.projection.layout
    counts = Counter(d for page in pages for d in page.results or ())
    kept = sorted((d for d in ids if counts[d] >= 4), key=ids.index)
    number = {d: i for i, d in enumerate(kept)}
    lists = [[number[d] for d in page.results or () if d in number] for page in pages]
    k = dense_k(lists, len(kept))
    values, vectors = np.linalg.eigh(k)
    values, vectors = values[::-1][:6], vectors[:, ::-1][:, :6]
    # (5) and (19) through K's own approximation, which no choice of eigenvectors changes: f = a z with u = U Z G y.
    z = vectors / np.sqrt(1 - ALPHA * values)
    w, n = z.T @ z, len(kept)
    u_matrix = np.linalg.inv(np.eye(6) / (1 - ALPHA) + n * w - np.outer(z.sum(0), z.sum(0)))
    # Clusters begin at random: the model's are taken over, in these coordinates, and are a fixed point of (26), (27).
    d = int(layout.dims[0])
    own = np.array([layout.z[layout.start[ids.index(x)] :][:d] for x in kept])
    turn = np.linalg.lstsq(own, z, rcond=None)[0]
    np.testing.assert_allclose(own @ turn, z, atol=1e-4)
    centres = layout.centres.reshape(d, int(layout.n_clusters[0])).T @ turn
    points = np.array([z[listed].sum(axis=0) for listed in lists])
    shares, moved = soft_k_means_step(points, centres, 1000.0)
    np.testing.assert_allclose(moved[shares.sum(0) > 1e-6], centres[shares.sum(0) > 1e-6], atol=1e-3)
    weights = np.zeros((len(centres), 6))
    assert all(lists)
    for page, p in zip(pages, shares, strict=True):
        results = page.results or []
        for a in (d for d in page.clicks if d in number):
            for b in results:
                pair = [z[number[x]] if x in number else np.zeros(6) for x in (a, b)]
                weights += np.outer(p, u_matrix @ (pair[0] - pair[1])) if b not in page.clicks else 0.0
    for page, p in zip(pages[:15], shares[:15], strict=True):
        results = page.results or []
        f = [float(p @ weights @ z[number[x]]) if x in number else 0.0 for x in results]
        found = fitted.score_items(Query(page.query), fitted.items(results), None)
        np.testing.assert_allclose(found, f, rtol=1e-2, atol=1e-5)


def test_clicks_on_pages_that_were_not_selected_teach_nothing(pages: list[Impression]) -> None:
    """09, Section 4. They are on few lists; what they were clicked over does not fall for it."""
    rare = [Impression(f"r{n}", ["rare", *(pages[n].results or [])[:3]], ["rare"]) for n in range(3)]
    taught, unclicked = printed([*pages, *rare]), printed([*pages, *(replace(page, clicks=[]) for page in rare)])
    assert np.any(taught.state.weights)
    np.testing.assert_array_equal(taught.state.weights, unclicked.state.weights)
    assert not np.array_equal(printed([*pages, *rare], teaching="all").state.weights, taught.state.weights)
    later = fresh([*pages, *rare])
    later.learn(rare[0])
    later.learn(Impression("r0", ["new", *(pages[0].results or [])], ["new"]))
    np.testing.assert_array_equal(later.fitted.state.weights, taught.state.weights)
    later.learn(pages[0])
    assert not np.array_equal(later.fitted.state.weights, taught.state.weights)


def test_one_space_for_all_components(pages: list[Impression]) -> None:
    assert len(printed(pages).projection.layout.dims) == 1
    ours = build_model("online:given", {"min_lists": 4, "dim": 7}).fit(ClickGraph.build(pages)).fitted
    assert len(ours.projection.layout.dims) == 2


def test_each_query_has_a_list_of_its_own() -> None:
    log = [Impression(q, ["d1", "d2"], ["d1"]) for q in ("one", "two", "two")] + [Impression("two", ["d3"], ["d3"])]
    graph = ClickGraph.build(log)
    found = found_lists(graph, build_model("given").fit(graph).fitted, 20)
    assert len(query_lists(graph.impressions, found, 20)) == 2
    assert len(distinct_lists(graph.impressions, found, 20)) == 2
    assert query_lists(graph.impressions, found, 20).pages.tolist() == [0, 1, 0, 1]


def test_a_page_on_few_lists_scores_0(pages: list[Impression]) -> None:
    fitted = printed(pages, min_lists=1000)
    results = pages[0].results or []
    assert fitted.score_items(Query("q0"), fitted.items(results)).tolist() == [0.0] * len(results)
