"""A study: a GRAPH, and everything that choosing and learning on it can share, computed only once.

A study holds back clicks; the rest of the log is a study of its own, over the same documents. What a choice needs
(counts of words, field weights, lists) is cached here under a key for as long as the study exists. So the parts of a
sum, and several models fitted on one GRAPH, never compute the same thing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

from clickbridge.engines.base import Engine, default_engine
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import HoldBack, folds
from clickbridge.graph.responses import ClickedQueries, clicked_queries, responses
from clickbridge.io.checkpoint import Checkpoints
from clickbridge.models.catalogue import Catalogue, KnownQueries
from clickbridge.progress import Progress, logged
from clickbridge.settings import LANGUAGES, Counting
from clickbridge.views.fields import FieldCounts, count_fields
from clickbridge.views.languages import guess_language
from clickbridge.views.text import Analyzer
from clickbridge.views.view import Source, counted_once
from clickbridge.views.word import URL_FIELD, Vocabulary, WordCounter
from clickbridge.wording import count_of

Answer = TypeVar("Answer")
LANGUAGE_DOCS = 2000
"""Documents whose text says which language it is."""


@dataclass(frozen=True)
class Known:
    """The queries that have a response under some settings of counting, their rows, and lines for the user."""

    queries: KnownQueries
    clicked: ClickedQueries
    notes: tuple[str, ...]


class FieldTexts(Mapping[str, Sequence[str]]):
    """The documents' texts by field, read from the GRAPH whenever they are asked for: millions of them are large, and
    they are needed for a moment only."""

    def __init__(self, graph: ClickGraph) -> None:
        self._graph = graph

    def __getitem__(self, name: str) -> Sequence[str]:
        if name not in self._graph.field_names:
            raise KeyError(name)
        return self._graph.field(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._graph.field_names)

    def __len__(self) -> int:
        return len(self._graph.field_names)


class Corpus:
    """What depends only on the documents. A study shares it with the studies of its hold-backs."""

    def __init__(self, graph: ClickGraph) -> None:
        self.catalogue = Catalogue.of(graph)
        self.texts: Mapping[str, Sequence[str]] = FieldTexts(graph)
        self.counted: dict[Any, Any] = {}

    @cached_property
    def language(self) -> str:
        """The stemmer for these documents."""
        found = documents_language(self.texts)
        for line in language_notes(found):
            logged(line)
        return found


class Study:
    def __init__(
        self,
        graph: ClickGraph,
        engine: Engine | None = None,
        progress: Progress = logged,
        corpus: Corpus | None = None,
        whole: ClickGraph | None = None,
        shares: bool = False,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.graph = graph
        # Where long work keeps what it has learned so far; None: nowhere.
        self.checkpoints = checkpoints
        # Whether fitted parts are kept for the other models that are tried on this study, at the price of memory.
        self.shares = shares
        # The whole GRAPH, if this is a study of the rest after holding back. It decides which views a log supports, so
        # that choices made on the rest suit the fit on everything.
        self.whole = graph if whole is None else whole
        self.engine: Engine = engine or default_engine()
        self.progress = progress
        self.corpus = Corpus(graph) if corpus is None else corpus
        self._answers: dict[Hashable, Any] = {}

    def once(self, key: Hashable, answer: Callable[[], Answer]) -> Answer:
        """The value of a computation on this GRAPH. It is computed the first time and cached under a key."""
        if key not in self._answers:
            self._answers[key] = answer()
        found: Answer = self._answers[key]
        return found

    def shared(self, key: Hashable, answer: Callable[[], Answer]) -> Answer:
        """Like `once`, for large values: they are cached only if several models are tried."""
        return self.once(key, answer) if self.shares else answer()

    def steps(self, what: str, items: Sequence[Answer]) -> Iterator[Answer]:
        """Yields the items one after the other, and reports `what` with the count as progress."""
        for number, item in enumerate(items, 1):
            self.progress(f"{what}, {number} of {len(items)}")
            yield item

    @property
    def language(self) -> str:
        """The stemmer for the language of the documents, which `language=auto` chooses."""
        return self.corpus.language

    @property
    def language_notes(self) -> tuple[str, ...]:
        """One line for the user if the stemmer is not the English one."""
        return language_notes(self.language)

    # --- parts of the GRAPH ----------------------------------------------------------------------

    def on(self, graph: ClickGraph) -> Study:
        """A study of the same documents with other clicks."""
        return Study(graph, self.engine, self.progress, self.corpus, self.whole, self.shares, self.checkpoints)

    def hold_back(self, fraction: float = 0.1, seed: int = 0, by: str = "auto") -> tuple[HoldBack, Study]:
        """Holds back part of the clicks. Returns that part, and the study of the rest to learn from."""

        def split() -> tuple[HoldBack, Study]:
            held = self.graph.hold_back(fraction, by, seed)
            return held, self.on(held.graph)

        return self.once(("hold_back", fraction, seed, by), split)

    def of_several(self, min_users: int) -> Study:
        """A study of only those queries and pairs that at least this many users have."""
        if min_users <= 1:
            return self
        return self.once(("several", min_users), lambda: self.on(self.graph.of_several(min_users)))

    def folds(self, n: int, seed: int) -> list[tuple[HoldBack, Study]]:
        """`n` hold-backs that cover the log, each with the study of its rest."""
        return self.once(
            ("folds", n, seed), lambda: [(held, self.on(held.graph)) for held in folds(self.graph, n, seed=seed)]
        )

    def encoded(self, encode: Mapping[str, Any]) -> Study:
        """A study of the same GRAPH, with dense vectors that functions compute from texts."""
        if not encode:
            return self
        key = ("encoded", *sorted((name, id(function)) for name, function in encode.items()))
        # The functions are kept too: an id is theirs only for as long as they live.
        return self.once(key, lambda: (dict(encode), self.on(self.graph.encoded(encode))))[1]

    # --- who is there ----------------------------------------------------------------------------

    @property
    def catalogue(self) -> Catalogue:
        return self.corpus.catalogue

    def clicked(self, counting: Counting | None = None) -> Known:
        """Queries with clicks. With settings of counting, only the queries that these keep."""

        def count() -> Known:
            if counting is None:
                found = clicked_queries(self.graph, self.graph.matrix(rows="queries"))
                return Known(self.once("known queries", lambda: self.known(found.keys, found.clicks)), found, ())
            counted = responses(self.graph, **counting_of(counting))
            found = clicked_queries(self.graph, counted.matrix)
            # The known queries of the plain log are the ones to share; its matrix need not be kept for that.
            same = self.once("known queries", self._known_of_plain_log)
            known = same if same.keys == found.keys else self.known(found.keys, found.clicks)
            return Known(known, found, tuple(counted.notes))

        return self.once(("clicked", None if counting is None else tuple(counting_of(counting).items())), count)

    def _known_of_plain_log(self) -> KnownQueries:
        found = clicked_queries(self.graph, self.graph.matrix(rows="queries"))
        return self.known(found.keys, found.clicks)

    def known(self, keys: list[str], clicks: Any) -> KnownQueries:
        """The queries of this GRAPH in the form that a model stores."""
        return KnownQueries(keys, clicks, redact=self.graph.redact != "off")

    def words(self, names: Sequence[str], language: str, stop_words: str) -> tuple[Vocabulary, FieldCounts]:
        """The words of the documents' fields, counted once for all models."""
        texts = {name: self.corpus.texts[name] for name in names}

        def count(vocabulary: Vocabulary) -> FieldCounts:
            self.progress(f"counting words of {count_of(self.graph.n_docs, 'document')}")
            return count_fields(WordCounter(Analyzer(language, stop_words), vocabulary), texts, self.graph.n_docs)

        return counted_once(self.corpus.counted, ("word", language, stop_words, *names), count)

    def documents(self, **more: Any) -> Source:
        """The documents as a source of features."""
        return replace(Source(self.corpus.texts, self.graph.n_docs, counted=self.corpus.counted), **more)


def documents_language(fields: Mapping[str, Sequence[str]]) -> str:
    """The stemmer for the language of the documents, by the text of the first of them."""
    first = (islice(texts, LANGUAGE_DOCS) for name, texts in fields.items() if name != URL_FIELD)
    return guess_language((text for texts in first for text in texts), LANGUAGES)


def language_notes(language: str) -> tuple[str, ...]:
    if language == "english":
        return ()
    chosen = f"the text looks {language.capitalize()}, so language={language} is used"
    return (f"{chosen}; set language=english for the English stemmer",)


def counting_of(settings: Counting) -> dict[str, Any]:
    """The settings that decide which parts of the log count."""
    names = ("min_clicks", "min_users", "response", "half_life", "max_clicks_per_user")
    return {name: getattr(settings, name) for name in names}
