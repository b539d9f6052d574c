"""Streaming readers of click logs: `sessions` JSONL, `triples` (CSV, TSV, Parquet), TREC session XML, event logs.

A reader yields clean records one at a time, so that memory does not grow with the file. What it cannot
use goes to its RejectLog with line and reason.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from clickbridge.errors import InputError, SettingError, shown_names
from clickbridge.frames import Frame, is_frame
from clickbridge.io.streams import MAX_LINE, PARQUET, file_stem_suffix, lines, open_stream
from clickbridge.log.clean import RecordError, clean_session, clean_triple, time_scale
from clickbridge.log.event_records import event_records, first_records
from clickbridge.log.rejects import RejectLog
from clickbridge.log.trec_session import read_trec_session
from clickbridge.types import Document, Impression, PairCount

if TYPE_CHECKING:
    import pyarrow as pa

    from clickbridge.log.event_join import EventJoin

LogRecord = Impression | PairCount | Document
EVENT_LOGS = ("ubi", "metarank", "algolia", "meilisearch", "typesense")
"""Formats whose searches and clicks are separate events, perhaps in separate files."""
FORMATS = ("auto", "sessions", "triples", "trec-session", *EVENT_LOGS)
FIELDS = ("query", "query_id", "doc_id", "user", "session", "time", "results", "clicks", "impressions")
_BY_SUFFIX = {
    ".jsonl": "sessions", ".ndjson": "sessions", ".json": "sessions", ".csv": "triples", ".tsv": "triples",
    ".parquet": "triples", ".pq": "triples", ".xml": "trec-session",
}  # fmt: skip


class LogReader:
    """Iterates over the clean records of one or more log files; each iteration reads them afresh."""

    def __init__(
        self,
        paths: tuple[str, ...],
        format: str = "auto",
        columns: Mapping[str, str] | None = None,
        time_unit: str = "s",
        rejects: RejectLog | None = None,
    ) -> None:
        if format not in FORMATS:
            raise SettingError(f"--format must be one of {', '.join(FORMATS)}; got {format!r}")
        for name in columns or {}:
            if name not in FIELDS:
                raise SettingError(f"--columns renames {', '.join(FIELDS)}; got {name!r}")
        self.paths = paths
        self.format = format
        self.columns = dict(columns or {})
        self.scale = time_scale(time_unit)
        self.rejects = rejects if rejects is not None else RejectLog()
        self.notes: list[str] = []
        """What the last reading found out about the log, in lines for the user."""

    def __iter__(self) -> Iterator[LogRecord]:
        self.notes = []
        with ExitStack() as ends:
            ends.callback(self.rejects.end_file)
            join: EventJoin | None = None
            for path in self.paths:
                with open_stream(path) as stream:
                    kind = self.format if self.format != "auto" else detect_format(path, stream)
                    if kind in EVENT_LOGS:
                        join = join or ends.enter_context(_event_join(self.rejects))
                        yield from self._events(path, stream, kind, join)
                    else:
                        yield from self._read(path, stream, kind)
            if join is not None:
                yield from join.impressions()
                self.notes = join.notes
        self.rejects.close()

    def _events(self, path: str, stream: BinaryIO, kind: str, join: EventJoin) -> Iterator[Document]:
        """Keeps searches and actions until all files are read; documents that a log brings along pass at once."""
        from clickbridge.log.event_formats import READ

        for number, record in event_records(path, stream, self.rejects):
            try:
                found = READ[kind](record)
            except RecordError as error:
                self.rejects.add(path, number, str(error))
                continue
            for event in found if isinstance(found, list) else [found]:
                if isinstance(event, Document):
                    yield event
                elif event is not None:
                    join.add(event, kind, path, number)

    def _read(self, path: str, stream: BinaryIO, kind: str) -> Iterator[LogRecord]:
        if kind == "sessions":
            yield from self._sessions(path, stream)
        elif kind == "triples":
            yield from self._triples(path, stream)
        else:
            for record in read_trec_session(path, stream):
                self.rejects.lines += isinstance(record, Impression)
                yield record

    def _sessions(self, path: str, stream: BinaryIO) -> Iterator[Impression]:
        rejects, scale, columns = self.rejects, self.scale, self.columns
        loads = orjson.loads
        for number, line in enumerate(lines(stream, path), 1):
            if not line:
                continue
            rejects.lines += 1
            try:
                record = loads(line)
                if columns and type(record) is dict:
                    record = _rename(record, columns)
                yield clean_session(record, scale)
            except orjson.JSONDecodeError as error:
                rejects.add(path, number, f"not JSON: {error.msg}")
            except RecordError as error:
                rejects.add(path, number, str(error))

    def _triples(self, path: str, stream: BinaryIO) -> Iterator[PairCount]:
        for number, row in table_rows(path, stream, self._check_header, self.rejects):
            try:
                yield clean_triple(row, self.scale)
            except RecordError as error:
                self.rejects.add(path, number, str(error))

    def _check_header(self, path: str, header: list[str]) -> list[str]:
        """The file's column names, renamed to ours by --columns."""
        for ours, theirs in self.columns.items():
            if theirs not in header:
                raise InputError(f"{path} has no column {theirs!r} for {ours}; it has {shown_names(header)}")
        renamed = {theirs: ours for ours, theirs in self.columns.items()}
        names = [renamed.get(name, name if name not in self.columns else "") for name in header]
        if not ("query" in names or "query_id" in names) or "doc_id" not in names:
            raise InputError(
                f"{path} needs columns query and doc_id; it has {shown_names(header)}: name them with "
                "--columns query=...,doc_id=..."
            )
        return names


