"""Features of a query and a document from clicks, for trees. For each fold they are learned from the other folds only.

They are: popularity, earlier clicks for the same query and for similar queries, the words people used for a document,
which of a query's words tend to matter, and which documents are clicked for the same queries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from clickbridge.fusion.fixed_arrays import Array, Value, check, frozen
from clickbridge.fusion.fixed_rows import FixedRows
from clickbridge.fusion.lists_at_once import over_lists
from clickbridge.fusion.signals import TINY, Matches, TextSignals, dots, known_idf
from clickbridge.fusion.terms import QueryTerms
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.responses import weighed_clicks
from clickbridge.io.values import stored
from clickbridge.models.candidates import Candidates, Query
from clickbridge.numerics.bm25 import bm25_data
from clickbridge.numerics.list_features import NO_SCALE, kept_terms, likeness, nearest, votes
from clickbridge.numerics.list_places import places
from clickbridge.numerics.ragged import Ragged

PRIOR_CLICKS, PRIOR_SHOWN = 1.0, 5.0
"""The prior of the click rate: a document that was never shown counts as clicked once in five."""
HALF_LIVES = {"just now": 2.0, "lately": 7.0, "this month": 30.0}
"""Half-lives in days: after this time a click counts half. There are several, for interests that last for different
times."""
MOST_PAGES, MOST_RANKS = 100_000, 50
"""Pages that the lift is learned from, and ranks told apart."""
NEIGHBOURS, SHARPNESS = 50, 3
"""How many known queries vote, and the power of their similarity."""
MATTERS = 2
"""The column of a term's weights that says how much it matters, after those of `TextSignals`."""


