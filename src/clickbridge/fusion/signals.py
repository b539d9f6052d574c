"""Features of a query and a document from text, for trees. They do not depend on clicks, so all folds of
cross-fitting share them. The value never changes after it is created, so any number of threads may use it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from clickbridge.fusion.fixed_arrays import Array, Value, check, frozen
from clickbridge.fusion.fixed_rows import FixedRows
from clickbridge.fusion.terms import QueryTerms, TermReader, Vocabularies
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.values import stored
from clickbridge.models.candidates import Candidates
from clickbridge.numerics.bm25 import K1, B, average_length, idf_of
from clickbridge.numerics.list_features import likeness, listed_dots, summed_weights, word_sums
from clickbridge.numerics.list_places import places
from clickbridge.views.fields import HEADINGS
from clickbridge.views.word import URL_FIELD, Vocabulary, widen

ALL = "all"
"""Stands for all fields together."""
TINY = 1e-9
RARITY, NUMERAL = 0, 1
"""Columns of a term's weights: its idf, and 1 for a number. Clicks add more."""


class Matches(NamedTuple):
    """The words that queries and documents share. The last axis has one entry for each document of each list. `bm25[f]`
    and `shared[k, f]`, the summed weights k, are by field; the last field stands for all together, and so does `vsm`.
    `asked[k]` are the summed weights of the query's words."""

    bm25: Array
    vsm: Array
    shared: Array
    asked: Array


