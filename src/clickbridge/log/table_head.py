"""Finds the header line of a table below what reports put above it: a title, a date range, comments, blank lines.
And tells tables that programs print for people: blanks around the cells, a ruler below the header, a count at the end.

The first line is the header unless it cannot be. A later line is it only if its cells are usual names of columns, so
that no row of data is taken for one.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence

from clickbridge.log.column_names import is_likely_name, is_usual_name

LOOKED_AT = 60
"""Lines that are looked at: what stands above a header is shorter."""
Row = list[str]
_TOTAL = re.compile(r"\(\d+ rows?\)")


def lines_above(rows: Sequence[str], mark: str, known: Sequence[str] = ()) -> int:
    """The number of lines above the header of a table with this delimiter. `known` are column names that the user
    gave."""
    cut = [_cells(row, mark) for row in rows]
    widths = Counter(len(row) for row in cut if len(row) > 1)
    if not widths:
        return 0
    usual = max(widths, key=lambda width: (widths[width], width))
    start = next(place for place, row in enumerate(cut) if row)
    first, names = cut[start], _names(cut[start], known)
    is_comment = first[0].startswith("#")
    if names > 1 or (not is_comment and _is_full(first) and len(first) >= usual):
        return start
    return next((place for place in range(start + 1, len(cut)) if _is_header(cut, start, place, known)), start)


def _cells(row: str, mark: str) -> Row:
    """The cells of a line up to the last that is not empty."""
    try:
        cells = row.split("\t") if mark == "\t" else next(csv.reader([row], delimiter=mark), [])
    except csv.Error:
        return []
    cells = [cell.strip().strip("\"'") for cell in cells]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _names(row: Row, known: Sequence[str]) -> int:
    """How many cells are names that columns have."""
    return sum(cell in known or is_usual_name(cell) for cell in row)


def _is_full(row: Row) -> bool:
    return all(row) and len({*row}) == len(row)


def _is_header(cut: list[Row], start: int, place: int, known: Sequence[str]) -> bool:
    """Whether a line can be the header, where the lines from `start` on stand above it: it has names, most of the rows
    after it are not longer, and what is above has a single cell, is a comment, or has fewer names."""
    row, after = cut[place], [other for other in cut[place + 1 :] if other]
    if len(row) < 2 or not _is_full(row) or row[0].startswith("#") or any(map(_is_numeric, row)):
        return False
    if 2 * sum(1 < len(other) <= len(row) for other in after) <= len(after):
        return False
    names, above = _names(row, known), cut[start:place]
    if all(len(other) <= 1 or other[0].startswith("#") for other in above):
        return names > 0 or sum(map(is_likely_name, row)) > 1
    return names > 1 and names > max(_names(other, known) for other in above)


def is_padded(rows: Sequence[str], mark: str) -> bool:
    """Whether each delimiter of these lines has a blank beside it, but perhaps in the first, the header."""
    cut = [row.split(mark) for row in rows if mark in row]
    cut = cut[1:] or cut
    after = [cell[:1] for row in cut for cell in row[1:]]
    before = [cell[-1:] for row in cut for cell in row[:-1]]
    return {*after} == {" "} or {*before} == {" "}


def is_ruler(cells: Row | str) -> bool:
    """Whether a line of a printed table is the ruler below its header."""
    text = "" if isinstance(cells, str) else "".join(cells).strip()
    return "--" in text and not text.strip("-+|=: ")


def is_total(cells: Row | str) -> bool:
    """Whether a line of a printed table says how many rows it has."""
    return not isinstance(cells, str) and len(cells) == 1 and _TOTAL.fullmatch(cells[0].strip()) is not None


def _is_numeric(cell: str) -> bool:
    return any(map(str.isdigit, cell)) and not any(map(str.isalpha, cell))
