"""Similar queries and documents, explanations, and what only a latent space finds."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.errors import InputError, MissingPart, NotSupported
from clickbridge.models.model import Model
from clickbridge.models.sfunction import unit_images
from clickbridge.models.walk import Walk
from clickbridge.types import Document, PairCount
from oracles.arrays import dense
from oracles.latent import pair_log, random_clicks

SPECS = [
    "vsm", "bm25", "lmir", "cos-word", "cos-click", "lsi-dt", "lsi-qd", "walk", "pls", "mpls", "rmls",
    "bm25+pls", "cos-click+cos-word", "lsi-qd+cos-word", "walk+cos-word", "bm25+walk", "bm25+lsi-qd+mpls",
]  # fmt: skip
every_spec = pytest.mark.parametrize("spec", SPECS)


@pytest.fixture(scope="module")
def fitted() -> Callable[[str], Any]:
    made: dict[str, Model] = {}
    graph = random_clicks(21)

    def fit(spec: str) -> Model:
        if spec not in made:
            model = build_model(spec)
            takes = {n for part in getattr(model, "parts", [model]) for n in part.setting_names()}
            wanted = {"dim": 6, "fields": "title:2,body", "language": "none"}
            made[spec] = build_model(spec, {k: v for k, v in wanted.items() if k in takes}).fit(graph)
        return made[spec]

    return fit


# --- similar queries and documents -------------------------------------------------------------------


@every_spec
def test_similar_queries(spec: str, fitted: Callable[[str], Any]) -> None:
    model = fitted(spec)
    keys = random_clicks(21).query_keys
    found_any = False
    for key in keys:
        near = model.similar_queries(key, k=4)
        found_any |= bool(near)
        names = [name for name, _ in near]
        assert len(names) == len(set(names)) <= 4
        assert key not in names
        assert set(names) <= set(keys)
        scores = [s for _, s in near]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < s <= 2 + 1e-6 for s in scores)
        assert model.similar_queries(key, k=2) == near[:2]
    assert found_any
    assert model.similar_queries("zzqqxx") == []
    busy = {q for q, clicks in zip(keys, clicks_by_query(), strict=True) if clicks >= 6}
    for key in keys[:5]:
        assert {name for name, _ in model.similar_queries(key, k=30, min_clicks=6)} <= busy


def clicks_by_query() -> list[float]:
    graph = random_clicks(21)
    return np.bincount(graph.pairs.query, graph.pairs.clicks, minlength=graph.n_queries).tolist()


@every_spec
def test_similar_documents(spec: str, fitted: Callable[[str], Any]) -> None:
    model = fitted(spec)
    if "similar documents" not in model.fitted.abilities:
        with pytest.raises(NotSupported, match="similarity of documents"):
            model.similar_documents("d0")
        return
    for doc_id in ("d0", "d3", "d7"):
        near = model.similar_documents(doc_id, k=4)
        assert doc_id not in near.doc_ids
        assert len(near) <= 4
        scores = [hit.score for hit in near]
        assert scores == sorted(scores, reverse=True)
    assert any(len(model.similar_documents(d)) for d in model.doc_ids_)


@pytest.mark.parametrize("spec", ["cos-word", "lsi-qd", "pls", "mpls"])
def test_similarity_is_the_cosine_of_images(spec: str, fitted: Callable[[str], Any]) -> None:
    model = fitted(spec)
    images = dense(model.map_queries(model.queries_.keys))
    norms = np.linalg.norm(images, axis=1, keepdims=True)
    images = np.where(norms > 1e-6, images / np.maximum(norms, 1e-6), 0)  # shorter ones are rounding
    cosines = images @ images.T
    np.fill_diagonal(cosines, -1)
    for number, key in enumerate(model.queries_.keys[:10]):
        near = model.similar_queries(key, k=3)
        expected = np.sort(cosines[number][cosines[number] > 0])[::-1][: len(near)]
        np.testing.assert_allclose([s for _, s in near], expected, atol=1e-5)


def test_a_sum_s_likeness_is_the_weighted_mean_of_cosines(fitted: Callable[[str], Any]) -> None:
    model = fitted("cos-click+cos-word")
    one, two = model.fitted.parts
    shares = model.weights_ / model.weights_.sum()
    for key in model.queries_.keys[:6]:
        for name, found in model.similar_queries(key, k=5):
            expected = 0.0
            for share, part in zip(shares, (one, two), strict=True):
                images = dense(unit_images(part.map_queries([key, name])))
                expected += share * float(images[0] @ images[1])
            assert found == pytest.approx(expected, abs=1e-5)


def test_documents_of_a_sum_likewise(fitted: Callable[[str], Any]) -> None:
    model = fitted("bm25+pls")
    shares = model.weights_ / model.weights_.sum()
    for doc_id in model.doc_ids_[:5]:
        for hit in model.similar_documents(doc_id, k=4):
            expected = 0.0
            for share, part in zip(shares, model.fitted.parts, strict=True):
                images = dense(unit_images(part.map_documents([doc_id, hit.doc_id])))
                expected += share * float(images[0] @ images[1])
            assert hit.score == pytest.approx(expected, abs=1e-5)


def test_a_query_outside_the_kept_dimensions_is_like_no_other() -> None:
    """Its image is rounding alone: at unit length it would be near an arbitrary query."""
    log = [(f"q{i}", f"d{i // 4}", 100 * (5 - i // 4)) for i in range(20)] + [("alone", "far", 1)]
    model = build_model("lsi-qd", {"dim": 3}).fit(ClickGraph.build(pair_log(*log)))
    assert model.similar_queries("alone") == []
    assert [q for q, _ in model.similar_queries("q0")] == ["q1", "q2", "q3"]
    assert model.similar_documents("far").doc_ids == []


# --- the walk ----------------------------------------------------------------------------------------


def test_the_walk_by_hand() -> None:
    """q - a - r: two steps, no staying: from q the walk began at q or r, in proportion to clicks."""
    graph = ClickGraph.build(pair_log(("q", "a", 1), ("r", "a", 3), ("s", "b", 1)))
    model = Walk(steps=2, self_transition=0.0, threshold=0.0).fit(graph)
    w = np.zeros((5, 5))  # q r s | a b
    keys, ids = model.queries_.keys, model.doc_ids_
    for q, d, c in (("q", "a", 1), ("r", "a", 3), ("s", "b", 1)):
        i, j = keys.index(q), 3 + ids.index(d)
        w[i, j] = w[j, i] = c
    a = np.linalg.matrix_power(w / w.sum(axis=1, keepdims=True), 2)
    column = a[:, keys.index("q")]
    assert dict(model.similar_queries("q")) == pytest.approx({"r": column[keys.index("r")] / column.sum()})
    assert model.score("q", ["a", "b"]).tolist() == [0, 0], "an even number of steps never ends at a document"
    one = Walk(steps=1, self_transition=0.5, threshold=0.0).fit(graph)
    assert one.rank("q").doc_ids == ["a"]
    assert (one.score("zzqqxx", ["a"]) == -np.inf).all()
    assert one.score("q", ["a", "nowhere"])[1] == -np.inf
    with pytest.raises(InputError, match="no document 'nowhere' in the model"):
        one.similar_documents("nowhere")


# --- the case of the paper ---------------------------------------------------------------------------


def test_walmartmoneycard() -> None:
    """11M, Table 7: a run-together query, alone in the click graph, finds its neighbour, which shares no word with
    it, through two similar URLs. Clicks alone and words alone do not, nor do their sums."""
    asked, wanted = "walmartmoneycard", "wal-mart prepaid visa activation"
    docs = [
        Document("u1", {"title": "Walmart MoneyCard", "url": "https://www.walmartmoneycard.com/"}),
        Document("u2", {"title": "Log in", "url": "https://www.walmartmoneycard.com/walmart/homepage.aspx"}),
        *(Document(f"o{i}", {"title": f"{w} page", "url": f"https://{w}.example/"}) for i, w in enumerate(OTHERS)),
    ]
    log = [(asked, "u1", 5), (wanted, "u2", 5)]
    log += [(f"{w} thing", f"o{i}", 4) for i, w in enumerate(OTHERS)]
    graph = ClickGraph.build(pair_log(*log), docs)
    alone = ("cos-click", "walk", "lsi-qd", "cos-word")
    for spec in (*alone, *(f"{spec}+cos-word" for spec in alone[:3])):
        near = build_model(spec).fit(graph).similar_queries(asked, k=7)
        assert wanted not in [name for name, _ in near], spec
    for spec, views in (("pls", "word"), ("mpls", "word"), ("mpls", "auto"), ("pls", "auto")):
        model = build_model(spec, {"views": views, "dim": 50}).fit(graph)
        assert model.similar_queries(asked)[0][0] == wanted, (spec, views)
        # It is the URLs: without them nothing leads from one to the other.
        blind = build_model(spec, {"views": views, "dim": 50, "fields": "title"}).fit(graph)
        assert wanted not in [name for name, s in blind.similar_queries(asked) if s > 0.1], (spec, views)


OTHERS = ("river", "stone", "cloud", "horse", "lamp")


# --- explanations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [s for s in SPECS if "walk" not in s])
@pytest.mark.parametrize("k", [1, 3, 1000])
def test_pairs_and_rest_sum_to_the_score(spec: str, k: int, fitted: Callable[[str], Any]) -> None:
    model = fitted(spec)
    assert "maps" in model.fitted.abilities
    explained = 0
    for key in model.queries_.keys[:8]:
        for doc_id in model.doc_ids_[:6]:
            score = model.score(key, [doc_id])[0]
            if not np.isfinite(score):
                continue
            try:
                told = model.explain(key, doc_id, k)
            except MissingPart:
                assert spec.startswith("cos-click")
                assert score == 0 or spec != "cos-click"
                continue
            explained += 1
            assert (told.query, told.doc_id) == (key, doc_id)
            assert told.score == pytest.approx(score, abs=2e-5)
            assert sum(p.contribution for p in told.pairs) + told.rest == pytest.approx(score, abs=2e-5)
            assert len(told.pairs) <= k
            sizes = [abs(p.contribution) for p in told.pairs]
            assert sizes == sorted(sizes, reverse=True)
            assert all(0 <= p.share <= 1 + 1e-9 for p in told.pairs)
            assert sum(p.share for p in told.pairs) <= 1 + 1e-6
    assert explained


def test_teachers_are_named() -> None:
    docs = [Document("ny", {"title": "New York"}), Document("rome", {"title": "Rome"})]
    graph = ClickGraph.build(pair_log(("big apple", "ny", 5), ("apple city", "ny", 1), ("eternal", "rome", 3)), docs)
    model = build_model("pls", {"views": "word", "language": "none"}).fit(graph)
    told = model.explain("apple", "ny")
    best = told.pairs[0]
    assert best.query_feature == "apple"
    assert best.doc_feature in ("new", "york")
    assert set(best.taught_by) == {"big apple → New York", "apple city → New York"}
    assert told.pairs[0].contribution > 0


def test_teachers_of_common_words_need_no_table_of_all_pairs() -> None:
    """Every query has one word and every document another: all pairs would take 30,000^2 numbers, 3.6 GB."""
    n = 30_000
    docs = [Document(f"d{i}", {"title": f"stone s{i}"}) for i in range(n)]
    log = [PairCount(f"river r{i}", f"d{i}", 1 + (i == 7)) for i in range(n)]
    model = build_model("pls", {"views": "word", "language": "none", "fields": "title", "dim": 2})
    model.fit(ClickGraph.build(log, docs))
    tracemalloc.start()
    told = model.explain("river", "d7", k=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (pair,) = told.pairs
    assert (pair.query_feature, pair.doc_feature) == ("river", "stone")
    assert pair.taught_by[0] == "river r7 → stone s7", "two clicks put more into it than one"
    assert len(pair.taught_by) == 3
    assert peak < 100e6


def test_an_explanation_survives_saving(tmp_path: Path, fitted: Callable[[str], Any]) -> None:
    for spec in ("pls", "bm25+pls", "cos-click"):
        model = fitted(spec)
        key = model.queries_.keys[0]
        doc_id = model.rank(key).doc_ids[0]
        model.save(tmp_path / spec)
        again = clickbridge.load(tmp_path / spec)
        assert again.explain(key, doc_id) == model.explain(key, doc_id)


@every_spec
def test_everything_survives_saving(spec: str, tmp_path: Path, fitted: Callable[[str], Any]) -> None:
    model = fitted(spec)
    model.save(tmp_path / "model")
    again = clickbridge.load(tmp_path / "model")
    keys = random_clicks(21).query_keys[:5]
    for other in (again, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301
        for query in [*keys, "apple river", "zzqqxx"]:
            assert other.rank(query) == model.rank(query)
            assert other.similar_queries(query) == model.similar_queries(query)
    if "similar documents" in model.fitted.abilities:
        assert again.similar_documents("d0") == model.similar_documents("d0")
    if "maps" in model.fitted.abilities and spec not in ("lsi-qd", "cos-click", "cos-click+cos-word"):
        new = Document("new", {"title": "apple", "body": "river salt"})
        np.testing.assert_array_equal(dense(again.map_documents([new])), dense(model.map_documents([new])))  # type: ignore[attr-defined]
