"""Turns the records of a file, with any column names, into clean records: one at a time, or a block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clickbridge.log.blocks import Block, pages_in, pairs_in
from clickbridge.log.clean import (
    RecordError,
    clean_session,
    clean_triple,
    kind_of,
    time_scale,
    whole_number,
    without_points,
)
from clickbridge.log.column_names import nested_value
from clickbridge.log.page_rows import flag, is_marked, page_row
from clickbridge.log.recognise import Layout
from clickbridge.log.time_formats import read_time
from clickbridge.types import Impression, PairCount
from clickbridge.wording import count_of

BY_THEMSELVES = 20
"""So few records are cleaned one by one where a block of them cannot be cleaned at once."""
Numbered = tuple[int, Any]


class RecordCleaner:
    """Cleans the records of a file by its layout. Calling it returns a clean record or raises a RecordError."""

    def __init__(self, layout: Layout, lists_as_text: bool) -> None:
        self.columns, self.lists_as_text = layout.renamed, lists_as_text
        self.form = layout.time_format
        self.scale = time_scale(layout.time_unit) if self.form is None else 1.0
        self.pages, self.shown = layout.format == "sessions", layout.format == "shown"
        self.pointed = layout.pointed
        self.lists = self.pages and (lists_as_text or layout.columns.get("doc_id") is not None)
        self.unclicked = 0
        """Rows of a table of clicks that name a query alone: searches after which nothing was clicked."""

    def __call__(self, row: Any) -> Impression | PairCount:
        row = self.named(checked_row(row))
        if self.shown:
            row = row | {"clicks": int(flag(row.get("clicks"))), "impressions": 1}
        if self.form is not None and "time" in row:
            row = row | {"time": read_time(row["time"], self.form)}
        if self.pointed:
            row = row | {name: without_points(row.get(name)) for name in self.pointed}
        if not self.pages and row.get("doc_id") in (None, "") and not whole_number(row.get("clicks"), "clicks", 0):
            search = clean_session(row | {"results": None, "clicks": []}, self.scale)
            self.unclicked += 1
            return search
        if not self.pages:
            return clean_triple(row, self.scale)
        clicks = row.get("clicks")
        if self.lists or is_marked(row.get("results")) or type(clicks) is dict or is_marked(clicks):
            row = page_row(row, self.lists_as_text)
        return clean_session(row, self.scale)

    @property
    def notes(self) -> list[str]:
        """Lines for the user about what was read."""
        said = f"{count_of(self.unclicked, 'record', 'name')} no document: searches without a click"
        return [said] if self.unclicked else []

    def named(self, row: Any) -> Any:
        """A record with our names. A record that is not an object is returned as it is."""
        return renamed_row(row, self.columns) if self.columns and type(row) is dict else row

    @property
    def takes_blocks(self) -> bool:
        """Whether many records can be cleaned at once. If not, each has to be rewritten first."""
        return not self.shown and self.form is None and not self.lists and not self.pointed

    def blocks(self, numbers: Sequence[int], rows: list[Any]) -> Iterator[Block | Iterator[Numbered]]:
        """Records in blocks. Records that do not fit into a block are passed on with their numbers, in order."""
        found = self._block(rows)
        if found is not None:
            yield found
        elif len(rows) <= BY_THEMSELVES:
            yield zip(numbers, rows, strict=True)
        else:
            half = len(rows) // 2
            yield from self.blocks(numbers[:half], rows[:half])
            yield from self.blocks(numbers[half:], rows[half:])

    def _block(self, rows: list[Any]) -> Block | None:
        if {*map(type, rows)} != {dict}:
            return None
        named = [self.named(row) for row in rows] if self.columns else rows
        return pages_in(named, self.scale) if self.pages else pairs_in(named, self.scale)


def checked_row(row: Any) -> dict[str, Any]:
    if type(row) is not dict:
        raise RecordError(f"a line must be a JSON object, got {kind_of(row)}")
    return row


def renamed_row(record: dict[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """The record with our names. A value that has one of our names but was not mapped to it is dropped."""
    out = {name: value for name, value in record.items() if name not in columns}
    for ours, theirs in columns.items():
        value = nested_value(record, theirs)
        if value is not None or theirs in record:
            out[ours] = value
    return out
