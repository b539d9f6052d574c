"""Replaces words that a collection does not have by similar words that it has: misspelled, joined or split words.

A word is looked up by its character pairs and triples, with its ends marked: it is replaced by the known words that
share most of them (Dice's coefficient). Two typed words that are one word in the collection, and the other way round,
are found by joining and splitting.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import Any

import numpy as np

from clickbridge.views.text import Analyzer, Memo, tokens_of
from clickbridge.views.word import Vocabulary

SIZES = (2, 3)
LEAST_ALIKE = 0.5
MOST_NEAR = 3
SHORTEST = 3
"""Shorter words are not replaced: they are similar to too many others."""
LONGEST = 64
"""Only this many characters of longer words are compared."""
KEPT = 1 << 10

NONE = np.empty(0, dtype=np.intp)

Weighted = dict[int, float]
"""Columns of the vocabulary, and the weight of each: 1 for a word that was found exactly."""


def grams(word: str) -> set[str]:
    marked = f"<{word[:LONGEST]}>"
    return {marked[i : i + size] for size in SIZES for i in range(len(marked) - size + 1)}


class NearWords:
    """Finds similar words in a vocabulary. It caches a limited number of words."""

    def __init__(self, analyzer: Analyzer, vocabulary: Vocabulary) -> None:
        self.analyzer, self.vocabulary = analyzer, vocabulary
        having: dict[str, array[int]] = defaultdict(lambda: array("q"))
        self.sizes = np.zeros(len(vocabulary), dtype=np.intp)
        for term, number in vocabulary.items():
            own = grams(term)
            self.sizes[number] = len(own)
            for gram in own:
                having[gram].append(number)
        self.having = {gram: np.frombuffer(numbers, dtype=np.int64) for gram, numbers in having.items()}
        self._near: Memo[tuple[int, float]] = Memo(self._look_up, KEPT)

    def __reduce__(self) -> Any:
        return NearWords, (self.analyzer, self.vocabulary)

    def columns(self, text: str) -> Weighted:
        """The known words that replace a text of unknown words."""
        tokens = tokens_of(text)
        joined = self._known("".join(tokens)) if len(tokens) > 1 else {}
        if joined:
            return joined
        out: Weighted = {}
        for token in tokens:
            for column, weight in self._near[token]:
                out[column] = max(out.get(column, 0.0), weight)
        return out

    def _look_up(self, token: str) -> tuple[tuple[int, float], ...]:
        found = self._known(token) or self._cut(token) or self._alike(token)
        return tuple(found.items())

    def _known(self, token: str) -> Weighted:
        numbers = map(self.vocabulary.get, self.analyzer.all_terms[token])
        return {number: 1.0 for number in numbers if number is not None}

    def _cut(self, token: str) -> Weighted:
        """Splits a word into two known words; the most even split first."""
        places = range(SHORTEST, min(len(token), LONGEST) - SHORTEST + 1)
        for place in sorted(places, key=lambda i: abs(2 * i - len(token))):
            one, two = self._known(token[:place]), self._known(token[place:])
            if one and two:
                return one | two
        return {}

    def _alike(self, token: str) -> Weighted:
        if len(token) < SHORTEST:
            return {}
        own = grams(next(iter(self.analyzer.all_terms[token]), token))
        lists = [self.having[gram] for gram in own if gram in self.having]
        shared = np.bincount(np.concatenate([NONE, *lists]), minlength=len(self.sizes))
        values = 2 * shared / (len(own) + self.sizes)
        near = np.nonzero(values >= LEAST_ALIKE)[0]
        best = near[np.argsort(-values[near], kind="stable")[:MOST_NEAR]]
        return dict(zip(best.tolist(), values[best].tolist(), strict=True))
