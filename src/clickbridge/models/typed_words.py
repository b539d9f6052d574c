"""The words of a fitted model: which ones it knows, and how people type what it keeps as stems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from clickbridge.models.fitted import Fitted
from clickbridge.types import Document, Explanation
from clickbridge.views.text import Analyzer, tokens_of
from clickbridge.views.view import TermView
from clickbridge.views.word import Vocabulary

MOST_QUERIES = 5000
MARKED = ("char", "click", "clicktext", "dense", "id")
"""Features of views other than words begin with the view's name; of those, words and their pairs are stems."""


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


def typed_words(fitted: Fitted, query: str) -> dict[str, str]:
    """Stems, and the word that people typed for each: in this query, else in most of the known ones."""
    language = next((language for language, _ in vocabularies(fitted)), None)
    if language is None:
        return {}
    analyzer, counts = Analyzer(language), dict[str, Counter[str]]()
    most_clicked = np.argsort(-fitted.queries.clicks, kind="stable")[:MOST_QUERIES].tolist()
    weighted = [(query, MOST_QUERIES), *((fitted.queries.shown(number), 1) for number in most_clicked)]
    for text, weight in weighted:
        for word in tokens_of(text):
            for term in analyzer.all_terms[word]:
                counts.setdefault(term, Counter())[word.casefold()] += weight
    return {term: words.most_common(1)[0][0] for term, words in counts.items()}


def as_typed(found: Explanation, words: dict[str, str]) -> Explanation:
    """The explanation with words in place of stems, where the features are words."""
    pairs = tuple(
        replace(p, query_feature=_typed(p.query_feature, words), doc_feature=_typed(p.doc_feature, words))
        for p in found.pairs
    )
    return replace(found, pairs=pairs)


def _typed(feature: str, words: dict[str, str]) -> str:
    parts = feature.split(" ")
    return feature if any(mark in parts[:2] for mark in MARKED) else " ".join(words.get(part, part) for part in parts)