def read_log(
    *paths: str | Path | Frame,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    time_unit: str = "s",
    rejects: RejectLog | None = None,
) -> LogReader:
    """Clean records of one or more click logs, streamed.

    `paths` are files, plain or compressed (`-` is standard input), or one data frame. `format` is sessions, triples,
    trec-session, or an event log; auto goes by the name and the first records. `columns` maps our names to the log's,
    as `{"query": "search_term"}`. `time_unit` is that of times given as numbers: s, ms, us or ns. What cannot be used
    goes to `rejects`, which refuses the log where it is too much.

    The result can be iterated over any number of times; it is what `ClickGraph.build` takes.
    """
    if len(paths) == 1 and is_frame(paths[0]):
        from clickbridge.log.frames import LogFrame

        return LogFrame(paths[0], columns, time_unit, rejects)
    return LogReader(tuple(str(p) for p in paths), format, columns, time_unit, rejects)


def _event_join(rejects: RejectLog) -> closing[EventJoin]:
    from clickbridge.log.event_join import EventJoin  # it needs DuckDB, which the other formats do not

    return closing(EventJoin(rejects))


def detect_format(path: str, stream: BinaryIO) -> str:
    """By extension, then by the first bytes; event logs by their first records."""
    from clickbridge.log.event_formats import event_format

    suffix = _BY_SUFFIX.get(file_stem_suffix(path))
    head = bytes(stream.peek(1 << 16))  # type: ignore[attr-defined]
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if suffix in (None, "sessions") and head[:1] in (b"{", b"[") and (found := event_format(first_records(head))):
        return found
    if suffix:
        return suffix
    if head.startswith(b"<"):
        return "trec-session"
    if head.startswith(b"{"):
        return "sessions"
    if head.startswith(PARQUET) or b"\t" in head.split(b"\n")[0] or b"," in head.split(b"\n")[0]:
        return "triples"
    raise InputError(f"cannot tell the format of {path}: give --format {'|'.join(FORMATS[1:])}")


