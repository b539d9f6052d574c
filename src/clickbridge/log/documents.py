"""Documents in: JSONL, CSV, TSV or Parquet with `doc_id` and any text fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from clickbridge.errors import InputError, SettingError, shown_names
from clickbridge.frames import Frame, is_frame
from clickbridge.io.streams import PARQUET, file_stem_suffix, lines, open_stream
from clickbridge.log.clean import RecordError, clean_id
from clickbridge.log.readers import table_rows
from clickbridge.log.rejects import RejectLog
from clickbridge.types import Document

BREAK = "\n"
"""Between the items of a list field; word bigrams do not cross it."""


class DocumentReader:
    """Iterates over documents. `ignored` collects the fields whose values are not text."""

    def __init__(self, paths: tuple[str, ...], rejects: RejectLog | None = None) -> None:
        self.paths = paths
        self.rejects = rejects if rejects is not None else RejectLog()
        self.ignored: set[str] = set()

    def __iter__(self) -> Iterator[Document]:
        try:
            for path in self.paths:
                with open_stream(path) as stream:
                    for number, record in self._records(path, stream):
                        try:
                            yield self._clean(record)
                        except RecordError as error:
                            self.rejects.add(path, number, str(error))
        finally:
            self.rejects.end_file()
        self.rejects.close()

    def _records(self, path: str, stream: BinaryIO) -> Iterator[tuple[int, Any]]:
        head = bytes(stream.peek(64)[:64])  # type: ignore[attr-defined]
        if file_stem_suffix(path) in (".csv", ".tsv", ".parquet", ".pq") or head.startswith(PARQUET):
            yield from table_rows(path, stream, self._check_header, self.rejects)
            return
        for number, line in enumerate(lines(stream, path), 1):
            if not line:
                continue
            self.rejects.lines += 1
            try:
                yield number, orjson.loads(line)
            except orjson.JSONDecodeError as error:
                self.rejects.add(path, number, f"not JSON: {error.msg}")

    def _clean(self, record: Any) -> Document:
        if type(record) is not dict:
            raise RecordError("a line must be a JSON object")
        fields: dict[str, str] = {}
        for name, value in record.items():
            if name == "doc_id" or value is None:
                continue
            text, field = field_text(name, value), name.lower()
            # A name that folds to nothing, or to the id's, cannot be a column of its own.
            if text is None or field in ("", "doc_id"):
                self.ignored.add(name or "(a field without a name)")
            elif text:
                fields[field] = fields[field] + BREAK + text if field in fields else text
        return Document(clean_id(record.get("doc_id"), "doc_id"), fields)

    @staticmethod
    def _check_header(path: str, header: list[str]) -> list[str]:
        if "doc_id" not in header:
            raise InputError(f"{path} needs a column doc_id; it has {shown_names(header)}")
        return header


def field_text(name: str, value: Any) -> str | None:
    """The text of a field's value; None for what is not text (numbers other than a year, nested values)."""
    if type(value) is str:
        return value
    if name == "year" and type(value) is int:
        return str(value)
    if type(value) is list and all(type(item) is str for item in value):
        return BREAK.join(value)
    return None


def read_docs(
    *paths: str | Path | Frame, columns: Mapping[str, str] | None = None, rejects: RejectLog | None = None
) -> DocumentReader:
    """Documents of one or more files, streamed, or of one data frame.

    A document is a `doc_id` and any fields of text. `columns` renames the columns of a frame, as `{"doc_id": "sku"}`.
    """
    if len(paths) == 1 and is_frame(paths[0]):
        from clickbridge.log.frames import DocumentFrame

        return DocumentFrame(paths[0], columns, rejects)
    if columns:
        raise SettingError("columns renames the columns of a frame; a file has doc_id and its fields by name")
    return DocumentReader(tuple(str(p) for p in paths), rejects)
