"""One file of records in any format: its encoding, its container, and its first records, which are read before the
rest.

Logs and files of documents are both read this way. `recognise.py` decides what the records mean.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, BinaryIO

import orjson

from clickbridge.errors import InputError
from clickbridge.io.encodings import check_encoding, guess_encoding, recoded, rewound
from clickbridge.io.json_text import parse_json
from clickbridge.io.streams import PARQUET, file_stem_suffix, line_blocks, lines
from clickbridge.log.column_names import dotted_names
from clickbridge.log.envelopes import is_wrapped, unwrapped
from clickbridge.log.json_objects import json_objects, nesting
from clickbridge.log.rejects import RejectLog
from clickbridge.log.tables import (
    DELIMITERS,
    Dialect,
    cells_of,
    check_delimiter,
    find_dialect,
    header_of,
    parquet_names,
    parquet_rows,
    text_rows,
)

HEAD = 1 << 18
FIRST = 1000
"""Bytes, and records, that are looked at before the rest is read."""
ROWS_AT_ONCE = 300
ZIP = b"PK\x03\x04"
_SUFFIXES = {
    ".jsonl": "json", ".ndjson": "json", ".json": "json", ".csv": "table", ".tsv": "table", ".xml": "xml",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A file that was opened and examined. `stream` has its whole content, as UTF-8."""

    path: str
    stream: BinaryIO
    container: str
    """json, table, parquet or xml."""
    encoding: str = "utf-8"
    dialect: Dialect = field(default_factory=Dialect)
    depth: int | None = None
    """How deep in a JSON file the records lie; None where each line is one."""
    wrapped: bool = False
    """Whether JSON objects are something around records, as in bulk bodies and index exports."""
    names: Sequence[str] = ()
    """Columns, or keys of the first records; nested ones by their dotted names."""
    first: Sequence[dict[str, Any]] = ()

    def records(self, rejects: RejectLog) -> Iterator[tuple[int, Any]]:
        """All records, with their line or row numbers. Records that cannot be read are rejects."""
        if self.container == "table":
            yield from text_rows(self.stream, self.path, self.dialect, rejects)
        elif self.container == "parquet":
            yield from parquet_rows(self.stream, self.path, rejects)
        else:
            yield from _json_records(self, rejects)

    @property
    def is_lines(self) -> bool:
        """Whether each line is a JSON record."""
        return self.container == "json" and self.depth is None and not self.wrapped

    def pieces(self, rejects: RejectLog) -> Iterator[tuple[Sequence[int], list[Any]]]:
        """The same, a few hundred at a time: their line or row numbers, and the records. JSON objects that span lines
        come one by one."""
        if not self.is_lines:
            at_once = 1 if self.container == "json" else ROWS_AT_ONCE
            records = self.records(rejects)
            while some := list(islice(records, at_once)):
                yield [number for number, _ in some], [record for _, record in some]
            return
        number = 1
        for block in line_blocks(self.stream, self.path):
            try:
                values = list(map(orjson.loads, block))
            except orjson.JSONDecodeError:
                for own, value in _parsed(self, enumerate(block, number), rejects):
                    yield (own,), [value]  # so that rejects come in the order of the lines
            else:
                rejects.lines += len(values)
                yield range(number, number + len(values)), values
            number += len(block)


def open_source(
    path: str,
    stream: BinaryIO,
    encoding: str | None = None,
    delimiter: str | None = None,
    known: Sequence[str] = (),
    expected: str | None = None,
) -> Source:
    """Examines the first bytes of an open file. `encoding` and `delimiter` are guessed if they are not given. `known`
    are names of columns that it should have; `expected` is the container if the bytes do not show it."""
    head = stream.read(HEAD)
    rest = rewound(head, stream)
    suffix = _SUFFIXES.get(file_stem_suffix(path), "")
    if head.startswith(PARQUET):
        return _parquet(path, io.BytesIO(rest.read()) if path == "-" else rest)
    if head.startswith(ZIP):
        spreadsheet = file_stem_suffix(path) in (".xlsx", ".ods") or b"[Content_Types].xml" in head
        kind, remedy = ("a spreadsheet", "save it as CSV") if spreadsheet else ("a zip archive", "unpack it")
        raise InputError(f"{path} is {kind}: {remedy}")
    if suffix == "parquet":
        raise InputError(f"{path} is not a valid Parquet file (its first bytes are not): fetch or write it again")
    if "xml" in (suffix, expected):
        return Source(path, rest, "xml")
    code = check_encoding(encoding) if encoding else guess_encoding(head)
    text = recoded(rest, code, path)
    start = text.read(HEAD)
    source = Source(path, rewound(start, text), _container(path, start, suffix or expected or ""), code)
    if source.container == "json":
        return _json(source, start)
    if source.container == "table":
        return _table(source, start, delimiter, known)
    return source


