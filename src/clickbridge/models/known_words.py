"""The words that a fitted model knows, and those of new documents that it does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clickbridge.models.fitted import Fitted
from clickbridge.types import Document
from clickbridge.views.text import Analyzer, tokens_of
from clickbridge.views.view import TermView
from clickbridge.views.word import Vocabulary


def vocabularies(fitted: Fitted) -> Iterator[tuple[str, Vocabulary]]:
    """The words that the model, or each of its parts, reads documents by, with the stemmer's language."""
    for part in getattr(fitted, "parts", ()):
        yield from vocabularies(part)
    vocabulary = getattr(fitted, "vocabulary", None)
    if isinstance(vocabulary, Vocabulary):
        yield getattr(fitted.settings, "language", "english"), vocabulary
    views = getattr(getattr(fitted, "d_views", None), "views", ())
    for view in views:
        if isinstance(view, TermView) and view.kind == "word":
            yield view.language, view.vocabulary


def unknown_words(fitted: Fitted, documents: Iterable[Document]) -> set[str]:
    """Words of documents that no part of the model knows: they count for nothing until the next fit."""
    known = list(vocabularies(fitted))
    if not known:
        return set()
    words = {word.casefold() for d in documents for text in d.fields.values() for word in tokens_of(text)}
    for language, vocabulary in known:
        analyzer = Analyzer(language)
        words = {word for word in words if not any(term in vocabulary for term in analyzer.all_terms[word])}
    return words
