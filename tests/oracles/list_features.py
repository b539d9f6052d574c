"""Features of lists by dense arithmetic, list by list: every matrix is written out, nothing is shared or looked up."""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.responses import weighed_clicks
from clickbridge.types import OPAQUE, text_of_key
from clickbridge.views.char import CharCounter
from clickbridge.views.text import Analyzer
from clickbridge.views.word import BigramCounter, Vocabulary, WordCounter

Array = np.ndarray[Any, Any]
Columns = dict[str, Array]
K1, B, NEIGHBOURS, SHARPNESS = 1.2, 0.75, 50, 3
HALF_LIVES = {"just now": 2.0, "lately": 7.0, "this month": 30.0}


def idf_of(counts: Array) -> Array:
    frequency = (counts > 0).sum(axis=0)
    return np.log1p((len(counts) - frequency + 0.5) / (frequency + 0.5))


def bm25(counts: Array) -> Array:
    lengths = counts.sum(axis=1)
    average = lengths[lengths > 0].mean() if (lengths > 0).any() else 1.0
    tf = counts / (1 - B + B * lengths / average)[:, None]
    return idf_of(counts) * (K1 + 1) * tf / (K1 + tf)


def unit(rows: Array) -> Array:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def over(values: Array, totals: Array) -> Array:
    return values / np.maximum(totals, 1e-9)


def standardised(column: Array) -> Array:
    known = np.isfinite(column)
    if not known.any():
        return np.zeros(len(column))
    deviation = column[known].std()
    return np.where(known, column - column[known].mean(), 0.0) / (deviation if deviation > 1e-12 else 1.0)


def ranks(column: Array) -> Array:
    low = np.where(np.isnan(column), -np.inf, column)
    return np.array([(low > value).sum() for value in low], dtype=np.float64)


