"""PLS against equation (2) of 13 in loops, NumPy's SVD and scikit-learn's PLSSVD."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSSVD

from clickbridge import MPLS, PLS, ClickGraph, Local, LSIDocTerm, LSIQueryDoc, build_model
from clickbridge.engines.gpu import Gpu, SizeOfCard
from clickbridge.engines.ray import Ray
from clickbridge.errors import EngineError, MissingPart, NoRoom, SettingError
from clickbridge.models import pls as module
from clickbridge.models.pls import default_views, fitting_plan, repeated_share, weighted_responses
from clickbridge.models.svd_plan import Factors, checked, svd_plan
from clickbridge.types import Document, Impression, PairCount, ResultList
from oracles.arrays import dense
from oracles.latent import query_rows, random_clicks, w_by_loops

EXACT: dict[str, Any] = {"fields": "title:2,body", "language": "none", "precision": "float64"}


def parts(model: PLS) -> tuple[Any, Any, Any]:
    return dense(model.query_features_), dense(model.doc_features_), dense(model.responses_)


def truncated(matrix: np.ndarray[Any, Any], k: int, power: float) -> np.ndarray[Any, Any]:
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    return (u[:, :k] * (s[:k] / s[0]) ** power) @ vt[:k]


@pytest.mark.parametrize("formed", [True, False])
@pytest.mark.parametrize("power", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("mean", [True, False])
def test_scores_are_those_of_the_equation(
    mean: bool, power: float, formed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not formed:
        monkeypatch.setattr(module, "CHEAP_PRODUCTS", 0)
    model = PLS(dim=5, views="word,bigram", mean=mean, sv_power=power, **EXACT).fit(random_clicks(1))
    x, y, r = parts(model)
    w = w_by_loops(x, y, r, mean)
    np.testing.assert_allclose(model.spaces_[0].singular_values, np.linalg.svd(w, compute_uv=False)[:5], rtol=1e-6)
    expected = x @ truncated(w, 5, power) @ y.T
    for i, key in enumerate(model.queries_.keys):
        found = model.score(key, model.doc_ids_)
        known = np.isfinite(found)
        assert known.tolist() == (np.abs(y).sum(axis=1) > 0).tolist()
        np.testing.assert_allclose(found[known], expected[i][known], atol=1e-5)


@pytest.mark.parametrize("response", ["clicks", "log"])
def test_responses_count(response: str) -> None:
    model = PLS(dim=3, views="word", response=response, sv_power=1, **EXACT).fit(random_clicks(2))
    x, y, r = parts(model)
    clicks = r if response == "clicks" else np.expm1(r)
    np.testing.assert_allclose(clicks, np.round(clicks), atol=1e-5)
    np.testing.assert_allclose(model.spaces_[0].singular_values, np.linalg.svd(w_by_loops(x, y, r, True))[1][:3], 1e-6)


def test_agrees_with_scikit_learn() -> None:
    """PLSSVD of (x, y'), y'_i = the response-weighted sum of the query's documents, both centred over queries."""
    model = PLS(dim=4, views="dense:m", centre="pairs", sv_power=0, **EXACT).fit(random_clicks(3, 40, 30, vectors=8))
    x, y, _ = parts(model)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-5)
    targets = dense(weighted_responses(model.responses_, mean=True)) @ y
    other = PLSSVD(n_components=4, scale=False).fit(x, targets)
    space = model.spaces_[0]
    for mine, theirs in ((space.l_x, other.x_weights_), (space.l_y, other.y_weights_)):
        np.testing.assert_allclose(np.abs(np.sum(mine * theirs, axis=0)), 1, atol=1e-4)


@pytest.mark.parametrize("centre", ["pairs", "sides", "none"])
@pytest.mark.parametrize("views", ["word", "dense:m"])
def test_centring_by_a_correction_equals_dense_centring(centre: str, views: str) -> None:
    graph = random_clicks(4, vectors=6)
    model = PLS(dim=3, views=views, centre=centre, sv_power=1, **EXACT).fit(graph)
    x, y, _ = parts(model)
    r = dense(weighted_responses(model.responses_, mean=True))
    mine = x - x.mean(axis=0) if centre != "none" else x
    other = y - y.mean(axis=0) if centre == "sides" else y
    w = mine.T @ r @ other
    space = model.spaces_[0]
    np.testing.assert_allclose(space.singular_values, np.linalg.svd(w)[1][:3], rtol=1e-5)
    np.testing.assert_allclose(space.l_x @ space.l_y.T, truncated(w, 3, 1), atol=1e-5)