@stored
@dataclass(frozen=True, eq=False, repr=False)
class ClickSignals(Value):
    """Known queries are those with a click. In arrays by document, the last row is for an unknown document; the last
    number of `query_clicks` is for unknown queries. If the log has times, shares and clicks are repeated for each of
    HALF_LIVES, where older clicks count less."""

    keys: tuple[str, ...]
    shares: FixedRows
    """Each document's share of a query's clicks, by query."""
    together: FixedRows
    """Documents as unit rows of the queries that clicked them."""
    clicktext: FixedRows
    """BM25 images of documents by the words of the queries that clicked them."""
    by_word: FixedRows
    by_char: FixedRows
    """Known queries as unit rows of words and of character n-grams, a row for each word and n-gram."""
    char_idf: Array
    weights: Array
    """Those of `TextSignals`, and how much each term matters."""
    documents: Array
    query_clicks: Array

    numbers: dict[str, int] = field(init=False)
    has_times: bool = field(init=False)
    score_names: list[str] = field(init=False)
    plain_names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        for name in ARRAYS:
            object.__setattr__(self, name, frozen(getattr(self, name), np.float32))
        self._check()
        spans = list(HALF_LIVES)[: self.shares.data.shape[1] - 1]
        ready = {
            "numbers": {key: number for number, key in enumerate(self.keys)},
            "has_times": bool(spans),
            "score_names": [
                "click text", "votes by words", "votes by characters", "same query", "words that matter",
                *(f"{what} {span}" for what in ("votes", "same query") for span in spans),
            ],
            "plain_names": [
                *(f"clicks {span}" for span in spans[::-1]), "clicks", "shown", "click rate", "lift", "query clicks",
            ],
        }  # fmt: skip
        for name, value in ready.items():
            object.__setattr__(self, name, value)

    def _check(self) -> None:
        """Checks all indexes, since compiled loops do not check bounds."""
        n_known, n_docs, n_words, n_chars = (
            len(self.keys),
            len(self.documents) - 1,
            len(self.weights),
            len(self.char_idf),
        )
        n_values = self.shares.data.shape[-1]
        check(
            self.shares.fits(n_known, n_docs, several=True) and n_values in (1, 1 + len(HALF_LIVES)), "shares of clicks"
        )
        check(self.together.fits(n_docs, n_known), "documents chosen together")
        check(self.clicktext.fits(n_docs, n_words), "words of clicks")
        check(self.by_word.fits(n_words, n_known) and self.by_char.fits(n_chars, n_known), "known queries")
        shapes = {"char_idf": (n_chars,), "weights": (n_words, MATTERS + 1), "query_clicks": (n_known + 1,)}
        for name, shape in (shapes | {"documents": (n_docs + 1, 3 + n_values)}).items():
            check(getattr(self, name).shape == shape, f"{name} of clicks")

    @classmethod
    def of(cls, graph: ClickGraph, text: TextSignals, queries: QueryTerms) -> Self:
        """Computes the features from a GRAPH's clicks. `queries` are the terms of all its queries."""
        known, counts = clicked(graph)
        clicks, asked = counts.column(0), queries.take(known)
        n_terms, n_chars = len(text.vocabularies.words), len(text.vocabularies.chars)
        clicktext = FixedRows.of(clicks.transposed(graph.n_docs).matrix(len(known)) @ asked.words.matrix(n_terms))
        char_idf = known_idf(asked.chars, n_chars)
        shares = shares_of(counts)
        matters = kept_words(shares.column(0), asked.words, text) * text.word_idf
        documents = np.column_stack([*popularity(graph, counts), lift(graph, text, queries)])
        return cls(
            tuple(graph.query_keys[int(i)] for i in known),
            shares,
            shares.column(0).transposed(graph.n_docs).unit(),
            clicktext.with_data(bm25_data(*clicktext.arrays, n_terms)),
            asked.words.unit(text.word_idf).transposed(n_terms),
            asked.chars.unit(char_idf).transposed(n_chars),
            char_idf,
            np.column_stack([text.weights, matters]),
            np.concatenate([documents, np.full((1, documents.shape[1]), np.nan)]),
            np.append(clicks.sums(), 0.0),
        )

    # --- lists -----------------------------------------------------------------------------------

    def scores(self, lists: Candidates, terms: QueryTerms, matches: Matches, text: TextSignals) -> Array:
        """Columns whose position within the list is a feature, too: `score_names`."""
        by_words = self._votes(lists, *self._nearest(terms.words, text.word_idf, self.by_word))
        by_chars = self._votes(lists, *self._nearest(terms.chars, self.char_idf, self.by_char))
        same = self._votes(lists, *self._same(lists))
        out = np.empty((len(self.score_names), lists.lists.n_rows))
        out[0] = dots(lists, terms.words.arrays, self.clicktext)
        out[1], out[2], out[3] = by_words[0], by_chars[0], same[0]
        out[4] = matches.shared[MATTERS, -1] / np.maximum(matches.asked[MATTERS], TINY)
        recent = len(by_chars) - 1
        out[5 : 5 + recent], out[5 + recent :] = by_chars[1:], same[1:]
        return out

    def plain(self, lists: Candidates) -> Array:
        """Counts of each document, and how many clicks the query has: `plain_names`."""
        out = np.empty((len(self.plain_names), lists.lists.n_rows))
        out[:-1] = self.documents[lists.items].T
        out[-1] = self.query_clicks[self._numbers(lists)][lists.lists.owner]
        return out

    def alike(self, lists: Candidates, weights: Array) -> Array:
        """Similarity to the other documents of the list, weighted: clicked for the same queries."""
        out = np.empty((len(weights), lists.lists.n_rows))
        rows = (*self.together.arrays, 1, 0, 1)
        likeness(lists.lists.indptr, lists.items, *rows, NO_SCALE, NO_SCALE, weights, out)
        return out

    def popular(self, n: int) -> Array:
        """The documents with the most clicks; if there are times, with the most recent clicks."""
        column = self.plain_names.index("clicks lately" if self.has_times else "clicks")
        return np.argsort(-self.documents[:-1, column], kind="stable")[:n]

    def _numbers(self, lists: Candidates) -> Array:
        """The number of each list's query; -1 for an unknown one."""
        return np.array([self.numbers.get(key, -1) for key in lists.keys], dtype=np.int64)

    def _nearest(self, queries: FixedRows, idf: Array, inverted: FixedRows) -> tuple[Array, Array, Array]:
        indptr, voters, similarity = nearest(queries.unit_arrays(idf), inverted.arrays, len(self.keys), NEIGHBOURS)
        return indptr, voters, similarity**SHARPNESS

    def _same(self, lists: Candidates) -> tuple[Array, Array, Array]:
        numbers = self._numbers(lists)
        known = numbers >= 0
        return Ragged.of_lengths(known).indptr, numbers[known].astype(np.int32), np.ones(np.count_nonzero(known))

    def _votes(self, lists: Candidates, indptr: Array, voters: Array, weights: Array) -> Array:
        out = np.zeros((self.shares.data.shape[1], lists.lists.n_rows))
        votes(lists.lists.indptr, lists.items, indptr, voters, weights, *self.shares.arrays, out)
        return out


