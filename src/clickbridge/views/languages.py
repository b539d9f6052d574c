"""Guesses the language of a text for the stemmer: by its letters, then by its most frequent words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice

from clickbridge.views.stopwords import STOP_WORDS

SAMPLE, LEAST_SHARE, LEAST_WORDS = 200_000, 0.04, 50
"""Characters that are looked at, and how many of the words must be the language's commonest: lists of products, in
which they are rare, say nothing."""
_LETTERS = (
    ("arabic", re.compile("[\u0600-\u06ff]")),
    ("greek", re.compile("[\u0370-\u03ff]")),
    ("russian", re.compile("[\u0400-\u04ff]")),
    ("tamil", re.compile("[\u0b80-\u0bff]")),
)
_TURKISH = re.compile("[ığşİĞŞ]")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


def guess_language(texts: Iterable[str], known: Iterable[str] = ()) -> str:
    """The stemmer for a collection; english if there is no evidence for another one. `known` are the available
    stemmers; if it is empty, all are.

    >>> guess_language(["Der Hund und die Katze sind nicht im Haus, weil es regnet und die Tür zu ist."] * 10)
    'german'
    >>> guess_language(["Halo Xbox 360", "Xbox controller"] * 50)
    'english'
    """
    sample = "\n".join(_until(texts, SAMPLE))
    letters = [char for char in sample if char.isalpha()]
    allowed = set(known)
    for language, script in _LETTERS:
        if len(script.findall(sample)) * 2 > len(letters) > 0:
            return language if not allowed or language in allowed else "english"
    words = [word.casefold() for word in _WORD.findall(sample)]
    if len(_TURKISH.findall(sample)) * 50 > len(letters) > 0 and (not allowed or "turkish" in allowed):
        return "turkish"
    if len(words) < LEAST_WORDS:
        return "english"
    counts = Counter(words)
    found = {
        language: sum(counts[word] for word in common) / len(words)
        for language, common in STOP_WORDS.items()
        if not allowed or language in allowed
    }
    best = max(found, key=lambda language: found[language])
    clear = found[best] >= max(LEAST_SHARE, 1.5 * found.get("english", 0.0))
    return best if best != "english" and clear else "english"


def _until(texts: Iterable[str], size: int) -> Iterable[str]:
    """The first texts, with about this many characters in total; at most ten thousand of them."""
    for text in islice((text for text in texts if text), 10_000):
        yield text[:2000]
        size -= min(len(text), 2000)
        if size < 0:
            return
