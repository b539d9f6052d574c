"""What trees may know of a query and a document beside the scores of models.

Three families, each read from whatever the GRAPH offers: the text of each field (does not change with the
clicks, so cross-fitting shares it), the clicks (learned anew for every fold), and fields that are numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from clickbridge.fusion.flat import FlatLists
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import Array
from clickbridge.numerics.topk import sparse_topk
from clickbridge.views.char import CharCounter
from clickbridge.views.fields import HEADINGS
from clickbridge.views.text import Analyzer
from clickbridge.views.view import unit_rows
from clickbridge.views.word import URL_FIELD, BigramCounter, Vocabulary, WordCounter, widen

Columns = dict[str, Array]
K1, B = 1.2, 0.75
NEIGHBOURS, SHARPNESS = 50, 3
"""How many known queries vote, and the power of their similarity."""
NUMERIC_SHARE = 0.9
"""A field is a number where this share of its values is."""
ALL = "all"
"""Stands for all fields together."""


class TextSignals:
    """Words, neighbouring words and character n-grams of every field."""

    names: list[str]
    heading: str
    words: dict[str, sparse.csr_array]

    def __init__(self, language: str = "english", stop_words: str = "keep") -> None:
        self.language, self.stop_words = language, stop_words

    def fit(self, graph: ClickGraph) -> Self:
        self.names = list(graph.field_names)
        self.heading = next((name for name in HEADINGS if name in self.names), self.names[0] if self.names else "")
        self.vocabulary, self.char_vocabulary, self.pair_vocabulary = Vocabulary(), Vocabulary(), Vocabulary()
        counter = WordCounter(self._analyzer, self.vocabulary)
        texts = {name: graph.field(name) for name in self.names}
        # Words of the log's queries are terms too: clicks may give them a meaning.
        counter.count(graph.query_texts)
        self.words = {name: counter.count(column, url=name == URL_FIELD) for name, column in texts.items()}
        self.words = {name: widen(matrix, len(self.vocabulary)) for name, matrix in self.words.items()}
        heading = texts.get(self.heading, [""] * graph.n_docs)
        self.chars = CharCounter(self.char_vocabulary, joined=True).count(heading)
        self.pairs = BigramCounter(self._analyzer, self.pair_vocabulary).count(heading)
        return self

    @cached_property
    def _analyzer(self) -> Analyzer:
        return Analyzer(self.language, self.stop_words)

    @cached_property
    def _counters(self) -> tuple[WordCounter, CharCounter, BigramCounter]:
        return (
            WordCounter(self._analyzer, self.vocabulary, frozen=True),
            CharCounter(self.char_vocabulary, frozen=True, joined=True),
            BigramCounter(self._analyzer, self.pair_vocabulary, frozen=True),
        )

    def query_words(self, texts: Sequence[str]) -> sparse.csr_array:
        """Which terms occur in each text, as ones."""
        return ones(self._counters[0].count(texts))

    @cached_property
    def together(self) -> sparse.csr_array:
        """Words of all fields."""
        n_docs = self.chars.shape[0]
        empty = sparse.csr_array((n_docs, len(self.vocabulary)), dtype=np.float32)
        return sparse.csr_array(sum(self.words.values(), start=empty))

    @cached_property
    def idf(self) -> Array:
        return idf_of(self.together)

    @cached_property
    def _bm25(self) -> dict[str, sparse.csr_array]:
        return {name: bm25_rows(matrix) for name, matrix in self.fields.items()}

    @cached_property
    def fields(self) -> dict[str, sparse.csr_array]:
        return {**self.words, ALL: self.together}

    @cached_property
    def _masses(self) -> dict[str, sparse.csr_array]:
        """Each term's idf, once a document."""
        return {name: times(ones(matrix), self.idf) for name, matrix in self.fields.items()}

    @cached_property
    def _sizes(self) -> dict[str, tuple[Array, Array]]:
        """Of each document's field: its mass, and its number of words."""
        return {name: (row_sums(self._masses[name]), row_sums(matrix)) for name, matrix in self.fields.items()}

    @cached_property
    def _tf_idf(self) -> sparse.csr_array:
        return times(self.together, self.idf)

    @cached_property
    def _pair_rows(self) -> sparse.csr_array:
        return ones(self.pairs)

    @cached_property
    def _number_rows(self) -> dict[str, tuple[sparse.csr_array, Array]]:
        """Which numbers the heading and all fields hold, and how many."""
        rows = {
            name: times(ones(self.fields[name]), self._numerals) for name in dict.fromkeys((self.heading or ALL, ALL))
        }
        return {name: (matrix, row_sums(matrix)) for name, matrix in rows.items()}

    @cached_property
    def _char_idf(self) -> Array:
        return idf_of(self.chars)

    @cached_property
    def char_rows(self) -> sparse.csr_array:
        return unit_rows(times(self.chars, self._char_idf))

    @cached_property
    def unit_words(self) -> dict[str, sparse.csr_array]:
        """Documents by heading and by all words, for the likeness of documents."""
        return {
            name: unit_rows(times(self.fields[name], self.idf)) for name in dict.fromkeys((self.heading or ALL, ALL))
        }

    @cached_property
    def _numerals(self) -> Array:
        """1 for terms that are numbers."""
        return np.array([float(term.isdecimal()) for term in self.vocabulary], dtype=np.float32)

    def match(self, flat: FlatLists) -> Array:
        """A first guess at relevance by text alone: words of all fields and characters of the heading."""
        words = flat.standardised(flat.dots(self.query_words(flat.texts), self._bm25[ALL]))
        return words + flat.standardised(flat.dots(self.query_chars(flat.texts), self.char_rows))

    def query_chars(self, texts: Sequence[str]) -> sparse.csr_array:
        return unit_rows(times(self._counters[1].count(texts), self._char_idf))

    def scores(self, flat: FlatLists) -> Columns:
        """Columns that also count by their place in the list."""
        words = self.query_words(flat.texts)
        out = {f"bm25 {name}": flat.dots(words, matrix) for name, matrix in self._bm25.items()}
        out["vsm"] = flat.dots(times(words, self.idf), self._tf_idf)
        out[f"characters {self.heading}"] = flat.dots(self.query_chars(flat.texts), self.char_rows)
        out[f"word pairs {self.heading}"] = flat.dots(ones(self._counters[2].count(flat.texts)), self._pair_rows)
        return out

    def plain(self, flat: FlatLists) -> Columns:
        """How much of the query a field covers, how much of the field the query covers, and lengths."""
        words = self.query_words(flat.texts)
        asked = row_sums(times(words, self.idf))[flat.owner]
        out = {"query words": row_sums(words)[flat.owner], "query mass": asked}
        for name, masses in self._masses.items():
            shared = flat.dots(words, masses)
            mass, n_words = (flat.of_documents(size) for size in self._sizes[name])
            out[f"query in {name}"] = shared / np.maximum(asked, 1e-9)
            out[f"{name} in query"] = shared / np.maximum(mass, 1e-9)
            out[f"words {name}"] = n_words
        # Sequels and models of a product differ by a number: one too many or too few says much.
        asked_numbers = times(words, self._numerals)
        for name, (held_numbers, held) in self._number_rows.items():
            shared = flat.dots(asked_numbers, held_numbers)
            out[f"numbers missing in {name}"] = row_sums(asked_numbers)[flat.owner] - shared
            out[f"numbers only in {name}"] = flat.of_documents(held) - shared
        return out

    def write(self, writer: PartWriter) -> None:
        writer.strings("text.names", self.names)
        for name in ("vocabulary", "char_vocabulary", "pair_vocabulary"):
            writer.strings(f"text.{name}", getattr(self, name).terms)
        for number, name in enumerate(self.names):
            writer.sparse(f"text.words.{number}", self.words[name])
        writer.sparse("text.chars", self.chars)
        writer.sparse("text.pairs", self.pairs)

    def read(self, artifact: Artifact) -> Self:
        self.names = artifact.strings("text.names")
        self.heading = next((name for name in HEADINGS if name in self.names), self.names[0] if self.names else "")
        for name in ("vocabulary", "char_vocabulary", "pair_vocabulary"):
            setattr(self, name, Vocabulary(artifact.strings(f"text.{name}")))
        self.words = {name: artifact.sparse(f"text.words.{number}") for number, name in enumerate(self.names)}
        self.chars, self.pairs = artifact.sparse("text.chars"), artifact.sparse("text.pairs")
        return self


