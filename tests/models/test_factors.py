"""SSI and SVDFeature: their formulas, what they learn from, and that they learn."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph, SVDFeature, build_model, load
from clickbridge.engines.local import Local
from clickbridge.errors import SettingError
from clickbridge.models.factor_training import Training, matching
from clickbridge.models.factors import FactorChoices
from clickbridge.models.negative_samples import NegativeSamples
from clickbridge.models.study import Study
from clickbridge.numerics.factors import Samples
from clickbridge.numerics.row import as_matrix
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


def features_of(model: Any, queries: list[str]) -> Any:
    rows = [model.fitted.query_row(model.fitted.query(query)) for query in queries]
    return dense(as_matrix(rows, model.q_views_.width))


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_the_formula(name: str) -> None:
    model: Any = build_model(name, SMALL).fit(random_clicks(5))
    queries = [*model.queries_.keys[:5], "river stone"]
    x, y = features_of(model, queries), dense(model.doc_features_)
    space = model.spaces_[0]
    expected = x @ (dense(model.match_) + space.l_x @ space.l_y.T) @ y.T + y @ model.doc_bias_
    maps = dense(model.map_queries(queries)) @ dense(model.map_documents(model.doc_ids_)).T
    np.testing.assert_allclose(maps, expected, rtol=1e-4, atol=1e-5)
    for row, query in enumerate(queries):
        scores = model.score(query, model.doc_ids_)
        known = np.isfinite(scores)
        np.testing.assert_allclose(scores[known], expected[row][known], rtol=1e-4, atol=1e-5)


def test_ssi_without_factors_is_a_cosine_of_words() -> None:
    model: Any = build_model("ssi", SMALL | {"epochs": 1}).fit(random_clicks(5))
    space = model.spaces_[0]
    none = replace(space, l_x=np.zeros_like(space.l_x), l_y=np.zeros_like(space.l_y))
    fitted = replace(model.fitted, spaces=(none,))
    terms, words = model.d_views_.views[0].vocabulary, model.q_views_.views[0].vocabulary.terms
    y, ids = dense(fitted.doc_features), fitted.doc_ids
    for query in fitted.queries.keys[:4]:
        expected = np.zeros(len(y))
        for column, value in enumerate(features_of(model, [query])[0]):
            expected += value * (y[:, terms[words[column]]] if words[column] in terms else 0)
        scores = fitted.score(query, ids)
        np.testing.assert_allclose(scores[np.isfinite(scores)], expected[np.isfinite(scores)], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("settings", [
    {"model": "ssi"}, {"model": "svdfeature"}, {"model": "svdfeature", "training": "logistic"},
    {"model": "svdfeature", "training": "squared", "learning_rate": 0.3, "decay": 0.0},
    {"model": "svdfeature", "global_features": "none"},
], ids=str)  # fmt: skip
def test_they_learn_what_words_do_not_say(settings: dict[str, Any]) -> None:
    name = settings.pop("model")
    model: Any = build_model(name, {"dim": 16, "views": "word", **settings}).fit(two_languages())
    assert model.epochs_ > 0
    right = [int(model.rank(f"a{t}", 1).doc_ids[0][1:]) % 20 == t for t in range(20)]
    assert np.mean(right) > 0.8


@pytest.mark.parametrize("name", NAMES)
def test_passes_are_chosen_through_hold_back(name: str) -> None:
    model: Any = build_model(name, {"dim": 8, "epochs": 6}).fit(two_languages(700))
    assert any("held-back lists)" in note for note in model.notes_)
    assert model.report_["epochs"] == model.epochs_ <= 6
    before = model.epochs_
    assert model.refit(two_languages(200)).epochs_ == before


def test_explain_adds_up(small_graph: ClickGraph) -> None:
    for name in NAMES:
        model: Any = build_model(name, {"dim": 4}).fit(small_graph)
        found = model.explain("ny pizza", "pizza", k=5)
        assert found.score == pytest.approx(model.score("ny pizza", ["pizza"])[0], rel=1e-4)
        assert sum(p.contribution for p in found.pairs) + found.rest == pytest.approx(found.score)


def test_matching_joins_equal_terms_of_equal_views() -> None:
    queries, _ = ViewStack.fit(["word", "char", "clicktext"], Source({"query": ["red river", "stone"]}, 2))
    docs, _ = ViewStack.fit(["word:title", "char:title"], Source({"title": ["river bed", "stony"]}, 2))
    words, chars = matching(queries, docs)
    named = {(queries.feature(i), docs.feature(j)) for i, j in zip(*words.tocoo().coords, strict=True)}
    assert named == {(("word", "river"), ("word:title", "river"))}
    pairs = [(queries.feature(int(i)), docs.feature(int(j))) for i, j in zip(*chars.tocoo().coords, strict=True)]
    assert pairs
    assert all(q[0] == "char" and d[0] == "char:title" and q[1] == d[1] for q, d in pairs)


def every(query: Any, doc: Any) -> Any:
    """All clicks count."""
    return np.ones(len(query), dtype=bool)


def test_negative_samples_of_pages() -> None:
    docs = [Document(f"d{i}", {"title": "x"}) for i in range(6)]
    pages = [
        Impression("one", ["d0", "d1", "d2"], ["d0", "d2"]),
        Impression("two", ["d3", "d4"], []),
        Impression("three", ["d3", "d4"], ["d3", "d4"]),
        Impression("four", ["d5", "d4", "d3"], ["d4"]),
    ]
    graph = ClickGraph.build(pages, docs)
    query, positive, negative = NegativeSamples(graph, every).draw(50, np.random.default_rng(0))
    named = {
        (graph.query_keys[q], graph.doc_ids[p], graph.doc_ids[n])
        for q, p, n in zip(query, positive, negative, strict=True)
    }
    assert named == {("one", "d0", "d1"), ("one", "d2", "d1"), ("four", "d4", "d5"), ("four", "d4", "d3")}
    assert len(query) == 150


def test_negative_samples_without_pages() -> None:
    docs = [Document(f"d{i}", {"title": "x"}) for i in range(5)]
    graph = ClickGraph.build([PairCount("q", "d0", 3), PairCount("q", "d1", 1), PairCount("r", "d2", 1)], docs)
    query, positive, negative = NegativeSamples(graph, every).draw(100, np.random.default_rng(0))
    clicked = {("q", "d0"), ("q", "d1"), ("r", "d2")}
    for q, p, n in zip(query, positive, negative, strict=True):
        assert (graph.query_keys[q], graph.doc_ids[p]) in clicked
        assert (graph.query_keys[q], graph.doc_ids[n]) not in clicked


@pytest.mark.parametrize("with_pages", [True, False])
def test_a_pass_over_a_large_log_is_bounded(with_pages: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickbridge.models.negative_samples.MOST", 60)
    docs = [Document(f"d{i}", {"title": "x"}) for i in range(50)]
    pages = [Impression(f"q{i}", [f"d{i}", "d49"], [f"d{i}"]) for i in range(40)]
    graph = ClickGraph.build(pages if with_pages else [PairCount(p.query, p.clicks[0], 2) for p in pages], docs)
    seen: set[int] = set()
    for epoch in range(20):
        query, positive, negative = NegativeSamples(graph, every).draw(3, np.random.default_rng(epoch))
        assert 50 <= len(query) <= 60
        assert {(graph.query_keys[q], graph.doc_ids[d]) for q, d in zip(query, positive, strict=True)} <= {
            (f"q{i}", f"d{i}") for i in range(40)
        }
        assert not (positive == negative).any()
        seen |= set(query.tolist())
    assert len(seen) == 40, "every click has its turn"


@pytest.mark.parametrize("settings", [
    {"model": "svdfeature"}, {"model": "svdfeature", "training": "squared"}, {"model": "ssi"},
], ids=str)  # fmt: skip
def test_numbers_alone_are_learned_the_same_by_any_number_of_threads(settings: dict[str, Any]) -> None:
    """With a second thread the samples of the next pass are drawn during this one."""
    name, found = settings.pop("model"), []
    graph = two_languages()
    for threads in (1, 2):
        study = Study(graph, Local(threads))
        model: Any = build_model(name, {"dim": 16, "views": "id", **settings})
        _, training = model._begin(study, FactorChoices(field_weights={}, groups=("id",), epochs=3))
        drawn = [training.samples(epoch) for epoch in range(3)]
        assert training._descent._single is not None
        for epoch in range(3):
            training.run(3)
            ahead = training._drawn.get(epoch + 1)
            assert (ahead is None) == (threads == 1 or epoch == 2)
            if ahead is not None:
                for one, two in zip(ahead.arrays, drawn[epoch + 1].arrays, strict=True):
                    np.testing.assert_array_equal(one, two)
        found.append(b"".join(a.tobytes() for a in training.factors.arrays))
    _, training = model._begin(study, FactorChoices(field_weights={}, groups=("id",), epochs=3))
    while training.epochs < 3:
        training.run(3, at_once=True)
    found.append(b"".join(a.tobytes() for a in training.factors.arrays))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("epochs", [1, 5, 30])
def test_samples_are_drawn_once_and_not_for_nobody(epochs: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    samples = Training.samples

    def counted(self: Training, epoch: int) -> Samples:
        drawn.append(epoch)
        return samples(self, epoch)

    monkeypatch.setattr(Training, "samples", counted)
    model, calls = SVDFeature(dim=16, views="id"), 0
    choices = FactorChoices(field_weights={}, groups=("id",), epochs=epochs)
    _, training = model._begin(Study(two_languages(), Local(threads)), choices)
    while training.epochs < epochs:
        training.run(epochs, at_once=True)
        calls += 1
    assert sorted(drawn) == list(range(epochs))
    assert training.epochs == epochs
    assert calls >= min(epochs, 4) or threads == 1
    if threads == 2 and epochs == 30:
        assert calls < epochs, "small passes at once"


def test_clicks_that_do_not_count_are_never_drawn() -> None:
    docs = [Document(f"d{i}", {"title": "x"}) for i in range(5)]
    graph = ClickGraph.build([PairCount("q", "d0", 3), PairCount("q", "d1", 1), PairCount("r", "d2", 1)], docs)
    kept = NegativeSamples(graph, lambda query, doc: doc == graph.doc_ids.index("d1"))
    _, positive, negative = kept.draw(20, np.random.default_rng(0))
    assert {graph.doc_ids[d] for d in positive} == {"d1"}
    assert {graph.doc_ids[d] for d in negative} == {"d2", "d3", "d4"}


def random_log(pages: int, seed: int, blank: float) -> ClickGraph:
    """Random clicks on documents of which the share `blank` has no text: two of those tell nothing apart."""
    rng = np.random.default_rng(seed)
    n = pages // 2
    words = [f"w{i}" for i in range(n)]
    docs = [
        Document(f"d{i}", {"title": " ".join(rng.choice(words, 3)) if rng.random() > blank else ""}) for i in range(n)
    ]
    log = []
    for _ in range(pages):
        shown = [f"d{d}" for d in rng.choice(n, 8, replace=False)]
        log.append(Impression(" ".join(rng.choice(words, 2)), shown, shown[: rng.integers(1, 3)]))
    return ClickGraph.build(log, docs)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("blank", [0.5, 0.9])
@pytest.mark.parametrize("pages", [40, 400, 1600])
def test_scores_stay_small_on_random_logs(name: str, pages: int, blank: float) -> None:
    """Images start at length .1 and features are of length 1, so scores are of order 1."""
    for seed in range(2):
        graph = random_log(pages, seed, blank)
        model = build_model(name, {"dim": 8}).fit(graph)
        scores = np.concatenate([model.score(query, graph.doc_ids) for query in graph.query_keys[:40]])
        assert not np.isnan(scores).any()
        assert np.abs(scores[scores > -np.inf]).max() < 10
        ranked = model.rerank(graph.query_keys[0], ["nowhere", *graph.doc_ids]).doc_ids
        assert ranked.index("nowhere") >= int((model.score(graph.query_keys[0], graph.doc_ids) > -np.inf).sum())


@pytest.mark.parametrize("training", ["pairwise", "squared", "logistic"])
@pytest.mark.parametrize(("rate", "decay"), [(10, 0), (10, 1000), (1e-6, 1000), (0.03, 1000)])
def test_no_setting_within_its_limits_makes_factors_overflow(training: str, rate: float, decay: float) -> None:
    settings = {"dim": 4, "training": training, "learning_rate": rate, "decay": decay, "epochs": 30}
    model: Any = build_model("svdfeature", settings)
    study = Study(random_log(400, 0, 0.5))
    model = model.in_language_of(study)
    model.fit_on(study, replace(model.choose(study), epochs=30))
    for array in (model.spaces_[0].l_x, model.spaces_[0].l_y, model.doc_bias_, model.match_.data):
        assert np.isfinite(array).all()


def test_factors_that_overflow_are_refused() -> None:
    model: Any = build_model("svdfeature", SMALL)
    study = Study(random_clicks(5))
    model = model.in_language_of(study)
    _, training = model._begin(study, model.choose(study))
    assert isinstance(training, Training)
    training._descent.factors.u[:] = np.inf
    with pytest.raises(SettingError, match=r"learning_rate 0\.03 is too large, the factors overflow: lower it"):
        training.run(training.epochs + 1)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_training_stays(name: str, tmp_path: Path) -> None:
    """What is saved is features and factors; images follow from them."""
    model: Any = build_model(name, SMALL).fit(random_clicks(5))
    assert set(vars(model)) == {*model.setting_names(), "_given", "encode", "fitted_"}
    kept = {f.name for f in fields(model.fitted) if f.init and f.metadata.get("stored", True)}
    assert kept.isdisjoint({"images", "blocks", "scorable", "index"})
    model.save(tmp_path / "model")
    loaded: Any = load(tmp_path / "model")
    assert loaded.score("river stone", model.doc_ids_).tobytes() == model.score("river stone", model.doc_ids_).tobytes()
    assert loaded.epochs_ == model.epochs_


@pytest.mark.parametrize("name", NAMES)
def test_one_query_is_a_row_of_many(name: str) -> None:
    model: Any = build_model(name, SMALL | {"views": "word,char,click"}).fit(random_clicks(5))
    fitted = model.fitted
    queries = [fitted.query(text) for text in (*fitted.queries.keys[:6], "river stone", "zzzqqq", "")]
    equal, latent = fitted.map_keys(queries)
    for number, query in enumerate(queries):
        row, vector = fitted.image(query)
        found = np.zeros(equal.shape[1])
        found[row.columns] = row.values
        np.testing.assert_allclose(found, dense(equal)[number], rtol=1e-6)
        np.testing.assert_allclose(vector, latent[number], rtol=1e-5, atol=1e-7)
        assert (np.diff(row.columns) > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_similar_ones_are_cosines_of_both_blocks(name: str) -> None:
    model: Any = build_model(name, SMALL).fit(random_clicks(5))
    key = model.queries_.keys[0]
    rows = dense(model.map_queries(model.queries_.keys))
    cosines = rows @ rows[0] / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[0])
    for found, score in model.similar_queries(key, 5):
        assert score == pytest.approx(cosines[model.queries_.number(found)], abs=1e-5)
    images = dense(model.map_documents(model.doc_ids_))
    for found, score in model.similar_documents("d0", 5):
        other = images[model.doc_ids_.index(found)]
        assert score == pytest.approx(images[0] @ other / np.linalg.norm(images[0]) / np.linalg.norm(other), abs=1e-5)


def test_a_sum_has_the_blocks_of_its_parts() -> None:
    graph = random_clicks(5)
    model: Any = build_model("bm25+ssi", {"dim": 6, "fields": "title:2,body", "views": "word", "weights": "1,0.5"})
    model.fit(graph)
    query = model.queries_.keys[0]
    maps = dense(model.map_queries([query])) @ dense(model.map_documents(graph.doc_ids)).T
    scores = model.score(query, graph.doc_ids)
    np.testing.assert_allclose(maps[0][scores > -np.inf], scores[scores > -np.inf], rtol=1e-4, atol=1e-5)
    own, other = (build_model(name, {"fields": "title:2,body"}) for name in ("bm25", "ssi"))
    other.set_params(dim=6, views="word")
    one, two = (dict(part.fit(graph).similar_queries(query, 30)) for part in (own, other))
    for name, score in model.similar_queries(query, 5):
        assert score == pytest.approx((one.get(name, 0) + 0.5 * two.get(name, 0)) / 1.5, abs=1e-5)
    assert len(model.similar_documents("d0", 5)) == 5


@pytest.mark.parametrize("name", NAMES)
def test_an_update_learns_again_with_the_same_passes(name: str, small_graph: ClickGraph) -> None:
    model = build_model(name, {"dim": 4}).fit(small_graph)
    before, new = model.fitted, [Impression("ny pizza", ["ny"], ["ny"])]
    twin = build_model(name, {"dim": 4}).fit_on(Study(small_graph.merge(ClickGraph.build(new))), before.choices)
    model.update(new)
    assert model.fitted.choices is before.choices
    np.testing.assert_array_equal(model.score("ny pizza", ["ny", "pizza"]), twin.score("ny pizza", ["ny", "pizza"]))


def test_limits() -> None:
    with pytest.raises(SettingError, match="training must be one of pairwise, squared, logistic; got 'hinge'"):
        build_model("svdfeature", {"training": "hinge"})