class Oracle:
    """What `ListFeatures.of(graph).matrix` gives, for documents by number and queries by key."""

    def __init__(self, graph: ClickGraph, texts: ClickGraph) -> None:
        """The clicks of `graph`, the documents and the vocabulary of `texts`."""
        self.n_docs, self.names = graph.n_docs, texts.field_names
        self.heading = next((n for n in ("title", "name", "heading") if n in self.names), (self.names or [""])[0])
        self.terms, self.chars, self.pairs = Vocabulary(), Vocabulary(), Vocabulary()
        self.analyzer = Analyzer("english", "keep")
        counter = WordCounter(self.analyzer, self.terms)
        columns = {name: texts.field(name) for name in self.names}
        heading = columns.get(self.heading, [""] * self.n_docs)
        counter.count(texts.query_texts)
        for name, column in columns.items():
            counter.count(column, url=name == "url")
        self.fields = {name: self.words(column, url=name == "url") for name, column in columns.items()}
        self.fields["all"] = np.sum(list(self.fields.values()), axis=0) + np.zeros((self.n_docs, len(self.terms)))
        self.idf = idf_of(self.fields["all"])
        char_counts = CharCounter(self.chars, joined=True).count(heading).toarray()
        self.char_idf = idf_of(char_counts)
        self.char_rows = unit(char_counts * self.char_idf)
        self.pair_rows = BigramCounter(self.analyzer, self.pairs).count(heading).toarray() > 0
        self.numeral = np.array([term.isdecimal() for term in self.terms], dtype=float)
        self.numbers = self._numbers(columns)
        self._learn(graph)

    def words(self, texts: list[str], url: bool = False) -> Array:
        return WordCounter(self.analyzer, self.terms, frozen=True).count(texts, url).toarray().astype(float)

    def _numbers(self, columns: dict[str, list[str]]) -> Columns:
        out = {}
        for name, texts in columns.items():
            filled = [text for text in texts if text.strip()]
            if filled and all(text.lstrip("-").replace(".", "", 1).isdecimal() for text in filled):
                out[name] = np.array([float(text) if text.strip() else np.nan for text in texts])
        return out

    def _learn(self, graph: ClickGraph) -> None:
        pairs, wide = graph.pairs, (graph.n_queries, graph.n_docs)
        clicks, lately, shown = np.zeros(wide), np.zeros(wide), np.zeros(wide)
        clicks[pairs.query, pairs.doc], shown[pairs.query, pairs.doc] = pairs.clicks, pairs.impressions
        known = clicks.sum(axis=1) > 0
        self.keys = [key for key, there in zip(graph.query_keys, known, strict=True) if there]
        asked = self.words(graph.query_texts) > 0
        self.known_words, self.clicks = asked[known], clicks[known]
        self.shares = over(self.clicks, self.clicks.sum(axis=1, keepdims=True))
        self.lately, self.clicks_lately = dict[str, Array](), dict[str, Array]()
        for span, days in HALF_LIVES.items() if graph.has_times else ():
            lately[pairs.query, pairs.doc] = weighed_clicks(graph, days)
            self.lately[span] = lately[known] / np.maximum(lately[known].sum(axis=1, keepdims=True), 1e-9) ** 0.5
            self.clicks_lately[span] = lately.sum(axis=0)
        self.shown = shown.sum(axis=0)
        holds = self.fields["all"] > 0
        kept, times = np.ones(len(self.terms)), np.full(len(self.terms), 2.0)
        for query, doc in zip(*np.nonzero(self.shares), strict=True):
            times += self.shares[query, doc] * self.known_words[query]
            kept += self.shares[query, doc] * (self.known_words[query] & holds[doc])
        self.matter = kept / times * self.idf
        self.clicktext = bm25(self.clicks.T @ self.known_words)
        known_texts = [text_of_key(key) for key in self.keys]
        self.query_chars = Vocabulary()
        counts = CharCounter(self.query_chars, joined=True).count(known_texts).toarray()
        self.query_char_idf = idf_of(counts)
        self.known_chars = unit(counts * self.query_char_idf)
        self.lift = self._lift(graph)

    def _lift(self, graph: ClickGraph) -> Array:
        pages = graph.impressions
        if pages is None:
            return np.ones(self.n_docs)
        seen: list[tuple[int, int, float]] = []
        for page in range(len(pages)):
            shown = slice(pages.indptr[page], pages.indptr[page + 1])
            guess = self.guess(text_of_key(graph.query_keys[int(pages.query[page])]), pages.doc[shown])
            place = np.minimum(ranks(guess), 50).astype(int)
            seen += list(zip(place.tolist(), pages.doc[shown].tolist(), pages.clicked[shown].tolist(), strict=True))
        rank, doc, clicked = (np.array(column) for column in zip(*seen, strict=True))
        rate = np.bincount(rank, clicked) / np.maximum(np.bincount(rank), 1)
        expected = np.bincount(doc, rate[rank], minlength=self.n_docs)
        return (np.bincount(doc, clicked, minlength=self.n_docs) + 1) / (expected + 1)

    def guess(self, text: str, docs: Array) -> Array:
        words = self.words([text])[0] > 0
        by_words, by_chars = bm25(self.fields["all"])[docs] @ words, self.char_rows[docs] @ self.char_query(text)
        # Two documents that one column each puts above all others tie but for rounding.
        return (standardised(by_words) + standardised(by_chars)).round(9)

    def char_query(self, text: str) -> Array:
        counts = CharCounter(self.chars, frozen=True, joined=True).count([text]).toarray()[0]
        return unit(counts * self.char_idf)

    def near(self, similarity: Array, touched: Array) -> Array:
        """The similarity of the nearest known queries to a power; 0 for the others."""
        order = [i for i in np.lexsort((np.arange(len(similarity)), -similarity)) if touched[i]][:NEIGHBOURS]
        out = np.zeros(len(similarity))
        out[order] = similarity[order] ** SHARPNESS
        return out

    # --- one list ------------------------------------------------------------------------------

    def columns(self, key: str, docs: list[int], own: Columns, whole: Columns) -> Columns:
        """`docs` are numbers of documents, -1 for unknown ones."""
        items, known = np.array(docs, dtype=int), np.array(docs, dtype=int) >= 0

        def dots(rows: Array, query: Array) -> Array:
            return np.array([rows[d] @ query if d >= 0 else 0.0 for d in docs])

        def numbers(values: Array) -> Array:
            return np.array([values[d] if d >= 0 else np.nan for d in docs])

        def alike(rows: Array, weights: Array) -> Array:
            listed = [rows[d] if d >= 0 else np.zeros(rows.shape[1]) for d in docs]
            return np.array([
                sum(weights[j] * (one @ other) for j, other in enumerate(listed) if j != i)
                for i, one in enumerate(listed)
            ])  # fmt: skip

        text = text_of_key(key)
        words = (self.words([text])[0] > 0).astype(float)
        scores = own | whole | self._text_scores(text, words, dots) | self._click_scores(key, text, words, dots)
        out = dict(scores)
        for name, column in scores.items():
            if name not in whole:
                best = np.nanmax(column) if np.isfinite(column).any() else np.nan
                out |= {f"{name}: rank": ranks(column), f"{name}: below best": column - best}
                out[f"{name}: standardised"] = standardised(column)
        votes = np.mean([standardised(column) for column in own.values()], axis=0)
        raised = np.exp(votes - votes.max(initial=-np.inf))
        weightings = {
            "trusted": np.where(known, raised / raised.sum(), 0.0),
            "best": np.where(known & (votes == votes.max(initial=-np.inf)), 1.0, 0.0),
            "list": np.where(known, 1 / max(len(docs), 1), 0.0),
        }
        spaces = {
            f"words of {name}": unit(self.fields[name] * self.idf)
            for name in dict.fromkeys((self.heading or "all", "all"))
        } | {"chosen together": unit(self.shares.T)}
        for space, rows in spaces.items():
            out |= {f"like the {how} by {space}": alike(rows, w) for how, w in weightings.items()}
        out |= self._plain(words, dots, numbers)
        for span in reversed(self.clicks_lately):
            out[f"clicks {span}"] = numbers(self.clicks_lately[span])
        clicks = self.clicks.sum(axis=0)
        out |= {"clicks": numbers(clicks), "shown": numbers(self.shown)}
        out["click rate"] = numbers((clicks + 1) / (np.maximum(self.shown, clicks) + 5))
        out["lift"] = numbers(self.lift)
        number = self.number(key)
        out["query clicks"] = np.full(len(docs), self.clicks[number].sum() if number >= 0 else 0.0)
        out |= {f"number {name}": numbers(values) for name, values in self.numbers.items()}
        return out | {"list length": np.full(len(items), float(len(items)))}

    def number(self, key: str) -> int:
        return next((self.keys.index(k) for k in (key, OPAQUE + key) if k in self.keys), -1)

    def _text_scores(self, text: str, words: Array, dots: Any) -> Columns:
        pairs = BigramCounter(self.analyzer, self.pairs, frozen=True).count([text]).toarray()[0] > 0
        return {
            **{f"bm25 {name}": dots(bm25(counts), words) for name, counts in self.fields.items()},
            "vsm": dots(self.fields["all"] * self.idf, words * self.idf),
            f"characters {self.heading}": dots(self.char_rows, self.char_query(text)),
            f"word pairs {self.heading}": dots(self.pair_rows.astype(float), pairs.astype(float)),
        }

    def _click_scores(self, key: str, text: str, words: Array, dots: Any) -> Columns:
        rows = unit(self.known_words * self.idf)
        by_words = self.near(rows @ unit(words * self.idf), rows @ words > 0)
        counts = CharCounter(self.query_chars, frozen=True, joined=True).count([text]).toarray()[0]
        by_chars = self.near(self.known_chars @ unit(counts * self.query_char_idf), self.known_chars @ counts > 0)
        number = self.number(key)
        same = np.arange(len(self.keys)) == number
        matter = dots((self.fields["all"] > 0) * self.matter, words)
        out = {
            "click text": dots(self.clicktext, words),
            "votes by words": dots(self.shares.T, by_words),
            "votes by characters": dots(self.shares.T, by_chars),
            "same query": dots(self.shares.T, same),
            "words that matter": over(matter, words @ self.matter),
        }
        for what, weights in (("votes", by_chars), ("same query", same)):
            for span, shares in self.lately.items():
                out[f"{what} {span}"] = dots(shares.T, weights)
        return out

    def _plain(self, words: Array, dots: Any, numbers: Any) -> Columns:
        n_docs = len(dots(np.zeros((self.n_docs, len(words))), words))
        out = {"query words": np.full(n_docs, words.sum()), "query mass": np.full(n_docs, words @ self.idf)}
        for name, counts in self.fields.items():
            masses = (counts > 0) * self.idf
            shared = dots(masses, words)
            out[f"query in {name}"] = over(shared, words @ self.idf)
            out[f"{name} in query"] = over(shared, numbers(masses.sum(axis=1)))
            out[f"words {name}"] = numbers(counts.sum(axis=1))
        for name in dict.fromkeys((self.heading or "all", "all")):
            held = (self.fields[name] > 0) * self.numeral
            shared = dots(held, words)
            out[f"numbers missing in {name}"] = words @ self.numeral - shared
            out[f"numbers only in {name}"] = numbers(held.sum(axis=1)) - shared
        return out