class NumberSignals:
    """Fields that are numbers (a year, a price), as they are."""

    values: dict[str, Array]

    def fit(self, graph: ClickGraph) -> Self:
        parsed = {name: np.array([_number(text) for text in graph.field(name)]) for name in graph.field_names}
        filled = {name: np.array([bool(text.strip()) for text in graph.field(name)]) for name in graph.field_names}
        self.values = {
            name: numbers
            for name, numbers in parsed.items()
            if filled[name].any() and np.isfinite(numbers[filled[name]]).mean() >= NUMERIC_SHARE
        }
        return self

    def plain(self, flat: FlatLists) -> Columns:
        return {f"number {name}": flat.of_documents(values) for name, values in self.values.items()}

    def write(self, writer: PartWriter) -> None:
        writer.strings("numbers.names", self.values)
        for number, values in enumerate(self.values.values()):
            writer.array(f"numbers.{number}", values)

    def read(self, artifact: Artifact) -> Self:
        names = artifact.strings("numbers.names")
        self.values = {name: artifact.array(f"numbers.{number}") for number, name in enumerate(names)}
        return self


def ones(matrix: sparse.csr_array) -> sparse.csr_array:
    out = matrix.copy()
    out.data = np.ones_like(out.data)
    return out


def times(matrix: sparse.csr_array, scale: Array) -> sparse.csr_array:
    """Columns multiplied by `scale`; columns beyond it (terms that came later) are dropped."""
    out = matrix.copy()
    out.data = (out.data * scale[out.indices]).astype(np.float32)
    return out


def row_sums(matrix: sparse.csr_array) -> Array:
    return np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()


def idf_of(matrix: sparse.csr_array) -> Array:
    frequency = np.bincount(matrix.indices, minlength=matrix.shape[1])
    return np.log1p((matrix.shape[0] - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)


def bm25_rows(matrix: sparse.csr_array) -> sparse.csr_array:
    """BM25 images of counted texts with the usual parameters."""
    lengths = row_sums(matrix)
    average = lengths[lengths > 0].mean() if (lengths > 0).any() else 1.0
    norms = np.repeat(1 - B + B * lengths / average, np.diff(matrix.indptr))
    out = matrix.copy()
    frequency = out.data / norms
    out.data = ((K1 + 1) * frequency / (K1 + frequency)).astype(np.float32)
    return times(out, idf_of(matrix))


def nearest(queries: sparse.csr_array, inverted: sparse.csr_array) -> sparse.csr_array:
    """The similarities of each query row to its nearest known ones, raised to a power."""
    items, scores, counts = sparse_topk(queries, inverted, NEIGHBOURS)
    rows = np.repeat(np.arange(len(counts)), counts)
    taken = np.arange(items.shape[1])[None, :] < counts[:, None]
    parts: Any = (scores[taken] ** SHARPNESS, (rows, items[taken]))
    return sparse.csr_array(sparse.coo_array(parts, shape=(len(counts), inverted.shape[1])))


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if np.isfinite(value) else np.nan
