"""Learns synonyms from clicks: the words that people typed, and the words of the documents they then clicked.

Someone types *cod* and clicks "Call of Duty". The word is not in the document, so it may mean one of the document's
words. A pair is kept if this happens repeatedly, for several people, more often than by chance and more often than for
other words. The spelling helps: a pair that looks like a misspelling, two joined words, initials or a number needs few
clicks. Any other pair needs many, in different queries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.people import names_a_person
from clickbridge.graph.sums import pair_keys
from clickbridge.insight.word_relations import NUMBER_WORDS, relation
from clickbridge.models.catalogue import heading_of
from clickbridge.models.study import documents_language
from clickbridge.settings import AUTO_LANGUAGE
from clickbridge.views.stopwords import STOP_WORDS
from clickbridge.views.text import Analyzer, fold_accents, tokens_of

Array = np.ndarray[Any, Any]
LONGEST_PHRASE = 4
MOST_PAIRS = 500_000
"""Pairs that are read, the most clicked first."""
MOST_CLICK_WORDS = 12
"""Words of other queries that stand for a document, the most clicked ones."""
SHORT_FIELD = 12
"""Words in a value of a field that names things, as actors or brands, rather than telling about them."""
LEAST_SHARE = {
    "misspelling": 0.2,
    "run together": 0.15,
    "split apart": 0.5,
    "abbreviation": 0.25,
    "number": 0.5,
    "same use": 0.5,
}
LEAST_LIFT = {
    "misspelling": 3.0,
    "run together": 2.0,
    "split apart": 2.0,
    "abbreviation": 4.0,
    "number": 2.0,
    "same use": 15.0,
}
LEAST_CLICKS = {"misspelling": 1, "run together": 1, "split apart": 1, "abbreviation": 2, "number": 5, "same use": 8}
"""Beyond the people that `min_users` asks for: letters that say the same are evidence by themselves."""
LEAST_QUERIES = {"misspelling": 1, "run together": 1, "split apart": 1, "abbreviation": 1, "number": 3, "same use": 3}
SURE = 0.6
"""Share that a slip needs which is a word of documents as well."""
OWN_WORD = 2
"""Documents that have a word from which on it is one of the collection's own."""
LEAST_DOCUMENTS = 3
"""That pairs without a relation of letters need."""
DOUBT = 1.0
"""Clicks of doubt that every share is over: a pair seen once is half sure."""


REPLACED = ("misspelling", "run together", "split apart")
"""Kinds whose typed word is no word of its own."""


@dataclass(frozen=True)
class Synonym:
    """A synonym: `typed` is a word of queries, `means` one or several words of documents or of other queries."""

    typed: str
    means: str
    kind: str
    weight: float
    """Share of the clicks after `typed` that went to `means`, counted down where there are few."""
    clicks: int
    users: int | None
    queries: tuple[str, ...]
    """Some that show it; none of fewer people than asked for."""


@dataclass
class _Evidence:
    clicks: float = 0.0
    pairs: list[int] = field(default_factory=list)
    queries: set[int] = field(default_factory=set)


def learn_synonyms(
    graph: ClickGraph,
    *,
    min_users: int = 2,
    language: str = AUTO_LANGUAGE,
    most: int = 1000,
    strictness: float = 1.0,
) -> list[Synonym]:
    """Learns synonyms from the clicks of a GRAPH. The most certain pairs come first.

    A pair needs clicks by at least `min_users` different people or, if the log has no users, at least that many clicks.
    `language` is that of stems and stop words. `strictness` multiplies the other evidence that a pair needs: with a
    value below 1 there are more pairs, and more of them are wrong."""
    if language == AUTO_LANGUAGE:
        language = documents_language({name: graph.field(name) for name in graph.field_names})
    return _Learner(graph, min_users, language, strictness).learned(most)


