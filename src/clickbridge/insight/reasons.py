"""Why a document was found, as sentences: "`ny` met `york` because people who typed *ny pizza* clicked this document".

A model explains a score by pairs of features: stems, character n-grams, clicks. Here they become sentences with words
as people write them, and with the queries they were learned from. Pairs with the same meaning become one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from clickbridge.errors import ClickbridgeError
from clickbridge.insight.word_relations import relation
from clickbridge.log.clean import normalise_query
from clickbridge.log.personal import redacted
from clickbridge.models.explain import Contributions, Part
from clickbridge.models.explained_words import Wording
from clickbridge.models.fitted import Fitted
from clickbridge.models.known_words import parts_of
from clickbridge.views.stopwords import STOP_WORDS
from clickbridge.views.text import fold_accents

PAIRS = 60
"""Pairs of features that are asked for: several of them become one sentence."""
BRIDGES = 2
ARROW = " → "
TEXT = frozenset({"word", "bigram", "char", "clicktext"})
"""Views of words and letters."""
Span = tuple[str, str]
"""Kind and text: `text`, `word`, `query` or `title`."""
MARKS = {"text": "", "word": "`", "query": "*", "title": "“"}


@dataclass(frozen=True)
class Reason:
    """One sentence. `share` is its share of the part of the score that was explained."""

    kind: str
    spans: tuple[Span, ...]
    share: float
    bridges: tuple[str, ...] = ()
    """The queries it was learned from."""

    @property
    def text(self) -> str:
        """The sentence, with words in backticks and queries in asterisks."""
        ends = {**MARKS, "title": "”"}
        return "".join(f"{MARKS[kind]}{text}{ends[kind]}" for kind, text in self.spans)


def reasons(
    fitted: Fitted, query: str, doc_id: str, *, most: int = 5, may_show: Callable[[str], bool] = lambda query: True
) -> list[Reason]:
    """The reasons, strongest first. `may_show` tells which of the queries they were learned from may be named."""
    fitted.catalogue.number(doc_id)
    teller = _Teller(fitted, query, doc_id, may_show)
    for found in explanations(fitted, query, doc_id):
        for part in found.parts:
            if part.value > 0:
                teller.add(part, found.share(part))
        if teller.found and not teller.leans_on_base:
            break
        teller.leans_on_base = False
    return teller.told()[:most]


def explanations(fitted: Fitted, query: str, doc_id: str) -> Iterable[Contributions]:
    """The explanation of the model or, if it has none, those of its parts."""
    for part in parts_of(fitted):
        if "explain" in part.abilities:
            try:
                yield part.contributions(query, doc_id, PAIRS)
            except ClickbridgeError:  # nothing to explain here: the next part may
                continue


@dataclass
class _Sum:
    """The sum of pairs with the same meaning."""

    share: float = 0.0
    words: dict[str, str] = field(default_factory=dict)
    """Typed words, each with how the document has it."""
    bridges: dict[Span, None] = field(default_factory=dict)


class _Teller:
    """Groups pairs of features by the sentence that they become."""

    def __init__(self, fitted: Fitted, query: str, doc_id: str, may_show: Callable[[str], bool]) -> None:
        self.query, self.may_show = query, may_show
        self.wording = Wording(fitted, query, doc_id)
        self.title = self.wording.title
        self.small = STOP_WORDS.get(self.wording.analyzer.language, frozenset())
        self.found: dict[tuple[str, ...], _Sum] = {}
        self.leans_on_base = False
        """Whether the score is partly that of a model inside, which then explains its share."""

    # --- features --------------------------------------------------------------------------------

    def add(self, part: Part, share: float) -> None:
        one, two = ("click" if f.of_clicks else f.view.partition(":")[0] for f in (part.query, part.document))
        typed, met = part.query.name, part.document.name
        if two == "base":
            self.leans_on_base = True
        elif one == "alike":
            self._put(("alike",) if met == self.title else ("alike", met), part, share)
        elif two == "click" and one in ("click", "query") and met == self.title:
            self._put(("memory",), part, share)
        elif one == "click":
            self._put(("memory",) if typed == self.title else ("chosen", typed), part, share)
        elif two == "click":
            self._put(("memory",) if met == normalise_query(self.query) else ("like", met), part, share)
        elif one in TEXT and two in TEXT:
            self._add_words(part, share)

    def _add_words(self, part: Part, share: float) -> None:
        """Adds a pair of words, or of character n-grams, by the words that contain them."""
        letters = [f.view.startswith("char") for f in (part.query, part.document)]
        typed, met = part.query.name, part.document.name
        word = self.wording.typed_with(typed) if letters[0] else self.wording.typed(typed)
        other = self.wording.shown_with(met) if letters[1] else self.wording.shown(met)
        if not word or not other:
            return
        if (typed == met and not any(letters)) or self.wording.same_word(word, other):
            self._put(("same",), part, share, word, other)
        elif all(letters):
            if relation(fold_accents(word), [fold_accents(other)]) is not None:
                self._put(("spelled", word, other), part, share)
        elif not {word, other} & self.small:
            self._put(("met", word, other), part, share)

    def _put(self, key: tuple[str, ...], part: Part, share: float, word: str = "", other: str = "") -> None:
        entry = self.found.setdefault(key, _Sum())
        entry.share += share
        if word:
            entry.words.setdefault(word, other)
        for taught in part.taught_by:
            bridge, _, title = taught.partition(ARROW)
            if self.may_show(bridge):
                entry.bridges.setdefault((redacted(bridge), title))

    # --- sentences -------------------------------------------------------------------------------

    def told(self) -> list[Reason]:
        made = [self._sentence(key, entry) for key, entry in self.found.items()]
        return sorted(_strongest_of_word([m for m in made if m]), key=lambda reason: -reason.share)

    def _sentence(self, key: tuple[str, ...], entry: _Sum) -> Reason | None:
        kind, *names = key
        spans: list[Span] = []
        if kind == "same":
            said = [_as_written(word, other) for word, other in entry.words.items()]
            spans = [*_and(said), ("text", f" {'is' if len(said) == 1 else 'are'} in this document")]
        elif kind == "memory":
            spans = [("text", "people who typed "), ("query", self.query), ("text", " clicked this document")]
        elif kind == "chosen":
            spans = [("text", "people who typed "), ("query", self.query), ("text", " clicked "), *self._which(names)]
        elif kind == "like":
            if not self.may_show(names[0]):
                return None
            spans = [("text", "people who typed "), ("query", redacted(names[0])),
                     ("text", ", a query like yours, clicked this document")]  # fmt: skip
        elif kind == "alike":
            spans = [("text", "people who typed queries like yours clicked "), *self._which(names)]
        elif kind == "spelled":
            spans = [("word", names[0]), ("text", " is spelled like "), ("word", names[1])]
        elif kind == "met" and entry.bridges:
            spans = [("word", names[0]), ("text", " met "), ("word", names[1]), *self._because(entry)]
        if not spans:
            return None
        bridges = tuple(query for query, _ in list(entry.bridges)[:BRIDGES])
        return Reason(kind, tuple(spans), round(entry.share, 4), bridges)

    @staticmethod
    def _which(names: Sequence[str]) -> list[Span]:
        if not names:
            return [("text", "this document")]
        return [("title", names[0]), ("text", ", a document like this one")]

    def _because(self, entry: _Sum) -> list[Span]:
        here = [query for query, title in entry.bridges if title == self.title][:BRIDGES]
        if here:
            queries = _and([[("query", query)] for query in here])
            return [("text", " because people who typed "), *queries, ("text", " clicked this document")]
        query, title = next(iter(entry.bridges))
        return [("text", " because people who typed "), ("query", query), ("text", " clicked "), ("title", title)]


def _strongest_of_word(made: Sequence[Reason]) -> list[Reason]:
    """For each typed word, the two strongest words of the document; and the two strongest of all similar queries."""
    out: list[Reason] = []
    seen: dict[tuple[str, str], int] = {}
    for reason in sorted(made, key=lambda reason: -reason.share):
        key = (reason.kind, reason.spans[0][1] if reason.kind == "met" else "")
        seen[key] = seen.get(key, 0) + 1
        if reason.kind not in ("met", "like", "chosen", "alike", "spelled") or seen[key] <= 2:
            out.append(reason)
    return out


def _and(named: Sequence[Sequence[Span]]) -> list[Span]:
    out: list[Span] = []
    for place, spans in enumerate(named):
        if place:
            out.append(("text", " and " if place == len(named) - 1 else ", "))
        out.extend(spans)
    return out


def _as_written(typed: str, shown: str) -> list[Span]:
    """A typed word, and the word in the document if it is written differently."""
    same = typed == shown or fold_accents(typed) == fold_accents(shown)
    return [("word", typed)] if same else [("word", typed), ("text", " ("), ("word", shown), ("text", ")")]
