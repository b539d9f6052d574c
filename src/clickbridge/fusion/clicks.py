"""What the clicks say of a query and a document, for trees: learned from the rest of each fold alone.

Popularity, the memory of the same query, the votes of queries like it, the words people used for a document,
which of a query's words tend to matter, and which documents are chosen together.
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse

from clickbridge.fusion.flat import FlatLists
from clickbridge.fusion.signals import Columns, TextSignals, bm25_rows, idf_of, nearest, ones, row_sums, times
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.responses import clicked_queries, weighed_clicks
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import Array, known_number
from clickbridge.types import ResultList, text_of_key
from clickbridge.views.char import CharCounter
from clickbridge.views.view import unit_rows
from clickbridge.views.word import Vocabulary

PRIOR_CLICKS, PRIOR_SHOWN = 1.0, 5.0
"""A document never shown counts as clicked on once in five."""
HALF_LIFE = 7.0
"""Days after which a click counts half for what is asked lately."""
MOST_PAGES, MOST_RANKS = 100_000, 50
"""Pages that the lift is learned from, and ranks told apart."""


class ClickSignals:
    """Learned from a GRAPH's pairs; the texts are those of `TextSignals`."""

    keys: list[str]
    clicks: sparse.csr_array
    lately: sparse.csr_array | None
    """The same clicks, older ones counting less; None where the log has no times."""
    shown: Array
    kept: Array
    """For each term, how often a query's clicked documents hold it, given that the query does."""
    lift: Array
    """For each document, its clicks over those that its rank by text on each page lets expect."""

    def __init__(self, text: TextSignals) -> None:
        self.text = text

    def fit(self, graph: ClickGraph) -> Self:
        known = clicked_queries(graph, graph.matrix(rows="queries"))
        self.keys, self.clicks = known.keys, known.matrix
        self.lately = None
        if graph.has_times:
            decayed = graph.matrix(rows="queries", values=weighed_clicks(graph, HALF_LIFE))
            self.lately = sparse.csr_array(decayed[known.numbers], dtype=np.float32)
        self.shown = np.bincount(graph.pairs.doc, graph.pairs.impressions, minlength=graph.n_docs).astype(np.float64)
        self.kept = self._kept_words()
        self.lift = self._lift(graph)
        return self

    @cached_property
    def _texts(self) -> list[str]:
        return [text_of_key(key) for key in self.keys]

    @cached_property
    def _words(self) -> sparse.csr_array:
        return self.text.query_words(self._texts)

    @cached_property
    def _shares(self) -> sparse.csr_array:
        """Each document's share of a query's clicks."""
        return scaled(self.clicks, 1 / np.maximum(row_sums(self.clicks), 1e-9))

    def _kept_words(self) -> Array:
        pairs = self._shares.tocoo()
        query, doc = pairs.coords
        asked = scaled(self._words[query], pairs.data)
        found = sparse.csr_array(asked.multiply(ones(self.text.together)[doc]))
        n_terms = len(self.text.vocabulary)
        hits = np.bincount(found.indices, found.data, minlength=n_terms)
        return ((hits + 1) / (np.bincount(asked.indices, asked.data, minlength=n_terms) + 2)).astype(np.float32)

    def _lift(self, graph: ClickGraph) -> Array:
        """Popularity says what is shown to the right queries; this says what is chosen when it was."""
        pages = graph.impressions
        if pages is None or not len(pages.doc):
            return np.ones(graph.n_docs)
        if len(pages) > MOST_PAGES:
            taken = np.zeros(len(pages), dtype=bool)
            taken[np.random.default_rng(0).choice(len(pages), MOST_PAGES, replace=False)] = True
            pages = pages.take(taken)
        lists = [ResultList("", graph.query_keys[int(q)], []) for q in pages.query]
        flat = FlatLists(lists, pages.indptr, pages.doc.astype(np.int64))
        rank = np.minimum(flat.ranks(self.text.match(flat)), MOST_RANKS).astype(np.int64)
        clicked = pages.clicked.astype(np.float64)
        rate = np.bincount(rank, clicked) / np.maximum(np.bincount(rank), 1)
        expected = np.bincount(pages.doc, rate[rank], minlength=graph.n_docs)
        return (np.bincount(pages.doc, clicked, minlength=graph.n_docs) + 1) / (expected + 1)

    @cached_property
    def _query_numbers(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self.keys)}

    @cached_property
    def _clicktext(self) -> sparse.csr_array:
        """BM25 images of documents by the words of the queries that clicked them."""
        return bm25_rows(sparse.csr_array(self.clicks.T @ self._words, dtype=np.float32))

    @cached_property
    def _word_rows(self) -> sparse.csr_array:
        return unit_rows(times(self._words, self.text.idf))

    @cached_property
    def _char_counts(self) -> tuple[CharCounter, Array, sparse.csr_array]:
        """Character n-grams of the known queries: a counter for others, idf, unit rows."""
        vocabulary = Vocabulary()
        counts = CharCounter(vocabulary, joined=True).count(self._texts)
        idf = idf_of(counts)
        return CharCounter(vocabulary, frozen=True, joined=True), idf, unit_rows(times(counts, idf))

    @cached_property
    def together(self) -> sparse.csr_array:
        """Documents as unit rows of the queries that clicked them."""
        return unit_rows(self._by_doc)

    @cached_property
    def _inverted(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        rows = self._word_rows, self._char_counts[2]
        return sparse.csr_array(rows[0].T.tocsr()), sparse.csr_array(rows[1].T.tocsr())

    @cached_property
    def _by_doc(self) -> sparse.csr_array:
        return sparse.csr_array(self._shares.T)

    @cached_property
    def _lately_by_doc(self) -> sparse.csr_array | None:
        """By the root of the query's clicks: one of a hundred says more than one of one."""
        if self.lately is None:
            return None
        return sparse.csr_array(scaled(self.lately, np.maximum(row_sums(self.lately), 1e-9) ** -0.5).T)

    @cached_property
    def _that_matter(self) -> tuple[Array, sparse.csr_array]:
        """What each term counts, and the documents' terms so weighted."""
        weights = self.kept * self.text.idf
        return weights, times(ones(self.text.together), weights)

    @cached_property
    def _of_documents(self) -> Columns:
        """A number for each document."""
        clicks = column_sums(self.clicks)
        out = {} if self.lately is None else {"clicks lately": column_sums(self.lately)}
        rate = (clicks + PRIOR_CLICKS) / (np.maximum(self.shown, clicks) + PRIOR_SHOWN)
        return out | {"clicks": clicks, "shown": self.shown, "click rate": rate, "lift": self.lift}

    @cached_property
    def _query_clicks(self) -> Array:
        """Of each known query, and 0 for the others, whose number is -1."""
        return np.append(row_sums(self.clicks), 0.0)

    def scores(self, flat: FlatLists) -> Columns:
        words = self.text.query_words(flat.texts)
        counter, idf, _ = self._char_counts
        like_words = unit_rows(times(words, self.text.idf))
        like_chars = unit_rows(times(counter.count(flat.texts), idf))
        numbers = np.array([known_number(self._query_numbers, key) for key in flat.keys], dtype=np.int64)
        weights, rows = self._that_matter
        kept = flat.dots(words, rows)
        same, near = indicator(numbers, len(self.keys)), nearest(like_chars, self._inverted[1])
        out = {
            "click text": flat.dots(words, self._clicktext),
            "votes by words": flat.dots(nearest(like_words, self._inverted[0]), self._by_doc),
            "votes by characters": flat.dots(near, self._by_doc),
            "same query": flat.dots(same, self._by_doc),
            "words that matter": kept / np.maximum(row_sums(times(words, weights)), 1e-9)[flat.owner],
        }
        if self._lately_by_doc is not None:
            out["votes lately"] = flat.dots(near, self._lately_by_doc)
            out["same query lately"] = flat.dots(same, self._lately_by_doc)
        return out

    def plain(self, flat: FlatLists) -> Columns:
        numbers = np.array([known_number(self._query_numbers, key) for key in flat.keys], dtype=np.int64)
        out = {name: flat.of_documents(values) for name, values in self._of_documents.items()}
        return out | {"query clicks": self._query_clicks[numbers][flat.owner]}

    def write(self, writer: PartWriter) -> None:
        writer.strings("clicks.keys", self.keys)
        writer.sparse("clicks.pairs", self.clicks)
        if self.lately is not None:
            writer.sparse("clicks.lately", self.lately)
        writer.array("clicks.shown", self.shown)
        writer.array("clicks.kept", self.kept)
        writer.array("clicks.lift", self.lift)

    def read(self, artifact: Artifact) -> Self:
        self.keys = artifact.strings("clicks.keys")
        self.clicks = artifact.sparse("clicks.pairs")
        self.lately = artifact.sparse("clicks.lately") if artifact.has("clicks.lately") else None
        self.shown, self.kept = artifact.array("clicks.shown"), artifact.array("clicks.kept")
        self.lift = artifact.array("clicks.lift")
        return self


def scaled(matrix: sparse.csr_array, scale: Array) -> sparse.csr_array:
    """Rows multiplied by `scale`."""
    out = sparse.csr_array(matrix, dtype=np.float32, copy=True)
    out.data *= np.repeat(scale, np.diff(out.indptr)).astype(np.float32)
    return out


def column_sums(matrix: sparse.csr_array) -> Array:
    return np.asarray(matrix.sum(axis=0), dtype=np.float64).ravel()


def indicator(numbers: Array, width: int) -> sparse.csr_array:
    """A one in column `numbers[i]` of row i; an empty row for -1."""
    rows = np.flatnonzero(numbers >= 0)
    parts = (np.ones(len(rows), dtype=np.float32), (rows, numbers[rows]))
    return sparse.csr_array(sparse.coo_array(parts, shape=(len(numbers), max(width, 0))))
