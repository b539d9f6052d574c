"""How two spellings may be the same word: misspelled, joined, abbreviated, or a number written out.

A relation by spelling alone is a guess. `synonyms.py` keeps those that clicks confirm.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

NUMBERS = {
    "1": ("one", "i", "first", "1st"), "2": ("two", "ii", "second", "2nd"), "3": ("three", "iii", "third", "3rd"),
    "4": ("four", "iv", "fourth", "4th"), "5": ("five", "v", "fifth", "5th"), "6": ("six", "vi", "sixth", "6th"),
    "7": ("seven", "vii", "seventh", "7th"), "8": ("eight", "viii", "eighth", "8th"),
    "9": ("nine", "ix", "ninth", "9th"), "10": ("ten", "x", "tenth", "10th"), "11": ("eleven", "xi"),
    "12": ("twelve", "xii"), "13": ("thirteen", "xiii"),
    "14": ("fourteen", "xiv"), "15": ("fifteen", "xv"), "16": ("sixteen", "xvi"), "17": ("seventeen", "xvii"),
    "18": ("eighteen", "xviii"), "19": ("nineteen", "xix"), "20": ("twenty", "xx"), "30": ("thirty",),
    "40": ("forty",), "50": ("fifty",), "60": ("sixty",), "70": ("seventy",), "80": ("eighty",), "90": ("ninety",),
    "100": ("hundred",),
}  # fmt: skip
_NUMBER_OF = {word: digits for digits, words in NUMBERS.items() for word in (digits, *words)}
NUMBER_WORDS = frozenset(_NUMBER_OF)
SMALL = frozenset(("of", "the", "and", "a", "an", "in", "for", "to", "on", "de"))
LEAST_SPELLED, LEAST_INITIALS = 4, 2


def relation(typed: str, phrase: Sequence[str]) -> str | None:
    """How `typed` is related to the words of `phrase` by its spelling; None if it is not.

    >>> relation("spiderman", ["spider", "man"]), relation("cod", ["call", "of", "duty"])
    ('run together', 'abbreviation')
    >>> relation("batlefield", ["battlefield"]), relation("3", ["iii"]), relation("pizza", ["pasta"])
    ('misspelling', 'number', None)
    """
    if len(phrase) > 1:
        return _of_several(typed, phrase)
    (word,) = phrase
    if typed == word:
        return None
    if _NUMBER_OF.get(typed, typed) == _NUMBER_OF.get(word, word):
        return "number"
    if typed.isdigit() or word.isdigit() or _digits(typed) != _digits(word):
        return None
    if min(len(typed), len(word)) >= LEAST_SPELLED and distance(typed, word) <= _allowed(typed, word):
        return "misspelling"
    return None


def _of_several(typed: str, phrase: Sequence[str]) -> str | None:
    joined = "".join(phrase)
    if typed == joined and min(map(len, phrase)) >= 1:
        return "run together"
    important = [word for word in phrase if word not in SMALL]
    for words in (phrase, important):
        if len(words) >= LEAST_INITIALS and len(typed) >= LEAST_INITIALS and _is_initials(typed, words):
            return "abbreviation"
    alike = len(joined) >= 7 and _digits(typed) == _digits(joined) and typed[0] == joined[0]
    return "run together" if alike and distance(typed, joined) <= 1 else None


def _is_initials(typed: str, words: Sequence[str]) -> bool:
    """Whether these are initials: `cod` of call of duty, `mw3` of modern warfare 3, `gta4` of grand theft auto iv."""
    short = "".join(word if word.isdigit() else _NUMBER_OF[word] if word in _ROMAN else word[0] for word in words)
    return typed == short and not typed.isdigit()


_ROMAN = frozenset(("ii", "iii", "iv", "vi", "vii", "viii", "ix", "xi", "xii", "xiii"))


def _digits(word: str) -> str:
    return "".join(ch for ch in word if ch.isdigit())


def _allowed(one: str, two: str) -> int:
    """The number of wrong letters allowed in a word of this length. The first letter is rarely wrong."""
    short = min(len(one), len(two))
    most = 1 if short < 7 else 2
    return most if one[0] == two[0] else 1 if short >= 6 else 0


@lru_cache(1 << 16)
def distance(one: str, two: str) -> int:
    """The number of letters inserted, left out, changed or swapped (optimal string alignment); 4 if more than 3."""
    if abs(len(one) - len(two)) > 3:
        return 4
    before: list[int] = []
    last = list(range(len(two) + 1))
    for i, a in enumerate(one, 1):
        now = [i]
        for j, b in enumerate(two, 1):
            cost = min(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == two[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            now.append(cost)
        if min(now) > 3:
            return 4
        before, last = last, now
    return min(last[-1], 4)
