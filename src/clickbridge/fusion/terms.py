"""Queries as numbers: words, character n-grams and pairs of neighbouring words, read once for all features."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from clickbridge.fusion.fixed_arrays import Array
from clickbridge.fusion.fixed_rows import FixedRows
from clickbridge.views.char import CharCounter
from clickbridge.views.text import Analyzer
from clickbridge.views.word import BigramCounter, Vocabulary, WordCounter


class Vocabularies(NamedTuple):
    words: Vocabulary
    chars: Vocabulary
    pairs: Vocabulary


class QueryTerms(NamedTuple):
    """One row for each query. Words and pairs count once, n-grams as often as they occur."""

    words: FixedRows
    chars: FixedRows
    pairs: FixedRows

    def take(self, queries: Array) -> QueryTerms:
        return QueryTerms(*(rows.take(queries) for rows in self))


class TermReader:
    """Reads texts with fixed vocabularies. Open vocabularies grow with what is read."""

    def __init__(self, language: str, stop_words: str, vocabularies: Vocabularies, frozen: bool = True) -> None:
        analyzer = Analyzer(language, stop_words)
        self.words = WordCounter(analyzer, vocabularies.words, frozen)
        # N-grams of all words joined together connect "play station" with "playstation".
        self.chars = CharCounter(vocabularies.chars, frozen, joined=True)
        self.pairs = BigramCounter(analyzer, vocabularies.pairs, frozen)

    def read(self, texts: Sequence[str]) -> QueryTerms:
        return QueryTerms(
            _rows(dict.fromkeys(sorted(self.words.columns(text)), 1) for text in texts),
            _rows(Counter(self.chars.columns(text)) for text in texts),
            _rows(dict.fromkeys(self.pairs.columns(text), 1) for text in texts),
        )


def _rows(counts: Iterable[dict[int, int]]) -> FixedRows:
    ends, indices, data = array("q", [0]), array("i"), array("f")
    for count in counts:
        indices.extend(count)
        data.extend(count.values())
        ends.append(len(indices))
    return FixedRows(*(np.frombuffer(column, dtype=column.typecode) for column in (ends, indices, data)))
