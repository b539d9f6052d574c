"""The word view against a plain Counter."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickbridge.views.text import Analyzer
from clickbridge.views.word import Vocabulary, WordCounter, count_words, widen
from oracles.arrays import dense

TEXTS = st.lists(st.text("abcAB é'本-", max_size=20), max_size=8)


def rows_of(counter: WordCounter, texts: list[str], url: bool = False) -> list[dict[str, float]]:
    matrix = counter.count(texts, url)
    terms = counter.vocabulary.terms
    assert matrix.shape == (len(texts), len(terms))
    assert matrix.dtype == np.float32
    assert matrix.has_sorted_indices
    return [
        {terms[i]: c for i, c in zip(matrix.indices[s:e], matrix.data[s:e], strict=True)}
        for s, e in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]


@given(TEXTS, st.sampled_from(["keep", "drop"]))
def test_counts_equal_a_counter(texts: list[str], stop_words: str) -> None:
    analyzer = Analyzer("english", stop_words)
    rows = rows_of(WordCounter(analyzer, Vocabulary()), texts)
    assert rows == [dict(Counter(analyzer.terms(text))) for text in texts]


@given(TEXTS, TEXTS, st.sampled_from(["keep", "drop"]))
def test_a_frozen_vocabulary_drops_the_unknown(known: list[str], new: list[str], stop_words: str) -> None:
    analyzer = Analyzer("english", stop_words)
    vocabulary = Vocabulary()
    WordCounter(analyzer, vocabulary).count(known)
    before = dict(vocabulary)
    rows = rows_of(WordCounter(analyzer, vocabulary, frozen=True), new)
    assert dict(vocabulary) == before
    assert rows == [{t: c for t, c in Counter(analyzer.terms(text)).items() if t in before} for text in new]


def test_numbers_follow_first_occurrence() -> None:
    vocabulary = Vocabulary()
    counter = WordCounter(Analyzer("none"), vocabulary)
    assert counter.columns("b a b c") == [0, 1, 0, 2]
    assert vocabulary.terms == ["b", "a", "c"]
    assert dict(Vocabulary(vocabulary.terms)) == dict(vocabulary)


@pytest.mark.parametrize("texts", [[], [""], ["", "?"]])
def test_nothing_to_count(texts: list[str]) -> None:
    assert rows_of(WordCounter(Analyzer(), Vocabulary()), texts) == [{}] * len(texts)


def test_unknown_words_alone_do_not_bring_stop_words_back() -> None:
    analyzer = Analyzer("english", "drop")
    counter = WordCounter(analyzer, Vocabulary(["the", "citi"]), frozen=True)
    assert counter.columns("the unheard") == []
    assert counter.columns("the") == [0]
    assert counter.columns("the city") == [1]


def test_urls() -> None:
    rows = rows_of(WordCounter(Analyzer("none"), Vocabulary()), ["http://www.a-b.org/a.html"], url=True)
    assert rows == [{"a": 2, "b": 1, "org": 1}]


def test_widened_rows_are_the_same() -> None:
    counter = WordCounter(Analyzer("none"), Vocabulary())
    first = counter.count(["a b"])
    counter.count(["c d"])
    assert dense(widen(first, 4)).tolist() == [[1, 1, 0, 0]]


def test_count_words_puts_both_sides_on_one_vocabulary() -> None:
    queries, docs = count_words(["a cat", "the"], {"title": ["cats", ""], "url": ["http://www.cat.org", ""]}, 2)
    assert queries.shape[1] == docs.shape[1] == 3  # cat, the (alone in its text), org
    assert dense(queries).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert dense(docs).tolist() == [[2, 0, 1], [0, 0, 0]]