def _container(path: str, start: bytes, suffix: str) -> str:
    """The container of the file, by its first characters, then by its name."""
    begin = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if begin == b"<" and suffix != "table":
        return "xml"
    if begin == b"{" or (begin == b"[" and suffix != "table"):
        return "json"
    if suffix:
        return suffix
    text = start.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if any(mark in text.split("\n")[0] for mark in DELIMITERS.values()) or find_dialect(text, None).skip:
        return "table"
    raise InputError(
        f"cannot recognise the format of {path}: no JSON, no XML, no table with a header: is it the right file?"
    )


def _table(source: Source, start: bytes, delimiter: str | None, known: Sequence[str]) -> Source:
    suffix = file_stem_suffix(source.path)
    text = start.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    given = check_delimiter(delimiter) if delimiter else None
    dialect = find_dialect(text, given, known)
    if suffix == ".tsv" and given is None and "\t" in "".join(text.split("\n")[dialect.skip :][:1]):
        dialect = find_dialect(text, "\t", known)
    whole = start if len(start) < HEAD else start[: start.rfind(b"\n") + 1] or start
    names = header_of(cells_of(io.BytesIO(start), source.path, dialect), source.path)
    rows = text_rows(io.BytesIO(whole), source.path, dialect, RejectLog(1.0))
    return replace(source, dialect=dialect, names=names, first=[row for _, row in islice(rows, FIRST)])


def _parquet(path: str, stream: BinaryIO) -> Source:
    def again() -> BinaryIO:
        if path == "-":
            stream.seek(0)
        return stream

    names = parquet_names(again(), path)
    first = [row for _, row in parquet_rows(again(), path, most=FIRST)]
    return Source(path, again(), "parquet", names=names, first=first)


def _json(source: Source, start: bytes) -> Source:
    begin = start.removeprefix(b"\xef\xbb\xbf")
    line = begin.split(b"\n", 1)[0]
    record = _loaded(line)
    depth = nesting(begin, first_is_whole=type(record) is dict and not _is_wrapper(record))
    whole = start if len(start) < HEAD else start[: start.rfind(b"\n") + 1] or start
    found = replace(source, stream=io.BytesIO(start if depth is not None else whole), depth=depth)
    first: list[dict[str, Any]] = []
    try:
        for _, value in islice(_json_records(found, RejectLog(1.0)), FIRST):
            if type(value) is dict:
                first.append(value)
    except InputError:
        pass  # the sample ends inside a record
    wrapped = any(map(is_wrapped, first))
    if wrapped:
        first = [record for value in first for record in unwrapped(value) if type(record) is dict][:FIRST]
    names = dict.fromkeys(name for value in first for name in dotted_names(value))
    return replace(source, depth=depth, wrapped=wrapped, names=list(names), first=first)


def _is_wrapper(record: dict[str, Any]) -> bool:
    """Whether an object contains only a list of records."""
    values = list(record.values())
    return len(values) == 1 and type(values[0]) is list and bool(values[0]) and type(values[0][0]) is dict


def _loaded(line: bytes) -> Any:
    try:
        return parse_json(line)
    except orjson.JSONDecodeError:
        return None


def _json_records(source: Source, rejects: RejectLog) -> Iterator[tuple[int, Any]]:
    if source.depth is None:
        raw: Iterator[bytes] = lines(source.stream, source.path, ends=True)  # to JSON they are blanks
    else:
        raw = json_objects(source.stream, source.path, source.depth)
    yield from _parsed(source, enumerate(raw, 1), rejects)


def _parsed(source: Source, raw: Iterable[tuple[int, bytes]], rejects: RejectLog) -> Iterator[tuple[int, Any]]:
    for number, line in raw:
        if not line or line.isspace():
            continue
        try:
            value = parse_json(line)
        except orjson.JSONDecodeError as error:
            hint = ": give --encoding" if "utf-8" in error.msg.lower() else ""
            rejects.lines += 1
            rejects.add(source.path, number, f"not JSON: {error.msg}{hint}")
            continue
        if not source.wrapped:
            rejects.lines += 1
            yield number, value
            continue
        for record in unwrapped(value):
            rejects.lines += 1
            yield number, record
