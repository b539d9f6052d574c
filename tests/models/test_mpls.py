"""M-PLS: the theorem, the closed form, and the properties of Section 4.4 (Wu, Li, Xu 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from clickbridge import MPLS, PLS, ClickGraph, LSIQueryDoc
from clickbridge.errors import SettingError
from clickbridge.models.mpls import closed_form
from clickbridge.models.pls import weighted_responses
from clickbridge.types import Document
from oracles.arrays import dense
from oracles.graphs import noisy_field_graph
from oracles.latent import pair_log, random_clicks, w_by_loops

EXACT: dict[str, Any] = {"fields": "title:2,body", "language": "none", "precision": "float64"}
PAPER: dict[str, Any] = {**EXACT, "combine": "closed", "sv_power": 0}


def objective(model: Any) -> float:
    """sum over clicked pairs of r_ij / (n^x n_i^y) f(q_i, d_j), through the scores themselves."""
    r = weighted_responses(model.responses_, model.mean).tocoo()
    scores = [model.score(model.queries_.keys[i], [model.doc_ids_[j]])[0] for i, j in zip(*r.coords, strict=True)]
    return float(np.sum(r.data * np.where(np.isfinite(scores), scores, 0.0)))


@pytest.mark.parametrize("mean", [True, False])
def test_the_objective_is_what_theorem_4_1_promises(mean: bool) -> None:
    """One view: the sum of the kept singular values. Several with eq. (5): the norm of these sums."""
    graph = random_clicks(1)
    one = PLS(dim=4, views="word", sv_power=0, mean=mean, **EXACT).fit(graph)
    assert objective(one) == pytest.approx(one.spaces_[0].singular_values.sum(), rel=1e-4)
    model = MPLS(dim=4, views="word,char:title,click", mean=mean, **PAPER).fit(graph)
    sums = np.array([space.singular_values.sum() for space in model.spaces_])
    np.testing.assert_allclose(model.weights_, sums / np.sqrt((sums**2).sum()), rtol=1e-6)
    assert objective(model) == pytest.approx(float(np.sqrt((sums**2).sum())), rel=1e-4)


def test_singular_values_are_those_of_each_view() -> None:
    model = MPLS(dim=3, views="word,char:title", **PAPER).fit(random_clicks(2))
    x, y, r = dense(model.query_features_), dense(model.doc_features_), dense(model.responses_)
    for space in model.spaces_:
        w = w_by_loops(x[:, space.q_columns], y[:, space.d_columns], r, True)
        np.testing.assert_allclose(space.singular_values, np.linalg.svd(w, compute_uv=False)[:3], rtol=1e-6)


TWO_VIEWS = MPLS(dim=3, views="word,bigram", **PAPER).fit(random_clicks(3))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_no_other_maps_or_weights_do_better(seed: int) -> None:
    """Random orthonormal maps and random weights of norm 1 stay below the optimum."""
    model = TWO_VIEWS
    sums = [float(space.singular_values.sum()) for space in model.spaces_]
    best = float(np.linalg.norm(sums))
    rng = np.random.default_rng(seed)
    x, y = dense(model.query_features_), dense(model.doc_features_)
    r = dense(weighted_responses(model.responses_, model.mean))
    values = []
    for space, most in zip(model.spaces_, sums, strict=True):
        w = x[:, space.q_columns].T @ r @ y[:, space.d_columns]
        maps = [np.linalg.qr(rng.standard_normal((n, 3)))[0] for n in w.shape]
        values.append(float(np.trace(maps[0].T @ w @ maps[1])))
        assert values[-1] <= most + 1e-6
    weights = rng.random(2)
    assert np.dot(weights / np.linalg.norm(weights), sums) <= best + 1e-6
    assert np.dot(weights / np.linalg.norm(weights), values) <= best + 1e-6


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=5, unique=True))
def test_weights_of_sum_at_most_one_keep_one_view(sums: list[float]) -> None:
    """Why the norm is L2: max of sum a_i Lambda_i over a >= 0, sum a_i <= 1 is at a vertex, the largest view."""
    vertices = np.vstack([np.zeros(len(sums)), np.eye(len(sums))])
    best = vertices[np.argmax(vertices @ sums)]
    assert best[int(np.argmax(sums))] == 1
    assert best.sum() == 1
    inside = np.random.default_rng(0).dirichlet(np.ones(len(sums)), 50)
    assert (inside @ sums <= max(sums) + 1e-9).all()
    # The closed form spreads the weight instead.
    spread = np.array(sums) / np.linalg.norm(sums)
    assert (spread > 0).all()


def test_the_l1_degenerate_case_of_a_fitted_model() -> None:
    """11M, 4.2: under sum a_i <= 1 a linear program, solved by SciPy, leaves PLS of the largest view alone; the
    L2 weights of eq. (5) reach a larger objective with all views."""
    graph = random_clicks(9)
    model = MPLS(dim=4, views="word,char:title,click", **PAPER).fit(graph)
    sums = np.array([space.singular_values.sum() for space in model.spaces_])
    found = linprog(-sums, A_ub=np.ones((1, 3)), b_ub=[1.0], bounds=(0, None))
    largest = int(np.argmax(sums))
    np.testing.assert_allclose(found.x, np.eye(3)[largest], atol=1e-9)
    best = PLS(dim=4, views=["word", "char:title", "click"][largest], sv_power=0, **EXACT).fit(graph)
    assert objective(best) == pytest.approx(-found.fun, rel=1e-4)
    assert objective(model) == pytest.approx(float(np.linalg.norm(sums)), rel=1e-4)
    assert objective(model) > objective(best)


def test_one_view_is_pls() -> None:
    graph = random_clicks(4)
    for power in (0.0, 0.25):
        one = MPLS(dim=5, views="word", **PAPER | {"sv_power": power}).fit(graph)
        pls = PLS(dim=5, views="word", sv_power=power, **EXACT).fit(graph)
        assert one.weights_.tolist() == [1.0]
        for key in pls.queries_.keys[:8]:
            np.testing.assert_allclose(one.score(key, graph.doc_ids[:-1]), pls.score(key, graph.doc_ids[:-1]), 1e-5)
    joined = MPLS(dim=5, views="word&char:title", **PAPER).fit(graph)
    beside = PLS(dim=5, views="word,char:title", sv_power=0, **EXACT).fit(graph)
    key = beside.queries_.keys[0]
    np.testing.assert_allclose(joined.score(key, graph.doc_ids[:-1]), beside.score(key, graph.doc_ids[:-1]), 1e-5)


def test_indicator_features_make_it_lsi() -> None:
    graph = random_clicks(5)
    model = MPLS(dim=4, views="id", mean=False, **PAPER).fit(graph)
    lsi = LSIQueryDoc(dim=4, sv_power=0, precision="float64").fit(graph)
    ids = [d for d in graph.doc_ids if np.isfinite(lsi.score(lsi.queries_.keys[0], [d]))[0]]
    for key in lsi.queries_.keys[:8]:
        np.testing.assert_allclose(model.score(key, ids), lsi.score(key, ids), atol=1e-5)


def test_dimensions_of_each_view() -> None:
    model = MPLS(dims="2,5", views="word,char:title", **PAPER).fit(random_clicks(6))
    assert model.report_["dim"] == [2, 5]
    assert dense(model.map_queries(["apple"])).shape == (1, 7)
    for wrong in ("2", "2,5,6", "a,b", "2,0"):
        with pytest.raises(SettingError, match="dims"):
            MPLS(dims=wrong, views="word,char:title", **PAPER).fit(random_clicks(6))


def test_the_order_of_terms_in_a_group_means_nothing() -> None:
    graph = random_clicks(6)
    one, two = (MPLS(dim=4, views=views, **PAPER).fit(graph) for views in ("word,word&bigram", "word,bigram&word"))
    ids = graph.doc_ids[:-1]
    for key in one.queries_.keys[:6]:
        np.testing.assert_allclose(one.score(key, ids), two.score(key, ids), atol=1e-5)
        told = two.explain(key, ids[0])
        assert told.score == pytest.approx(two.score(key, ids[:1])[0], abs=1e-5)


def test_a_view_that_is_empty_here_adds_nothing() -> None:
    docs = [Document("a", {"title": "river"}), Document("b", {"title": "stone"})]
    graph = ClickGraph.build(pair_log(("apple", "a", 3), ("lamp", "b", 3)), docs)
    model = MPLS(dim=4, views="word,bigram", **PAPER | {"fields": "title"}).fit(graph)
    assert model.weights_.tolist() == [1, 0]
    assert model.rank("apple").doc_ids[0] == "a"
    assert model.explain("apple", "a").score == pytest.approx(model.score("apple", ["a"])[0], abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7), st.floats(0.0, 1.5))
def test_inheritance(seed: int, k: int, noise: float) -> None:
    """4.4: for unit q, q' with |q - q'|^2 <= e and |L'q|^2, |L'q'|^2 >= 1 - d: (L'q)'(L'q') >= 1 - d - e/2;
    d falls with k, and with all dimensions nothing is lost."""
    rng = np.random.default_rng(seed)
    maps = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    q = rng.standard_normal(8)
    other = q + noise * rng.standard_normal(8)
    q, other = q / np.linalg.norm(q), other / np.linalg.norm(other)
    epsilon = float(((q - other) ** 2).sum())

    def lost(dim: int) -> float:
        return 1 - min(float(((maps[:, :dim].T @ v) ** 2).sum()) for v in (q, other))

    image, image_other = maps[:, :k].T @ q, maps[:, :k].T @ other
    assert image @ image_other >= 1 - lost(k) - epsilon / 2 - 1e-9
    assert all(lost(dim + 1) <= lost(dim) + 1e-12 for dim in range(1, 8))
    assert lost(8) == pytest.approx(0, abs=1e-9)


def test_inheritance_of_a_fitted_model() -> None:
    """The same bound on learned maps, which are orthonormal."""
    model = MPLS(dim=6, views="word", **PAPER).fit(random_clicks(7))
    space = model.spaces_[0]
    for maps in (space.l_x, space.l_y):
        np.testing.assert_allclose(maps.T @ maps, np.eye(space.dim), atol=1e-5)
    x = dense(model.query_features_)
    images = x @ space.l_x
    lost = 1 - np.minimum.outer(*[(images**2).sum(axis=1)] * 2)
    epsilon = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    assert (images @ images.T >= 1 - lost - epsilon / 2 - 1e-5).all()


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 0.3))
def test_transitivity(seed: int, noise: float) -> None:
    """4.4: q1'd1, q2'd2, d1'd2 >= 1 - e/18 in the latent space (norms <= 1) give |q1 - q2|^2 <= e."""
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal(5)
    images = []
    for _ in range(4):
        image = centre / np.linalg.norm(centre) + noise * rng.standard_normal(5)
        images.append(image / max(np.linalg.norm(image), 1))
    q1, q2, d1, d2 = images
    epsilon = 18 * (1 - min(q1 @ d1, q2 @ d2, d1 @ d2))
    assert ((q1 - q2) ** 2).sum() <= epsilon + 1e-9