class _Learner:
    def __init__(self, graph: ClickGraph, min_users: int, language: str, strictness: float) -> None:
        self.graph, self.min_users, self.strictness = graph, min_users, strictness
        self.stop_words = STOP_WORDS.get(language, frozenset())
        self.analyzer = Analyzer(language)
        self.stems: dict[str, str] = {}
        told = (graph.pairs.clicks > 0) & ~names_a_person(graph)[graph.pairs.query]
        order = np.argsort(-graph.pairs.clicks, kind="stable")
        self.chosen = order[told[order]][:MOST_PAIRS]
        self.query_words = [tuple(dict.fromkeys(words_of(text))) for text in graph.query_texts]
        self.evidence: dict[tuple[str, str], _Evidence] = defaultdict(_Evidence)
        self.asked = self._clicks_by_word()
        """Clicks of all queries that have a word, or two neighbours that a document runs together."""
        self.missed: dict[str, float] = defaultdict(float)
        """Those of them on documents that do not have it."""
        self._phrases: dict[int, list[tuple[tuple[str, ...], frozenset[str]]]] = {}

    def learned(self, most: int) -> list[Synonym]:
        self._count()
        found = [pair for key, evidence in self.evidence.items() if (pair := self._judge(*key, evidence))]
        found = _resolved(sorted(found, key=lambda s: (-_order(s), s.typed, s.means)))
        return _without_repeats(found)[:most]

    # --- counting ------------------------------------------------------------------------------------

    def _clicks_by_word(self) -> dict[str, float]:
        pairs = self.graph.pairs
        out: dict[str, float] = defaultdict(float)
        for place in self.chosen.tolist():
            for word in self.query_words[int(pairs.query[place])]:
                out[word] += float(pairs.clicks[place])
        return out

    def _count(self) -> None:
        pairs = self.graph.pairs
        for place in self.chosen.tolist():
            query, doc, clicks = int(pairs.query[place]), int(pairs.doc[place]), float(pairs.clicks[place])
            words, known = self.query_words[query], self.doc_stems[doc]
            own = {self.stem(word) for word in words}
            lost = [word for word in words if self.stem(word) not in known]
            for word in lost:
                self.missed[word] += clicks
            if not lost:
                continue
            phrases = [(phrase, stems) for phrase, stems in self.doc_phrases(doc) if not own & stems]
            # Where another word of the query is in the document, that may be why it was clicked.
            alone = all(word in lost or word in self.stop_words for word in words)
            for word in lost:
                if word in self.stop_words:
                    continue
                for phrase, _ in phrases:
                    if alone or (_may_be_related(word, phrase) and relation(word, phrase)):
                        self._add(word, " ".join(phrase), query, place, clicks)
                for other in self.click_words.get(doc, ()):
                    if self.stem(other) not in own | known and relation(word, [other]):
                        self._add(word, other, query, place, clicks)
                if apart := self._typed_apart(word, doc):
                    self._add(word, apart, query, place, clicks)
            self._count_split(words, known, query, place, clicks)

    def _count_split(self, words: Sequence[str], known: frozenset[str], query: int, place: int, clicks: float) -> None:
        """Two typed words that the document writes as one: *battle field*, battlefield."""
        for one, two in pairwise(words):
            if self.stem(one) not in known and self.stem(two) not in known and self.stem(one + two) in known:
                self.asked[f"{one} {two}"] += clicks
                self._add(f"{one} {two}", one + two, query, place, clicks)

    def _add(self, word: str, phrase: str, query: int, place: int, clicks: float) -> None:
        evidence = self.evidence[word, phrase]
        evidence.clicks += clicks
        evidence.pairs.append(place)
        evidence.queries.add(query)

    def stem(self, word: str) -> str:
        found = self.stems.get(word)
        if found is None:
            found = self.stems[word] = "".join(self.analyzer.terms(word)) or word
        return found

    @cached_property
    def doc_stems(self) -> list[frozenset[str]]:
        """The stems of a document's whole text."""
        texts = [self.graph.field(name) for name in self.graph.field_names]
        return [
            frozenset(self.stem(word) for text in fields for word in words_of(text))
            for fields in (zip(*texts, strict=True) if texts else [()] * self.graph.n_docs)
        ]

    @cached_property
    def _naming_fields(self) -> list[tuple[bool, list[str]]]:
        """The title and the fields with short values, each with whether it is the title."""
        graph = self.graph
        heading = heading_of(graph.field_names) or next(iter(graph.field_names), None)
        out = []
        for name in graph.field_names:
            texts = graph.field(name)
            values = [value for text in texts[:2000] for value in text.split("\n") if value]
            usual = np.mean([len(value.split()) for value in values]) if values else np.inf
            if name == heading or (usual <= SHORT_FIELD / 3 and not name.endswith("id")):
                out.append((name == heading, texts))
        return out

    def doc_phrases(self, doc: int) -> list[tuple[tuple[str, ...], frozenset[str]]]:
        """The phrases that name a document, with their stems: sequences of words of its title, and words of its short
        fields."""
        if doc not in self._phrases:
            found: dict[tuple[str, ...], None] = {}
            for is_heading, texts in self._naming_fields:
                for value in texts[doc].split("\n"):
                    found.update(dict.fromkeys(self._runs(words_of(value), LONGEST_PHRASE if is_heading else 2)))
            stems = (frozenset(self.stem(w) for w in phrase if w not in self.stop_words) for phrase in found)
            self._phrases[doc] = list(zip(found, stems, strict=True))
        return self._phrases[doc]

    def _runs(self, words: Sequence[str], longest: int) -> Iterator[tuple[str, ...]]:
        for length in range(1, longest + 1):
            for start in range(len(words) - length + 1):
                if words[start] not in self.stop_words and words[start + length - 1] not in self.stop_words:
                    yield tuple(words[start : start + length])

    @cached_property
    def click_words(self) -> dict[int, list[str]]:
        """For each document, the words of the queries with the most clicks on it."""
        pairs = self.graph.pairs
        counts: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for place in self.chosen.tolist():
            for word in self.query_words[int(pairs.query[place])]:
                counts[int(pairs.doc[place])][word] += float(pairs.clicks[place])
        return {doc: sorted(own, key=lambda w: -own[w])[:MOST_CLICK_WORDS] for doc, own in counts.items()}

    @cached_property
    def _neighbours(self) -> tuple[dict[int, dict[str, str]], dict[str, float]]:
        """For each document, pairs of neighbouring words in the queries with clicks on it, by their joined form; and
        the total clicks of each pair."""
        pairs = self.graph.pairs
        by_doc: dict[int, dict[str, str]] = defaultdict(dict)
        clicks: dict[str, float] = defaultdict(float)
        for place in self.chosen.tolist():
            own = by_doc[int(pairs.doc[place])]
            for one, two in pairwise(self.query_words[int(pairs.query[place])]):
                own.setdefault(one + two, f"{one} {two}")
                clicks[f"{one} {two}"] += float(pairs.clicks[place])
        return by_doc, clicks

    def _typed_apart(self, word: str, doc: int) -> str | None:
        """The two words that more people typed for this document if someone joined them: *place2*, place 2. Not for a
        word that documents use, nor for two words of the document's name, which are counted already."""
        by_doc, clicks = self._neighbours
        apart = by_doc.get(doc, {}).get(word)
        if apart is None or clicks[apart] <= self.asked[word] or self._document_words.get(word, 0) >= OWN_WORD:
            return None
        return None if any(" ".join(phrase) == apart for phrase, _ in self.doc_phrases(doc)) else apart

    # --- judging -------------------------------------------------------------------------------------

    @cached_property
    def _phrase_share(self) -> dict[str, float]:
        """For each phrase, the share of all clicks that are on documents it names."""
        pairs = self.graph.pairs
        clicks = np.bincount(pairs.doc, pairs.clicks, minlength=self.graph.n_docs)
        out: dict[str, float] = defaultdict(float)
        for doc in np.flatnonzero(clicks).tolist():
            for phrase, _ in self.doc_phrases(doc):
                out[" ".join(phrase)] += float(clicks[doc])
        total = float(clicks.sum()) or 1.0
        return {phrase: share / total for phrase, share in out.items()}

    @cached_property
    def _document_words(self) -> dict[str, int]:
        """The number of documents that contain a word in exactly this spelling."""
        out: dict[str, int] = defaultdict(int)
        for name in self.graph.field_names:
            for text in self.graph.field(name):
                for word in set(words_of(text)):
                    out[word] += 1
        return out

    def _judge(self, typed: str, means: str, evidence: _Evidence) -> Synonym | None:
        phrase = means.split()
        kind = "split apart" if " " in typed else relation(typed, phrase)
        kind = kind or ("same use" if self._may_be_used_alike(typed, phrase, evidence) else None)
        if kind is None or not self._is_enough(kind, evidence):
            return None
        # Documents that have the number as it was typed say nothing against the other way to write it.
        share = evidence.clicks / ((self.missed if kind == "number" else self.asked)[typed] + DOUBT)
        chance = self._phrase_share.get(means, self.asked.get(means, 0.0) / max(self._total, 1.0))
        if share < self.strictness * LEAST_SHARE[kind] or share < self.strictness * LEAST_LIFT[kind] * chance:
            return None
        if kind == "misspelling" and not self._is_rarer(typed, means, share):
            return None
        users = self._users(evidence)
        if (evidence.clicks if users is None else users) < self.min_users:
            return None
        return Synonym(typed, means, kind, round(share, 4), int(evidence.clicks), users, self._examples(evidence))

    def _is_enough(self, kind: str, evidence: _Evidence) -> bool:
        return (
            evidence.clicks >= self.strictness * LEAST_CLICKS[kind]
            and len(evidence.queries) >= self.strictness * LEAST_QUERIES[kind]
        )

    def _may_be_used_alike(self, typed: str, phrase: Sequence[str], evidence: _Evidence) -> bool:
        """Rules for pairs whose spelling is not related. A word of documents is not a synonym of another one, numbers
        have no synonyms, and a pair seen with only one document belongs to that document."""
        docs = set(self.graph.pairs.doc[evidence.pairs].tolist())
        return (
            len(docs) >= self.strictness * LEAST_DOCUMENTS
            and len(typed) >= 3
            and not typed.isdigit()
            and not any(word.isdigit() or len(word) < 3 for word in phrase)
            and not self._document_words.get(typed)
        )

    def _is_rarer(self, typed: str, means: str, share: float) -> bool:
        """A misspelling is typed less often than the word, and documents do not contain it. If some do, the evidence
        that people did not mean them must be stronger."""
        own, others = self._document_words.get(typed, 0), self._document_words.get(means, 0)
        typed_less = self.asked[typed] < self.asked.get(means, 0.0) + 5 * others
        return typed_less and 5 * own <= others and (own < OWN_WORD or share >= SURE)

    @cached_property
    def _total(self) -> float:
        return float(self.graph.pairs.clicks[self.chosen].sum())

    @cached_property
    def _people(self) -> tuple[Array, Array] | None:
        """The pair and the user of every click, sorted by pair; None if the log has no users."""
        graph = self.graph
        keys, users = [], []
        pages, singles = graph.impressions, graph.clicks
        if pages is not None and pages.user is not None:
            on = pages.clicked.astype(bool)
            lengths = pages.lists.lengths
            keys.append(pair_keys(np.repeat(pages.query, lengths)[on], pages.doc[on]))
            users.append(np.repeat(pages.user, lengths)[on])
        if singles is not None and singles.user is not None:
            keys.append(pair_keys(singles.query, singles.doc))
            users.append(singles.user)
        if not keys:
            return None
        key, user = np.concatenate(keys), np.concatenate(users)
        order = np.argsort(key, kind="stable")
        return key[order], user[order]

    def _users_of(self, places: Sequence[int]) -> int | None:
        if self._people is None:
            return None
        key, user = self._people
        pairs = self.graph.pairs
        wanted = pair_keys(pairs.query[list(places)], pairs.doc[list(places)])
        low, high = np.searchsorted(key, wanted, "left"), np.searchsorted(key, wanted, "right")
        found = np.unique(np.concatenate([user[a:b] for a, b in zip(low, high, strict=True)]))
        return int(np.count_nonzero(found))

    def _users(self, evidence: _Evidence) -> int | None:
        return self._users_of(evidence.pairs)

    def _examples(self, evidence: _Evidence, most: int = 3) -> tuple[str, ...]:
        """Example queries for the pair, most clicks first. Each was typed by enough people."""
        pairs = self.graph.pairs
        by_query: dict[int, list[int]] = defaultdict(list)
        for place in evidence.pairs:
            by_query[int(pairs.query[place])].append(place)
        out = []
        for query, places in sorted(by_query.items(), key=lambda item: -float(pairs.clicks[item[1]].sum())):
            users = self._users_of(places)
            if users is None or users >= self.min_users:
                out.append(self.graph.query_texts[query])
            if len(out) == most:
                break
        return tuple(out)