def test_single_precision_is_close_to_double() -> None:
    graph = random_clicks(5)
    double = PLS(dim=4, views="word", **EXACT).fit(graph)
    single = PLS(dim=4, views="word", **EXACT | {"precision": "float32"}).fit(graph)
    np.testing.assert_allclose(single.spaces_[0].singular_values, double.spaces_[0].singular_values, rtol=1e-4)
    key = double.queries_.keys[0]
    ids = graph.doc_ids[:-1]
    np.testing.assert_allclose(single.score(key, ids), double.score(key, ids), atol=1e-4)
    assert single.report_["residual"] < 1e-4


def test_dim_is_clipped_with_one_line() -> None:
    model = PLS(dim=500, views="word", **EXACT).fit(random_clicks(6))
    x, y, r = parts(model)
    rank = np.linalg.matrix_rank(w_by_loops(x, y, r, True))
    assert model.report_["dim"] == rank < 500
    assert sum(f"dim {rank}, the most this data allows (500 was the setting)" in note for note in model.notes_) == 1
    model = PLS(views="word", **EXACT).fit(random_clicks(6))
    assert any(f"dim {rank}, the most this data allows (default 600)" in note for note in model.notes_)


def test_new_queries_and_documents_work_through_their_words() -> None:
    graph = random_clicks(7)
    model = PLS(dim=6, views="word,click", **EXACT).fit(graph)
    text = {name: graph.field(name)[0] for name in ("title", "body")}
    words, all_views = dense(model.d_views_.views[0].width), dense(model.map_documents([Document("new", text)]))
    assert words < model.d_views_.width
    image = model.doc_features_[[0]].toarray()[:, : int(words)] @ model.spaces_[0].l_y[: int(words)]
    np.testing.assert_allclose(all_views, image, atol=1e-5)
    assert np.isfinite(model.score("apple never asked", graph.doc_ids[:3])).all()
    assert (model.score("neverheard", graph.doc_ids[:3]) == -np.inf).all()


def test_lists_may_bring_vectors_of_new_queries() -> None:
    graph = random_clicks(8, vectors=6)
    model = PLS(dim=4, views="dense:m", **EXACT).fit(graph)
    vector = graph.vectors["m"]["query"][3].tolist()
    ids = graph.doc_ids[:5]
    new = model.score_lists([ResultList("1", "neverheard", ids, vectors={"m": vector}), ResultList("2", "other", ids)])
    np.testing.assert_allclose(new[0], model.score(graph.query_keys[3], ids), atol=1e-5)
    assert (new[1] == -np.inf).all()
    with pytest.raises(SettingError, match="vectors of 6 numbers are needed, got 2"):
        model.score_lists([ResultList("1", "neverheard", ids, vectors={"m": [1.0, 2.0]})])


# --- LSI ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_lsi_of_the_click_matrix(power: float) -> None:
    model = LSIQueryDoc(dim=4, sv_power=power, precision="float64").fit(random_clicks(9))
    a = dense(model.responses_)
    expected = truncated(a, 4, power)
    clicked = a.any(axis=0)
    for i, key in enumerate(model.queries_.keys):
        found = model.score(key, model.doc_ids_)
        assert np.isfinite(found).tolist() == clicked.tolist()
        np.testing.assert_allclose(found[clicked], expected[i][clicked], atol=1e-5)
    assert (model.score("neverheard", model.doc_ids_) == -np.inf).all()


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_lsi_of_documents_by_words(power: float) -> None:
    """A = U S V': words by documents; the query is folded in by its words, q' U S^p V'_d."""
    model = LSIDocTerm(dim=4, sv_power=power, **EXACT).fit(random_clicks(10))
    a = dense(model.doc_features_).T
    u, s, vt = np.linalg.svd(a)
    queries = ["apple river", "salt salt", "stone neverheard"]
    x = dense(query_rows(model, queries))
    expected = x @ u[:, :4] @ np.diag((s[:4] / s[0]) ** power) @ vt[:4]
    for row, query in enumerate(queries):
        found = model.score(query, model.doc_ids_[:-1])
        known = np.isfinite(found)
        np.testing.assert_allclose(found[known], expected[row][:-1][known], atol=1e-5)


