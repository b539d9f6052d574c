"""The word view: texts as rows of term counts over one vocabulary."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.io.values import stored
from clickbridge.views.text import Analyzer, Memo, bigrams, tokens_of, url_words

URL_FIELD = "url"


@stored
class Vocabulary(dict[str, int]):
    """Terms and their column numbers. In an open vocabulary an unknown term gets the next number; in a frozen one it is
    dropped.

    `written` has the word in which a term was first seen, if it differs from the term: people read "primitive", not
    "primit".
    """

    def __init__(self, terms: Iterable[str] = (), written: Mapping[str, str] | None = None) -> None:
        super().__init__((term, number) for number, term in enumerate(terms))
        self.written = dict(written or {})

    def number(self, term: str) -> int:
        return self.setdefault(term, len(self))

    @property
    def terms(self) -> list[str]:
        return list(self)

    def number_in(self, token: str, terms: Iterable[str]) -> tuple[int, ...]:
        """The numbers of a token's terms. New terms are added, together with the word as written."""
        word, known = token.lower(), len(self)
        out = tuple(map(self.number, terms))
        if len(self) > known and len(out) == 1 and (term := next(reversed(self))) != word:
            self.written[term] = word
        return out

    def to_stored(self) -> dict[str, list[str]]:
        return {"terms": self.terms, "stems": list(self.written), "words": list(self.written.values())}

    @classmethod
    def from_stored(cls, value: Mapping[str, list[str]] | list[str]) -> Vocabulary:
        if isinstance(value, list):  # a model saved before words were kept beside their stems
            return cls(value)
        return cls(value["terms"], dict(zip(value["stems"], value["words"], strict=True)))

    def __reduce__(self) -> Any:
        return Vocabulary, (self.terms, self.written)


class WordCounter:
    """Counts terms of many texts. Each distinct raw token is analysed once, into column numbers."""

    def __init__(self, analyzer: Analyzer, vocabulary: Vocabulary, frozen: bool = False) -> None:
        self.analyzer = analyzer
        self.vocabulary = vocabulary
        self.frozen = frozen
        self._kept = Memo(_numbers(analyzer.kept_terms.__getitem__, vocabulary, frozen), limit_of(frozen))
        self._all = Memo(_numbers(analyzer.all_terms.__getitem__, vocabulary, frozen), limit_of(frozen))

    def __reduce__(self) -> Any:
        return WordCounter, (self.analyzer, self.vocabulary, self.frozen)

    def columns(self, text: str, url: bool = False) -> list[int]:
        """Column numbers of a text's terms, in order."""
        tokens = tokens_of(url_words(text) if url else text)
        out = [column for columns in map(self._kept.__getitem__, tokens) for column in columns]
        # Empty may mean 'stop words alone' (keep them) or 'unknown words alone' (nothing to keep).
        if not out and tokens and not any(map(self.analyzer.kept_terms.__getitem__, tokens)):
            out = [column for columns in map(self._all.__getitem__, tokens) for column in columns]
        return out

    def count(self, texts: Iterable[str], url: bool = False) -> sparse.csr_array:
        """One row per text, and one column per term of the vocabulary after counting."""
        return count_columns(self, texts, url)


def count_columns(counter: Any, texts: Iterable[str], url: bool) -> sparse.csr_array:
    """The counts of every text, from the columns that the counter gives for it."""
    columns, ends = array("i"), array("q", [0])
    for text in texts:
        columns.extend(counter.columns(text, url))
        ends.append(len(columns))
    return counts_matrix(columns, ends, len(counter.vocabulary))


def _numbers(
    cut: Callable[[str], Iterable[str]], vocabulary: Vocabulary, frozen: bool
) -> Callable[[str], tuple[int, ...]]:
    """A function from a token to the columns of its terms. With a frozen vocabulary, unknown terms are left out."""
    if not frozen:
        return lambda token: vocabulary.number_in(token, cut(token))
    return lambda token: tuple(n for n in map(vocabulary.get, cut(token)) if n is not None)


def limit_of(frozen: bool) -> int:
    """The number of tokens that a counter caches: many while a collection is read, few in a service."""
    return 1 << 10 if frozen else 1 << 20


def counts_matrix(columns: array[int], ends: array[int], width: int) -> sparse.csr_array:
    indices, indptr = np.frombuffer(columns, dtype=np.int32), np.frombuffer(ends, dtype=np.int64)
    data = np.ones(len(indices), dtype=np.float32)
    out = sparse.csr_array((data, indices.copy(), indptr.copy()), shape=(len(ends) - 1, width))
    out.sum_duplicates()
    return out


def widen(matrix: sparse.csr_array, width: int) -> sparse.csr_array:
    """The same rows with the columns of a vocabulary that has grown."""
    parts: tuple[Any, Any, Any] = (matrix.data, matrix.indices, matrix.indptr)
    return sparse.csr_array(parts, shape=(matrix.shape[0], width))


def count_words(
    query_texts: Iterable[str], fields: Mapping[str, Iterable[str]], n_docs: int
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """The words of queries and of documents (all fields together) over one vocabulary, without stop words: the word
    features of the papers' Table 1."""
    vocabulary = Vocabulary()
    counter = WordCounter(Analyzer("english", "drop"), vocabulary)
    queries = counter.count(query_texts)
    parts = [counter.count(texts, url=name == URL_FIELD) for name, texts in fields.items()]
    docs = sparse.csr_array((n_docs, len(vocabulary)), dtype=np.float32)
    for part in parts:
        docs = docs + widen(part, len(vocabulary))
    return widen(queries, len(vocabulary)), sparse.csr_array(docs)


class BigramCounter:
    """Counts neighbouring terms. They do not cross the items of a list field."""

    def __init__(self, analyzer: Analyzer, vocabulary: Vocabulary, frozen: bool = False) -> None:
        self.analyzer = analyzer
        self.vocabulary = vocabulary
        self.frozen = frozen
        self._find: Callable[[str], int | None] = vocabulary.get if frozen else vocabulary.number

    def __reduce__(self) -> Any:
        return BigramCounter, (self.analyzer, self.vocabulary, self.frozen)

    def columns(self, text: str, url: bool = False) -> list[int]:
        pairs = (pair for item in text.split("\n") for pair in bigrams(self.analyzer.terms(item, url)))
        return [n for n in map(self._find, pairs) if n is not None]

    def count(self, texts: Iterable[str], url: bool = False) -> sparse.csr_array:
        return count_columns(self, texts, url)
