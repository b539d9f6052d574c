"""Views: one kind of feature of one side (queries or documents), as rows of unit length.

Each side is a `Source`: texts by field, clicks on the other side, dense vectors. `fit` reads a source and returns the
view, whose columns are then fixed, and the rows. The view maps new texts into the same columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from clickbridge.errors import MissingPart, SettingError
from clickbridge.io.values import expect, stored
from clickbridge.numerics.row import EMPTY, Row, counted
from clickbridge.views.char import CharCounter
from clickbridge.views.fields import Counter, FieldCounts, count_fields
from clickbridge.views.text import Analyzer
from clickbridge.views.word import BigramCounter, Vocabulary, WordCounter

Array = np.ndarray[Any, Any]
Counted = tuple[Vocabulary, FieldCounts]


@dataclass(frozen=True)
class Source:
    """What is known about one side. `clicks` has a row for each item of this side and a column for each item of the
    other. `counted` caches the counts of these texts, so that several models on the same documents read them once."""

    texts: Mapping[str, Sequence[str]]
    n_items: int
    clicks: sparse.csr_array | None = None
    other_texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    other_names: Sequence[str] = ()
    vectors: Mapping[str, Array] = field(default_factory=dict)
    field_weights: Mapping[str, float] = field(default_factory=dict)
    counted: dict[Any, Counted] | None = None


@dataclass(frozen=True, eq=False)
class View:
    """`kind` is the name of the view in a list of views, before the colon."""

    kind: ClassVar[str]
    of_text: ClassVar[bool] = False

    argument: str
    language: str
    stop_words: str

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.argument}" if self.argument else self.kind

    @classmethod
    def fit(cls, term: ViewTerm, source: Source) -> tuple[Self, sparse.csr_array]:
        """Returns the view and the unit rows of the source's items."""
        raise NotImplementedError

    def transform(self, source: Source) -> sparse.csr_array:
        """The unit rows of new items; empty if the view has no feature for them."""
        raise NotImplementedError

    def row(self, text: str, vectors: Mapping[str, Any]) -> Row:
        """The unit row of one query, from its text and its vectors."""
        return EMPTY

    @property
    def width(self) -> int:
        raise NotImplementedError

    def feature(self, column: int) -> str:
        """The name of a column."""
        raise NotImplementedError


@dataclass(frozen=True)
class ViewTerm:
    """A view as the user writes it, such as `word:title`, and its language."""

    term: str
    language: str = "english"
    stop_words: str = "keep"

    @property
    def kind(self) -> type[View]:
        return KINDS[self.term.partition(":")[0]]

    @property
    def arguments(self) -> tuple[str, str, str]:
        return self.term.partition(":")[2], self.language, self.stop_words


@dataclass(frozen=True, eq=False)
class TermView(View):
    """tf-idf of terms, with weighted fields. The idf is computed from this side's own items."""

    of_text = True
    vocabulary: Vocabulary
    idf: Array

    def check_stored(self) -> None:
        expect("idf", self.idf, (len(self.vocabulary),))

    @classmethod
    def counter(cls, vocabulary: Vocabulary, language: str, stop_words: str, frozen: bool) -> Counter:
        raise NotImplementedError

    @classmethod
    def fit(cls, term: ViewTerm, source: Source) -> tuple[Self, sparse.csr_array]:
        argument, language, stop_words = term.arguments
        vocabulary, counts = cls._counts(argument, language, stop_words, source)
        idf = np.log1p(max(source.n_items, 1) / np.maximum(counts.document_frequency(), 1)).astype(np.float32)
        view = cls(argument, language, stop_words, vocabulary, idf)
        return view, view._weigh(counts, source)

    @classmethod
    def _counts(cls, argument: str, language: str, stop_words: str, source: Source) -> Counted:
        texts = _field_texts(cls.kind, argument, source.texts)
        return counted_once(
            source.counted,
            (cls.kind, language, stop_words, *texts),
            lambda vocabulary: count_fields(
                cls.counter(vocabulary, language, stop_words, frozen=False), texts, source.n_items
            ),
        )

    @cached_property
    def _counter(self) -> Counter:
        return self.counter(self.vocabulary, self.language, self.stop_words, frozen=True)

    def transform(self, source: Source) -> sparse.csr_array:
        texts = _field_texts(self.kind, self.argument, source.texts)
        return self._weigh(count_fields(self._counter, texts, source.n_items), source)

    def row(self, text: str, vectors: Mapping[str, Any]) -> Row:
        columns, counts = counted(self._counter.columns(text))
        return Row(columns, counts * self.idf[columns]).unit() if len(columns) else EMPTY

    def _weigh(self, counts: FieldCounts, source: Source) -> sparse.csr_array:
        weights = np.array([source.field_weights.get(name, 1.0) for name in counts.names])
        if not weights.any():
            weights[:] = 1.0
        values = counts.values @ weights if len(weights) else np.zeros(0)
        return unit_rows(counts.with_values(values * self.idf[counts.pattern.indices]))

    @property
    def width(self) -> int:
        return len(self.vocabulary)

    @cached_property
    def _terms(self) -> list[str]:
        return self.vocabulary.terms

    def feature(self, column: int) -> str:
        return self._terms[column]