def test_indicator_features_make_pls_lsi() -> None:
    graph = random_clicks(11)
    pls = PLS(dim=4, views="id", sv_power=0, mean=False, precision="float64").fit(graph)
    lsi = LSIQueryDoc(dim=4, sv_power=0, precision="float64").fit(graph)
    ids = [d for d in graph.doc_ids if np.isfinite(lsi.score(lsi.queries_.keys[0], [d]))[0]]
    for key in lsi.queries_.keys:
        np.testing.assert_allclose(pls.score(key, ids), lsi.score(key, ids), atol=1e-5)
        alike = [[s for _, s in model.similar_queries(key)] for model in (pls, lsi)]
        np.testing.assert_allclose(alike[0], alike[1], atol=1e-5)
    # The mean over a query's documents is what makes them differ.
    other = PLS(dim=4, views="id", sv_power=0, mean=True, precision="float64").fit(graph)
    assert np.abs(other.score(lsi.queries_.keys[0], ids) - lsi.score(lsi.queries_.keys[0], ids)).max() > 1e-3


# --- which views by default --------------------------------------------------------------------------


def test_the_share_of_searches_that_come_again() -> None:
    pages = [Impression("a", ["x", "y"], ["x"])] * 3 + [Impression("b", ["x", "y"], [])]
    assert repeated_share(ClickGraph.build(pages)) == 0.75
    counts = [PairCount("a", "x", 1), PairCount("a", "y", 1), PairCount("b", "x", 2), PairCount("c", "x", 1)]
    assert repeated_share(ClickGraph.build(counts)) == 0.8


@pytest.mark.parametrize(
    ("fields", "text", "repeats", "expected"),
    [
        (("title", "body"), True, 1, ["word", "char:title"]),
        (("title", "body"), True, 3, ["word", "char:title", "click"]),
        (("overview",), True, 1, ["word", "char"]),
        ((), True, 1, ["q.word", "q.char", "d.click"]),
        ((), True, 3, ["q.word", "q.char", "d.click", "click"]),
        (("title",), False, 1, ["click"]),
    ],
)
def test_default_views(fields: tuple[str, ...], text: bool, repeats: int, expected: list[str]) -> None:
    docs = [Document(d, dict.fromkeys(fields, "river")) for d in "xy"] if fields else []
    log = [PairCount(f"a{i}" if text else "", d, 1, query_id=None if text else str(i)) for i in range(4) for d in "xy"]
    # One click a query counts once; two make every query come again.
    log = log[::2] if repeats == 1 else log * repeats
    assert default_views(ClickGraph.build(log, docs)) == expected


def test_views_that_are_not_there() -> None:
    graph = random_clicks(12)
    with pytest.raises(MissingPart, match="view dense:m: no such vectors; there are none: ingest with vectors"):
        PLS(views="dense:m").fit(graph)
    with pytest.raises(MissingPart, match="view word:nowhere: no such field; there are title, body"):
        PLS(views="word:nowhere").fit(graph)
    with pytest.raises(SettingError, match="no view 'words'"):
        PLS(views="words").fit(graph)


@pytest.mark.parametrize(("spec", "views"), [("lsi-dt", ""), ("pls", "word"), ("mpls", "word,char")])
def test_documents_without_a_single_word_are_refused_in_words(spec: str, views: str) -> None:
    docs = [Document("a", {"title": "..."}), Document("b", {"title": "?"})]
    graph = ClickGraph.build([PairCount("river", "a", 1), PairCount("stone", "b", 2)], docs)
    with pytest.raises(MissingPart, match=r"needs document text|nothing to learn from"):
        build_model(spec, {"views": views} if views else {}).fit(graph)


@pytest.mark.parametrize("model", [PLS(dim=3), MPLS(dim=3)], ids=lambda m: m.name)
def test_a_plan_without_learning(model: PLS) -> None:
    graph = random_clicks(1)
    (plan,) = model.plans(graph)
    assert plan["name"] == "block svd"
    assert all(float(plan[name]) > 0 for name in ("operations", "bytes", "memory", "seconds", "tile"))  # type: ignore[arg-type]
    more = type(model)(dim=6).plans(graph)[0]
    assert float(more["operations"]) >= float(plan["operations"])  # type: ignore[arg-type]
    with pytest.raises(EngineError, match=f"{model.name} needs .* GiB and may use .*: raise memory, lower dim"):
        model.plans(graph, engine=Local(memory=100))


def test_a_plan_of_a_large_matrix_is_that_of_a_basis_where_one_fits() -> None:
    week = Factors(170_545, 195_926, 94_022 + 111_631, 1_200_045, 200, 94_022)
    kept, stepped = svd_plan([week], 4), svd_plan([week], 4, budget=1 << 30)
    assert kept.memory > 1 << 30 > stepped.memory
    assert kept.operations < stepped.operations


