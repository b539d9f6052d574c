"""`encode`: a function of texts gives the vectors of `dense:NAME` views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge import BM25, MPLS, PLS, ClickGraph, LSIDocTerm, Sum, load
from clickbridge.errors import InputError, SettingError
from clickbridge.graph.dense import document_text
from clickbridge.models.candidates import Candidates
from clickbridge.types import OPAQUE, Document, PairCount, ResultList
from oracles.arrays import dense
from oracles.latent import query_rows, random_clicks

GRAPH = random_clicks(31)
VIEWS: dict[str, Any] = {"dim": 10, "fields": "title:2,body", "language": "none", "views": "word,dense:letters"}


class Letters:
    """How often each letter occurs: an embedding anybody can check. Remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: list[str]) -> np.ndarray[Any, Any]:
        assert isinstance(texts, list)
        self.asked += texts
        return np.array([[text.count(c) + 0.01 for c in "abcdefghijklmnopqrstuvwxyz"] for text in texts])


def block(model: Any, features: Any, view: str) -> np.ndarray[Any, Any]:
    """The columns of one view of query features."""
    spans = dict(zip(model.q_views_.terms, model.q_views_.spans, strict=True))
    return dense(features)[:, slice(*spans[view])]


def unit(rows: Any) -> np.ndarray[Any, Any]:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", [PLS, MPLS])
def test_both_sides_are_encoded(kind: type[PLS]) -> None:
    letters = Letters()
    model = kind(**VIEWS, encode={"letters": letters}).fit(GRAPH)
    keys = model.queries_.keys
    np.testing.assert_allclose(block(model, model.query_features_, "dense:letters"), unit(letters(keys)), rtol=1e-5)
    with_text = [i for i, d in enumerate(GRAPH.doc_ids) if d != "d19"]
    texts = [document_text({n: GRAPH.field(n)[i] for n in ("title", "body")}) for i in with_text]
    stored = dense(model.doc_features_)[with_text][:, slice(*model.d_views_.spans[1])]
    np.testing.assert_allclose(stored, unit(letters(texts)), rtol=1e-5)
    assert not dense(model.doc_features_)[19].any(), "a document without text is not encoded"
    assert "" not in letters.asked


def test_new_queries_and_documents_are_encoded() -> None:
    model = PLS(**VIEWS, encode={"letters": Letters()}).fit(GRAPH)
    features = query_rows(model, ["hippopotamus", model.queries_.keys[0]])
    np.testing.assert_allclose(
        block(model, features, "dense:letters")[0], unit(Letters()(["hippopotamus"]))[0], rtol=1e-5
    )
    assert not block(model, features, "word")[0].any(), "none of its words is known"
    assert len(model.rank("hippopotamus")), "and yet it is answered"
    new = model.map_documents([Document("x", {"body": "zebra", "title": "quagga"})])
    same = model.map_documents([Document("y", {"title": "quagga", "body": "zebra"})])
    np.testing.assert_array_equal(new, same)
    assert new.any()


def test_it_is_not_saved_and_can_be_set_again(tmp_path: Path) -> None:
    encode = {"letters": Letters()}
    model = PLS(**VIEWS, encode=encode).fit(GRAPH)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, PLS)
    assert not again.encode
    known, new = model.queries_.keys[0], "apple hippopotamus"
    ids = model.doc_ids_
    np.testing.assert_array_equal(again.score(known, ids), model.score(known, ids))
    lacking, whole = query_rows(again, [new]), query_rows(model, [new])
    assert not block(again, lacking, "dense:letters").any()
    np.testing.assert_array_equal(block(again, lacking, "word"), block(model, whole, "word"))
    again = load(tmp_path / "model", encode=encode)
    assert again.get_params()["encode"] == encode
    np.testing.assert_array_equal(again.score(new, ids), model.score(new, ids))
    with pytest.raises(SettingError, match="encode has 'numbers', but no part of pls has the view dense:numbers"):
        load(tmp_path / "model", encode={**encode, "numbers": Letters()})


def test_every_part_of_a_sum_gets_the_function_that_it_needs(tmp_path: Path) -> None:
    encode = {"letters": Letters()}
    settings = {**VIEWS, "encode": encode}
    model = Sum([BM25(fields="title:2,body"), PLS(**settings), MPLS(**settings)], weights="1,1,1").fit(GRAPH)
    model.save(tmp_path / "model")
    new, ids = "apple hippopotamus", model.doc_ids_
    lacking, again = load(tmp_path / "model"), load(tmp_path / "model", encode=encode)
    assert lacking.score(new, ids).tolist() != model.score(new, ids).tolist()
    np.testing.assert_array_equal(again.score(new, ids), model.score(new, ids))
    assert [getattr(part, "encode", None) for part in again.parts] == [None, encode, encode]  # type: ignore[attr-defined]


