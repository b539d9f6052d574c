"""The plain text of a document's fields, without HTML."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

BREAK = "\n"
"""Between the items of a list field; word bigrams do not cross it."""
_TAGS = (
    "a|abbr|address|article|aside|b|blockquote|body|br|button|caption|center|cite|code|col|colgroup|"
    "dd|del|details|dfn|div|dl|dt|em|figcaption|figure|font|footer|form|h1|h2|h3|h4|h5|h6|head|"
    "header|hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|main|map|mark|meta|nav|"
    "object|ol|option|p|param|picture|pre|q|s|samp|section|select|small|source|span|strike|strong|"
    "sub|summary|sup|table|tbody|td|textarea|tfoot|th|thead|time|title|tr|tt|u|ul|var|video|wbr"
)
# Known names alone: `vector<int>` and `<stdin>` are no HTML.
_TAG = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_HIDDEN = ((re.compile(r"<script\b", re.IGNORECASE), "</script>"), (re.compile(r"<style\b", re.IGNORECASE), "</style>"),
           (re.compile(r"<!--"), "-->"), (re.compile(r"<!doctype\b", re.IGNORECASE), ">"))  # fmt: skip
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_INLINE = re.compile(r"</?(?:a|b|em|font|i|mark|s|small|span|strong|sub|sup|u)(?:\s[^<>]*)?>", re.IGNORECASE)


def without_html(text: str) -> str:
    """The text that a browser would show: without tags, scripts and comments, and with entities as characters.

    >>> without_html("<p>Fish &amp; <b>chips</b></p><p>twice</p>")
    'Fish & chips twice'
    >>> without_html("a < b, vector<int>")
    'a < b, vector<int>'
    """
    marked = "<" in text and (_TAG.search(text) or any(opening.search(text) for opening, _ in _HIDDEN))
    if not marked and ("&" not in text or not _ENTITY.search(text)):
        return text
    if marked:
        text = _TAG.sub(" ", _INLINE.sub("", _without_hidden(text)))
    lines = (" ".join(line.split()) for line in unescape(text).split("\n"))
    return "\n".join(line for line in lines if line)


def _without_hidden(text: str) -> str:
    """The text without scripts, styles and comments, including their content. One that is never closed stays."""
    for opening, closing in _HIDDEN:
        pieces, start, lower = [], 0, text.lower()
        while found := opening.search(text, start):
            end = lower.find(closing, found.end())
            if end < 0 or len(lower) != len(text):
                break
            pieces.append(text[start : found.start()])
            start = end + len(closing)
        text = " ".join([*pieces, text[start:]])
    return text


def field_text(name: str, value: Any) -> str | None:
    """The text of a field's value; None if it is not text (numbers other than a year, nested values)."""
    if type(value) is str:
        return value
    if name == "year" and type(value) is int:
        return str(value)
    if type(value) is list and all(type(item) is str for item in value):
        return BREAK.join(value)
    return None