@stored
class WordView(TermView):
    kind = "word"

    @classmethod
    def counter(cls, vocabulary: Vocabulary, language: str, stop_words: str, frozen: bool) -> Counter:
        return WordCounter(Analyzer(language, stop_words), vocabulary, frozen)


@stored
class BigramView(TermView):
    kind = "bigram"

    @classmethod
    def counter(cls, vocabulary: Vocabulary, language: str, stop_words: str, frozen: bool) -> Counter:
        return BigramCounter(Analyzer(language, stop_words), vocabulary, frozen)


@stored
class CharView(TermView):
    kind = "char"

    @classmethod
    def counter(cls, vocabulary: Vocabulary, language: str, stop_words: str, frozen: bool) -> Counter:
        return CharCounter(vocabulary, frozen)


@stored
class ClickTextView(WordView):
    """An item as the words of its clicks: a document by the words of its queries, a query by those of its documents."""

    kind = "clicktext"
    of_text = False

    @classmethod
    def _counts(cls, argument: str, language: str, stop_words: str, source: Source) -> Counted:
        vocabulary = Vocabulary()
        return vocabulary, _count_clicked(cls.counter(vocabulary, language, stop_words, frozen=False), source)

    def transform(self, source: Source) -> sparse.csr_array:
        return self._weigh(_count_clicked(self._counter, source), source)

    def row(self, text: str, vectors: Mapping[str, Any]) -> Row:
        return EMPTY


def _count_clicked(counter: Counter, source: Source) -> FieldCounts:
    if source.clicks is None:
        empty = sparse.csr_array((source.n_items, len(counter.vocabulary)), dtype=np.float32)
        return FieldCounts(["click"], empty, np.zeros((0, 1), np.float32), np.zeros((source.n_items, 1)))
    others = count_fields(counter, source.other_texts, source.clicks.shape[1])
    words = sparse.csr_array(source.clicks @ others.with_values(others.values.sum(axis=1)))
    words.sort_indices()
    lengths = np.asarray(words.sum(axis=1)).reshape(-1, 1)
    return FieldCounts(["click"], words, words.data.reshape(-1, 1).astype(np.float32), lengths)


@stored
@dataclass(frozen=True, eq=False)
class ClickView(View):
    """An item as its clicks: a query by its documents, a document by its queries."""

    kind = "click"
    names: list[str]

    @classmethod
    def fit(cls, term: ViewTerm, source: Source) -> tuple[Self, sparse.csr_array]:
        if source.clicks is None:
            raise MissingPart("view click needs clicks: the log has none")
        view = cls(*term.arguments, list(source.other_names))
        return view, view.transform(source)

    def transform(self, source: Source) -> sparse.csr_array:
        """The rows of new items. Clicks on items that were added after `fit` are dropped."""
        if source.clicks is None:
            return sparse.csr_array((source.n_items, self.width), dtype=np.float32)
        clicks = sparse.csr_array(source.clicks[:, : self.width], dtype=np.float32)
        clicks.data = self.worth(clicks.data)
        return unit_rows(clicks)

    @staticmethod
    def worth(clicks: Array) -> Array:
        """The feature value of a number of clicks, before rows are scaled to length 1."""
        return np.log1p(clicks)

    @property
    def width(self) -> int:
        return len(self.names)

    def feature(self, column: int) -> str:
        return self.names[column]