@stored
@dataclass(frozen=True, eq=False, repr=False)
class TextSignals(Value):
    """The words of every field, and pairs of words and character n-grams of the heading. In arrays by field, the last
    column stands for all fields together; in arrays by document, the last row is for an unknown document."""

    language: str
    stop_words: str
    names: tuple[str, ...]
    vocabularies: Vocabularies
    words: FixedRows
    """Counts of field f of document d, in row `d * n_fields + f`."""
    chars: FixedRows
    """Unit rows."""
    pairs: FixedRows
    idf: Array
    char_idf: Array
    """0 for an n-gram that no heading has."""
    weights: Array
    averages: Array
    """Length of a field that is not empty."""
    lengths: Array
    masses: Array
    """Summed idf of a document's different words."""
    numerals: Array
    """How many of them are numbers."""
    norms: Array
    """1 over the length of a document's tf-idf row: of the heading, of all."""

    reader: TermReader = field(init=False)
    word_idf: Array = field(init=False)
    spaces: list[int] = field(init=False)
    """The fields by which documents are like each other."""
    score_names: list[str] = field(init=False)
    plain_names: list[str] = field(init=False)
    space_names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        for name in ARRAYS:
            object.__setattr__(self, name, frozen(getattr(self, name), np.float32))
        object.__setattr__(self, "vocabularies", Vocabularies(*self.vocabularies))
        self._check()
        heading = heading_of(self.names)
        together = ALL if ALL not in self.names else "all fields"
        labels = [*self.names, together]
        spaces = list(dict.fromkeys((heading or together, together)))
        ready = {
            "reader": TermReader(self.language, self.stop_words, self.vocabularies),
            "word_idf": frozen(self.idf[:, -1], np.float32),
            "spaces": [labels.index(name) for name in spaces],
            "score_names": [
                *(f"bm25 {name}" for name in labels), "vsm", f"characters {heading}", f"word pairs {heading}"
            ],
            "plain_names": [
                "query words", "query mass",
                *(text for name in labels for text in (f"query in {name}", f"{name} in query", f"words {name}")),
                *(text for name in spaces for text in (f"numbers missing in {name}", f"numbers only in {name}")),
            ],
            "space_names": [f"words of {name}" for name in spaces],
        }  # fmt: skip
        for name, value in ready.items():
            object.__setattr__(self, name, value)

    def _check(self) -> None:
        """Checks all indexes, since compiled loops do not check bounds."""
        n_words, n_chars, n_pairs = sizes = [len(vocabulary) for vocabulary in self.vocabularies]
        columns, n_docs = len(self.names) + 1, len(self.lengths) - 1
        shapes = {
            "idf": (n_words, columns), "char_idf": (n_chars,), "weights": (n_words, 2), "averages": (columns,),
            "lengths": (n_docs + 1, columns), "masses": (n_docs + 1, columns), "numerals": (n_docs + 1, columns),
            "norms": (2, n_docs),
        }  # fmt: skip
        for name, shape in shapes.items():
            check(getattr(self, name).shape == shape, f"{name} of texts")
        check(self.words.fits(n_docs * len(self.names), n_words), "words")
        check(self.chars.fits(n_docs, n_chars), "characters")
        check(self.pairs.fits(n_docs, n_pairs), "pairs of words")
        for vocabulary, size in zip(self.vocabularies, sizes, strict=True):
            check(max(vocabulary.values(), default=-1) < size, "a term twice")

    @property
    def n_docs(self) -> int:
        return len(self.lengths) - 1

    @classmethod
    def of(cls, graph: ClickGraph, language: str = "english", stop_words: str = "keep") -> tuple[Self, QueryTerms]:
        """Computes the features from a GRAPH's documents. Returns also the terms of all queries of the GRAPH: words of
        the log are terms, too, since clicks may give them a meaning."""
        names = tuple(graph.field_names)
        vocabularies = Vocabularies(Vocabulary(), Vocabulary(), Vocabulary())
        reader = TermReader(language, stop_words, vocabularies, frozen=False)
        queries = reader.read(graph.query_texts)
        texts = {name: graph.field(name) for name in names}
        words = [reader.words.count(column, url=name == URL_FIELD) for name, column in texts.items()]
        words = [widen(matrix, len(vocabularies.words)) for matrix in words]
        heading = texts.get(heading_of(names), [""] * graph.n_docs)
        chars, pairs = FixedRows.of(reader.chars.count(heading)), FixedRows.of(reader.pairs.count(heading))
        char_idf = known_idf(chars, len(vocabularies.chars))
        sizes = _sizes(words, graph.n_docs, vocabularies.words, names)
        rows = stacked_fields(words, graph.n_docs)
        return cls(
            language, stop_words, names, vocabularies, rows, chars.unit(char_idf),
            pairs.with_data(np.ones_like(pairs.data)), char_idf=char_idf, **sizes,
        ), queries  # fmt: skip

    # --- lists -----------------------------------------------------------------------------------

    def match(self, lists: Candidates, words: FixedRows, weights: Array) -> Matches:
        """Matches queries and documents. `weights` are those of each term; the first columns are this value's own."""
        n_rows, n_fields, n_weights = lists.lists.n_rows, len(self.names) + 1, weights.shape[1]
        bm25, vsm, shared = np.zeros((n_fields, n_rows)), np.zeros(n_rows), np.zeros((n_weights, n_fields, n_rows))
        word_sums(
            lists.lists.indptr, lists.items, words.indptr, words.indices, *self.words.arrays, self.idf, self.lengths,
            self.averages, K1, B, weights, bm25, vsm, shared,
        )  # fmt: skip
        asked = summed_weights(words.indptr, words.indices, weights)
        return Matches(bm25, vsm, shared, asked[:, lists.lists.owner])

    def characters(self, lists: Candidates, chars: FixedRows) -> Array:
        return dots(lists, chars.unit_arrays(self.char_idf), self.chars)

    def first_guess(self, lists: Candidates, terms: QueryTerms) -> Array:
        """Relevance by text only: the words of all fields and the characters of the heading."""
        words = self.match(lists, terms.words, self.weights).bm25[-1]
        scores = np.stack([words, self.characters(lists, terms.chars)])
        # Two documents that one column each puts above all others tie but for rounding.
        return places(lists.lists.indptr, scores)[2::3].sum(axis=0).round(9)

    def scores(self, lists: Candidates, terms: QueryTerms, matches: Matches) -> Array:
        """Columns whose position within the list is a feature, too: `score_names`."""
        out = np.empty((len(self.score_names), lists.lists.n_rows))
        out[:-3], out[-3] = matches.bm25, matches.vsm
        out[-2] = self.characters(lists, terms.chars)
        out[-1] = dots(lists, terms.pairs.arrays, self.pairs)
        return out

    def plain(self, lists: Candidates, terms: QueryTerms, matches: Matches) -> Array:
        """How much of the query a field covers, how much of the field the query covers, and lengths. Also numbers in
        one that are missing in the other, since sequels and product models differ by a number: `plain_names`."""
        n_rows, n_fields, n_spaces = lists.lists.n_rows, len(self.names) + 1, len(self.spaces)
        out = np.empty((len(self.plain_names), n_rows))
        mass, shared = matches.asked[RARITY], matches.shared[RARITY]
        out[0], out[1] = np.diff(terms.words.indptr)[lists.lists.owner], mass
        fields = out[2 : 2 + 3 * n_fields].reshape(n_fields, 3, n_rows)
        fields[:, 0] = shared / np.maximum(mass, TINY)
        fields[:, 1] = shared / np.maximum(self.masses[lists.items].T, TINY)
        fields[:, 2] = self.lengths[lists.items].T
        numbers = out[2 + 3 * n_fields :].reshape(n_spaces, 2, n_rows)
        both = matches.shared[NUMERAL, self.spaces]
        numbers[:, 0] = matches.asked[NUMERAL] - both
        numbers[:, 1] = self.numerals[lists.items].T[self.spaces] - both
        return out

    def alike(self, lists: Candidates, weights: Array) -> Array:
        """Similarity to the other documents of the list, weighted, for each space and each row of `weights`."""
        stride, n = len(self.names), len(weights)
        out = np.empty((len(self.spaces) * n, lists.lists.n_rows))
        for number, place in enumerate(self.spaces):
            rows = (0, stride) if place == stride else (place, place + 1)
            by_words = (*self.words.arrays, stride, *rows, self.word_idf, self.norms[number])
            likeness(lists.lists.indptr, lists.items, *by_words, weights, out[number * n : (number + 1) * n])
        return out


