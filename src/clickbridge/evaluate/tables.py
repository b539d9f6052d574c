"""Results as text and HTML, for the prompt and for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from clickbridge.frames import html_table

WIDTH = 80


def text_table(rows: Sequence[Mapping[str, Any]], width: int = WIDTH) -> str:
    """Rows as aligned text. Columns that do not fit continue below, with the first column repeated."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [name, *(_word(row.get(name)) for row in rows)] for name in names}
    numeric = {n for n in names if all(isinstance(row.get(n), int | float | None) for row in rows)}
    first = [word if len(word) <= width // 2 else word[: width // 2 - 1] + "…" for word in columns.pop(names[0])]
    blocks: list[list[list[str]]] = [[_aligned(first, names[0] in numeric)]]
    for name, words in columns.items():
        column = _aligned(words, name in numeric)
        if len(blocks[-1]) > 1 and sum(len(c[0]) + 2 for c in blocks[-1]) + len(column[0]) > width:
            blocks.append([blocks[0][0]])
        blocks[-1].append(column)
    return "\n\n".join("\n".join("  ".join(line).rstrip() for line in zip(*b, strict=True)) for b in blocks)


def _aligned(words: Sequence[str], right: bool) -> list[str]:
    size = max(map(len, words))
    return [word.rjust(size) if right else word.ljust(size) for word in words]


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