def _may_be_related(word: str, phrase: Sequence[str]) -> bool:
    """A quick check before the spelling is compared."""
    return phrase[0][0] == word[0] or (len(phrase) == 1 and (len(word) >= 6 or word in NUMBER_WORDS))


def words_of(text: str) -> list[str]:
    return [fold_accents(word.lower().replace("’", "'")).replace("'", "") for word in tokens_of(text)]


def _order(synonym: Synonym) -> float:
    """The sort key, most certain first: a large share of the clicks, many people, and a related spelling."""
    sure = {"run together": 1.1, "number": 0.6, "same use": 0.35}
    return synonym.weight * sure.get(synonym.kind, 1.0) * float(np.log1p(synonym.clicks))


def _resolved(synonyms: list[Synonym]) -> list[Synonym]:
    """A misspelling of a misspelling becomes one of the word itself, and misspellings in phrases are corrected."""
    slips = {s.typed: s.means for s in reversed(synonyms) if s.kind == "misspelling"}

    def put_right(word: str, typed: str) -> str:
        seen = {typed}
        while word in slips and word not in seen:
            seen.add(word)
            word = slips[word]
        return word

    out = []
    for synonym in synonyms:
        means = " ".join(put_right(word, synonym.typed) for word in synonym.means.split())
        if means != synonym.typed:
            out.append(replace(synonym, means=means))
    return out


def _without_repeats(synonyms: list[Synonym]) -> list[Synonym]:
    """If a word has a meaning with a related spelling, all its other meanings are dropped. Of phrases that share a
    word, the more certain one is kept."""
    by_letters = {word for s in synonyms if s.kind != "same use" for word in (s.typed, *s.typed.split())}
    kept: list[Synonym] = []
    taken: dict[str, set[str]] = {}
    for synonym in synonyms:
        words = set(synonym.means.split())
        if synonym.kind == "same use" and synonym.typed in by_letters:
            continue
        if not words & taken.setdefault(synonym.typed, set()):
            taken[synonym.typed] |= words
            kept.append(synonym)
    return kept
