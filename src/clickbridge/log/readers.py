"""Streaming readers of click logs. A record is a page, a click, a shown result or an event, in JSON, a table or TREC's
XML.

A reader yields clean records one at a time, so that memory does not grow with the file. Records that it cannot use go
to its RejectLog with line and reason. `recognise.py` decides how a file is read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from clickbridge.errors import SettingError
from clickbridge.frames import Frame, is_frame
from clickbridge.io.bytes_read import BytesRead
from clickbridge.io.streams import open_stream
from clickbridge.log.blocks import Block, in_blocks, repeats
from clickbridge.log.clean import RecordError
from clickbridge.log.described import described
from clickbridge.log.event_formats import READ, Event
from clickbridge.log.given import paths_given
from clickbridge.log.guesses import guessed_arguments
from clickbridge.log.page_rows import has_pages
from clickbridge.log.recognise import EVENT_LOGS, FIELDS, Layout, Reading, recognise_log
from clickbridge.log.record_cleaner import RecordCleaner, checked_row, renamed_row
from clickbridge.log.rejects import RejectLog
from clickbridge.log.row_events import RowEvents
from clickbridge.log.source import Source, open_source
from clickbridge.log.trec_session import read_trec_session
from clickbridge.types import OPAQUE, Document, Impression, LogRecord, PairCount

if TYPE_CHECKING:
    from clickbridge.log.event_join import EventJoin

LOGGER = logging.getLogger("clickbridge.log")


class LogReader:
    """Iterates over the clean records of one or more log files. Each iteration reads the files again."""

    def __init__(
        self, paths: tuple[str, ...], reading: Reading | None = None, rejects: RejectLog | None = None
    ) -> None:
        self.paths = paths
        self.reading = reading or Reading()
        for name in self.reading.columns:
            if name not in FIELDS:
                raise SettingError(f"--columns renames {', '.join(FIELDS)}; got {name!r}")
        self.rejects = rejects if rejects is not None else RejectLog()
        self.layouts: dict[str, Layout] = {}
        """How each file was read, by its path."""
        self.repeated = 0
        """Records that equal the one before; with `dedupe`, those that were left out."""
        self.reads = BytesRead(paths)
        self.notes: list[str] = []
        """What the last reading found out about the log, in lines for the user."""

    def __repr__(self) -> str:
        return described(type(self).__name__, self.paths, self.layouts, self.rejects.count)

    @property
    def id_name(self) -> str | None:
        """The name of the log's column of document ids, taken from the first file. Documents files may use it, too."""
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

    def blocks(self) -> Iterator[Block | Document]:
        """The same records in blocks of columns, which is several times as fast."""
        if self.reading.dedupe:
            yield from in_blocks(self)
            return
        self.repeated, before = 0, None
        try:
            for block in in_blocks(self._all(by_block=True)):
                if not isinstance(block, Document):
                    self.repeated += repeats(block, before)
                    before = block[-1]
                yield block
        finally:
            self.rejects.end_file()
        self.rejects.close()

    def _all(self, by_block: bool = False) -> Iterator[Any]:
        """All records; with `by_block`, in blocks where possible."""
        self.notes = []
        self.reads = BytesRead(self.paths)
        with ExitStack() as ends:
            join: EventJoin | None = None
            for path in self.paths:
                with open_stream(path, self.reads.begin) as stream:
                    source, layout = self._recognised(path, stream)
                    self.know(path, layout)
                    if is_joined(layout):
                        join = join or ends.enter_context(event_join(self.rejects))
                        rows = source.records(self.rejects)
                        yield from self._join(join, rows, layout, source.container == "table")
                    else:
                        yield from self._read(source, layout, by_block)
            if join is not None:
                yield from self._joined(join)

    def know(self, path: str, layout: Layout) -> None:
        """Stores how a file is read, and reports what was guessed."""
        if path not in self.layouts:
            self.layouts[path] = layout
            if line := guessed_arguments(layout):
                LOGGER.info(line)

    def _join(
        self, join: EventJoin, rows: Iterator[tuple[int, Any]], layout: Layout, lists_as_text: bool
    ) -> Iterator[Document]:
        """Collects searches and actions until all files are read. Documents in the log are passed on at once."""
        read, told = event_reader(layout, lists_as_text)
        for number, row in rows:
            try:
                for event in read(row):
                    if isinstance(event, Document):
                        yield event
                    elif event is not None:
                        join.add(event, layout.format, layout.path, number)
            except RecordError as error:
                self.rejects.add(layout.path, number, str(error))
        self.notes += told()

    def _joined(self, join: EventJoin) -> Iterator[Impression]:
        for page in join.impressions():
            if page.query.startswith(OPAQUE):
                page.query, page.query_id = "", page.query.removeprefix(OPAQUE)
            yield page
        self.notes += join.notes

    def _recognised(self, path: str, stream: BinaryIO) -> tuple[Source, Layout]:
        known, kind = list(self.reading.columns.values()), self.reading.format
        expected = {"trec-session": "xml", "triples": "table", "shown": "table", "auto": None}.get(kind, "json")
        source = open_source(path, stream, self.reading.encoding, self.reading.delimiter, known, expected)
        layout = recognise_log(source, self.reading)
        return replace(source, first=()), layout  # the first records are not needed any more

    def _read(self, source: Source, layout: Layout, by_block: bool) -> Iterator[LogRecord | Block]:
        if layout.format == "trec-session":
            for record in read_trec_session(source.path, source.stream):
                self.rejects.lines += isinstance(record, Impression)
                yield record
            return
        cleaner = RecordCleaner(layout, lists_as_text=source.container == "table")
        if not by_block or not cleaner.takes_blocks:
            yield from self._cleaned(source.path, source.records(self.rejects), cleaner)
        else:
            for numbers, rows in source.pieces(self.rejects):
                for part in cleaner.blocks(numbers, rows):
                    if isinstance(part, Block):
                        yield part
                    else:
                        yield from self._cleaned(source.path, part, cleaner)
        self.notes += cleaner.notes

    def _cleaned(
        self, path: str, rows: Iterable[tuple[int, Any]], clean: Callable[[Any], LogRecord]
    ) -> Iterator[LogRecord]:
        for number, row in rows:
            try:
                yield clean(row)
            except RecordError as error:
                self.rejects.add(path, number, str(error))

    def _unrepeated(self, records: Iterator[LogRecord]) -> Iterator[LogRecord]:
        """The records; with `dedupe`, each only once. Eight bytes are kept for every record seen."""
        self.repeated = 0
        if not self.reading.dedupe:
            before: LogRecord | None = None
            for record in records:
                # Without a time, each of several equal rows is a click.
                time = getattr(record, "time", None)
                if time is not None and time == getattr(before, "time", None):
                    self.repeated += _counted(record) == _counted(before)
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