def test_a_plan_is_that_of_power_steps_where_no_basis_will_be_made() -> None:
    week = Factors(170_545, 195_926, 94_022 + 111_631, 1_200_045, 200, 94_022)
    here, card = Local(memory=64 << 30), Gpu(card=SizeOfCard(64 << 30))
    basis, steps = svd_plan([week], 4), svd_plan([week], 4, basis=False)
    assert basis.memory > steps.memory
    assert fitting_plan([week], "float32", here, "pls") == basis
    assert fitting_plan([week], "float32", here, "pls", cold=False) == steps
    assert fitting_plan([week], "float32", card, "pls").memory == steps.memory
    # Steps that are kept need more than a basis where one side is far larger: this is refused, and not found out later.
    tall = Factors(60_000, 20_000_000, 0, 50_000_000, 200, 60_000)
    assert fitting_plan([tall], "float32", Local(memory=18 << 30), "pls").memory < 18 << 30
    with pytest.raises(EngineError, match="raise memory"):
        fitting_plan([tall], "float32", Local(memory=18 << 30), "pls", cold=False)


def test_workers_that_do_not_fit_in_this_machine_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "machine_memory", lambda: 24 << 30)
    monkeypatch.setattr(Ray, "workers_here", property(lambda engine: 0 if engine.address else engine.threads))
    tall = Factors(4_000_000, 2_000_000, 1_000_000, 50_000_000, 200, 900_000)
    alone = svd_plan([tall], 4, basis=False).memory
    # Two copies of the largest block for each worker: 4 million rows of 250 numbers of 4 bytes.
    two = fitting_plan([tall], "float32", Ray(2, 12 << 30), "pls", cold=False)
    assert two.memory == alone + 2 * 2 * 4_000_000 * 250 * 4
    assert two.tile == 250
    found = {}
    for threads, memory in ((2, 10 << 30), (4, 10 << 30)):
        with pytest.raises(NoRoom) as refused:
            fitting_plan([tall], "float32", Ray(threads, memory), "pls", cold=False)
        found[threads] = refused.value.line
    assert found == {
        2: "pls needs 22.2 GiB for 2 Ray workers and may use 20: raise --memory, lower dim, or take rmls, whose maps "
        "are sparse",
        4: "pls needs 37.1 GiB for 4 Ray workers and this machine has 24: lower --threads, lower dim, or take rmls, "
        "whose maps are sparse",
    }
    elsewhere = Ray(4, 10 << 30, "ray://10.0.0.5:10001")
    assert fitting_plan([tall], "float32", elsewhere, "pls", cold=False).memory == alone, "a cluster has its own memory"


def test_seconds_of_a_card_are_those_of_a_card() -> None:
    """Measured on an H200: 1.64 to 2.23 s."""
    week = Factors(170_545, 195_926, 94_022 + 111_631, 1_200_045, 1000, 94_022)
    assert 1.6 < fitting_plan([week], "float32", Gpu(card=SizeOfCard(64 << 30)), "pls").seconds < 2.3


@pytest.mark.parametrize("model", [PLS(dim=3), MPLS(dim=3), LSIDocTerm(dim=3)], ids=lambda m: m.name)
def test_fit_and_plan_ask_for_the_same(model: PLS, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []

    def svd_plan_of(*given: Any, basis: bool, workers: int) -> Any:
        asked.append(basis)
        return svd_plan(*given, basis=basis, workers=workers)

    monkeypatch.setattr(module, "svd_plan", svd_plan_of)
    graph = random_clicks(1)
    for checkpoint, basis in ((None, True), (tmp_path / "kept", False)):
        for ask in (model.plans, model.fit):
            asked.clear()
            ask(graph, checkpoint=checkpoint)
            assert set(asked) == {basis}
    asked.clear()
    model.update(docs=[Document("new", {"title": "apple river", "body": "stone cloud"})])
    assert set(asked) <= {False}, "it starts from the old maps"


def test_a_plan_grows_as_the_arithmetic_does() -> None:
    week = Factors(170_545, 195_926, 94_022 + 111_631, 1_200_045, 1000, 94_022)
    one, two = svd_plan([week], 4), svd_plan([week, week], 4)
    assert two.operations == 2 * one.operations
    assert one.memory < two.memory < 2 * one.memory
    # Blocks of 1050 columns on four sides, and little else.
    assert one.memory == pytest.approx((94_022 + 111_631 + 170_545 + 195_926) * 1050 * 4, rel=0.05)
    assert svd_plan([week], 8).memory > 1.9 * one.memory
    with pytest.raises(EngineError, match="lower dim"):
        checked(one, 1 << 30, "pls")
