"""Streaming readers of click logs: pages, clicks, shown results or events a record, in JSON, tables or TREC's XML.

A reader yields clean records one at a time, so that memory does not grow with the file. What it cannot
use goes to its RejectLog with line and reason. `recognise.py` says what a file is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from clickbridge.errors import SettingError
from clickbridge.frames import Frame, is_frame
from clickbridge.io.streams import open_stream
from clickbridge.log.clean import RecordError, clean_session, clean_triple, kind_of, time_scale
from clickbridge.log.column_names import nested_value
from clickbridge.log.page_rows import page_row
from clickbridge.log.recognise import FIELDS as FIELDS
from clickbridge.log.recognise import Layout, Reading, guesses_in_words, recognise_log
from clickbridge.log.rejects import RejectLog
from clickbridge.log.source import Source, open_source
from clickbridge.log.time_formats import read_time
from clickbridge.log.trec_session import read_trec_session
from clickbridge.types import Document, Impression, PairCount

LogRecord = Impression | PairCount | Document
LOGGER = logging.getLogger("clickbridge.log")


class LogReader:
    """Iterates over the clean records of one or more log files; each iteration reads them afresh."""

    def __init__(self, paths: tuple[str, ...], reading: Reading | None = None, rejects: RejectLog | None = None) -> None:
        self.paths = paths
        self.reading = reading or Reading()
        for name in self.reading.columns:
            if name not in FIELDS:
                raise SettingError(f"--columns renames {', '.join(FIELDS)}; got {name!r}")
        self.rejects = rejects if rejects is not None else RejectLog()
        self.layouts: dict[str, Layout] = {}
        """How each file was read, by its path."""
        self.repeated = 0
        """Records that equal the one before or, with `dedupe`, any that was left out."""

    @property
    def id_name(self) -> str | None:
        """What the log calls the ids of documents, as documents files may too; the first file tells it."""
        if "doc_id" in self.reading.columns or not self.paths or self.paths[0] == "-":
            return self.reading.columns.get("doc_id")
        with open_stream(self.paths[0]) as stream:
            return self._recognised(self.paths[0], stream)[1].columns.get("doc_id")

    def __iter__(self) -> Iterator[LogRecord]:
        try:
            yield from self._unrepeated(self._all())
        finally:
            self.rejects.end_file()
        self.rejects.close()

    def _all(self) -> Iterator[LogRecord]:
        for path in self.paths:
            with open_stream(path) as stream:
                source, layout = self._recognised(path, stream)
                if path not in self.layouts:
                    self.layouts[path] = layout
                    for files, options in guesses_in_words([layout]):
                        LOGGER.info("guessed for %s: %s", files, options)
                yield from self._read(source, layout)

    def _recognised(self, path: str, stream: BinaryIO) -> tuple[Source, Layout]:
        known, kind = list(self.reading.columns.values()), self.reading.format
        container = "xml" if kind == "trec-session" else None
        source = open_source(path, stream, self.reading.encoding, self.reading.delimiter, known, container)
        layout = recognise_log(source, self.reading)
        return replace(source, first=()), layout  # the first records are not needed any more

    def _read(self, source: Source, layout: Layout) -> Iterator[LogRecord]:
        if layout.format == "trec-session":
            for record in read_trec_session(source.path, source.stream):
                self.rejects.lines += isinstance(record, Impression)
                yield record
            return
        clean = record_cleaner(layout, lists_as_text=source.container == "table")
        for number, row in source.records(self.rejects):
            try:
                yield clean(row)
            except RecordError as error:
                self.rejects.add(source.path, number, str(error))

    def _unrepeated(self, records: Iterator[LogRecord]) -> Iterator[LogRecord]:
        """The records; with `dedupe` each once. Eight bytes stand for a record that was there before."""
        self.repeated = 0
        if not self.reading.dedupe:
            before: LogRecord | None = None
            for record in records:
                # Without a time, equal rows are so many clicks.
                self.repeated += record == before and getattr(record, "time", None) is not None
                before = record
                yield record
            return
        seen: set[int] = set()
        for record in records:
            mark = int.from_bytes(blake2b(repr(record).encode(), digest_size=8).digest(), "little")
            if mark in seen and not isinstance(record, Document):
                self.repeated += 1
                continue
            seen.add(mark)
            yield record


def record_cleaner(layout: Layout, lists_as_text: bool) -> Callable[[Any], Impression | PairCount]:
    """A function from a record of a file to a clean one."""
    columns, scale, form = layout.renamed, time_scale(layout.time_unit), layout.time_format
    pages = layout.format == "sessions"
    lists = pages and (lists_as_text or layout.columns.get("doc_id") is not None)

    def clean(row: Any) -> Impression | PairCount:
        if type(row) is not dict:
            raise RecordError(f"a line must be a JSON object, got {kind_of(row)}")
        if columns:
            row = renamed_row(row, columns)
        if form is not None and "time" in row:
            row["time"] = read_time(row["time"], form)
        if not pages:
            return clean_triple(row, scale if form is None else 1.0)
        results = row.get("results")
        if lists or (type(results) is list and results and type(results[0]) is dict):
            row = page_row(row, lists_as_text)
        return clean_session(row, scale if form is None else 1.0)

    return clean


def renamed_row(record: dict[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """The record under our names. A value of theirs that has one of our names, and was not meant, gives way."""
    out = {name: value for name, value in record.items() if name not in columns}
    for ours, theirs in columns.items():
        value = nested_value(record, theirs)
        if value is not None or theirs in record:
            out[ours] = value
    return out


def read_log(
    *paths: str | Path | Frame,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
    time_format: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    dedupe: bool = False,
    rejects: RejectLog | None = None,
) -> LogReader:
    """Clean records of one or more click logs, streamed.

    `paths` are files, plain or compressed (`-` is standard input), or one data frame. What is not said is guessed from
    the first records, and kept in `layouts` of the result:

    - `format`: sessions (a page a record), triples (a click a record), shown (a shown result a record), events, or
      trec-session.
    - `columns`: our names and the log's, as `{"query": "search_term"}`; a nested key by its dotted name.
    - `time_unit` of times that are numbers, s, ms, us or ns; `time_format` of local ones, as `%d.%m.%Y %H:%M`.
    - `encoding` and `delimiter` of text.

    With `dedupe` a record that repeats another one is left out. What cannot be used goes to `rejects`, which refuses
    the log where it is too much. The result can be iterated over any number of times; it is what `ClickGraph.build`
    takes.
    """
    reading = Reading(format, dict(columns or {}), time_unit, time_format, encoding, delimiter, dedupe)
    if len(paths) == 1 and is_frame(paths[0]):
        from clickbridge.log.frames import LogFrame

        return LogFrame(paths[0], reading, rejects)
    return LogReader(tuple(str(p) for p in paths), reading, rejects)
