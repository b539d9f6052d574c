"""Views: one kind of feature of one side (queries or documents), as rows of unit length.

Both sides are a `Source`: texts by field, clicks towards the other side, dense vectors. A view is fitted on
one, and maps new texts into the same columns afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clickbridge.errors import MissingPart, SettingError
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.views.char import CharCounter
from clickbridge.views.fields import Counter, FieldCounts, count_fields
from clickbridge.views.text import Analyzer
from clickbridge.views.word import BigramCounter, Vocabulary, WordCounter

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Source:
    """What is known of one side. `clicks` has a row for each item here and a column for each of the other side."""

    texts: Mapping[str, Sequence[str]]
    n_items: int
    clicks: sparse.csr_array | None = None
    other_texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    other_names: Sequence[str] = ()
    vectors: Mapping[str, Array] = field(default_factory=dict)
    field_weights: Mapping[str, float] = field(default_factory=dict)


class View:
    """`kind` is how the view is written in a list of views, before any colon."""

    kind: ClassVar[str]
    of_text: ClassVar[bool] = False

    def __init__(self, argument: str = "", language: str = "english", stop_words: str = "keep") -> None:
        self.argument = argument
        self.language = language
        self.stop_words = stop_words

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.argument}" if self.argument else self.kind

    def fit(self, source: Source) -> sparse.csr_array:
        """Unit rows of the source's items; from then on the columns are fixed."""
        raise NotImplementedError

    def transform(self, source: Source) -> sparse.csr_array:
        """Unit rows of new items; empty where the view knows nothing of them."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        raise NotImplementedError

    def feature(self, column: int) -> str:
        """A column in words."""
        raise NotImplementedError

    def write(self, writer: PartWriter, prefix: str) -> None:
        raise NotImplementedError

    def read(self, artifact: Artifact, prefix: str) -> None:
        raise NotImplementedError


class TermView(View):
    """tf-idf over terms, the fields of a text weighted; idf is of this side's own items."""

    of_text = True
    vocabulary_: Vocabulary
    idf_: Array

    def counter(self, frozen: bool) -> Counter:
        raise NotImplementedError

    def fit(self, source: Source) -> sparse.csr_array:
        self.vocabulary_ = Vocabulary()
        counts = self._count(source, frozen=False)
        frequency = counts.document_frequency()
        self.idf_ = np.log1p(max(source.n_items, 1) / np.maximum(frequency, 1)).astype(np.float32)
        return self._weigh(counts, source)

    def transform(self, source: Source) -> sparse.csr_array:
        return self._weigh(self._count(source, frozen=True), source)

    def _count(self, source: Source, frozen: bool) -> FieldCounts:
        return count_fields(self.counter(frozen), self._texts(source), source.n_items)

    def _texts(self, source: Source) -> Mapping[str, Sequence[str]]:
        if not self.argument:
            return source.texts
        if self.argument not in source.texts:
            raise MissingPart(f"view {self.name}: no such field; there are {', '.join(source.texts) or 'none'}")
        return {self.argument: source.texts[self.argument]}

    def _weigh(self, counts: FieldCounts, source: Source) -> sparse.csr_array:
        weights = np.array([source.field_weights.get(name, 1.0) for name in counts.names])
        if not weights.any():
            weights[:] = 1.0
        values = counts.values @ weights if len(weights) else np.zeros(0)
        return unit_rows(counts.with_values(values * self.idf_[counts.pattern.indices]))

    @property
    def width(self) -> int:
        return len(self.vocabulary_)

    def feature(self, column: int) -> str:
        if not hasattr(self, "_terms"):
            self._terms = self.vocabulary_.terms
        return self._terms[column]

    def write(self, writer: PartWriter, prefix: str) -> None:
        writer.strings(prefix + ".terms", self.vocabulary_.terms)
        writer.array(prefix + ".idf", self.idf_)

    def read(self, artifact: Artifact, prefix: str) -> None:
        self.vocabulary_ = Vocabulary(artifact.strings(prefix + ".terms"))
        self.idf_ = artifact.array(prefix + ".idf")


class WordView(TermView):
    kind = "word"

    def counter(self, frozen: bool) -> Counter:
        return WordCounter(Analyzer(self.language, self.stop_words), self.vocabulary_, frozen)


class BigramView(TermView):
    kind = "bigram"

    def counter(self, frozen: bool) -> Counter:
        return BigramCounter(Analyzer(self.language, self.stop_words), self.vocabulary_, frozen)


class CharView(TermView):
    kind = "char"

    def counter(self, frozen: bool) -> Counter:
        return CharCounter(self.vocabulary_, frozen)


