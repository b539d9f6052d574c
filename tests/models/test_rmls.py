"""RMLS on GRAPHs: the printed algorithm step by step, plans, early stopping, updates, warnings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import clickbridge
from clickbridge import ClickGraph
from clickbridge.engines.local import Local
from clickbridge.errors import EngineError, SettingError
from clickbridge.models import latent as module
from clickbridge.models.candidates import Candidates, Labelled, Query
from clickbridge.models.latent import document_images
from clickbridge.models.rmls import RMLS, FittedRMLS, scores_of_rows
from clickbridge.models.rmls_plan import PLANS
from clickbridge.numerics.ragged import Ragged
from clickbridge.numerics.row import as_matrix
from clickbridge.numerics.rows import SparseRows
from clickbridge.types import Document, PairCount
from oracles.arrays import dense
from oracles.graphs import noisy_field_graph
from oracles.latent import random_clicks, w_by_loops
from oracles.rmls import algorithm_2

PRINTED: dict[str, Any] = {
    "shrink": "absolute", "decorrelate": 0, "norm_power": 0, "tolerance": 0, "fields": "title:2,body",
    "language": "none", "views": "word",
}  # fmt: skip


@pytest.mark.parametrize("passes", [1, 2, 4])
def test_printed_settings_are_the_papers_algorithm(passes: int) -> None:
    model = RMLS(dim=6, iterations=passes, beta=1e-3, gamma=2e-3, theta_x=2.0, **PRINTED).fit(random_clicks(1))
    x, y, r = (dense(m) for m in (model.query_features_, model.doc_features_, model.responses_))
    w = w_by_loops(x, y, r, mean=True)
    start = np.random.default_rng(0).standard_normal((y.shape[1], 6), dtype=np.float32)
    l_x, l_y = algorithm_2(w, start.astype(np.float64), passes, 1e-3, 2e-3, theta_x=2.0)[-1]
    (space,) = model.spaces_
    assert isinstance(space.l_x, SparseRows)
    np.testing.assert_allclose(space.l_x.dense(), l_x, atol=1e-4)
    np.testing.assert_allclose(space.l_y.dense(), l_y, atol=1e-4)
    expected = x @ l_x @ l_y.T @ y.T
    for i, key in enumerate(model.queries_.keys):
        found = model.score(key, model.doc_ids_)
        known = np.isfinite(found)
        np.testing.assert_allclose(found[known], expected[i][known], atol=1e-3)
    np.testing.assert_allclose(model.trace_[-1]["alignment"], np.sum(w * (l_x @ l_y.T)), rtol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"balance": 0.5}, {"shrink": "relative", "beta": 1, "gamma": 1},
                                      {"decorrelate": 0, "density": 0.3}])  # fmt: skip
def test_plans_give_the_same_scores(settings: dict[str, Any]) -> None:
    graph = random_clicks(2)
    scores = []
    for plan in PLANS:
        # Coordinates so small that the sign of a rounding error decides are left out: two passes, few dimensions.
        model = RMLS(dim=4, iterations=2, density=0.5, plan=plan, fields="title:2,body", views="word")
        model.set_params(**settings).fit(graph)
        assert model.report_["plan"] == plan
        scores.append(np.concatenate([model.score(key, model.doc_ids_) for key in model.queries_.keys]))
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], atol=2e-3)


@pytest.mark.parametrize("plan", ["auto", *PLANS])
def test_threads_do_not_change_a_bit(plan: str) -> None:
    """Nor does anything else that the machine was doing: the plan follows from the sizes."""
    log, docs = topic_log()
    graph = ClickGraph.build(log, docs)
    made = []
    for threads in (1, 2, 5):
        model = RMLS(dim=30, density=0.2, plan=plan, fields="title").fit(graph, engine=Local(threads))
        space = model.spaces_[0]
        made.append(
            (model.plan_, space.l_x.dense().tobytes(), space.l_y.dense().tobytes(), dense(model.images_).tolist())
        )
    assert made[1] == made[0]
    assert made[2] == made[0]


def test_the_report_follows_every_iteration() -> None:
    lines: list[str] = []
    model = RMLS(dim=6, iterations=3, tolerance=0, density=0.5)
    model.fit(random_clicks(4), progress=lines.append)
    trace = model.report_["trace"]
    assert [row["iteration"] for row in trace] == [1, 2, 3]
    assert all(0 < row["density"] <= 0.5 and 1 <= row["effective_rank"] <= 6 for row in trace)
    assert model.report_["density"] == trace[-1]["density"]
    assert model.trace_ == trace
    passes = [line for line in lines if line.startswith("rmls iteration")]
    assert len(passes) == 3
    assert all("effective rank" in line for line in passes)


def test_a_collapse_is_said_in_words() -> None:
    settings = PRINTED | {"beta": 0, "gamma": 0}
    model = RMLS(dim=8, iterations=60, **settings).fit(random_clicks(5))
    assert any("collapsed" in note for note in model.notes_)
    fine = RMLS(dim=8, iterations=60, tolerance=0, views="word").fit(random_clicks(5))
    assert not any("collapsed" in note for note in fine.notes_)


def test_it_stops_when_nothing_changes() -> None:
    model = RMLS(dim=3, iterations=500, tolerance=1e-3, density=1).fit(random_clicks(6))
    assert len(model.trace_) < 500
    assert model.spaces_[0].residual < 1e-3


def test_early_stop_takes_the_best_held_back_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = noisy_field_graph(600)
    values = iter([0.5, 0.7, 0.6, 0.65])
    monkeypatch.setattr(Labelled, "ndcg", lambda self, scores: next(values))
    model = RMLS(dim=20, iterations=4, early_stop=True, tolerance=0, fields="good,noise", views="word").fit(graph)
    assert len(model.trace_) == 2
    assert any("stops after 2 of 4" in note for note in model.notes_)


@pytest.mark.parametrize("density", [0.1, 1.0])
def test_many_lists_are_scored_at_once(density: float) -> None:
    """Sparse images and dense ones; a new query, one of unknown words, an unknown document."""
    fitted = RMLS(dim=20, density=density, fields="good,noise", views="word").fit(noisy_field_graph(200)).fitted
    keys, n = [*fitted.queries.keys[:20], f"{fitted.queries.keys[0]} again", "xyzzy"], len(fitted.doc_ids)
    items = np.arange(5 * len(keys)) % (n + 1) - 1
    candidates = Candidates([Query(key) for key in keys], Ragged.of_lengths([5] * len(keys)), items)
    rows = as_matrix([fitted.query_row(query) for query in candidates.queries], fitted.q_views.width)
    expected = fitted.scores(candidates)
    assert np.isfinite(expected).sum() > 50
    assert np.isneginf(expected).sum() >= 6
    np.testing.assert_allclose(
        scores_of_rows(fitted, rows, candidates, Local(threads=1)), expected, rtol=1e-4, atol=1e-6
    )


def test_early_stop_needs_lists() -> None:
    model = RMLS(dim=4, iterations=2, early_stop=True, tolerance=0).fit(random_clicks(7))
    assert len(model.trace_) == 2
    assert any("can be held back, 50 are needed to stop early" in note for note in model.notes_)


def test_start_from_a_decomposition() -> None:
    model = RMLS(dim=5, start="svd", iterations=1, fields="title,body", views="word").fit(random_clicks(8))
    assert model.spaces_[0].dim == 5
    assert model.rank("apple river")


def test_short_documents_have_sparse_images_and_the_same_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = noisy_field_graph(300, pages=False)
    model = RMLS(dim=200, fields="good", views="word:good")
    scores = {}
    for share in (1.0, 0.0):
        monkeypatch.setattr(module, "SPARSE_IMAGES", share)
        model.fit(graph)
        assert sparse.issparse(model.images_) == (share == 1.0)
        scores[share] = [model.rank(f"w{i}x", 5) for i in range(20)]
    for one, two in zip(scores[1.0], scores[0.0], strict=True):
        # An inverted index finds what shares a dimension; a dense one also lists scores of exactly 0.
        assert [hit.doc_id for hit in one if hit.score > 1e-6] == [hit.doc_id for hit in two if hit.score > 1e-6]


@pytest.mark.parametrize("share", [1.0, 0.0])
def test_files(share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPARSE_IMAGES", share)
    model = RMLS(dim=6).fit(random_clicks(9))
    model.save(tmp_path / "m")
    loaded = clickbridge.load(tmp_path / "m")
    assert isinstance(loaded, RMLS)
    assert sparse.issparse(loaded.images_) == (share == 1.0)
    assert loaded.spaces_[0].l_x.indices.dtype == np.int16
    for key in model.queries_.keys[:5]:
        np.testing.assert_array_equal(loaded.score(key, model.doc_ids_), model.score(key, model.doc_ids_))
    assert loaded.report_["density"] == model.report_["density"]


def test_update_agrees_with_a_refit_on_frozen_features() -> None:
    """Warm iterations from the old maps: as near to a start from scratch on the same features as two starts
    are to each other, and as good."""
    log, docs = topic_log()
    settings: dict[str, Any] = {"dim": 40, "density": 0.2, "views": "word", "fields": "title", "iterations": 3}
    model = RMLS(**settings).fit(ClickGraph.build(log[::2] + log[1::4], docs))
    model.update(log[3::4])
    warm, (space,) = tops(model), model.spaces_
    scratch = []
    for seed in (0, 1):
        fitted = replace(model.fitted, settings=RMLS(**settings, seed=seed).settings)
        assert isinstance(fitted, FittedRMLS)
        anew = fitted.relearned(fitted.features, space, space.dim, Local())
        images, scorable = document_images(fitted.doc_features, [anew])
        scratch.append(tops(replace(fitted, spaces=(anew,), images=images, scorable=scorable)))
    assert overlap(warm, scratch[0]) >= overlap(*scratch) - 0.05
    assert in_topic(warm) >= in_topic(scratch[0]) - 0.02
    assert in_topic(warm) > 0.9


def topic_log() -> tuple[list[PairCount], list[Document]]:
    """Twenty topics of eight words; queries of two, documents of five; clicks stay within a topic."""
    rng = np.random.default_rng(0)
    words = [[f"t{t}w{i}" for i in range(8)] for t in range(20)]
    docs = [Document(f"d{n}", {"title": " ".join(rng.choice(words[n % 20], 5, replace=False))}) for n in range(300)]
    log = [
        PairCount(" ".join(rng.choice(words[n % 20], 2, replace=False)), f"d{rng.integers(15) * 20 + n % 20}", 1)
        for n in range(1200)
    ]
    return log, docs


def tops(model: Any) -> list[set[str]]:
    return [set(ranking.doc_ids) for ranking in model.rank_many([f"t{t}w{i}" for t in range(20) for i in range(8)], 5)]


def in_topic(found: list[set[str]]) -> float:
    """Share of found documents that are of the word's topic."""
    return float(np.mean([int(d[1:]) % 20 == n // 8 for n, docs in enumerate(found) for d in docs]))


def overlap(one: list[set[str]], two: list[set[str]]) -> float:
    return float(np.mean([len(a & b) / 5 for a, b in zip(one, two, strict=True)]))


def test_update_with_documents() -> None:
    model = RMLS(dim=5, fields="title,body", views="word").fit(random_clicks(10))
    model.update(docs=[Document("new", {"title": "apple river", "body": "stone cloud"})], remove=["d0"])
    assert "new" in model.doc_ids_
    assert "d0" not in model.doc_ids_
    assert np.isfinite(model.score("apple", ["new"])).all()


def test_settings_are_checked(small_graph: ClickGraph) -> None:
    with pytest.raises(SettingError, match="density must be"):
        RMLS(density=0).fit(small_graph)
    little = Local(memory=1024)
    with pytest.raises(EngineError, match="raise memory, or lower dim or density"):
        RMLS().fit(small_graph, engine=little)
    with pytest.raises(EngineError, match=r"\(w-dense\) and may use .*: take plan=auto, raise memory"):
        RMLS(plan="w-dense").fit(small_graph, engine=little)


# --- what a saved model keeps ----------------------------------------------------------------------


def test_the_chosen_number_of_passes_survives_loading(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Updates and bounds of a loaded model learn with as many passes as were chosen, not as were allowed."""
    values = iter([0.5, 0.7, 0.6, 0.65])
    monkeypatch.setattr(Labelled, "ndcg", lambda self, scores: next(values))
    chosen = {"dim": 20, "iterations": 4, "early_stop": True, "tolerance": 0, "fields": "good,noise", "views": "word"}
    RMLS(**chosen).fit(noisy_field_graph(600)).save(tmp_path / "model")
    again = clickbridge.load(tmp_path / "model").fitted
    assert isinstance(again, FittedRMLS)
    assert again.choices.iterations == len(again.trace) == 2
    (space,) = again.spaces
    anew = again.relearned(again.features, space, space.dim, Local())
    np.testing.assert_array_equal(anew.l_x.dense(), space.l_x.dense())
    np.testing.assert_array_equal(anew.l_y.dense(), space.l_y.dense())


@pytest.mark.parametrize("share", [1.0, 0.0])
def test_an_empty_image_has_no_score_however_the_model_came(
    share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that no click teaches have empty rows, and a document of such words alone has an empty image."""
    monkeypatch.setattr(module, "SPARSE_IMAGES", share)
    docs = [
        Document("a", {"title": "river stone"}),
        Document("b", {"title": "cloud"}),
        Document("c", {"title": "lamp"}),
    ]
    graph = ClickGraph.build([PairCount("water", "a", 3), PairCount("sky", "b", 2)], docs)
    model = RMLS(dim=3, views="word", fields="title").fit(graph)
    assert model.doc_features_[[2]].nnz, "it has words"
    model.save(tmp_path / "model")
    for known in (model, clickbridge.load(tmp_path / "model")):
        assert sparse.issparse(known.images_) == (share == 1.0)
        assert known.score("water", ["c"]).tolist() == [-np.inf]
        assert np.isfinite(known.score("water", ["a"])).all()
        assert "c" not in known.rank("water").doc_ids