def test_transitivity_of_a_fitted_model() -> None:
    """Two queries without a common word become alike because their documents are."""
    docs = [Document("a", {"title": "river stone"}), Document("b", {"title": "river stone"})]
    graph = ClickGraph.build(pair_log(("apple", "a", 3), ("lamp", "b", 3)), docs)
    model = MPLS(dim=4, views="word", **PAPER | {"fields": "title"}).fit(graph)
    (near, likeness), *_ = model.similar_queries("apple")
    assert near == "lamp"
    assert likeness == pytest.approx(1, abs=1e-5)


def test_weights_are_tuned_where_there_are_lists() -> None:
    graph = noisy_field_graph(600)
    model = MPLS(dim=30, views="word:good,word:noise", fields="good,noise", language="none").fit(graph)
    assert sum("weights tuned to nDCG@5" in note for note in model.notes_) == 1
    assert list(model.report_["weights"].values()) == pytest.approx(model.weights_.tolist(), abs=1e-4)
    np.testing.assert_allclose(np.linalg.norm(model.weights_), 1)
    tuned = model.weights_.copy()
    model.refit(graph)
    assert model.weights_.tolist() == tuned.tolist()


def test_too_few_lists_give_the_closed_form() -> None:
    model = MPLS(dim=3, views="word,char:title", **PAPER | {"combine": "tuned"}).fit(random_clicks(8))
    assert any("can be held back, 50 are needed; weights by eq. (5)" in note for note in model.notes_)
    np.testing.assert_allclose(model.weights_, closed_form(model.spaces_))
    assert model.choices_.weights is None


def test_a_view_of_one_side_alone_is_refused() -> None:
    with pytest.raises(SettingError, match="leave the document side without any"):
        MPLS(views="word,q.click", **PAPER).fit(random_clicks(9))
