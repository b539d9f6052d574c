"""Click logs and documents from data frames: the same records, checks and rejects as from files.

A log frame has one click a row (`query`, `doc_id` and, where there are some, `clicks`, `impressions`, `user`, `time`),
as a `triples` file has, or one result page a row, with lists in `results` and `clicks`, as a `sessions` file has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from clickbridge.errors import InputError
from clickbridge.frames import arrow_table, frame_rows, renamed
from clickbridge.log.clean import RecordError, clean_session, clean_triple
from clickbridge.log.documents import DocumentReader
from clickbridge.log.readers import FIELDS, LogReader, LogRecord
from clickbridge.log.rejects import RejectLog
from clickbridge.types import Document

Record = TypeVar("Record")


class LogFrame(LogReader):
    """The clean records of a log frame; each iteration goes over it afresh."""

    def __init__(
        self,
        frame: Any,
        columns: Mapping[str, str] | None = None,
        time_unit: str = "s",
        rejects: RejectLog | None = None,
    ) -> None:
        super().__init__((), time_unit=time_unit, rejects=rejects)
        self.table = renamed(arrow_table(frame, "the log"), columns or {}, FIELDS, "the log")
        names = self.table.column_names
        self.pages = "doc_id" not in names and "clicks" in names
        if not {"query", "query_id"} & set(names) or not (self.pages or "doc_id" in names):
            raise InputError(
                f"the log needs columns query and doc_id; it has {', '.join(names)}: name them with "
                'columns={"query": ..., "doc_id": ...}'
            )

    def __iter__(self) -> Iterator[LogRecord]:
        clean = clean_session if self.pages else clean_triple
        yield from _cleaned(frame_rows(self.table), lambda row: clean(row, self.scale), self.rejects, "the log")


class DocumentFrame(DocumentReader):
    """The documents of a frame: `doc_id`, and its columns of text as fields."""

    def __init__(self, frame: Any, columns: Mapping[str, str] | None = None, rejects: RejectLog | None = None) -> None:
        super().__init__((), rejects)
        self.table = renamed(arrow_table(frame, "the documents"), columns or {}, (), "the documents")
        if "doc_id" not in self.table.column_names:
            has = ", ".join(self.table.column_names)
            raise InputError(f'the documents need a column doc_id; they have {has}: name it with {{"doc_id": ...}}')

    def __iter__(self) -> Iterator[Document]:
        yield from _cleaned(frame_rows(self.table), self._clean, self.rejects, "the documents")


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
    log: Any,
    docs: Any | None,
    columns: Mapping[str, str] | None,
    doc_columns: Mapping[str, str] | None,
    time_unit: str,
    max_rejects: str | float,
) -> tuple[LogFrame, DocumentFrame | None]:
    """Readers of both frames. Where the documents' columns are not named, their id may be called as in the log."""
    records = LogFrame(log, columns, time_unit, RejectLog(max_rejects))
    if docs is None:
        return records, None
    table = arrow_table(docs, "the documents")
    same = (columns or {}).get("doc_id")
    found = {"doc_id": same} if same is not None and same in table.column_names else {}
    own = found if doc_columns is None else {**(found if "doc_id" not in doc_columns else {}), **doc_columns}
    return records, DocumentFrame(table, own, RejectLog(max_rejects))
