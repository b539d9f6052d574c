"""Why a document was found, in words: "`ny` met `york` because people who typed *ny pizza* clicked this document".

A model explains a score by pairs of features: stems, letters, clicks. Here these become sentences about words as people
write them and queries that taught them. Pairs that say the same are one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from clickbridge.errors import ClickbridgeError
from clickbridge.insight.word_pairs import parts_of
from clickbridge.log.personal import redacted
from clickbridge.models.fitted import Fitted
from clickbridge.types import Explanation, FeaturePair
from clickbridge.views.stopwords import STOP_WORDS
from clickbridge.views.text import Analyzer, fold_accents, tokens_of

PAIRS = 60
"""Pairs of features that are asked for: several of them become one sentence."""
BRIDGES = 2
ARROW = " → "
ALIKE, BASE = "a query alike by ", "the base model"
"""How kernels name their features: similar queries, and the model that they correct."""
Span = tuple[str, str]
"""Kind and text: `text`, `word`, `query` or `title`."""
MARKS = {"text": "", "word": "`", "query": "*", "title": "“"}


@dataclass(frozen=True)
class Reason:
    """One sentence; `share` is how much of the score it carries, as far as that was explained."""

    kind: str
    spans: tuple[Span, ...]
    share: float
    bridges: tuple[str, ...] = ()
    """Queries that taught it."""

    @property
    def text(self) -> str:
        """The sentence, with words in backticks and queries in asterisks."""
        ends = {**MARKS, "title": "”"}
        return "".join(f"{MARKS[kind]}{text}{ends[kind]}" for kind, text in self.spans)


def reasons(
    fitted: Fitted, query: str, doc_id: str, *, most: int = 5, may_show: Callable[[str], bool] = lambda query: True
) -> list[Reason]:
    """The strongest reasons first. `may_show` says which of the queries that taught them may be named."""
    fitted.catalogue.number(doc_id)
    teller = _Teller(fitted, query, doc_id, may_show)
    for found in explanations(fitted, query, doc_id):
        for pair in found.pairs:
            if pair.contribution > 0:
                teller.add(pair)
        if teller.found and not teller.leans_on_base:
            break
        teller.leans_on_base = False
    return teller.told()[:most]


def explanations(fitted: Fitted, query: str, doc_id: str) -> Iterable[Explanation]:
    """What the model says or, where it has nothing to say, what the models say that it is made of."""
    for part in parts_of(fitted):
        if "explain" in part.abilities:
            try:
                yield part.explain(query, doc_id, PAIRS)
            except ClickbridgeError:  # nothing to explain here: the next part may
                continue


@dataclass
class _Sum:
    """What pairs that say the same add up to."""

    share: float = 0.0
    words: dict[str, None] = field(default_factory=dict)
    bridges: dict[Span, None] = field(default_factory=dict)


class _Teller:
    """Sorts pairs of features by the sentence that they make."""

    def __init__(self, fitted: Fitted, query: str, doc_id: str, may_show: Callable[[str], bool]) -> None:
        self.fitted, self.query, self.may_show = fitted, query, may_show
        self.title = fitted.catalogue.named(fitted.catalogue.number(doc_id))
        self.specs = sorted({p.spec for p in parts_of(fitted)} | {"equal", "latent"}, key=len, reverse=True)
        language = next((p.settings.language for p in parts_of(fitted) if hasattr(p.settings, "language")), "english")
        self.analyzer = Analyzer(language)
        self.typed, self.titled = self._forms(query), self._forms(self.title)
        self.small = STOP_WORDS.get(language, frozenset())
        self.found: dict[tuple[str, ...], _Sum] = {}
        self.leans_on_base = False
        """Whether the score is partly that of a model inside, which then explains its share."""

    def _forms(self, text: str) -> dict[str, str]:
        """Words as they are written by their stems."""
        return {term: word for word in tokens_of(text) for term in self.analyzer.terms(word)}

    # --- features --------------------------------------------------------------------------------

    def _split(self, feature: str) -> tuple[str, str]:
        """(view, name) of a feature; the name of a part goes."""
        text = feature
        while spec := next((s for s in self.specs if text.startswith(f"{s} ")), None):
            text = text[len(spec) + 1 :]
        view, space, rest = text.partition(" ")
        if view in ("click", "response") and rest.startswith("on "):
            return "click", rest[3:]
        if view == "query" and rest:
            return "asked", rest
        if space and view.partition(":")[0] in ("char", "bigram", "word", "clicktext", "id", "dense"):
            return view.partition(":")[0], rest
        return "word", text

    def add(self, pair: FeaturePair) -> None:
        (one, typed), (two, met) = self._split(pair.query_feature), self._split(pair.doc_feature)
        if met == BASE:
            self.leans_on_base = True
        elif typed.startswith(ALIKE):
            self._put(("alike",) if met == self.title else ("alike", met), pair)
        elif two == "click" and one in ("click", "asked") and met == self.title:
            self._put(("memory",), pair)
        elif one == "click":
            self._put(("memory",) if typed == self.title else ("chosen", typed), pair)
        elif two == "click":
            self._put(("like", met), pair, met)
        elif one == two == "char":
            self._add_letters(typed, met, pair)
        elif typed == met:
            self._put(("same",), pair, self.typed.get(typed, typed))
        elif one in ("word", "bigram", "char"):
            self._add_words(one, typed, met, pair)

    def _put(self, key: tuple[str, ...], pair: FeaturePair, word: str = "") -> None:
        entry = self.found.setdefault(key, _Sum())
        entry.share += pair.share
        if word:
            entry.words.setdefault(word)
        for taught in pair.taught_by:
            bridge, _, title = taught.partition(ARROW)
            if self.may_show(bridge):
                entry.bridges.setdefault((redacted(bridge), title))

    def _add_letters(self, typed: str, met: str, pair: FeaturePair) -> None:
        one, two = self._with_letters(typed, self.query), self._with_letters(met, self.title)
        if one and two and one == two:
            self._put(("same",), pair, one)
        elif one and two and typed == met:
            self._put(("spelled", one, two), pair)

    def _with_letters(self, letters: str, text: str) -> str:
        """The word of a text that has these letters in a row."""
        bare = letters.strip("# ")
        return next((w for w in map(str.lower, tokens_of(text)) if bare in fold_accents(w)), "")

    def _add_words(self, view: str, typed: str, met: str, pair: FeaturePair) -> None:
        word = self._with_letters(typed, self.query) if view == "char" else self._written(typed, self.typed)
        other = self._written(met, self.titled)
        if word and other and word.lower() != other.lower() and not {word, other} & self.small:
            self._put(("met", word, other), pair)

    def _written(self, stems: str, forms: dict[str, str]) -> str:
        """A stem, or two, as words."""
        known = (forms.get(s) or word_forms(self.fitted, self.analyzer.language).get(s, s) for s in stems.split())
        return " ".join(known).lower()

    # --- sentences -------------------------------------------------------------------------------

    def told(self) -> list[Reason]:
        made = [self._sentence(key, entry) for key, entry in self.found.items()]
        return sorted(_strongest_of_word([m for m in made if m]), key=lambda reason: -reason.share)

    def _sentence(self, key: tuple[str, ...], entry: _Sum) -> Reason | None:
        kind, *names = key
        spans: list[Span] = []
        if kind == "same":
            words = list(entry.words)
            spans = [*_and([("word", w) for w in words]), ("text", f" {_is(words)} in this document")]
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
            queries = _and([("query", query) for query in here])
            return [("text", " because people who typed "), *queries, ("text", " clicked this document")]
        query, title = next(iter(entry.bridges))
        return [("text", " because people who typed "), ("query", query), ("text", " clicked "), ("title", title)]


def _strongest_of_word(made: Sequence[Reason]) -> list[Reason]:
    """Of one typed word the two words that it met most, and of queries like this one the two strongest."""
    out: list[Reason] = []
    seen: dict[tuple[str, str], int] = {}
    for reason in sorted(made, key=lambda reason: -reason.share):
        key = (reason.kind, reason.spans[0][1] if reason.kind == "met" else "")
        seen[key] = seen.get(key, 0) + 1
        if reason.kind not in ("met", "like", "chosen", "alike", "spelled") or seen[key] <= 2:
            out.append(reason)
    return out


def _and(spans: Sequence[Span]) -> list[Span]:
    out: list[Span] = []
    for place, span in enumerate(spans):
        if place:
            out.append(("text", " and " if place == len(spans) - 1 else ", "))
        out.append(span)
    return out


def _is(words: Sequence[str]) -> str:
    return "is" if len(words) == 1 else "are"


@lru_cache(maxsize=16)
def word_forms(fitted: Fitted, language: str) -> dict[str, str]:
    """A word as it is written for every stem, from titles, snippets and known queries; the first that has it."""
    analyzer, out = Analyzer(language), dict[str, str]()
    for text in (*fitted.catalogue.titles, *fitted.display.snippets, *fitted.queries.keys):
        for word in tokens_of(text):
            for term in analyzer.terms(word):
                out.setdefault(term, word.lower())
    return out
