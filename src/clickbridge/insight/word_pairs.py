"""Which words of queries a model associates with which words of documents.

Every model with maps can score a query of one word against a document of another word. Models that only compare equal
words, such as BM25, give zero.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.models.fitted import Fitted
from clickbridge.models.known_words import parts_of
from clickbridge.types import OPAQUE, Document
from clickbridge.views.fields import HEADINGS
from clickbridge.views.stopwords import STOP_WORDS
from clickbridge.views.text import Analyzer, tokens_of

Array = np.ndarray[Any, Any]
MOST_TYPED, MOST_MET = 600, 2000
"""Words of queries and of titles that are compared, the most used ones."""
MEANT = 2
"""Pairs kept for one word."""
EXAMPLES = 2


@dataclass(frozen=True)
class WordPair:
    typed: str
    means: str
    strength: float
    """As a share of the strongest pair."""
    clicks: int
    """Of the queries that have the word."""
    queries: tuple[str, ...] = ()
    """The most clicked ones that have it."""


def word_pairs(fitted: Fitted, *, min_users: int = 2, most: int = 50) -> list[WordPair]:
    """The strongest pairs of different words; empty if no part of the model has maps. Queries of fewer people are not
    used or, if the log has no users, queries with fewer clicks."""
    part = part_with_maps(fitted)
    if part is None:
        return []
    language = getattr(part.settings, "language", "english")
    typed, examples = _typed_words(fitted, min_users)
    met = _title_words(fitted)
    if not typed or not met:
        return []
    words, others = list(typed), list(met)
    scores = _scores(part, words, others)
    stem = Analyzer(language).terms
    stems = [[tuple(stem(word)) for word in side] for side in (words, others)]
    for i, own in enumerate(stems[0]):
        scores[i, [j for j, other in enumerate(stems[1]) if other == own or not other]] = 0
    weight = np.log1p(np.array([typed[word] for word in words]))
    return _strongest(scores * weight[:, None], words, others, typed, examples, most)


def part_with_maps(fitted: Fitted) -> Any | None:
    """The model itself, or the first of its parts, that is learned from clicks and has maps."""
    candidates = [part for part in parts_of(fitted) if "maps" in part.abilities]
    learned = [part for part in candidates if hasattr(part, "spaces") or hasattr(part, "parts")]
    return next(iter(learned or candidates), None)


def _typed_words(fitted: Fitted, min_users: int) -> tuple[dict[str, float], dict[str, list[str]]]:
    """The most clicked words of queries that may be shown, and example queries for each."""
    small = frozenset().union(*STOP_WORDS.values())
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = defaultdict(list)
    queries = fitted.queries
    shown, hides = queries.may_be_shown(min_users), fitted.display.hides(min_users)
    order = np.argsort(-np.asarray(queries.clicks), kind="stable")
    for number in order[shown[order]].tolist():
        key, clicks = queries.keys[number], float(queries.clicks[number])
        if key.startswith(OPAQUE) or hides(key):
            continue
        for word in dict.fromkeys(tokens_of(key)):
            if word not in small and len(word) > 1:
                counts[word] += clicks  # type: ignore[assignment]
                if len(examples[word]) < EXAMPLES:
                    examples[word].append(key)
    return dict(counts.most_common(MOST_TYPED)), examples


def _title_words(fitted: Fitted) -> dict[str, int]:
    small = frozenset().union(*STOP_WORDS.values())
    counts: Counter[str] = Counter()
    for title in fitted.catalogue.titles:
        counts.update({word.lower() for word in tokens_of(title)})
    kept = ((word, n) for word, n in counts.most_common() if word not in small and len(word) > 1)
    return dict(list(kept)[:MOST_MET])


def _scores(part: Any, words: Sequence[str], others: Sequence[str]) -> Array:
    """The scores of every word against every other, as a query of one word and a document of the other."""
    names = part.text_fields or HEADINGS[:1]
    documents = [Document(f"\x1f{i}", dict.fromkeys(names, word)) for i, word in enumerate(others)]
    queries, images = part.map_queries(words), part.map_documents(documents)
    product = queries @ images.T
    dense = np.asarray(product.todense() if sparse.issparse(product) else product, dtype=np.float64)
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    return np.divide(dense, norms, out=np.zeros_like(dense), where=norms > 0)


def _strongest(
    scores: Array,
    words: Sequence[str],
    others: Sequence[str],
    typed: dict[str, float],
    examples: dict[str, list[str]],
    most: int,
) -> list[WordPair]:
    places = np.argsort(-scores, axis=1, kind="stable")[:, :MEANT]
    found = [(float(scores[i, j]), i, int(j)) for i in range(len(words)) for j in places[i] if scores[i, j] > 0]
    found.sort(key=lambda one: -one[0])
    best = found[0][0] if found else 1.0
    return [
        WordPair(words[i], others[j], round(value / best, 4), int(typed[words[i]]), tuple(examples[words[i]]))
        for value, i, j in found[:most]
    ]
