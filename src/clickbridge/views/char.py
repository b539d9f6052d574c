"""The character view: n-grams of words, which survive misspellings and run-together words."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

from scipy import sparse

from clickbridge.views.text import char_ngrams, fold_accents, tokens_of, url_words
from clickbridge.views.word import Vocabulary, counts_matrix

SHORTEST, LONGEST = 3, 5


class CharCounter:
    """Counts character n-grams of many texts. Each distinct token is cut once. `joined` adds those of all words run
    together, which bridge "play station" and "playstation"; it is meant for short texts."""

    def __init__(self, vocabulary: Vocabulary, frozen: bool = False, joined: bool = False) -> None:
        self.vocabulary, self.joined = vocabulary, joined
        self._columns = _Cut(vocabulary.get if frozen else vocabulary.number)

    def count(self, texts: Iterable[str], url: bool = False) -> sparse.csr_array:
        columns, ends = array("i"), array("q", [0])
        for text in texts:
            tokens = tokens_of(url_words(text) if url else text)
            for cut in map(self._columns.__getitem__, tokens):
                columns.extend(cut)
            if self.joined and len(tokens) > 1:
                columns.extend(self._columns.cut("".join(tokens)))
            ends.append(len(columns))
        return counts_matrix(columns, ends, len(self.vocabulary))


class _Cut(dict[str, tuple[int, ...]]):
    def __init__(self, find: Callable[[str], int | None]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, token: str) -> tuple[int, ...]:
        self[token] = columns = self.cut(token)
        return columns

    def cut(self, token: str) -> tuple[int, ...]:
        word = fold_accents(token.casefold())
        numbers = (self._find(gram) for gram in char_ngrams([word], SHORTEST, LONGEST))
        return tuple(n for n in numbers if n is not None)
