"""The words that a fitted model knows, as stems and as written, and the words of new documents that it does not
know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clickbridge.models.fitted import Fitted
from clickbridge.types import Document
from clickbridge.views.text import Analyzer, tokens_of
from clickbridge.views.view import TermView
from clickbridge.views.word import Vocabulary


def parts_of(fitted: Fitted) -> Iterator[Fitted]:
    """The model, then its parts."""
    yield fitted
    inner = getattr(fitted, "inner", None)
    for part in ([inner] if isinstance(inner, Fitted) else []) + list(getattr(fitted, "parts", ())):
        yield from parts_of(part)


def language_of(fitted: Fitted) -> str:
    """The stemmer of the model, or of the first of its parts that has one."""
    return next((p.settings.language for p in parts_of(fitted) if hasattr(p.settings, "language")), "english")


def vocabularies(fitted: Fitted) -> Iterator[tuple[str, Vocabulary]]:
    """The vocabularies of the model and its parts for documents, with the stemmer's language."""
    for part in parts_of(fitted):
        vocabulary = getattr(part, "vocabulary", None)
        if isinstance(vocabulary, Vocabulary):
            yield getattr(part.settings, "language", "english"), vocabulary
        for view in getattr(getattr(part, "d_views", None), "views", ()):
            if isinstance(view, TermView) and view.kind == "word":
                yield view.language, view.vocabulary


def unknown_words(fitted: Fitted, documents: Iterable[Document]) -> set[str]:
    """Words of documents that no part of the model knows. They have no effect until the next fit."""
    known = list(vocabularies(fitted))
    if not known:
        return set()
    words = {word.casefold() for d in documents for text in d.fields.values() for word in tokens_of(text)}
    for language, vocabulary in known:
        analyzer = Analyzer(language)
        words = {word for word in words if not any(term in vocabulary for term in analyzer.all_terms[word])}
    return words