class ClickTextView(WordView):
    """An item by the words of what it was clicked with: a document by its queries, a query by its documents."""

    kind = "clicktext"
    of_text = False

    def _count(self, source: Source, frozen: bool) -> FieldCounts:
        if source.clicks is None:
            empty = sparse.csr_array((source.n_items, len(self.vocabulary_)), dtype=np.float32)
            return FieldCounts(["click"], empty, np.zeros((0, 1), np.float32), np.zeros((source.n_items, 1)))
        n_others = source.clicks.shape[1]
        others = count_fields(self.counter(frozen), source.other_texts, n_others)
        words = sparse.csr_array(source.clicks @ others.with_values(others.values.sum(axis=1)))
        words.sort_indices()
        lengths = np.asarray(words.sum(axis=1)).reshape(-1, 1)
        return FieldCounts(["click"], words, words.data.reshape(-1, 1).astype(np.float32), lengths)


class ClickView(View):
    """An item by its clicks on the other side: a query by its documents, a document by its queries."""

    kind = "click"

    def fit(self, source: Source) -> sparse.csr_array:
        if source.clicks is None:
            raise MissingPart("view click needs clicks: the log has none")
        self._width = source.clicks.shape[1]
        self._names = list(source.other_names)
        return self.transform(source)

    def transform(self, source: Source) -> sparse.csr_array:
        """Clicks may be on items that came after `fit`: those columns are dropped."""
        if source.clicks is None:
            return sparse.csr_array((source.n_items, self._width), dtype=np.float32)
        clicks = sparse.csr_array(source.clicks[:, : self._width], dtype=np.float32)
        clicks.data = np.log1p(clicks.data)
        return unit_rows(clicks)

    @property
    def width(self) -> int:
        return self._width

    def feature(self, column: int) -> str:
        return f"on {self._names[column]}"

    def write(self, writer: PartWriter, prefix: str) -> None:
        writer.strings(prefix + ".names", self._names)

    def read(self, artifact: Artifact, prefix: str) -> None:
        self._names = artifact.strings(prefix + ".names")
        self._width = len(self._names)


class PlainView(View):
    """A view that is known by its width alone."""

    _width: int

    @property
    def width(self) -> int:
        return self._width

    def write(self, writer: PartWriter, prefix: str) -> None:
        writer.array(prefix + ".width", np.array([self._width]))

    def read(self, artifact: Artifact, prefix: str) -> None:
        self._width = int(artifact.array(prefix + ".width")[0])


class IdView(PlainView):
    """An item by itself alone: indicator features, with which PLS becomes LSI (11M, 4.2)."""

    kind = "id"

    def fit(self, source: Source) -> sparse.csr_array:
        self._width = source.n_items
        return sparse.csr_array(sparse.eye_array(source.n_items, dtype=np.float32, format="csr"))

    def transform(self, source: Source) -> sparse.csr_array:
        return sparse.csr_array((source.n_items, self._width), dtype=np.float32)

    def feature(self, column: int) -> str:
        return f"number {column}"


class DenseView(PlainView):
    """Vectors that came with the data (`ingest --vectors NAME=FILE`)."""

    kind = "dense"

    def fit(self, source: Source) -> sparse.csr_array:
        if self.argument not in source.vectors:
            known = ", ".join(source.vectors) or "none: ingest with --vectors NAME=FILE, or give encode in Python"
            raise MissingPart(f"view {self.name}: no such vectors; there are {known}")
        self._width = source.vectors[self.argument].shape[1]
        return self.transform(source)

    def transform(self, source: Source) -> sparse.csr_array:
        vectors = source.vectors.get(self.argument)
        if vectors is None:
            return sparse.csr_array((source.n_items, self._width), dtype=np.float32)
        if vectors.shape[1] != self._width:
            raise SettingError(f"view {self.name}: vectors of {self._width} numbers are needed, got {vectors.shape[1]}")
        return unit_rows(sparse.csr_array(np.nan_to_num(vectors).astype(np.float32)))

    def feature(self, column: int) -> str:
        return f"{self.argument}[{column}]"


KINDS: dict[str, type[View]] = {
    kind.kind: kind for kind in (WordView, BigramView, CharView, ClickView, ClickTextView, IdView, DenseView)
}


def unit_rows(matrix: sparse.csr_array) -> sparse.csr_array:
    """Rows of length 1; empty rows stay empty."""
    out = sparse.csr_array(matrix, dtype=np.float32, copy=True)
    squares = np.add.reduceat(np.append(out.data**2, 0.0), out.indptr[:-1]) if out.nnz else np.zeros(out.shape[0])
    lengths = np.sqrt(np.where(np.diff(out.indptr) > 0, squares, 1.0))
    out.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(out.indptr)).astype(np.float32)
    return out
