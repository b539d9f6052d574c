"""Learning click by click: the same as all at once, in any order, and back again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge import ClickGraph, build_model
from clickbridge.errors import SettingError
from clickbridge.numerics.feedback import ABOVE, EVERY, RESIDUAL, pair_labels
from clickbridge.online.online import Online
from clickbridge.online.state import State, rows_of
from clickbridge.types import Document, Impression, PairCount
from oracles.online import direct_weights
from oracles.pages import random_pages

Array = np.ndarray[Any, Any]
PAGES = random_pages(0, 60)
LATER = random_pages(1, 25)
GRAPH = ClickGraph.build(PAGES)
QUIET = {"blend": "0.5,0.3,4"}


def fitted(pages: list[Impression] = PAGES, **how: Any) -> Online:
    graph = GRAPH if pages is PAGES else ClickGraph.build(pages)
    model = build_model("online", {**QUIET, **how}).fit(graph)
    assert isinstance(model, Online)
    return model


def emptied(model: Online) -> Online:
    return Online.from_fitted(replace(model.fitted, state=State.empty(model.projection_)))


def number(model: Online, doc_id: str) -> int:
    return model.fitted.catalogue.number(doc_id)


def close(one: State, two: State) -> None:
    mine, theirs = one.arrays(), two.arrays()
    for name in ("weights", "evidence", "keys", "values", "user.weights"):
        np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-9, atol=1e-9, err_msg=name)


# --- labels ------------------------------------------------------------------------------------------


def test_pairs_of_a_page() -> None:
    clicked, rates = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.6, 0.3, 0.2])
    found = {}
    for kind in (EVERY, ABOVE, RESIDUAL):
        found[kind] = np.empty(4)
        pair_labels(clicked, kind, rates, found[kind])
    assert found[EVERY].tolist() == [-2, 2, -2, 2]
    assert found[ABOVE].tolist() == [-2, 1, -1, 2]
    p = np.array([0.6, 0.3, 0.2, 0.2])  # ranks below the last one known have its rate
    by_hand = [sum((clicked[a] - clicked[b]) - (p[a] - p[b]) for b in range(4)) for a in range(4)]
    np.testing.assert_allclose(found[RESIDUAL], by_hand)
    nothing = np.empty(0)
    pair_labels(nothing, EVERY, rates, nothing)


@pytest.mark.parametrize("kind", [EVERY, ABOVE, RESIDUAL])
def test_every_win_is_a_loss(kind: int) -> None:
    rng = np.random.default_rng(kind)
    out = np.empty(9)
    pair_labels((rng.random(9) < 0.4).astype(float), kind, np.linspace(0.9, 0.1, 9), out)
    assert out.sum() == pytest.approx(0)


# --- against the batch solution ----------------------------------------------------------------------


def test_small_components_learn_the_optimum_of_the_objective() -> None:
    """Clicks one at a time against eq. (18), solved with every pair written down."""
    pages = [Impression("q", ["a", "b", "c"], ["b"]), Impression("q", ["c", "d", "a"], ["c", "d"])]
    model = fitted(pages, pairs="all", closed_form="corrected", diffusion=0.8)
    layout = model.projection_.layout
    z = layout.z[layout.start[:, None] + np.arange(4)].astype(float).T
    pairs = {(a, b): i for i, (a, b) in enumerate((a, b) for a in range(4) for b in range(a + 1, 4))}
    y = np.zeros(len(pairs))
    for a, b in [("b", "a"), ("b", "c"), ("c", "a"), ("d", "a")]:
        i, j = number(model, a), number(model, b)
        y[pairs[min(i, j), max(i, j)]] += 1 if i < j else -1
    vectors, alpha = z.T * np.sqrt(1 - 0.8 * model.projection_.spaces["values"]), 0.8
    k = vectors * model.projection_.spaces["values"] @ vectors.T
    expected = z.T @ direct_weights(z, k, y, alpha)
    found = z.T @ model.state_.weights
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-5)


HOW = [{}, {"dim": 5, "clusters": 3}, {"pairs": "all"}, {"pairs": "skip-above"}]


@pytest.mark.parametrize("how", HOW, ids=str)
@given(order=st.permutations(range(len(PAGES))))
@settings(max_examples=8, deadline=None)
def test_any_order_of_the_same_clicks_gives_the_batch(how: dict[str, Any], order: list[int]) -> None:
    model = fitted(**how, per_user=0.5)
    batch = model.state_
    model = emptied(model)
    for i in order:
        model.learn(PAGES[i])
    close(model.state_, batch)
    assert model.state_.events == batch.events == len(PAGES)


@given(picks=st.lists(st.integers(0, len(LATER) - 1), max_size=12), seed=st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_what_is_undone_was_never_there(picks: list[int], seed: int) -> None:
    model = fitted(dim=5, clusters=3)
    before = model.state_.arrays()
    for i in picks:
        model.learn(LATER[i])
    for i in np.random.default_rng(seed).permutation(picks):
        model.unlearn(LATER[int(i)])
    after = model.state_.arrays()
    np.testing.assert_allclose(after["weights"], before["weights"], atol=1e-9)
    np.testing.assert_allclose(after["evidence"], before["evidence"], atol=1e-9)


def test_one_click_of_a_page_can_be_taken_back() -> None:
    page = Impression("query 1", ["d1", "d2", "d3", "d4"], ["d2", "d4"])
    one, two = fitted(), fitted()
    one.undo_click(page, "d4", one.learn(page))
    two.learn(Impression("query 1", page.results, ["d2"]))
    np.testing.assert_allclose(one.state_.weights, two.state_.weights, atol=1e-9)
    ids = ["d4", "d2", "d1", "d3"]
    np.testing.assert_allclose(one.score("query 1", ids), two.score("query 1", ids), atol=1e-9)


# --- decay -------------------------------------------------------------------------------------------


def test_decay_by_hand() -> None:
    """Eq. (22) on whole events: what was there times kappa, then the new one."""
    model = emptied(fitted(kappa=0.9, dim=5, clusters=2))
    plain = emptied(fitted(dim=5, clusters=2))
    expected = np.zeros_like(plain.state_.weights)
    for page in LATER[:6]:
        before = plain.state_.weights.copy()
        plain.learn(page)
        expected = 0.9 * expected + (plain.state_.weights - before)
        model.learn(page)
    np.testing.assert_allclose(model.state_.weights * model.state_.scale, expected, atol=1e-9)


def test_undo_under_decay_needs_the_number_and_is_exact() -> None:
    model, without = emptied(fitted(kappa=0.7)), emptied(fitted(kappa=0.7))
    first = model.learn(LATER[0])
    with pytest.raises(SettingError, match="give unlearn that number"):
        model.unlearn(LATER[0])
    model.learn(LATER[1])
    model.unlearn(LATER[0], first)
    nothing = replace(LATER[0], clicks=[])
    for page in (nothing, LATER[1], nothing):  # as many events, and nothing is left of the first
        without.learn(page)
    scaled = model.state_.weights * model.state_.scale
    np.testing.assert_allclose(scaled, without.state_.weights * without.state_.scale, atol=1e-9)


def test_a_long_decay_stays_in_range() -> None:
    model = emptied(fitted(kappa=0.001))
    for _ in range(80):
        model.learn(LATER[0])
    assert 1e-110 < model.state_.scale <= 1.0
    assert np.isfinite(model.state_.weights).all()
    total = np.abs(model.state_.weights * model.state_.scale).max()
    single = emptied(fitted(kappa=0.001))
    single.learn(LATER[0])
    assert total == pytest.approx(np.abs(single.state_.weights * single.state_.scale).max(), rel=0.01)


# --- what it is for ----------------------------------------------------------------------------------


def test_without_clicks_the_incoming_order_stays() -> None:
    model = emptied(fitted())
    ids = ["d3", "d1", "d9", "nowhere", "d2"]
    assert model.rerank("query 1", ids).doc_ids == ids


@pytest.mark.parametrize("blend", ["0,1,1", "5,0,1"], ids=["own", "latent"])
def test_clicks_raise_what_was_clicked(blend: str) -> None:
    model = emptied(fitted(blend=blend))
    ids = ["d2", "d3", "d4", "d5", "d6"]
    for _ in range(20):
        model.learn(Impression("query 1", ids, ["d6"]))
    assert model.rerank("query 1", ids).doc_ids[0] == "d6"
    if blend.startswith("5"):
        assert model.rerank("never heard", ids).doc_ids[0] == "d6", "pages, not queries, carry the latent part"
    else:
        assert model.rerank("never heard", ids).doc_ids == ids


def test_a_user_has_weights_of_their_own() -> None:
    model = emptied(fitted(per_user=5.0, blend="1,0,1"))
    ids = ["d2", "d3", "d4", "d5", "d6"]
    for _ in range(10):
        model.learn(Impression("query 1", ids, ["d6"], user="ann"))
        model.learn(Impression("query 1", ids, ["d5"], user="bob"))
    assert model.rerank_for("ann", "query 1", ids).doc_ids[0] == "d6"
    assert model.rerank_for("bob", "query 1", ids).doc_ids[0] == "d5"
    assert model.rerank_for("eve", "query 1", ids) == model.rerank("query 1", ids)


def test_a_new_page_is_folded_in_near_its_neighbours() -> None:
    model = fitted()
    known = model.projection_.n_pages
    listed = ["d2", "d3", "brand-new", "d4"]
    model.learn(Impression("query 1", listed, ["d3"]))
    assert model.doc_ids_[known] == "brand-new"
    assert model.state_.later.ids == ("brand-new",)
    layout = model.state_.later.behind(model.projection_.layout)
    c = layout.later_component[0]
    z = rows_of(layout, np.array([known]), int(layout.dims[c]))[0]

    def nearness(doc: str) -> float:
        s = layout.start[number(model, doc)]
        other = layout.z[s : s + len(z)]
        return float(z @ other / np.linalg.norm(z) / np.linalg.norm(other))

    assert c == layout.component[number(model, "d2")]
    assert min(nearness("d2"), nearness("d4")) > nearness("d25")


def test_folding_in_is_the_extension_of_nystrom() -> None:
    """v_r(x) = 1 / lambda_r sum_j K(x, j) v_r(j), with K of a page that one list shows."""
    model = fitted()
    spaces, layout, alpha = model.projection_.spaces, model.projection_.layout, 0.95
    mates = np.array([number(model, d) for d in ("d6", "d7", "d8")])
    found = model.projection_.fold_in(np.array([*mates, -1]))
    assert found is not None
    values = spaces["values"]
    d_x = sum(1 / spaces["norms"][j] for j in mates)
    v = np.zeros(len(values))
    for j in mates:
        v_j = layout.z[layout.start[j] : layout.start[j] + len(values)] * np.sqrt(1 - alpha * values)
        v += v_j / (spaces["norms"][j] * np.sqrt(d_x * spaces["degrees"][j]))
    large = values > 0.01
    np.testing.assert_allclose(found[1][large], (v / values / np.sqrt(1 - alpha * values))[large], rtol=1e-4)
    np.testing.assert_allclose(found[2], model.projection_.matrix(0) @ found[1], rtol=1e-4, atol=1e-7)
    assert model.projection_.fold_in(np.array([-1])) is None


def test_update_learns_a_log() -> None:
    one, two = fitted(), fitted()
    for page in LATER:
        one.learn(page)
    two.update(LATER)
    assert one.state_.digest() == two.state_.digest()


def test_a_click_without_a_page_happens_on_the_inner_models_list() -> None:
    docs = [Document(f"d{i}", {"title": f"river {'stone ' * i}"}) for i in range(5)]
    log = [PairCount("river", "d3", 2), PairCount("stone", "d1", 1)]
    model = build_model("online:bm25", {"blend": "0,2,1"}).fit(ClickGraph.build(log, docs))
    assert isinstance(model, Online)
    before = model.fitted.inner.rank("river").doc_ids
    assert model.rank("river").doc_ids[0] == "d3" != before[0]
    model.update([PairCount("river", "d4", 50)])
    assert model.rank("river").doc_ids[0] == "d4"
    assert sorted(model.rank("river").doc_ids) == sorted(before)