@stored
@dataclass(frozen=True, eq=False)
class ResponseView(ClickView):
    """Like `click`, but with the model's `response` to the clicks as the feature: the click features of the papers,
    which are counts in 12 and 13 and logarithms in 11M."""

    kind = "response"

    @staticmethod
    def worth(clicks: Array) -> Array:
        return clicks


@dataclass(frozen=True, eq=False)
class PlainView(View):
    """A view that only stores its width."""

    columns: int

    @property
    def width(self) -> int:
        return self.columns


@stored
class IdView(PlainView):
    """An item as an indicator of itself. With these features PLS becomes LSI (11M, 4.2)."""

    kind = "id"

    @classmethod
    def fit(cls, term: ViewTerm, source: Source) -> tuple[Self, sparse.csr_array]:
        rows = sparse.csr_array(sparse.eye_array(source.n_items, dtype=np.float32, format="csr"))
        return cls(*term.arguments, source.n_items), rows

    def transform(self, source: Source) -> sparse.csr_array:
        return sparse.csr_array((source.n_items, self.width), dtype=np.float32)

    def feature(self, column: int) -> str:
        return f"number {column}"


@stored
class DenseView(PlainView):
    """Dense vectors given with the data (`ingest --vectors NAME=FILE`)."""

    kind = "dense"

    @classmethod
    def fit(cls, term: ViewTerm, source: Source) -> tuple[Self, sparse.csr_array]:
        argument = term.arguments[0]
        if argument not in source.vectors:
            known = ", ".join(source.vectors) or "none: ingest with --vectors NAME=FILE, or give encode in Python"
            raise MissingPart(f"view {term.term}: no such vectors; there are {known}")
        view = cls(*term.arguments, int(source.vectors[argument].shape[1]))
        return view, view.transform(source)

    def transform(self, source: Source) -> sparse.csr_array:
        vectors = source.vectors.get(self.argument)
        if vectors is None:
            return sparse.csr_array((source.n_items, self.width), dtype=np.float32)
        if vectors.shape[1] != self.width:
            raise SettingError(f"view {self.name}: vectors of {self.width} numbers are needed, got {vectors.shape[1]}")
        return unit_rows(sparse.csr_array(np.nan_to_num(vectors).astype(np.float32)))

    def row(self, text: str, vectors: Mapping[str, Any]) -> Row:
        vector = vectors.get(self.argument)
        if vector is None:
            return EMPTY
        rows = self.transform(Source({}, 1, vectors={self.argument: np.asarray([vector], dtype=np.float32)}))
        return Row(rows.indices, rows.data)

    def feature(self, column: int) -> str:
        return f"{self.argument}[{column}]"


KINDS: dict[str, type[View]] = {
    kind.kind: kind
    for kind in (WordView, BigramView, CharView, ClickView, ResponseView, ClickTextView, IdView, DenseView)
}


def counted_once(memory: dict[Any, Counted] | None, key: Any, count: Any) -> Counted:
    """The counts cached under `key`, or those that `count` computes with a new vocabulary."""
    if memory is not None and key in memory:
        return memory[key]
    vocabulary = Vocabulary()
    found = vocabulary, count(vocabulary)
    if memory is not None:
        memory[key] = found
    return found


def _field_texts(kind: str, argument: str, texts: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    if not argument:
        return texts
    if argument not in texts:
        raise MissingPart(f"view {kind}:{argument}: no such field; there are {', '.join(texts) or 'none'}")
    return {argument: texts[argument]}


def unit_rows(matrix: sparse.csr_array) -> sparse.csr_array:
    """Rows of length 1; empty rows stay empty."""
    out = sparse.csr_array(matrix, dtype=np.float32, copy=True)
    squares = np.add.reduceat(np.append(out.data**2, 0.0), out.indptr[:-1]) if out.nnz else np.zeros(out.shape[0])
    lengths = np.sqrt(np.where(np.diff(out.indptr) > 0, squares, 1.0))
    out.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(out.indptr)).astype(np.float32)
    return out
