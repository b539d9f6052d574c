"""The character view: n-grams of words, which still match if words are misspelled or joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from scipy import sparse

from clickbridge.views.text import Memo, char_ngrams, fold_accents, tokens_of, url_words
from clickbridge.views.word import Vocabulary, count_columns, limit_of

SHORTEST, LONGEST = 3, 5


class CharCounter:
    """Counts character n-grams of many texts. `joined` adds those of all words joined together, so that "play station"
    matches "playstation"; it is meant for short texts."""

    def __init__(self, vocabulary: Vocabulary, frozen: bool = False, joined: bool = False) -> None:
        self.vocabulary, self.joined, self.frozen = vocabulary, joined, frozen
        self._find: Callable[[str], int | None] = vocabulary.get if frozen else vocabulary.number
        self._columns = Memo(self._cut, limit_of(frozen))

    def __reduce__(self) -> Any:
        return CharCounter, (self.vocabulary, self.frozen, self.joined)

    def columns(self, text: str, url: bool = False) -> list[int]:
        tokens = tokens_of(url_words(text) if url else text)
        out = [column for cut in map(self._columns.__getitem__, tokens) for column in cut]
        if self.joined and len(tokens) > 1:
            out.extend(self._cut("".join(tokens)))
        return out

    def count(self, texts: Iterable[str], url: bool = False) -> sparse.csr_array:
        return count_columns(self, texts, url)

    def _cut(self, token: str) -> tuple[int, ...]:
        word = fold_accents(token.casefold())
        numbers = map(self._find, char_ngrams([word], SHORTEST, LONGEST))
        return tuple(n for n in numbers if n is not None)
