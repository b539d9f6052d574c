"""`as_printed`: the papers' algorithms, and nothing of ours beside what the user says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge import RMLS, ClickGraph, build_model, load
from clickbridge.errors import InputError
from clickbridge.log.preference import preferences
from clickbridge.models.factor_training import Training
from clickbridge.models.rmls_passes import Problem, RMLSSettings, _penalty
from clickbridge.models.study import Study
from clickbridge.numerics.rows import sparse_rows, surveyed
from clickbridge.types import Document, Impression

WORDS = ("pizza", "slice", "york", "apple", "pie", "crust", "oven", "cheese", "tart", "bake")


@pytest.fixture(scope="module")
def graph() -> ClickGraph:
    rng = np.random.default_rng(5)
    docs = [Document(f"d{i}", {"title": " ".join(rng.choice(WORDS, 3))}) for i in range(30)]
    log = []
    for _ in range(240):
        shown = [f"d{n}" for n in rng.choice(30, 6, replace=False)]
        log.append(Impression(" ".join(rng.choice(WORDS, 2)), results=shown, clicks=[shown[int(rng.integers(1, 6))]]))
    return ClickGraph.build(log, docs)


def test_the_switch_changes_defaults_and_leaves_what_the_user_says() -> None:
    printed: Any = RMLS(as_printed="true", beta=0.5).settings
    assert (printed.shrink, printed.decorrelate, printed.norm_power, printed.start) == ("absolute", 0.0, 0.0, "ball")
    assert (printed.beta, printed.gamma) == ("0.5", "auto")
    assert RMLS(as_printed="false").settings.shrink == "density"


@pytest.mark.parametrize("given", [{"beta": 0.1, "gamma": 0.1}, {"early_stop": False}, {"iterations": 3}])
def test_what_the_user_says_stays_also_where_it_is_our_default(given: dict[str, Any]) -> None:
    """However it is said: to the constructor, later, before or after the switch; and in a copy."""
    plain = {name: getattr(RMLS().settings, name) for name in given}
    made = [
        RMLS(as_printed=True, **given),
        RMLS(as_printed=True).set_params(**given),
        RMLS(**given).set_params(as_printed=True),
        build_model("rmls", {**given, "as_printed": True}),
        build_model("rmls", {"as_printed": True, **given}),
    ]
    for model in made:
        found: Any = model.settings
        assert {name: getattr(found, name) for name in given} == plain
        assert found.shrink == "absolute"
        assert RMLS(**model.get_params()).settings == found
        assert "shrink" not in repr(model)


def test_the_switch_can_be_turned_back() -> None:
    assert RMLS(as_printed=True).set_params(as_printed=False).settings == RMLS().settings


PRINTED = [
    "rmls", "pls", "mpls", "lsi-qd", "lsi-dt", "cos-click", "ssi", "svdfeature", "bm25", "vsm", "lmir", "cos-word",
    "expansion", "pairwise", "robust:bm25", "online:given", "mart:bm25+pls",
]  # fmt: skip
SAME_RANKING = ("lsi-qd", "lsi-dt", "bm25", "vsm", "lmir", "cos-word")
"""Similar queries differ, and weights of fields, of which the documents here have one: not how these are scored. Nor
has any query here a word that no document has."""


@pytest.mark.parametrize("spec", PRINTED)
def test_a_model_as_printed_is_another_and_survives_saving(spec: str, graph: ClickGraph, tmp_path: Path) -> None:
    ours, theirs = (build_model(spec, {"as_printed": flag}).fit(graph) for flag in (False, True))
    lists = [(key, graph.doc_ids) for key in list(graph.query_keys)[:20]]
    one, two = ([m.score(q, ids) for q, ids in lists] for m in (ours, theirs))
    assert any(not np.allclose(a, b) for a, b in zip(one, two, strict=True)) == (spec not in SAME_RANKING)
    assert not any(np.isnan(scores).any() for scores in two)
    theirs.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.settings.as_printed is True
    assert all(np.array_equal(again.score(q, ids), scores) for (q, ids), scores in zip(lists, two, strict=True))


def test_rows_start_inside_the_ball(graph: ClickGraph) -> None:
    s: Any = RMLS(as_printed=True, dim=8, theta_y=2.0).settings
    model: Any = build_model("rmls", {"as_printed": True, "dim": 8})
    study = Study(graph)
    model = model.in_language_of(study)
    choices = model.choose(study)
    _, features, (columns,) = model.learn_features(study, ["&".join(choices.groups)], choices)
    lengths = np.linalg.norm(Problem.of(features, *columns, 8, s).first(s, study.engine), axis=1)
    assert lengths.min() > 0
    assert lengths.max() <= 2.0 + 1e-5


def test_the_objective_has_the_penalty_of_equation_4() -> None:
    s: Any = RMLS(as_printed=True, beta=0.5, gamma=0.25).settings
    l_x, l_y = (surveyed(sparse_rows(np.array([row], dtype=np.float32))) for row in ([1.0, -2.0], [4.0, 0.0]))
    assert _penalty(s, l_x, l_y) == pytest.approx(0.5 * 3 + 0.25 * 4)
    assert _penalty(RMLSSettings(), l_x, l_y) == 0.0


def begun(spec: str, graph: ClickGraph, **settings: Any) -> tuple[Training, Any]:
    study = Study(graph)
    model: Any = build_model(spec, settings).in_language_of(study)
    known, training = model._begin(study, model.choose(study))
    return training, known


def test_ssi_learns_from_the_preferences_of_the_log(graph: ClickGraph) -> None:
    training, known = begun("ssi", graph, as_printed=True)
    got = training.samples(0)
    found = preferences(graph.impressions, graph.pairs, "skip-above")
    names = [graph.query_keys[int(i)] for i in found.query]
    expected = set(zip(names, found.better.tolist(), found.worse.tolist(), strict=True))
    asked = [known.clicked.keys[i] for i in got.query.tolist()]
    assert set(zip(asked, got.positive.tolist(), got.negative.tolist(), strict=True)) == expected


def test_svdfeature_aims_at_click_counts(graph: ClickGraph) -> None:
    training, known = begun("svdfeature", graph, as_printed=True)
    got, clicks = training.samples(0), known.clicked.matrix.toarray()
    pairs = list(zip(got.query.tolist(), got.positive.tolist(), strict=True))
    assert len({*pairs}) == len(pairs), "a pair has one aim, however often it was clicked"
    assert got.target.tolist() == clicks[got.query, got.positive].tolist(), "clicked on another page: no aim of 0"
    assert got.target.min() == 0 < got.target.max() == clicks.max()


def test_min_clicks_reaches_what_descent_learns_from() -> None:
    log = [Impression("pizza slice", results=["d1", "d2", "d3"], clicks=["d1"])] * 5
    log += [Impression("apple pie", results=["d4", "d5"], clicks=["d5"])]
    docs = [Document(f"d{i}", {"title": WORDS[i]}) for i in range(1, 6)]
    training, known = begun("ssi", ClickGraph.build(log, docs), min_clicks=3)
    assert {known.clicked.keys[q] for q in training.samples(0).query.tolist()} == {"pizza slice"}


def test_trees_as_printed_see_the_scores_alone(graph: ClickGraph) -> None:
    model: Any = build_model("mart:bm25+pls", {"as_printed": True}).fit(graph)
    assert model.fitted.grown
    assert model.fitted.feature_names == ("bm25", "pls")
    assert model.fitted.features is None, "what no tree sees is neither made nor stored"


def log_clicks(graph: ClickGraph) -> Any:
    """log t of every pair, by loops: 0 for one click (11M, equation (1))."""
    out = np.zeros((graph.n_queries, graph.n_docs))
    pairs = graph.pairs
    for q, d, t in zip(pairs.query.tolist(), pairs.doc.tolist(), pairs.clicks.tolist(), strict=True):
        out[q, d] = np.log(t) if t > 0 else 0.0
    return out


def test_similar_queries_of_mpls_are_dot_products_of_images(graph: ClickGraph) -> None:
    """g(q, q') = sum_i a_i q' L L' q' with L the left singular vectors of sum log(t) q d' (11M, (2), (5))."""
    dim = 3
    fitted: Any = build_model("mpls", {"as_printed": True, "dim": dim}).fit(graph).fitted
    numbers = {key: i for i, key in enumerate(graph.query_keys)}
    responses = log_clicks(graph)[[numbers[key] for key in fitted.queries.keys]]
    np.testing.assert_allclose(fitted.responses.toarray(), responses, rtol=1e-5)
    total, parts = 0.0, []
    for space in fitted.spaces:
        x = fitted.query_features.toarray()[:, space.q_columns]
        y = fitted.doc_features.toarray()[:, space.d_columns]
        left, values, _ = np.linalg.svd(x.T @ responses @ y)
        parts.append((x @ left[:, :dim] @ left[:, :dim].T @ x.T, values[:dim].sum()))
        total += values[:dim].sum() ** 2
    g = sum(part * weight / np.sqrt(total) for part, weight in parts)
    for number, key in enumerate(fitted.queries.keys[:10]):
        others = {k: g[number, i] for i, k in enumerate(fitted.queries.keys) if i != number}
        for name, value in fitted.similar_queries(key, 3):
            assert value == pytest.approx(others[name], abs=1e-4)
        best = sorted(others.values(), reverse=True)[:3]
        found = [value for _, value in fitted.similar_queries(key, 3)]
        np.testing.assert_allclose(found, best[: len(found)], atol=1e-4)


def test_click_features_of_11m_are_logarithms(graph: ClickGraph) -> None:
    fitted: Any = build_model("mpls", {"as_printed": True, "dim": 3}).fit(graph).fitted
    (_, columns) = fitted.q_views.spans
    rows, logs = fitted.query_features.toarray()[:, slice(*columns)], fitted.responses.toarray()
    for row, log in zip(rows, logs, strict=True):
        np.testing.assert_allclose(row, log / (np.linalg.norm(log) or 1.0), atol=1e-6)


def test_cos_b_compares_logarithms(graph: ClickGraph) -> None:
    model = build_model("cos-click", {"as_printed": True}).fit(graph)
    logs = dict(zip(graph.query_keys, log_clicks(graph), strict=True))
    known = model.fitted.queries.keys
    assert {key for key, row in logs.items() if row.any()} == set(known)
    for key in known[:10]:
        for name, value in model.similar_queries(key, 3):
            one, two = logs[key], logs[name]
            assert value == pytest.approx(one @ two / np.linalg.norm(one) / np.linalg.norm(two), abs=1e-5)


def test_log_t_of_single_clicks_is_refused() -> None:
    log = [Impression(f"q{i}", results=["d1", "d2"], clicks=["d1"]) for i in range(3)]
    with pytest.raises(InputError, match="log-t is 0 for a pair of one click"):
        build_model("cos-click", {"response": "log-t"}).fit(ClickGraph.build(log))


def test_what_is_as_printed_reaches_every_part() -> None:
    parts: Any = build_model("robust:bm25", {"as_printed": True})
    assert parts.parts[0].settings.fields == "equal"
    assert parts.settings.click_kernel == "pearson-union"
