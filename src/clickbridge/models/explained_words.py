"""Explanations in words: "primitive" as it was typed and as it is in the document, not its stem "primit"."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clickbridge.models.explain import Contributions, Feature
from clickbridge.models.fitted import Fitted
from clickbridge.models.known_words import language_of, vocabularies
from clickbridge.types import Explanation, FeaturePair
from clickbridge.views.text import Analyzer, fold_accents, tokens_of

EDGE, MORE = "#", "…"
"""How views mark the end of a word among letters, and how people read letters from inside a word."""
_SAID: Mapping[str, Callable[[str], str]] = {
    "query": lambda name: f"the query “{name}”",
    "alike": lambda name: f"a query like it, by {name}",
    "preferred": lambda name: f"“{name}” was preferred",
    "base": lambda name: "the base model",
    "length": lambda name: "the document's length",
    "any": lambda name: "any query",
    "bias": lambda name: "how often the document is clicked",
}


class Wording:
    """The words of one query and one document, as they were written."""

    def __init__(self, fitted: Fitted, query: str, doc_id: str) -> None:
        number = fitted.catalogue.number(doc_id)
        self.query, self.title = query, fitted.catalogue.named(number)
        self.analyzer = Analyzer(language_of(fitted))
        self._collection = [own.written for language, own in vocabularies(fitted) if language == self.analyzer.language]
        self._typed = self._forms(query)
        self._shown = {**self._forms(fitted.display.snippet(number)), **self._forms(self.title)}

    def _forms(self, text: str) -> dict[str, str]:
        """The words of a text by their stems."""
        return {term: word.lower() for word in tokens_of(text) for term in self.analyzer.terms(word)}

    def typed(self, stems: str) -> str:
        """One or more stems of the query, as the words that were typed."""
        return self._written(stems, self._typed)

    def shown(self, stems: str) -> str:
        """One or more stems of the document, as words of the document or, if they are not found there, of the
        collection."""
        return self._written(stems, self._shown)

    def _written(self, stems: str, forms: Mapping[str, str]) -> str:
        places = (forms, *self._collection)
        return " ".join(next((words[s] for words in places if s in words), s) for s in stems.split())

    def typed_with(self, letters: str) -> str:
        """The typed word that contains these letters in a row; empty if there is none."""
        return _with_letters(letters, self.query)

    def shown_with(self, letters: str) -> str:
        return _with_letters(letters, self.title)

    def same_word(self, one: str, two: str) -> bool:
        """Whether two words are equal except for their ending."""
        return self.analyzer.terms(one) == self.analyzer.terms(two)

    def of_query(self, feature: Feature) -> str:
        """A feature of the query in words."""
        return f"clicks on “{feature.name}”" if feature.of_clicks else self._said(feature, self.typed)

    def of_document(self, feature: Feature) -> str:
        """A feature of the document in words."""
        if not feature.of_clicks:
            return self._said(feature, self.shown)
        return "clicks on it" if feature.name == self.title else f"clicks after “{feature.name}”"

    def _said(self, feature: Feature, written: Callable[[str], str]) -> str:
        view, _, field = feature.view.partition(":")
        if view in _SAID:
            return _SAID[view](feature.name)
        if view == "char":
            return letters_shown(feature.name)
        if view in ("word", "bigram"):
            return written(feature.name)
        if view == "clicktext":
            return f"clicked for “{written(feature.name)}”"
        return f"{field or view} {feature.name}"


def explained(fitted: Fitted, query: str, doc_id: str, found: Contributions) -> Explanation:
    """Contributions of features as an explanation that a person can read."""
    wording = Wording(fitted, query, doc_id)
    pairs = tuple(
        FeaturePair(
            wording.of_query(part.query),
            wording.of_document(part.document),
            float(part.value),
            found.share(part),
            part.taught_by,
            part.model,
        )
        for part in found.parts
    )
    return Explanation(query, doc_id, found.score, pairs, found.rest)


def letters_shown(letters: str) -> str:
    """A character n-gram as text, with "…" for the rest of the word.

    >>> letters_shown("#piz"), letters_shown("izz"), letters_shown("#ny#")
    ('piz…', '…izz…', 'ny')
    """
    before, after = (MORE if not letters.startswith(EDGE) else ""), (MORE if not letters.endswith(EDGE) else "")
    return f"{before}{letters.strip(EDGE)}{after}"


def _with_letters(letters: str, text: str) -> str:
    bare = letters.strip("# ")
    return next((w for w in map(str.lower, tokens_of(text)) if bare in fold_accents(w)), "")