def _counted(record: LogRecord | None) -> LogRecord | None:
    """A record as it is counted: no number of impressions is none."""
    return replace(record, impressions=record.impressions or 0) if isinstance(record, PairCount) else record


def is_joined(layout: Layout) -> bool:
    """Whether pages are spread over several records and have to be joined."""
    return layout.format in ("events", *EVENT_LOGS) or (layout.format == "shown" and has_pages(layout.columns))


def event_join(rejects: RejectLog) -> closing[EventJoin]:
    from clickbridge.log.event_join import EventJoin  # it needs DuckDB, which the other formats do not

    return closing(EventJoin(rejects))


def event_reader(
    layout: Layout, lists_as_text: bool
) -> tuple[Callable[[Any], Iterable[Event]], Callable[[], list[str]]]:
    """A function from a record to its events, and one for lines about the records that have none."""
    if layout.format in EVENT_LOGS:
        own = READ[layout.format]
        return lambda record: found if isinstance(found := own(record), list) else (found,), list
    rows = RowEvents(layout, lists_as_text)
    return lambda row: rows.read(renamed_row(checked_row(row), layout.renamed)), rows.notes


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
    """Reads one or more click logs, as a stream of clean records.

    What you do not specify is guessed from the first records. `layouts` of the result tells what was guessed.

    Parameters
    ----------
    paths : str, Path or data frame
        Files, plain or compressed (`-` is standard input), or one data frame.
    format : str
        "sessions" (one result page per record), "triples" (one click per record), "shown" (one shown result per
        record), "events", "trec-session", or "auto" to guess it.
    columns : mapping of str to str, optional
        The log's column for each of our names, such as `{"query": "search_term"}`. Nested keys are written with dots.
    time_unit : str, optional
        The unit of times that are numbers: s, ms, us or ns.
    time_format : str, optional
        The format of local times, such as `%d.%m.%Y %H:%M`.
    encoding, delimiter : str, optional
        The encoding and the delimiter of text files.
    dedupe : bool
        Leave out records that repeat an earlier one.
    rejects : RejectLog, optional
        Collects records that cannot be used, and refuses the log if there are too many.

    Returns
    -------
    LogReader
        It can be iterated over any number of times. Pass it to `ClickGraph.build`.

    Examples
    --------
    >>> from clickbridge import read_log
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("search_term;sku", "ny pizza;d2", "big apple;d1", sep="\\n", file=file, flush=True)
    ...     [(row.query, row.doc_id) for row in read_log(file.name)]
    [('ny pizza', 'd2'), ('big apple', 'd1')]
    """
    reading = Reading(format, dict(columns or {}), time_unit, time_format, encoding, delimiter, dedupe)
    if len(paths) == 1 and is_frame(paths[0]):
        from clickbridge.log.frames import LogFrame

        return LogFrame(paths[0], reading, rejects)
    return LogReader(paths_given(paths), reading, rejects)
