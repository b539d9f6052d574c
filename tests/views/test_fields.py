"""Documents of several fields: one pattern, a count for each field."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickbridge.errors import SettingError
from clickbridge.views.fields import FieldCounts, count_fields, default_weights, parse_fields
from clickbridge.views.text import Analyzer
from clickbridge.views.word import Vocabulary, WordCounter

ROW = st.tuples(*[st.text("abc ", max_size=12)] * 3)
NAMES = ("title", "body", "url")


def counted(rows: list[tuple[str, str, str]]) -> tuple[FieldCounts, list[str]]:
    vocabulary = Vocabulary()
    texts = {name: [row[f] for row in rows] for f, name in enumerate(NAMES)}
    return count_fields(WordCounter(Analyzer("none"), vocabulary), texts, len(rows)), vocabulary.terms


def as_dicts(counts: FieldCounts, terms: list[str]) -> list[dict[tuple[str, str], float]]:
    out: list[dict[tuple[str, str], float]] = [{} for _ in range(counts.n_docs)]
    for row, column, values in zip(counts.rows, counts.pattern.indices, counts.values, strict=True):
        for name, value in zip(counts.names, values, strict=True):
            if value:
                out[row][name, terms[column]] = value
    return out


@given(st.lists(ROW, max_size=6))
def test_counts_equal_counters(rows: list[tuple[str, str, str]]) -> None:
    counts, terms = counted(rows)
    expected = [Counter((name, t) for name, text in zip(NAMES, row, strict=True) for t in text.split()) for row in rows]
    assert as_dicts(counts, terms) == [dict(c) for c in expected]
    assert counts.lengths.tolist() == [[len(text.split()) for text in row] for row in rows]
    in_docs = Counter(t for c in expected for t in {t for _, t in c})
    assert counts.document_frequency().tolist() == [in_docs[t] for t in terms]


def test_no_field_and_no_document() -> None:
    counter = WordCounter(Analyzer(), Vocabulary())
    assert count_fields(counter, {}, 3).lengths.shape == (3, 0)
    empty = count_fields(counter, {"title": []}, 0)
    assert empty.n_docs == 0
    assert empty.values.shape == (0, 1)


def test_url_field_is_split() -> None:
    counts, terms = counted([("", "http://www.a.html", "http://www.a.html")])
    assert as_dicts(counts, terms) == [
        {("body", "http"): 1, ("body", "www"): 1, ("body", "a"): 1, ("body", "html"): 1, ("url", "a"): 1}
    ]


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("title", {"title": 1}),
        ("title:3,body", {"title": 3, "body": 1}),
        (" body : .5 , title:0 ", {"body": 0.5, "title": 0}),
        ("body:1e2", {"body": 100}),
    ],
)
def test_field_weights(text: str, weights: dict[str, float]) -> None:
    assert parse_fields(text, NAMES) == weights


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("titel", "no field 'titel' in the documents; they have title, body, url"),
        ("", "no field ''"),
        ("title,,body", "no field ''"),
        ("title:x", "a field weight is a number, at least 0, such as title:3; got 'title:x'"),
        ("title:-1", "at least 0"),
        ("title:nan", "at least 0"),
        ("title:inf", "at least 0"),
        ("title:0,body:0", "at least one field needs a weight above 0"),
    ],
)
def test_wrong_field_weights_say_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_fields(text, NAMES)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_field_without_any() -> None:
    with pytest.raises(SettingError, match="they have none"):
        parse_fields("title", [])


def test_default_weights() -> None:
    assert default_weights(["body", "title", "name", "heading", "url"]).tolist() == [1, 3, 3, 3, 1]
