"""Results as text and HTML, for the prompt and for notebooks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from clickbridge.frames import html_table

WIDTH = 80


def text_table(rows: Sequence[Mapping[str, Any]], width: int = WIDTH) -> str:
    """Rows as aligned text. Columns that do not fit continue below, with the first column repeated; sentences that do
    not fit beside it continue on the next line."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [name, *(_word(row.get(name)) for row in rows)] for name in names}
    numeric = {n for n in names if all(isinstance(row.get(n), int | float | None) for row in rows)}
    first = [word if len(word) <= width // 2 else word[: width // 2 - 1] + "…" for word in columns.pop(names[0])]
    room = width - max(map(len, first)) - 2
    blocks = [[_aligned([[word] for word in first], names[0] in numeric)]]
    for name, words in columns.items():
        column = _aligned([_wrapped(word, room) for word in words], name in numeric)
        if len(blocks[-1]) > 1 and sum(_size(c) + 2 for c in blocks[-1]) + _size(column) > width:
            blocks.append([blocks[0][0]])
        blocks[-1].append(column)
    return "\n\n".join("\n".join(_lines(block)) for block in blocks)


def _wrapped(text: str, room: int) -> list[str]:
    """A cell in lines. Words are not cut: an id stays as it is."""
    if len(text) <= room:
        return [text]
    return textwrap.wrap(text, max(room, 1), break_long_words=False, break_on_hyphens=False) or [text]


def _aligned(cells: Sequence[list[str]], right: bool) -> list[list[str]]:
    size = max(len(line) for cell in cells for line in cell)
    return [[line.rjust(size) if right else line.ljust(size) for line in cell] for cell in cells]


def _size(column: Sequence[list[str]]) -> int:
    return len(column[0][0])


def _lines(block: Sequence[Sequence[list[str]]]) -> Iterator[str]:
    for row in zip(*block, strict=True):
        for line in range(max(map(len, row))):
            words = (cell[line] if line < len(cell) else " " * len(cell[0]) for cell in row)
            yield "  ".join(words).rstrip()


def _word(value: Any) -> str:
    """The text of a cell; NaN is shown as missing."""
    return "-" if value != value else in_words(value)


def in_words(value: Any) -> str:
    """A value as a person reads it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float) and math.isinf(value):
        return "-"  # an interval of one query has no ends
    if isinstance(value, float) and 0 < abs(value) < 1e-3:
        return f"{value:.1e}"
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 10 else f"{value:,.1f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {in_words(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    return str(value)


def html_of(title: str, rows: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> str:
    said = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<p>{escape(title)}</p>{html_table(rows)}{said}"
