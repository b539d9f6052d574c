"""Turns text into terms: tokens, CamelCase and URL parts, stems, stop words; word bigrams and character n-grams.

Each distinct raw token is analysed once and cached, up to a limit, so that a long text costs one regular expression and
one dictionary look-up per token.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar
from urllib.parse import unquote

import Stemmer

from clickbridge.errors import SettingError
from clickbridge.settings import LANGUAGES
from clickbridge.views.stopwords import STOP_WORDS

TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_POSSESSIVE = re.compile(r"['’][sS]$")
_CJK_CHARS = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK = re.compile(f"[{_CJK_CHARS}]")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_SCRIPT_RUNS = re.compile(f"[{_CJK_CHARS}]+|[^{_CJK_CHARS}]+")
_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*://(?:www\d*\.)?|^www\d*\.")
_PAGE_SUFFIX = re.compile(r"\.(?:x?html?|php\d?|aspx?|jsp|cgi)(?=$|[?#])", re.IGNORECASE)


Made = TypeVar("Made")


class Analyzer:
    """Splits a text into terms. If stop words are dropped, a text that consists only of stop words keeps them, so that
    "the who" and "it" can still be found.

    >>> Analyzer("english", "drop").terms("The HTTPServer's running pages")
    ['httpserver', 'http', 'server', 'run', 'page']
    """

    def __init__(self, language: str = "english", stop_words: str = "keep") -> None:
        if language not in LANGUAGES:
            raise SettingError(f"language must be one of {', '.join(LANGUAGES)}; got {language!r}")
        self.language, self.stop_words = language, stop_words
        self._stem = None if language == "none" else Stemmer.Stemmer(language).stemWord
        self._stop_words = STOP_WORDS.get(language, frozenset()) if stop_words == "drop" else frozenset()
        # A raw token's terms, stop words dropped where asked for, and all of them.
        self.kept_terms = Memo(self._analyse_kept)
        self.all_terms = Memo(self._analyse)

    def __reduce__(self) -> tuple[type[Analyzer], tuple[str, str]]:
        """Pickles only the settings, since a stemmer cannot be copied or sent to another process."""
        return Analyzer, (self.language, self.stop_words)

    def terms(self, text: str, url: bool = False) -> list[str]:
        """The terms of one text, in order, repeated as often as they occur."""
        tokens = tokens_of(url_words(text) if url else text)
        out = [term for terms in map(self.kept_terms.__getitem__, tokens) for term in terms]
        if not out and tokens:
            out = [term for terms in map(self.all_terms.__getitem__, tokens) for term in terms]
        return out

    def _analyse_kept(self, token: str) -> tuple[str, ...]:
        if token.casefold().replace("’", "'") in self._stop_words:
            return ()
        return self._analyse(token)

    def _analyse(self, token: str) -> tuple[str, ...]:
        """A raw token's terms: the stem of the whole and, for CamelCase, of each hump; CJK as bigrams."""
        if not token.isascii() and _CJK.search(token):
            return tuple(term for run in _SCRIPT_RUNS.findall(token) for term in self._analyse_run(run))
        words = [token, *_HUMPS.findall(_POSSESSIVE.sub("", token))] if _HUMP.search(token) else [token]
        return tuple(term for word in words if (term := self._term(word)))

    def _analyse_run(self, run: str) -> tuple[str, ...]:
        """Analyses a part of a mixed token with one script, so that "iPhone手机" is found by "iphone 手机". A Han
        character is often a word, so that 鞋 finds 运动鞋; a syllable of the other scripts is not."""
        if not _CJK.match(run):
            return self._analyse(run)
        pairs = tuple(run[i : i + 2] for i in range(max(len(run) - 1, 1)))
        return pairs if len(run) == 1 else (*pairs, *_HAN.findall(run))

    def _term(self, word: str) -> str:
        word = word.casefold().replace("’", "'")
        # Snowball's English rules know no accents; those of the other languages do.
        if self.language in ("english", "none"):
            word = fold_accents(word)
        if self._stem is not None:
            word = self._stem(word)
        return fold_accents(word).replace("'", "")


class Memo(dict[str, tuple[Made, ...]]):
    """Caches the result of `make` for each token. When the limit is reached, the cache is emptied: so memory does not
    grow with new words, and threads need no lock."""

    def __init__(self, make: Callable[[str], tuple[Made, ...]], limit: int = 1 << 10) -> None:
        super().__init__()
        self._make, self._limit = make, limit

    def __missing__(self, token: str) -> tuple[Made, ...]:
        made = self._make(token)
        if len(self) >= self._limit:
            self.clear()
        self[token] = made
        return made


def tokens_of(text: str) -> list[str]:
    """Sequences of letters and digits. An apostrophe inside a word belongs to it."""
    if not text.isascii():
        # Case folding turns the Turkish İ into i and a combining dot, which would end the word.
        text = unicodedata.normalize("NFKC", text).replace("i\u0307", "i")
    return TOKEN.findall(text)


def url_words(url: str) -> str:
    """The words of a URL, without scheme, `www` and page suffix, and with escapes decoded.

    >>> url_words("http://www.new-york.org/BestPizza.html?id=7")
    'new-york.org/BestPizza?id=7'
    """
    return unquote(_PAGE_SUFFIX.sub("", _SCHEME.sub("", url.strip())))


@lru_cache(4096)
def _accent_free(char: str) -> str:
    if char == "\u0131":
        return "i"  # the dotless i of Turkish: in capitals, and where people type without it, it is an i
    return "".join(c for c in unicodedata.normalize("NFD", char) if not unicodedata.combining(c))


def fold_accents(word: str) -> str:
    return word if word.isascii() else "".join(map(_accent_free, word))


def bigrams(terms: list[str]) -> Iterator[str]:
    """Pairs of neighbouring terms, joined by a space."""
    return (f"{one} {two}" for one, two in pairwise(terms))


def char_ngrams(words: Iterable[str], low: int = 3, high: int = 4) -> Iterator[str]:
    """The character n-grams of each word, with marks at its ends. A word shorter than `low` gives itself.

    >>> list(char_ngrams(["ny", "pizza"], 4, 4))
    ['#ny#', '#piz', 'pizz', 'izza', 'zza#']
    """
    for word in words:
        marked = f"#{word}#"
        if len(marked) < low:
            yield marked
        for n in range(low, high + 1):
            for start in range(len(marked) - n + 1):
                yield marked[start : start + n]
