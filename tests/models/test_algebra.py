"""Lemma 2 of Wu et al. 2011: scaling, sum and product of S-functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clickbridge
from clickbridge import BM25, LMIR, VSM, ClickGraph, CosClick, Sum, build_model
from clickbridge.errors import SettingError
from clickbridge.models.algebra import product, scaled
from clickbridge.models.fitted import order
from clickbridge.types import Document, Impression
from oracles.arrays import dense
from oracles.graphs import graph_of, noisy_field_graph, random_docs

QUERIES = ["apple", "river stone", "apple apple salt", "unheardof wind"]
IDS = [*random_docs(0, 12), "nowhere"]


WEIGHT = st.sampled_from([-3.0, -0.5, 0.01, 1.0, 4.25])


def fitted(seed: int, kind: Any = BM25) -> Any:
    return kind(fields="title:2,body", language="none").fit(graph_of(random_docs(seed, 12)))


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(-5, 5), st.sampled_from([VSM, BM25, LMIR]))
def test_lemma_2_scaling(seed: int, factor: float, kind: Any) -> None:
    model = fitted(seed, kind)
    maps = factor * dense(model.map_queries(QUERIES)) @ dense(model.map_documents(IDS[:-1])).T
    for row, query in enumerate(QUERIES):
        base = model.score(query, IDS)
        known = np.isfinite(base)
        scores = scaled(model, factor)(query, IDS)
        close(scores[known], factor * base[known])
        assert (scores[~known] == -np.inf).all()
        close(maps[row][known[:-1]], factor * base[:-1][known[:-1]])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), WEIGHT, WEIGHT)
def test_lemma_2_sum(seed: int, one: float, two: float) -> None:
    """Each part over its normaliser times its weight; the maps stand side by side."""
    graph = graph_of(random_docs(seed, 12))
    parts: list[Any] = [BM25(fields="title:2,body", language="none"), LMIR(fields="title:2,body", language="none")]
    model = Sum(parts, weights=f"{one!r},{two!r}").fit(graph)
    maps = dense(model.map_queries(QUERIES)) @ dense(model.map_documents(IDS[:-1])).T
    parts = list(model.fitted.parts)
    norms = [[part.normaliser(part.image(part.query(query))) for query in QUERIES] for part in parts]
    for row, query in enumerate(QUERIES):
        scores = [part.score(query, IDS) for part in parts]
        assert (np.isfinite(scores[0]) == np.isfinite(scores[1])).all()
        known = np.isfinite(scores[0])
        expected = one * scores[0][known] / norms[0][row] + two * scores[1][known] / norms[1][row]
        found = model.score(query, IDS)
        close(found[known], expected)
        assert (found[~known] == -np.inf).all()
        close(maps[row][known[:-1]], expected)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_lemma_2_product(seed: int) -> None:
    graph = graph_of(random_docs(seed, 12))
    one, two = (kind(fields="body", language="none").fit(graph) for kind in (VSM, LMIR))
    # The product of the spaces, written out: (a (x) b) . (c (x) d) = (a . c) (b . d).
    q1, q2 = dense(one.map_queries(QUERIES)), dense(two.map_queries(QUERIES))
    d1, d2 = dense(one.map_documents(IDS[:-1])), dense(two.map_documents(IDS[:-1]))
    for row, query in enumerate(QUERIES):
        a, b, found = one.score(query, IDS), two.score(query, IDS), product(one, two)(query, IDS)
        known = np.isfinite(a) & np.isfinite(b)
        close(found[known], a[known] * b[known])
        assert (found[~known] == -np.inf).all()
        tensors = [np.kron(q1[row], q2[row]) @ np.kron(x, y) for x, y in zip(d1, d2, strict=True)]
        close(found[:-1][known[:-1]], np.array(tensors)[known[:-1]])


def test_a_product_of_what_cannot_be_scored_keeps_the_order(small_graph: ClickGraph) -> None:
    both = product(VSM(fields="body").fit(small_graph), BM25(fields="body").fit(small_graph))
    assert order(["rome", "ny"], both("unheardof", ["rome", "ny"])).doc_ids == ["rome", "ny"]
    assert both("pizza", ["rome", "nowhere"]).tolist()[1] == -np.inf


def test_scaling_keeps_and_turns_the_order(small_graph: ClickGraph) -> None:
    model = BM25(fields="body").fit(small_graph)
    found = model.rank("pizza city").doc_ids
    assert order(found, scaled(model, 2.5)("pizza city", found)).doc_ids == found
    assert order(found, scaled(model, -1)("pizza city", found)).doc_ids == found[::-1]
    given_ids = ["rome", "nowhere", "ny"]
    # Known documents score 0 each, and keep their places before the unknown one.
    assert order(given_ids, scaled(model, 0)("pizza city", given_ids)).doc_ids == ["rome", "ny", "nowhere"]


def test_sums_map_new_documents(small_graph: ClickGraph) -> None:
    model = Sum([VSM(fields="body"), BM25(fields="body")], weights="1,2").fit(small_graph)
    text = small_graph.field("body")[small_graph.doc_ids.index("rome")]
    images = dense(model.map_documents(["rome", Document("new", {"body": text})]))
    close(images[0], images[1])


def test_a_document_that_only_one_part_knows_is_scored() -> None:
    graph = graph_of({"a": {"title": "river"}, "b": {"body": "river"}, "c": {"title": "x"}})
    model = Sum([BM25(fields="title"), VSM(fields="body")], weights="1,1").fit(graph)
    assert np.isfinite(model.score("river", ["a", "b", "c"])).tolist() == [True, True, True]
    assert set(model.rank("river").doc_ids) == {"a", "b"}


def test_learned_weights_prefer_the_part_that_is_right() -> None:
    graph = noisy_field_graph(600)
    model = Sum([BM25(fields="noise"), LMIR(fields="good")]).fit(graph)
    assert model.weights_[0] < model.weights_[1]
    assert model.report_["weights"] == {"bm25": model.weights_[0], "lmir": model.weights_[1]}
    assert any(note.startswith("weights bm25:") for note in model.notes_)
    again = Sum([BM25(fields="noise"), LMIR(fields="good")]).fit(graph)
    assert again.weights_.tolist() == model.weights_.tolist()


def test_too_few_lists_give_equal_weights_and_a_note(small_graph: ClickGraph) -> None:
    model = Sum([VSM(), BM25()]).fit(small_graph)
    assert model.weights_.tolist() == [1, 1]
    assert any(note.endswith("weights are equal") for note in model.notes_)
    assert sum("can be held back, 50 are needed" in note for note in model.notes_) == 1


@pytest.mark.parametrize("weights", ["1", "1,2,3", "a,b", "1,nan", "1,inf", "", "0,0"])
def test_weights_that_do_not_fit(weights: str, small_graph: ClickGraph) -> None:
    with pytest.raises(SettingError, match=r"weights of vsm\+bm25 are 2 numbers, not all 0, such as 1,0.5; got"):
        Sum([VSM(), BM25()], weights=weights).fit(small_graph)


def test_a_sum_survives_saving(small_graph: ClickGraph, tmp_path: Path) -> None:
    said = {"fields": "body", "language": "english"}
    model = Sum([VSM(**said), BM25(fields="title:2,body", k1=0.7, language="english"), LMIR(**said)], weights="1,.5,2")
    model.fit(small_graph).save(tmp_path / "model")
    again = clickbridge.load(tmp_path / "model")
    assert isinstance(again, Sum)
    assert again.spec == "vsm+bm25+lmir"
    assert again.weights_.tolist() == [1, 0.5, 2]
    assert [part.get_params() for part in again.parts] == [part.get_params() for part in model.parts]
    assert repr(again) == repr(model)
    assert again.report_ == model.report_
    for query in ("ny pizza", "city", "unheardof"):
        assert again.score(query, small_graph.doc_ids).tobytes() == model.score(query, small_graph.doc_ids).tobytes()
        assert again.rank(query) == model.rank(query)
    for number in "012":  # a part is a complete model in its own folder
        assert clickbridge.load(tmp_path / "model" / "parts" / number).rank("city") == model.parts_[int(number)].rank(
            "city"
        )


def repeated(seed: int = 0) -> ClickGraph:
    """Repeated queries of two words, answered by the documents that have them in the title."""
    rng = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(30)]
    docs, log = [], []
    for i in range(200):
        pair = " ".join(rng.choice(words, 2, replace=False))
        docs.append(Document(f"d{i}", {"title": pair, "body": " ".join(rng.choice(words, 6))}))
        page = Impression(pair, [f"d{(i + 7) % 200}", f"d{i}", f"d{(i + 3) % 200}"], [f"d{i}"])
        log += [page] * int(rng.integers(3, 9))
    return ClickGraph.build(log, docs)


def test_a_sum_says_each_thing_once_and_of_the_whole_log() -> None:
    graph = repeated()
    model = build_model("bm25+pls", {"dim": 20, "min_clicks": 4}).fit(graph)
    kinds = [note.split("(")[0].split(" clicks")[0] for note in model.notes_]
    starts = [" ".join(kind.split()[:3]) for kind in kinds]
    assert len(starts) == len(set(starts)), model.notes_
    assert sum("held-back lists" in note and note.startswith("weights ") for note in model.notes_) == 1
    assert any(note.startswith("bm25: field weights") for note in model.notes_)
    assert any(note.startswith("pls: field weights") for note in model.notes_), "a latent model says its own"
    again = build_model("pls", {"dim": 20, "min_clicks": 4}).fit(graph)
    assert [note for note in model.notes_ if note.startswith("pls: views")] == [
        note for note in again.notes_ if note.startswith("pls: views")
    ]


def test_the_report_of_a_sum_is_by_part() -> None:
    report = build_model("bm25+pls", {"dim": 20}).fit(repeated()).report_
    assert report["dim"] == {"bm25": None, "pls": 20}
    assert report["views"]["bm25"] == ["word"]
    assert set(report["views"]["pls"]) == {"query", "document"}
    assert set(report["weights"]) == {"bm25", "pls"}


@pytest.mark.parametrize("spec", ["pls", "mpls", "rmls"])
def test_a_part_has_the_views_that_it_has_alone(spec: str) -> None:
    """Of four searches two share a query; without the one that is held back no query repeats, and clicks would be no
    feature."""
    docs = [
        Document("a", {"title": "river red"}),
        Document("b", {"title": "blue lake"}),
        Document("c", {"title": "hill"}),
    ]
    clicks = (("red river", "a"), ("blue lake", "b"), ("red river", "c"), ("green hill", "c"))
    graph = ClickGraph.build([Impression(query, ["a", "b", "c"], [doc_id]) for query, doc_id in clicks], docs)
    alone, in_a_sum = (build_model(name).fit(graph).report_["views"] for name in (spec, f"bm25+{spec}"))
    assert in_a_sum[spec] == alone
    assert "click" in alone["query"]


def test_known_and_new_queries_have_weights_of_their_own(tmp_path: Path) -> None:
    """Known queries are clicked on other documents than their words say: their memory is right, and words mislead. New
    queries have nothing but words."""
    docs = [Document(f"d{i}", {"title": f"word{i}"}) for i in range(60)]
    pages = []
    for n in range(1600):
        i = n * 7 % 60
        shown = [f"d{(i + j) % 60}" for j in range(6)]
        if n % 2:
            pages.append(Impression(f"word{i} again", shown, [f"d{(i + 1) % 60}"], time=float(n)))
        else:
            pages.append(Impression(f"word{i} only{n}", shown, [f"d{i}"], time=float(n)))
    model = Sum([BM25(), CosClick()]).fit(ClickGraph.build(pages, docs))
    choices = model.fitted.choices
    assert choices.weights[0] < choices.weights[1]
    assert choices.new_weights[0] > choices.weights[0]
    assert model.report_["new_weights"]["bm25"] == choices.new_weights[0]
    assert [note for note in model.notes_ if "for new ones" in note]
    assert model.rank("word7 again", 1).doc_ids == ["d8"]
    assert model.rank("word7 never asked", 1).doc_ids == ["d7"]
    model.save(tmp_path / "model")
    again = clickbridge.load(tmp_path / "model")
    for query in ("word7 again", "word7 never asked"):
        ids = [f"d{i}" for i in range(60)]
        scores = again.score(query, ids)
        np.testing.assert_array_equal(scores, model.score(query, ids))
        images = again.map_queries([query]) @ again.map_documents(ids).T
        images = np.asarray(images.todense() if hasattr(images, "todense") else images).ravel()
        np.testing.assert_allclose(images[np.isfinite(scores)], scores[np.isfinite(scores)], atol=1e-6)
