"""Unknown words stand for known ones like them, cut or joined; only where a query has no known word at all."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from clickbridge import BM25, ClickGraph
from clickbridge.types import Document, PairCount
from clickbridge.views.near_words import LEAST_ALIKE, MOST_NEAR, NearWords, grams
from clickbridge.views.text import Analyzer
from clickbridge.views.word import Vocabulary

WORDS = ["battlefield", "playstation", "play", "guitar", "hero", "batman", "xbox"]


@pytest.fixture(scope="module")
def near() -> NearWords:
    return NearWords(Analyzer("none", "keep"), Vocabulary(WORDS))


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("batlefield", {"battlefield"}),
        ("guitarhero", {"guitar", "hero"}),
        ("play station", {"playstation"}),
        ("bat man", {"batman"}),
        ("xbocks", set()),
        ("qq", set()),
    ],
)
def test_what_stands_for_what(near: NearWords, typed: str, found: set[str]) -> None:
    assert {WORDS[column] for column in near.columns(typed)} == found


def test_a_whole_word_counts_more_than_one_like_it(near: NearWords) -> None:
    assert near.columns("guitarhero") == {3: 1.0, 4: 1.0}
    (weight,) = near.columns("batlefield").values()
    assert 0.5 <= weight < 1


def test_like_words_are_those_of_dice_s_coefficient() -> None:
    rng = np.random.default_rng(5)
    words = list(dict.fromkeys("".join(rng.choice(list("abc"), size)) for size in rng.integers(2, 9, 300)))
    near = NearWords(Analyzer("none", "keep"), Vocabulary(words))
    for typed in ("".join(rng.choice(list("abcd"), size)) for size in rng.integers(4, 9, 100)):
        own = grams(typed)
        dice = {n: 2 * len(own & grams(w)) / (len(own) + len(grams(w))) for n, w in enumerate(words)}
        best = sorted((n for n in dice if dice[n] >= LEAST_ALIKE), key=lambda n: (-dice[n], n))[:MOST_NEAR]
        assert near._alike(typed) == {n: dice[n] for n in best}
    assert NearWords(Analyzer("none", "keep"), Vocabulary()).columns("abcd") == {}


def test_a_copy_finds_the_same(near: NearWords) -> None:
    copied = pickle.loads(pickle.dumps(near))  # noqa: S301 - our own bytes
    assert copied.columns("batlefield") == near.columns("batlefield")


def test_bm25_backs_off_only_where_it_knows_no_word() -> None:
    docs = [Document("a", {"title": "Battlefield 3"}), Document("b", {"title": "Guitar Hero"})]
    graph = ClickGraph.build([PairCount("battlefield", "a")], docs)
    model = BM25().fit(graph)
    assert model.rank("batlefeild").doc_ids == ["a"]
    assert model.rank("guitarhero").doc_ids == ["b"]
    assert model.rank("batlefeild hero").doc_ids == ["b"], "one known word, and nothing is guessed"
    assert not model.rank("zzzzzz")
    assert not BM25(unknown_words="drop").fit(graph).rank("batlefeild")
    one, many = model.rank("guitarhero"), model.rank_many(["guitarhero", "hero"])[0]
    assert one.doc_ids == many.doc_ids