ARRAYS = ("char_idf", "weights", "documents", "query_clicks")


def clicked(graph: ClickGraph) -> tuple[Array, FixedRows]:
    """The numbers of the queries with a click, and rows of the documents clicked for them: the clicks and, if there are
    times, clicks in which older ones count less, for each of HALF_LIVES."""
    pairs = graph.pairs
    kept = pairs.clicks > 0
    known, lengths = np.unique(pairs.query[kept], return_counts=True)
    recent = [weighed_clicks(graph, days) for days in HALF_LIVES.values()] if graph.has_times else []
    values = [pairs.clicks, *recent]
    return known, FixedRows(Ragged.of_lengths(lengths).indptr, pairs.doc[kept], np.stack(values, axis=1)[kept])


def shares_of(counts: FixedRows) -> FixedRows:
    """Clicks divided by the query's clicks, and recent clicks divided by the square root of the query's: a share of a
    hundred clicks is more reliable than a share of one."""
    totals = np.add.reduceat(counts.data, counts.indptr[:-1], dtype=np.float64) if len(counts) else counts.data
    power = np.array([1.0, *[0.5] * len(HALF_LIVES)])[: counts.data.shape[1]]
    return counts.with_data(counts.data / (np.maximum(totals, TINY) ** power)[counts.owner])


def popularity(graph: ClickGraph, counts: FixedRows) -> list[Array]:
    """For each document: recent clicks if there are times, clicks, how often it was shown, and its click rate."""
    *lately, clicks = (
        np.bincount(counts.indices, weights=column, minlength=graph.n_docs) for column in counts.data.T[::-1]
    )
    shown = np.bincount(graph.pairs.doc, graph.pairs.impressions, minlength=graph.n_docs)
    return [*lately, clicks, shown, (clicks + PRIOR_CLICKS) / (np.maximum(shown, clicks) + PRIOR_SHOWN)]


def kept_words(shares: FixedRows, words: FixedRows, text: TextSignals) -> Array:
    """For each term, how often the clicked documents of a query contain it if the query does."""
    asked, kept = np.zeros((2, len(text.vocabularies.words)))
    rows = (*shares.arrays, words.indptr, words.indices, text.words.indptr, text.words.indices)
    kept_terms(*rows, len(text.names), asked, kept)
    return (kept + 1) / (asked + 2)


def lift(graph: ClickGraph, text: TextSignals, queries: QueryTerms) -> Array:
    """For each document, its clicks divided by the clicks expected from its rank by text on each page. Popularity is
    high for documents shown for the right queries; this is high for documents that are clicked when they are shown."""
    pages = graph.impressions
    if pages is None or not len(pages.doc):
        return np.ones(graph.n_docs)
    if len(pages) > MOST_PAGES:
        taken = np.zeros(len(pages), dtype=bool)
        taken[np.random.default_rng(0).choice(len(pages), MOST_PAGES, replace=False)] = True
        pages = pages.take(taken)
    lists = Candidates([Query("")] * len(pages), Ragged(np.asarray(pages.indptr)), pages.doc.astype(np.int64))
    rank = np.empty(len(pages.doc), dtype=np.int64)

    def place(start: int, stop: int) -> None:
        some = lists.some(start, stop)
        guess = text.first_guess(some, queries.take(pages.query[start:stop]))
        first = lists.lists.indptr[start]
        rank[first : first + len(guess)] = places(some.lists.indptr, guess[None])[0]

    over_lists(lists, None, place)
    rank = np.minimum(rank, MOST_RANKS)
    chosen = pages.clicked.astype(np.float64)
    rate = np.bincount(rank, chosen) / np.maximum(np.bincount(rank), 1)
    expected = np.bincount(pages.doc, rate[rank], minlength=graph.n_docs)
    return (np.bincount(pages.doc, chosen, minlength=graph.n_docs) + 1) / (expected + 1)
