"""SSI and SVDFeature: their formulas, what they learn from, and that they learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.errors import SettingError
from clickbridge.models.factors import FactorModel, matching
from clickbridge.models.preferences import preferences
from clickbridge.numerics.factors import Factors
from clickbridge.types import Document, Impression, PairCount
from clickbridge.views.stack import ViewStack
from clickbridge.views.view import Source
from oracles.arrays import dense
from oracles.latent import random_clicks

NAMES = ["ssi", "svdfeature"]
SMALL: dict[str, Any] = {"dim": 6, "fields": "title:2,body", "views": "word"}


def two_languages(n: int = 300, topics: int = 20) -> ClickGraph:
    """Queries and titles share no word: query word aK means title word bK."""
    rng = np.random.default_rng(0)
    docs = [Document(f"d{i}", {"title": f"b{i % topics} c{rng.integers(50)}"}) for i in range(120)]
    pages = []
    for i in range(n):
        good = int(rng.choice(np.arange(i % topics, 120, topics)))
        others = [int(d) for d in rng.permutation(120) if d % topics != i % topics][:7]
        shown = [f"d{d}" for d in rng.permutation([good, *others])]
        pages.append(Impression(f"a{i % topics} x{i}", shown, [f"d{good}"]))
    return ClickGraph.build(pages, docs)


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_the_formula(name: str) -> None:
    model: Any = build_model(name, SMALL).fit(random_clicks(5))
    queries = [*model.query_keys_[:5], "river stone"]
    x, y = dense(model.query_features(queries)), dense(model.doc_features_)
    space = model.spaces_[0]
    expected = x @ (dense(model.match_) + space.l_x @ space.l_y.T) @ y.T + y @ model.doc_bias_
    for row, query in enumerate(queries):
        scores = model.score(query, model.doc_ids_)
        known = np.isfinite(scores)
        np.testing.assert_allclose(scores[known], expected[row][known], rtol=1e-4, atol=1e-5)


def test_ssi_without_factors_is_a_cosine_of_words() -> None:
    model: Any = build_model("ssi", SMALL | {"epochs": 1}).fit(random_clicks(5))
    n_x, n_y = model.query_features_.shape[1], model.doc_features_.shape[1]
    model._take(Factors(*(np.zeros(shape, np.float32) for shape in ((n_x, 6), (n_y, 6), n_x, n_y, 0))))
    terms = {t: n for n, t in enumerate(model.d_views_.views[0].vocabulary_)}
    y = dense(model.doc_features_)
    for query in model.query_keys_[:4]:
        row, expected = model.query_features([query]), np.zeros(len(y))
        for column, value in zip(row.indices, row.data, strict=True):
            term = model.q_views_.views[0].feature(column)
            expected += value * (y[:, terms[term]] if term in terms else 0)
        scores = model.score(query, model.doc_ids_)
        np.testing.assert_allclose(scores[np.isfinite(scores)], expected[np.isfinite(scores)], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("settings", [
    {"model": "ssi"}, {"model": "svdfeature"}, {"model": "svdfeature", "training": "logistic"},
    {"model": "svdfeature", "training": "squared", "learning_rate": 0.3, "decay": 0.0},
    {"model": "svdfeature", "global_features": "none"},
], ids=str)  # fmt: skip
def test_they_learn_what_words_do_not_say(settings: dict[str, Any]) -> None:
    name = settings.pop("model")
    model: FactorModel = build_model(name, {"dim": 16, "views": "word", **settings}).fit(two_languages())  # type: ignore[assignment]
    assert model.tuned_["epochs"] > 0
    right = [int(model.rank(f"a{t}", 1).doc_ids[0][1:]) % 20 == t for t in range(20)]
    assert np.mean(right) > 0.8


@pytest.mark.parametrize("name", NAMES)
def test_passes_are_chosen_through_hold_back(name: str) -> None:
    model: Any = build_model(name, {"dim": 8, "epochs": 6}).fit(two_languages(700))
    assert any("held-back lists)" in note for note in model.notes_)
    assert model.report_["epochs"] == model.tuned_["epochs"] <= 6
    before = model.tuned_["epochs"]
    assert model.refit(two_languages(200)).tuned_["epochs"] == before


def test_explain_adds_up(small_graph: ClickGraph) -> None:
    for name in NAMES:
        model: Any = build_model(name, {"dim": 4}).fit(small_graph)
        found = model.explain("ny pizza", "pizza", k=5)
        assert found.score == pytest.approx(model.score("ny pizza", ["pizza"])[0], rel=1e-4)
        assert sum(p.contribution for p in found.pairs) + found.rest == pytest.approx(found.score)


def test_matching_joins_equal_terms_of_equal_views() -> None:
    queries, docs = ViewStack(["word", "char", "clicktext"]), ViewStack(["word:title", "char:title"])
    queries.fit(Source({"query": ["red river", "stone"]}, 2))
    docs.fit(Source({"title": ["river bed", "stony"]}, 2))
    words, chars = matching(queries, docs)
    named = {(queries.feature(i), docs.feature(j)) for i, j in zip(*words.tocoo().coords, strict=True)}
    assert named == {(("word", "river"), ("word:title", "river"))}
    pairs = [(queries.feature(int(i)), docs.feature(int(j))) for i, j in zip(*chars.tocoo().coords, strict=True)]
    assert pairs
    assert all(q[0] == "char" and d[0] == "char:title" and q[1] == d[1] for q, d in pairs)


def test_preferences_of_pages() -> None:
    docs = [Document(f"d{i}", {"title": "x"}) for i in range(6)]
    pages = [
        Impression("one", ["d0", "d1", "d2"], ["d0", "d2"]),
        Impression("two", ["d3", "d4"], []),
        Impression("three", ["d3", "d4"], ["d3", "d4"]),
        Impression("four", ["d5", "d4", "d3"], ["d4"]),
    ]
    graph = ClickGraph.build(pages, docs)
    query, positive, negative = preferences(graph, 50, np.random.default_rng(0))
    named = {
        (graph.query_keys[q], graph.doc_ids[p], graph.doc_ids[n])
        for q, p, n in zip(query, positive, negative, strict=True)
    }
    assert named == {("one", "d0", "d1"), ("one", "d2", "d1"), ("four", "d4", "d5"), ("four", "d4", "d3")}
    assert len(query) == 150


def test_preferences_without_pages() -> None:
    docs = [Document(f"d{i}", {"title": "x"}) for i in range(5)]
    graph = ClickGraph.build([PairCount("q", "d0", 3), PairCount("q", "d1", 1), PairCount("r", "d2", 1)], docs)
    query, positive, negative = preferences(graph, 100, np.random.default_rng(0))
    clicked = {("q", "d0"), ("q", "d1"), ("r", "d2")}
    for q, p, n in zip(query, positive, negative, strict=True):
        assert (graph.query_keys[q], graph.doc_ids[p]) in clicked
        assert (graph.query_keys[q], graph.doc_ids[n]) not in clicked


@pytest.mark.parametrize("with_pages", [True, False])
def test_a_pass_over_a_large_log_is_bounded(with_pages: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickbridge.models.preferences.MOST", 60)
    docs = [Document(f"d{i}", {"title": "x"}) for i in range(50)]
    pages = [Impression(f"q{i}", [f"d{i}", "d49"], [f"d{i}"]) for i in range(40)]
    graph = ClickGraph.build(pages if with_pages else [PairCount(p.query, p.clicks[0], 2) for p in pages], docs)
    seen: set[int] = set()
    for epoch in range(20):
        query, positive, negative = preferences(graph, 3, np.random.default_rng(epoch))
        assert 50 <= len(query) <= 60
        assert {(graph.query_keys[q], graph.doc_ids[d]) for q, d in zip(query, positive, strict=True)} <= {
            (f"q{i}", f"d{i}") for i in range(40)
        }
        assert not (positive == negative).any()
        seen |= set(query.tolist())
    assert len(seen) == 40, "every click has its turn"


def test_limits() -> None:
    with pytest.raises(SettingError, match="training must be pairwise, squared, logistic; got 'hinge'"):
        build_model("svdfeature", {"training": "hinge"})