ARRAYS = ("idf", "char_idf", "weights", "averages", "lengths", "masses", "numerals", "norms")


def dots(lists: Candidates, queries: tuple[Array, Array, Array], documents: FixedRows) -> Array:
    """The dot product of each list's query row with the rows of its documents; 0 for unknown documents."""
    out = np.empty(lists.lists.n_rows)
    listed_dots(lists.lists.indptr, lists.items, *queries, *documents.arrays, out)
    return out


def heading_of(names: tuple[str, ...]) -> str:
    return next((name for name in HEADINGS if name in names), names[0] if names else "")


def known_idf(rows: FixedRows, width: int) -> Array:
    """The idf of each term; 0 for a term in no row, so that it does not count in a query's length either."""
    frequency = rows.frequency(width)
    return np.where(frequency > 0, idf_of(frequency, len(rows)), 0.0).astype(np.float32)


def stacked_fields(words: list[sparse.csr_array], n_docs: int) -> FixedRows:
    """The fields of all documents as rows, those of one document after the other."""
    lengths = np.stack([np.diff(matrix.indptr) for matrix in words], axis=1) if words else np.zeros((n_docs, 0), int)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.float32)
    for number, matrix in enumerate(words):
        shift = indptr[number :: len(words)][:n_docs] - matrix.indptr[:-1]
        place = np.repeat(shift, np.diff(matrix.indptr)) + np.arange(matrix.nnz)
        indices[place], data[place] = matrix.indices, matrix.data
    return FixedRows(indptr, indices, data)


def _sizes(words: list[sparse.csr_array], n_docs: int, terms: Vocabulary, names: tuple[str, ...]) -> dict[str, Array]:
    """Sums over the words of each field and of all fields together, for terms and for documents."""
    together = sparse.csr_array(sum(words, start=sparse.csr_array((n_docs, len(terms)), dtype=np.float32)))
    fields = [FixedRows.of(matrix) for matrix in (*words, together)]
    idf = np.stack([idf_of(rows.frequency(len(terms)), n_docs) for rows in fields], axis=1).astype(np.float32)
    is_number = np.array([term.isdecimal() for term in terms], dtype=np.float32)
    weights = np.stack([idf[:, -1], is_number], axis=1)
    lengths = np.stack([rows.sums() for rows in fields], axis=1)
    masses, numerals = (
        np.stack([rows.with_data(column[rows.indices]).sums() for rows in fields], axis=1) for column in weights.T
    )
    heading = fields[names.index(heading_of(names))] if names else fields[-1]
    norms = [rows.with_data((rows.data * idf[rows.indices, -1]) ** 2).sums() ** 0.5 for rows in (heading, fields[-1])]
    return {
        "idf": idf,
        "weights": weights,
        "averages": np.array([average_length(column) for column in lengths.T]),
        **{
            name: np.concatenate([sums, np.full((1, len(fields)), np.nan)])
            for name, sums in (("lengths", lengths), ("masses", masses), ("numerals", numerals))
        },
        "norms": np.stack([1 / np.where(norm > 0, norm, 1.0) for norm in norms]),
    }
