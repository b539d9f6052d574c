"""Finds text that names a person: e-mail addresses, phone and card numbers, long sequences of digits.

People type or paste them into search fields by mistake. Everything that is shown to others is redacted here.

>>> redacted("order 4111 1111 1111 1111 of jo@example.org")
'order [card] of [e-mail]'
"""

from __future__ import annotations

import re
from collections.abc import Callable

REDACT = ("shown", "learned", "off")
"""Where such text is hidden: from others; from the GRAPH too; nowhere."""
FEWEST_DIGITS = 7
"""No number with fewer is taken for a person's."""

_EMAIL = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_CARD = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_PHONE = re.compile(
    r"(?<![\w+])(?:"
    r"(?:\+|00)[1-9](?:[ ()/.-]{0,2}\d){6,13}"  # with the code of a country
    r"|\(?0[1-9]\d{0,4}\)?[ /.-]{1,2}\d(?:[ /.-]?\d){4,10}"  # as dialled inside of many countries
    r"|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}"  # of North America
    r")(?!\w)"
)
_RUN = re.compile(r"(?<!\d)\d{9,}(?!\d)")


def looks_personal(text: str) -> bool:
    """Whether a part of the text would be redacted."""
    return redacted(text) != text


def redacted(text: str) -> str:
    """The text, with everything that names a person replaced by a word in brackets."""
    if "@" in text:
        text = _EMAIL.sub("[e-mail]", text)
    if sum(map(str.isdigit, text)) < FEWEST_DIGITS:
        return text
    for pattern, word in _NUMBERS:
        text = pattern.sub(word, text)
    return text


def _card(found: re.Match[str]) -> str:
    return "[card]" if _luhn(found[0]) else found[0]


def _luhn(text: str) -> bool:
    """Whether the check digit of a card number is correct."""
    digits = [int(c) for c in text if c.isdigit()]
    doubled = (sum(divmod(2 * d, 10)) for d in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_NUMBERS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (_CARD, _card), (_PHONE, "[phone]"), (_RUN, "[number]"),
)  # fmt: skip