def table_rows(
    path: str,
    stream: BinaryIO,
    check_header: Callable[[str, list[str]], list[str]],
    rejects: RejectLog,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a CSV (RFC 4180), TSV (no quoting) or Parquet file as dicts, with their line numbers."""
    head = stream.peek(65536)  # type: ignore[attr-defined]
    if head.startswith(PARQUET):
        yield from _parquet_rows(path, stream, check_header, rejects)
        return
    if file_stem_suffix(path) in (".parquet", ".pq"):
        raise InputError(f"{path} is not a sound Parquet file (its first bytes are not): fetch or write it again")
    first = bytes(head).split(b"\n")[0]
    tabs = file_stem_suffix(path) == ".tsv" or (file_stem_suffix(path) != ".csv" and b"\t" in first)
    rows = _tsv_rows(path, stream) if tabs else _csv_rows(path, stream)
    header = next(rows, None)
    if header is None or header[1] in ([], [""]):
        raise InputError(f"{path} is empty, or its first line is: a header line with column names is needed")
    if header[1] is None:
        raise InputError(f"{path} has a first line that is not UTF-8 or not CSV: a header line is needed")
    names = check_header(path, header[1])
    for number, cells in rows:
        if cells == [""] or cells == []:
            continue
        rejects.lines += 1
        if cells is None:
            rejects.add(path, number, "not UTF-8 or not CSV")
        elif len(cells) != len(names):
            rejects.add(path, number, f"{len(cells)} columns, the header has {len(names)}")
        else:
            yield number, dict(zip(names, cells, strict=True))


def _tsv_rows(path: str, stream: BinaryIO) -> Iterator[tuple[int, list[str] | None]]:
    for number, line in enumerate(lines(stream, path), 1):
        try:
            yield number, line.decode().split("\t")
        except UnicodeDecodeError:
            yield number, None


def _csv_rows(path: str, stream: BinaryIO) -> Iterator[tuple[int, list[str] | None]]:
    csv.field_size_limit(MAX_LINE)  # a document's text may be longer than the library's 128 KiB
    text = _RecordLines(path, stream)
    reader = csv.reader(text, strict=True)
    while True:
        before, text.size = reader.line_num, 0
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error:
            # A quote left open swallows lines: each of them is lost, so each of them counts.
            for number in range(before + 1, reader.line_num + 1):
                yield number, None
            continue
        bad = any("\udc80" <= ch <= "\udcff" for cell in cells if not cell.isascii() for ch in cell)
        yield reader.line_num, None if bad else cells


class _RecordLines:
    """Lines for the csv module, which asks for more of them as long as a quote is open: up to a limit."""

    def __init__(self, path: str, stream: BinaryIO) -> None:
        self._path = path
        # A lone carriage return ends a line too.
        whole = lines(stream, path, ends=True)
        self._lines = (part for line in whole for part in line.splitlines(keepends=True))
        self.size = 0
        """Bytes of the record that is being read."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.size += len(line)
        if self.size > MAX_LINE:
            raise InputError(f"{self._path} has a row over {MAX_LINE >> 20} MiB: is a quote left open?")
        # Undecodable bytes become lone surrogates, so that one bad row does not end the file.
        return line.decode("utf-8", "surrogateescape")


def _parquet_rows(
    path: str,
    stream: BinaryIO,
    check_header: Callable[[str, list[str]], list[str]],
    rejects: RejectLog,
) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    source: Any = path if path != "-" else pa.BufferReader(stream.read())
    try:
        with pq.ParquetFile(source) as file:
            names = check_header(path, list(file.schema_arrow.names))
            number = 0
            for batch in file.iter_batches(batch_size=65536):
                columns = [_values(column) for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    number += 1
                    rejects.lines += 1
                    yield number, dict(zip(names, cells, strict=True))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} is not a sound Parquet file ({reason}): fetch or write it again") from None


def _values(column: pa.Array) -> list[Any]:
    """Python values; times in nanoseconds lose what a datetime cannot hold (without pandas PyArrow refuses)."""
    import pyarrow as pa

    try:
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        raise
    except (ValueError, OverflowError, ImportError, pa.ArrowException):
        # Python has no such time (the year 10000, nanoseconds of a day): those alone become what no field takes.
        values = [_value(scalar) for scalar in column]
    return values


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, ImportError):
        return _Unreadable(str(scalar.type))


class _Unreadable:
    """A value that Python cannot hold; whoever needs it rejects the row."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"of type {self.kind}, out of range,"


def _rename(record: dict[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    out = {name: value for name, value in record.items() if name not in columns}
    out.update((ours, record[theirs]) for ours, theirs in columns.items() if theirs in record)
    return out