def test_vectors_that_are_there_stay() -> None:
    """Those of the GRAPH, of a list and of a document come before those the function would make."""
    graph = random_clicks(32, vectors=26)
    graph.vectors["m"]["query"][3] = np.nan
    letters = Letters()
    model = PLS(**VIEWS | {"views": "dense:m"}, encode={"m": letters}).fit(graph)
    assert letters.asked == [graph.query_keys[3]]
    own = unit(graph.vectors["m"]["query"])
    row = model.queries_.numbers[graph.query_keys[5]]
    np.testing.assert_allclose(dense(model.query_features_)[row], own[5], rtol=1e-5)
    brought = {"m": [1.0] + [0.0] * 25}
    lists = [ResultList("1", "new", ["d0"], vectors=brought), ResultList("2", "also new", ["d0"])]
    letters.asked.clear()
    fitted: Any = model.fitted
    images = fitted.map_keys(Candidates.of(lists, fitted.catalogue, fitted.queries).queries)
    assert letters.asked == ["also new"]
    np.testing.assert_allclose(images[0], model.spaces_[0].l_x[0], rtol=1e-5)
    features = fitted.new_features([Document("x", {"title": "lamp"}, vectors=brought), Document("y")])
    np.testing.assert_array_equal(dense(features), [brought["m"], [0.0] * 26])


def test_one_encoding_serves_many_fits() -> None:
    letters = Letters()
    graph = GRAPH.encoded({"letters": letters})
    asked = len(letters.asked)
    assert asked == GRAPH.n_queries + GRAPH.n_docs - 1
    one = PLS(**VIEWS).fit(graph)
    two = PLS(**VIEWS, encode={"letters": letters}).fit(graph)
    assert len(letters.asked) == asked
    key = one.queries_.keys[0]
    np.testing.assert_array_equal(one.score(key, one.doc_ids_), two.score(key, two.doc_ids_))
    assert GRAPH.vectors == {}
    MPLS(**VIEWS, encode={"letters": letters}).fit(GRAPH)
    # Tuning does not encode twice, but for held-back queries that are new to the rest.
    assert 2 * asked <= len(letters.asked) < 2.1 * asked


def test_a_query_known_by_id_alone_is_not_encoded() -> None:
    log = [PairCount("", "d0", 2, query_id="7"), PairCount("lamp", "d1", 1)]
    letters = Letters()
    graph = ClickGraph.build(log, [Document("d0", {"title": "river"}), Document("d1", {"title": "stone"})])
    model = PLS(**VIEWS | {"fields": "title", "views": "d.word,dense:letters,q.id"}, encode={"letters": letters}).fit(
        graph
    )
    assert sorted(letters.asked) == ["lamp", "river", "stone"]
    assert query_rows(model, [OPAQUE + "9"]).nnz == 0


def test_an_update_encodes_what_is_new() -> None:
    model = PLS(**VIEWS, encode={"letters": Letters()}).fit(GRAPH)
    model.update(
        [PairCount("hippopotamus", "x", 3)], [Document("x", {"title": "zoo"}), Document("d1", {"title": "pond"})]
    )
    row = block(model, model.query_features_, "dense:letters")[model.queries_.numbers["hippopotamus"]]
    np.testing.assert_allclose(row, unit(Letters()(["hippopotamus"]))[0], rtol=1e-5)
    span = slice(*model.d_views_.spans[1])
    for doc_id, text in (("x", "zoo"), ("d1", "pond")):
        found = dense(model.doc_features_)[model.catalogue_.numbers[doc_id]][span]
        np.testing.assert_allclose(found, unit(Letters()([text]))[0], rtol=1e-5)
    assert np.isfinite(model.score("hippopotamus", ["x", "d1"])).all()


def test_a_changed_document_keeps_its_vector_unless_it_brings_one() -> None:
    graph = random_clicks(33, vectors=3)
    model = PLS(dim=6, views="word,dense:m", fields="title:2,body", language="none").fit(graph)
    span = slice(*model.d_views_.spans[1])
    before = dense(model.doc_features_)[:, span]
    model.update(
        [], [Document("d2", {"title": "lamp"}), Document("d3", {"title": "lamp"}, vectors={"m": [0.0, 2.0, 0.0]})]
    )
    after = dense(model.doc_features_)[:, span]
    np.testing.assert_array_equal(after[2], before[2])
    assert after[3].tolist() == [0, 1, 0]
    words = [model.d_views_.feature(c)[1] for c in model.doc_features_[[2]].indices if c < model.d_views_.spans[0][1]]
    assert words == ["lamp"]


def test_settings_come_and_go() -> None:
    encode = {"letters": Letters()}
    model = PLS(**VIEWS, encode=encode)
    params = model.get_params()
    assert params["encode"] is encode
    copy = PLS(**params)
    assert copy.get_params() == params
    assert PLS(**VIEWS).set_params(**params).encode is encode
    assert "encode" not in model.set_params(encode=None).get_params()
    assert "encode" not in PLS(**VIEWS).get_params()


def test_what_is_refused() -> None:
    with pytest.raises(SettingError, match="encode has 'x', but views have no dense:x"):
        PLS(**VIEWS, encode={"x": Letters()}).fit(GRAPH)
    with pytest.raises(SettingError, match="encode has 'letters', but views have no dense:letters"):
        LSIDocTerm(encode={"letters": Letters()}).fit(GRAPH)
    for wrong, line in (
        (lambda texts: np.zeros((1, 3)), "expected 25, got shape"),
        (lambda texts: [1.0] * len(texts), "got shape"),
        (lambda texts: [[1.0] * (i % 2 + 1) for i in range(len(texts))], "all of one length"),
    ):
        with pytest.raises(InputError, match=line):
            PLS(**VIEWS, encode={"letters": wrong}).fit(GRAPH)
    graph = random_clicks(32, vectors=3)
    graph.vectors["m"]["doc"][0] = np.nan
    with pytest.raises(InputError, match="'m' gives vectors of 26 numbers where others have 3"):
        PLS(dim=4, views="dense:m", encode={"m": Letters()}).fit(graph)
