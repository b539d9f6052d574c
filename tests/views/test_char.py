"""Character n-grams of words, and of all words run together."""

from __future__ import annotations

from collections import Counter

from clickbridge.views.char import CharCounter
from clickbridge.views.text import char_ngrams
from clickbridge.views.word import Vocabulary

TEXTS = ["Play Station", "playstation", "", "play"]


def counted(joined: bool) -> list[Counter[str]]:
    vocabulary = Vocabulary()
    rows = CharCounter(vocabulary, joined=joined).count(TEXTS).toarray()
    return [Counter({vocabulary.terms[j]: int(n) for j, n in enumerate(row) if n}) for row in rows]


def test_words_are_cut_one_by_one() -> None:
    assert counted(joined=False)[0] == Counter(char_ngrams(["play", "station"], 3, 5))


def test_joined_adds_those_of_the_words_run_together() -> None:
    apart, together, nothing, one = counted(joined=True)
    assert apart == Counter(char_ngrams(["play", "station", "playstation"], 3, 5))
    assert not nothing
    assert together == Counter(char_ngrams(["playstation"], 3, 5))
    assert one == Counter(char_ngrams(["play"], 3, 5))
    assert together <= apart


def test_a_frozen_counter_joins_too() -> None:
    vocabulary = Vocabulary()
    known = CharCounter(vocabulary, joined=True).count(["playstation"]).toarray()[0]
    found = CharCounter(vocabulary, frozen=True, joined=True).count(["play station"]).toarray()[0]
    assert (found >= known).all()
