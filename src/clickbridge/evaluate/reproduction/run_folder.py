"""A run in a folder: a CSV file for each table, an SVG for each figure, and all tables as one page of markdown.

Each table is written as soon as it is finished, so that a long run that is stopped leaves its finished tables.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from clickbridge.evaluate.reproduction.paper_table import Cell, Table

PAGE = "tables.md"
InWords = Callable[[Cell], str]
_SPECIAL = re.compile(r"[\\`*~|&\[\]]|<(?=[A-Za-z/!?])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
"""What GitHub reads as more than text; not an underscore within a word, nor a < before a number."""


class Files:
    """`in_words` formats a cell of the page; the CSV files have unrounded figures."""

    def __init__(self, folder: Path, command: str, in_words: InWords) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.in_words = in_words
        self._numbers: Counter[str] = Counter()
        (folder / PAGE).write_text(f"Made by `{command}`.\n", encoding="utf8")

    def add(self, table: Table) -> None:
        """Adds a table. If there is one with the same key already, on other data, its file gets a number."""
        number = self._numbers[table.key]
        self._numbers[table.key] += 1
        stem = re.sub(r"[^A-Za-z0-9-]+", "-", table.key) + (f"-{number}" if number else "")
        with (self.folder / f"{stem}.csv").open("w", newline="", encoding="utf8") as file:
            writer = csv.writer(file)
            writer.writerow(table.header())
            writer.writerows(table.cells())
        if table.svg is not None:
            (self.folder / f"{stem}.svg").write_text(table.svg, encoding="utf8")
        with (self.folder / PAGE).open("a", encoding="utf8") as file:
            file.write("\n" + markdown(table, self.in_words, f"{stem}.svg"))

    def end(self, words: str) -> None:
        """Writes what concerns the whole run."""
        with (self.folder / PAGE).open("a", encoding="utf8") as file:
            file.write(f"\n{escaped(words)}\n")


def markdown(table: Table, in_words: InWords, picture: str) -> str:
    """A table as Markdown: heading, data, rows, notes. `picture` is the file of its chart, if it has one."""
    rows = table.cells()
    numeric = [any(isinstance(row[i], int | float) for row in rows) for i in range(len(table.header()))]
    lines = [f"## {table.key}: {escaped(table.title)}", "", escaped(table.data), ""]
    lines += [_line(map(escaped, table.header())), _line("---:" if right else "---" for right in numeric)]
    lines += [_line(escaped(in_words(cell).strip()) for cell in row) for row in rows]
    lines += ["", *(f"- {escaped(note)}" for note in table.notes)] if table.notes else []
    lines += ["", f"![{escaped(table.title)}]({picture})"] if table.svg is not None else []
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Text escaped so that GitHub shows it literally, on one line."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))
