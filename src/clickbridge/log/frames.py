"""Click logs and documents from data frames: the same records, checks and rejects as from files.

A log frame has one click per row (`query`, `doc_id`; where there are some, `clicks`, `impressions`, `user`, `time`), as
a `triples` file has, or one result page per row, with lists in `results` and `clicks`, as a `sessions` file has.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

from clickbridge.errors import InputError
from clickbridge.frames import arrow_table, frame_rows
from clickbridge.log.blocks import Block, in_blocks
from clickbridge.log.clean import RecordError
from clickbridge.log.documents import DocumentReader
from clickbridge.log.readers import LogReader, event_join, is_joined
from clickbridge.log.recognise import Reading, recognise_documents, recognise_log
from clickbridge.log.record_cleaner import RecordCleaner
from clickbridge.log.rejects import RejectLog
from clickbridge.log.source import FIRST, Source
from clickbridge.types import Document, LogRecord

Record = TypeVar("Record")


class LogFrame(LogReader):
    """The clean records of a log frame. It can be iterated over any number of times."""

    def __init__(self, frame: Any, reading: Reading | None = None, rejects: RejectLog | None = None) -> None:
        super().__init__((), reading, rejects)
        self.table = arrow_table(frame, "the log")
        self.layout = recognise_log(_source(self.table, "the log"), self.reading)
        self.know("the log", self.layout)

    @property
    def id_name(self) -> str | None:
        return self.layout.columns.get("doc_id")

    def __iter__(self) -> Iterator[LogRecord]:
        rows = frame_rows(self.table, _ids(self.layout.columns))
        self.notes = []
        if not is_joined(self.layout):
            clean = RecordCleaner(self.layout, lists_as_text=False)
            yield from self._unrepeated(_cleaned(rows, clean, self.rejects, "the log"))
            self.notes += clean.notes
            return
        with event_join(self.rejects) as join:
            yield from self._join(join, enumerate(rows, 1), self.layout, False)
            yield from self._joined(join)
        self.rejects.close()

    def blocks(self) -> Iterator[Block | Document]:
        return in_blocks(self)


class DocumentFrame(DocumentReader):
    """The documents of a frame: an id, and the text columns as fields."""

    def __init__(
        self,
        frame: Any,
        reading: Reading | None = None,
        rejects: RejectLog | None = None,
        id_name: Callable[[], str | None] | None = None,
    ) -> None:
        super().__init__((), reading, rejects)
        self.table = arrow_table(frame, "the documents")
        self.layout = recognise_documents(
            _source(self.table, "the documents"), self.reading, id_name() if id_name else None
        )
        self.know("the documents", self.layout)

    def __iter__(self) -> Iterator[Document]:
        self.with_html = 0
        columns = self.layout.renamed
        rows = frame_rows(self.table, _ids(self.layout.columns))
        yield from _cleaned(rows, lambda row: self._clean(row, columns), self.rejects, "the documents")


def _source(table: Any, name: str) -> Source:
    """A frame in the form in which the recogniser sees files."""
    first = list(islice(frame_rows(table.slice(0, FIRST)), FIRST))
    return Source(name, io.BytesIO(), "frame", names=table.column_names, first=first)


def _ids(columns: Mapping[str, str]) -> set[str]:
    return {theirs for ours, theirs in columns.items() if ours in ("query_id", "doc_id", "user", "session")}


def _cleaned(
    rows: Iterator[dict[str, Any]], clean: Callable[[dict[str, Any]], Record], rejects: RejectLog, source: str
) -> Iterator[Record]:
    try:
        for number, row in enumerate(rows, 1):
            rejects.lines += 1
            try:
                yield clean(row)
            except RecordError as error:
                rejects.add(source, number, str(error))
    finally:
        rejects.end_file()
    rejects.close()


def log_and_documents(
    log: Any | None,
    docs: Any | None,
    columns: Mapping[str, str] | None,
    doc_columns: Mapping[str, str] | None,
    max_rejects: str | float,
    **reading: Any,
) -> tuple[LogFrame | tuple[()], DocumentFrame | tuple[()]]:
    """The readers of both frames. If the columns of the documents are not specified, their id may have the same name
    as in the log."""
    if log is None and docs is None:
        raise InputError("give a log, documents, or both")
    own = Reading(columns=dict(doc_columns or {}))
    if log is None:
        return (), DocumentFrame(docs, own, RejectLog(max_rejects))
    records = LogFrame(log, Reading(columns=dict(columns or {}), **reading), RejectLog(max_rejects))
    if docs is None:
        return records, ()
    return records, DocumentFrame(docs, own, RejectLog(max_rejects), lambda: records.id_name)
