"""Every view, fitted and applied to new texts; lists of views; a stack through an artifact."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge.errors import MissingPart, SettingError
from clickbridge.io.artifact import ArtifactWriter, open_artifact
from clickbridge.io.values import read_value, write_value
from clickbridge.views.stack import ViewStack, parse_views
from clickbridge.views.text import Analyzer, char_ngrams
from clickbridge.views.view import Source, ViewTerm, unit_rows
from clickbridge.views.word import Vocabulary, WordCounter
from oracles.arrays import dense

TITLES = ["Red river", "river stone", "", "stone Café"]
BODIES = ["stone red stone", "", "", "salt"]
CLICKS = sparse.csr_array(np.array([[2, 0, 1], [0, 3, 0], [0, 0, 0], [1, 1, 1]], dtype=np.float32))
OTHERS = {"query": ["salt lake", "stone age", "salt"]}
VECTORS = np.array([[3, 4], [np.nan, np.nan], [0, 0], [1, 0]], dtype=np.float32)
SOURCE = Source(
    {"title": TITLES, "body": BODIES}, 4, CLICKS, OTHERS, ["salt lake", "stone age", "salt"], {"m": VECTORS}
)
ALL = ["word", "word:title", "bigram", "char:title", "click", "clicktext", "id", "dense:m"]


def fitted(term: str, source: Source = SOURCE) -> tuple[Any, Any]:
    asked = ViewTerm(term, "none", "keep")
    return asked.kind.fit(asked, source)


def as_words(view: Any, row: Any) -> dict[str, float]:
    return {view.feature(int(c)): float(row[c]) for c in np.flatnonzero(row)}


@pytest.mark.parametrize("term", ALL)
def test_rows_are_of_unit_length_or_empty(term: str) -> None:
    view, rows = fitted(term)
    assert rows.shape == (4, view.width)
    assert rows.dtype == np.float32
    assert view.name == term
    lengths = np.linalg.norm(dense(rows), axis=1)
    assert np.isclose(lengths, 1, atol=1e-6).tolist() == (lengths > 0).tolist()
    assert lengths[0] > 0
    assert (lengths[2] > 0) == (term == "id"), "the third item has nothing but itself"
    assert all(view.feature(column) for column in range(view.width))


@pytest.mark.parametrize("term", ALL)
def test_the_same_items_again_give_the_same_rows(term: str) -> None:
    view, rows = fitted(term)
    again = view.transform(SOURCE)
    expected = np.zeros((4, 4)) if term == "id" else dense(rows)
    np.testing.assert_allclose(dense(again), expected, atol=1e-6)


@pytest.mark.parametrize("term", ALL)
def test_new_items_get_what_their_text_allows(term: str) -> None:
    view, rows = fitted(term)
    texts = {"title": ["red river", "unheardof"], "body": ["stone red stone", ""]}
    new = dense(view.transform(Source(texts, 2)))
    assert new.shape == (2, view.width)
    if view.of_text:
        np.testing.assert_allclose(new[0], dense(rows)[0], atol=1e-6)
        assert not new[1].any()
    else:
        assert not new.any()


@pytest.mark.parametrize("term", ["word", "bigram", "char", "clicktext"])
def test_a_side_without_items(term: str) -> None:
    view, rows = fitted(term, Source({"title": []}, 0, sparse.csr_array((0, 3), dtype=np.float32), OTHERS))
    assert rows.shape == (0, view.width)
    view.transform(Source({"title": ["x"]}, 1))


def test_words_by_hand() -> None:
    """tf of the weighted fields times log(1 + N / df), then unit length."""
    weighted = Source({"title": TITLES, "body": BODIES}, 4, field_weights={"title": 3.0, "body": 1.0})
    view, rows = fitted("word", weighted)
    raw = {"red": 4 * np.log1p(4 / 1), "river": 3 * np.log1p(4 / 2), "stone": 2 * np.log1p(4 / 3)}
    norm = np.sqrt(sum(v * v for v in raw.values()))
    assert as_words(view, dense(rows)[0]) == pytest.approx({k: v / norm for k, v in raw.items()}, rel=1e-5)


def test_one_field_alone() -> None:
    view, rows = fitted("word:title")
    assert set(as_words(view, dense(rows)[3])) == {"stone", "cafe"}
    with pytest.raises(MissingPart, match="view word:year: no such field; there are title, body"):
        fitted("word:year")


def test_bigrams_and_characters_by_hand() -> None:
    view, rows = fitted("bigram")
    assert len(as_words(view, dense(rows)[0])) == 3  # red river, stone red, red stone
    view, rows = fitted("char:title")
    expected = {gram for word in ("red", "river") for gram in char_ngrams([word], 3, 5)}
    assert set(as_words(view, dense(rows)[0])) == expected
    wrong = view.transform(Source({"title": ["rivre"]}, 1))
    assert 0 < (dense(wrong) @ dense(rows)[0])[0] < 1, "a misspelling is near"


def test_clicks_by_hand() -> None:
    view, rows = fitted("click")
    raw = np.log1p([2, 0, 1])
    np.testing.assert_allclose(dense(rows)[0], raw / np.linalg.norm(raw), rtol=1e-6)
    assert view.feature(0) == "salt lake"
    wider = sparse.csr_array(np.array([[2, 0, 1, 7]], dtype=np.float32))
    np.testing.assert_allclose(dense(view.transform(Source({}, 1, wider)))[0], raw / np.linalg.norm(raw), rtol=1e-6)
    with pytest.raises(MissingPart, match="view click needs clicks"):
        fitted("click", Source({"title": TITLES}, 4))


def test_click_text_is_the_words_of_what_was_clicked() -> None:
    view, rows = fitted("clicktext")
    raw = {"salt": 3 * np.log1p(4 / 2), "lake": 2 * np.log1p(4 / 2)}
    norm = np.sqrt(sum(v * v for v in raw.values()))
    assert as_words(view, dense(rows)[0]) == pytest.approx({k: v / norm for k, v in raw.items()}, rel=1e-5)


def test_dense_vectors() -> None:
    view, rows = fitted("dense:m")
    np.testing.assert_allclose(dense(rows), [[0.6, 0.8], [0, 0], [0, 0], [1, 0]], rtol=1e-6)
    assert view.feature(1) == "m[1]"
    with pytest.raises(MissingPart, match="view dense:other: no such vectors; there are m"):
        fitted("dense:other")
    with pytest.raises(SettingError, match="vectors of 2 numbers are needed, got 3"):
        view.transform(Source({}, 1, vectors={"m": np.ones((1, 3))}))


def test_a_missing_view_never_changes_another_s_scale() -> None:
    rows = dense(ViewStack.fit(["word", "dense:m"], SOURCE, "none")[1])
    words = dense(ViewStack.fit(["word"], SOURCE, "none")[1])
    np.testing.assert_allclose(rows[:, : words.shape[1]], words, atol=1e-7)


def test_unit_rows() -> None:
    matrix = sparse.csr_array(np.array([[0, 0], [3, 4], [0, 0], [0, -2], [0, 0]], dtype=np.float64))
    np.testing.assert_allclose(dense(unit_rows(matrix)), [[0, 0], [0.6, 0.8], [0, 0], [0, -1], [0, 0]], rtol=1e-6)
    assert matrix.data.tolist() == [3, 4, -2], "a copy"
    assert unit_rows(sparse.csr_array((3, 0))).shape == (3, 0)
    zero = sparse.csr_array((np.zeros(1), np.zeros(1, dtype=int), np.array([0, 1])), shape=(1, 1))
    assert np.isfinite(dense(unit_rows(zero))).all()


# --- lists of views ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "query", "document"),
    [
        ("word", ["word"], ["word"]),
        ("word, char:title ,click", ["word", "char", "click"], ["word", "char:title", "click"]),
        ("word,word:title", ["word"], ["word", "word:title"]),
        ("q.word,d.click", ["word"], ["click"]),
        ("q.dense:m,d.word:title", ["dense:m"], ["word:title"]),
        ("dense:m,dense:n", ["dense:m", "dense:n"], ["dense:m", "dense:n"]),
        ("word,word,q.word", ["word"], ["word"]),
        ("clicktext,id,bigram", ["clicktext", "id", "bigram"], ["clicktext", "id", "bigram"]),
    ],
)
def test_lists_of_views(text: str, query: list[str], document: list[str]) -> None:
    assert parse_views(text) == (query, document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("words", "no view 'words'; there are word, bigram"),
        ("", "no view ''"),
        ("word,", "no view ''"),
        ("x.word", "no view 'x.word'"),
        ("dense", "dense needs the name of the vectors"),
        ("q.dense", "dense needs the name of the vectors"),
        ("click:title", "view click takes no field"),
        ("d.id:x", "view id takes no field"),
        ("q.word", "leave the document side without any"),
        ("d.word,d.click", "leave the query side without any"),
    ],
)
def test_lists_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        parse_views(text)


# --- stacks ------------------------------------------------------------------------------------------


def test_a_stack_is_its_views_side_by_side() -> None:
    stack, fitted_rows = ViewStack.fit(ALL, SOURCE, "none")
    rows = dense(fitted_rows)
    assert rows.shape == (4, stack.width)
    for view, term, (start, stop) in zip(stack.views, ALL, stack.spans, strict=True):
        np.testing.assert_allclose(rows[:, start:stop], dense(fitted(term)[1]), atol=1e-7)
        assert stack.feature(start) == (term, view.feature(0))
        assert stack.feature(stop - 1) == (term, view.feature(stop - start - 1))
    with pytest.raises(IndexError, match=f"column {stack.width} of {stack.width}"):
        stack.feature(stack.width)


def test_a_stack_survives_an_artifact(tmp_path: Path) -> None:
    stack, _ = ViewStack.fit(ALL, SOURCE, "none")
    with ArtifactWriter(tmp_path / "views", "model") as writer:
        writer.commit(views=write_value(writer, "side", stack))
    artifact = open_artifact(tmp_path / "views", "model")
    again = read_value(artifact, artifact.manifest["views"])
    assert isinstance(again, ViewStack)
    assert again.terms == stack.terms
    assert again.spans == stack.spans
    np.testing.assert_array_equal(dense(again.transform(SOURCE)), dense(stack.transform(SOURCE)))
    for column in range(stack.width):
        assert again.feature(column) == stack.feature(column)


@pytest.mark.parametrize("terms", [["word"], ["word", "bigram", "char"], ["word", "click", "dense:m", "char"]])
@pytest.mark.parametrize("text", ["red river stone", "unheardof", "", "Café café river"])
def test_the_row_of_one_text_is_that_of_many(terms: list[str], text: str) -> None:
    """One query takes a short cut past the matrices; it must lead to the same place."""
    stack, _ = ViewStack.fit(terms, Source({"query": TITLES}, 4, CLICKS, OTHERS, list("abc"), {"m": VECTORS}), "none")
    vectors = {"m": [2.0, 1.0]}
    row = stack.row(text, vectors)
    whole = stack.transform(Source({"query": [text]}, 1, vectors={"m": np.array([[2.0, 1.0]], dtype=np.float32)}))
    found = np.zeros(stack.width)
    found[row.columns] = row.values
    np.testing.assert_allclose(found, dense(whole)[0], atol=1e-6)
    assert (np.diff(row.columns) > 0).all()


def test_a_vocabulary_knows_how_its_stems_are_written() -> None:
    known = Vocabulary()
    WordCounter(Analyzer("english"), known).count(["Primitive dinosaurs", "a dinosaur, HTTPServer"])
    assert known.written == {"primit": "primitive", "dinosaur": "dinosaurs"}
    again = Vocabulary.from_stored(known.to_stored())
    assert (again, again.written) == (known, known.written)
    other = copy.deepcopy(known)
    assert (other, other.written) == (known, known.written)
    assert Vocabulary.from_stored(["primit"]).written == {}, "as models of an earlier day have it"
