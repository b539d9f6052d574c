"""Reads rows of a CSV, TSV or Parquet file: finds how columns are separated, and gives each row as a dict with its
line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, BinaryIO

from clickbridge.errors import InputError, SettingError
from clickbridge.io.streams import MAX_LINE, lines
from clickbridge.log.rejects import RejectLog
from clickbridge.log.table_head import LOOKED_AT, is_padded, is_ruler, is_total, lines_above

if TYPE_CHECKING:
    import pyarrow as pa

DELIMITERS = {"comma": ",", "semicolon": ";", "pipe": "|", "tab": "\t"}
_LINE_ENDS = re.compile(r"\r\n?|\n")
Cells = list[str] | str
"""The cells of a line or, as text, why it could not be read."""
NULL = "\\N"
"""What MySQL, PostgreSQL and Hive write where there is no value."""
NOT_UTF8 = "not UTF-8: give --encoding"
OPEN_QUOTE = "not CSV: a quote is not closed, or not doubled within a text"


@dataclass(frozen=True)
class Dialect:
    """How a text table is written. Values separated by tabs are not quoted, unless the header has quotes."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    skip: int = 0
    """Lines before the header: `sep=;` of spreadsheets, comments, and what reports write above their tables."""
    above: tuple[str, ...] = ()
    """Those that say something."""
    padded: bool = False
    """Whether blanks stand beside the delimiters, as programs print tables for people."""


def check_delimiter(text: str) -> str:
    """Checks a delimiter: one character, or the name of one."""
    found = DELIMITERS.get(text.lower(), text.replace("\\t", "\t"))
    if len(found) != 1 or found in "\"'\r\n" or found.isalnum():
        raise SettingError(f"--delimiter is one character, or {', '.join(DELIMITERS)}; got {text!r}")
    return found


def find_dialect(head: str, delimiter: str | None, known: Sequence[str] = ()) -> Dialect:
    """The dialect of a table, guessed from its first lines: the delimiter that gives the most columns in the header,
    and equally many in the other lines. `known` are column names that the user gave: a delimiter that gives them is
    preferred."""
    rows = _LINE_ENDS.split(head.removesuffix("\n").removesuffix("\r"))
    delimiter = delimiter or next((row[4] for row in takewhile(_before_header, rows) if _is_sep(row)), None)
    skip = sum(1 for _ in takewhile(_before_header, rows))
    marks = [delimiter] if delimiter else list(DELIMITERS.values())
    # The reader does not end lines at a lone carriage return: then no line can be skipped.
    looked_at = rows[skip : skip + LOOKED_AT] if head.count("\n") >= len(rows) - 1 else []
    starts = {mark: skip + lines_above(looked_at, mark, known) for mark in marks}
    tables = {mark: [row for row in rows[start : start + 20] if row] for mark, start in starts.items()}
    mark = max(reversed(marks), key=lambda mark: _merit(tables[mark], mark, known))
    padded = mark != "\t" and is_padded(tables[mark], mark)
    found = Dialect(mark, skip=starts[mark], above=_told(rows[: starts[mark]]), padded=padded)
    if padded and is_ruler("".join(tables[mark][1:2]).split(mark)):
        return replace(found, quote=None)  # a printed table, in which a quote is a character
    return _with_quotes(found, tables[mark])


def _is_sep(row: str) -> bool:
    """Whether a line is what spreadsheets put above a table to say how it is delimited."""
    return row.lower().startswith("sep=") and len(row) == 5


def _told(above: list[str]) -> tuple[str, ...]:
    """The lines above a header that say something."""
    said = [row.strip(' \t,;|"#') for row in above if not _is_sep(row)]
    return tuple(row for row in said if any(map(str.isalnum, row)))


def _with_quotes(found: Dialect, rows: list[str]) -> Dialect:
    """The dialect with the quotes of these lines, the first of which is the header."""
    mark = found.delimiter
    first = rows[0].split(mark)[0].strip() if rows else ""
    quote = "'" if len(first) > 1 and first[0] == first[-1] == "'" else '"'
    if mark == "\t" and not (len(first) > 1 and first[0] == first[-1] == quote):
        return replace(found, quote=None)
    plain = replace(found, quote=quote)
    escaped = replace(plain, escape="\\")
    marked = any(f"\\{quote}" in row for row in rows)
    return escaped if marked and _even(rows, escaped) and not _even(rows, plain) else plain


def _even(rows: list[str], dialect: Dialect) -> bool:
    """Whether the lines have as many cells as the header in this dialect."""
    try:
        return len({len(cells) for cells in _reader([row + "\n" for row in rows], dialect)}) == 1
    except csv.Error:
        return False


def _reader(text: Iterable[str], dialect: Dialect) -> Any:
    return csv.reader(
        text,
        delimiter=dialect.delimiter,
        quotechar=dialect.quote,
        escapechar=dialect.escape,
        doublequote=dialect.escape is None,
        skipinitialspace=dialect.padded,
        strict=True,
    )


def _before_header(line: str) -> bool:
    return line.lower().startswith("sep=") or (
        line.startswith("#") and not any(mark in line for mark in DELIMITERS.values())
    )


def _merit(rows: list[str], mark: str, known: Sequence[str]) -> tuple[int, int, int, int]:
    """How well a delimiter separates columns: by the user's names that are found, by rows of equal length, and by the
    number of columns. A comma is preferred to others."""
    if not rows:
        return 0, 0, 0, mark == ","
    try:
        cut = list(csv.reader(rows, delimiter=mark)) if mark != "\t" else [row.split(mark) for row in rows]
    except csv.Error:  # a cell beyond all limits: the header alone says what it can
        cut = [rows[0].split(mark)]
    names = {name.strip() for name in cut[0]}
    width = len(cut[0])
    same = sum(len(row) == width for row in cut) if width > 1 else 0
    return len(names & set(known)), same, width, mark == ","


def header_of(rows: Iterator[tuple[int, Cells]], path: str) -> list[str]:
    """The names of the columns, without spaces around them, and without columns at the end that have no name."""
    header = next(rows, None)
    if header is None or header[1] in ([], [""]):
        raise InputError(f"{path} is empty, or its first line is: a header line with column names is needed")
    if isinstance(header[1], str):
        raise InputError(f"the header line of {path} is {header[1]}")
    names = [name.strip() for name in header[1]]
    while len(names) > 1 and not names[-1]:
        names.pop()
    return names


def text_rows(
    stream: BinaryIO, path: str, dialect: Dialect, rejects: RejectLog
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows as dicts with the names of the header."""
    rows = cells_of(stream, path, dialect)
    names = header_of(rows, path)
    width, first = len(names), True
    for number, cells in rows:
        ruled, first = first and dialect.padded and is_ruler(cells), False
        if cells == [""] or cells == [] or ruled or (dialect.padded and is_total(cells)):
            continue
        if cells == names:
            continue  # the header of another table, written below the first
        rejects.lines += 1
        if isinstance(cells, str):
            rejects.add(path, number, cells)
            continue
        if dialect.padded:
            cells = [cell.strip() for cell in cells]
        while len(cells) > width and not cells[-1]:
            cells.pop()  # a delimiter at the end of the line
        if len(cells) != width:
            hint = f"; {_separated(dialect)}" if len(cells) > width else ""
            rejects.add(path, number, f"{len(cells)} columns, the header has {width}{hint}")
        else:
            if NULL in cells:
                cells = ["" if cell == NULL else cell for cell in cells]
            yield number, dict(zip(names, cells, strict=True))


def _separated(dialect: Dialect) -> str:
    """What to do about a text that has the delimiter within it."""
    if dialect.quote:
        return f"a {dialect.delimiter} within a text needs quotes"
    return "a tab within a text ends its column: write CSV with quotes"


def cells_of(stream: BinaryIO, path: str, dialect: Dialect) -> Iterator[tuple[int, Cells]]:
    """The cells of each line, with its number. Lines before the header are skipped."""
    whole = lines(stream, path, ends=dialect.quote is not None)
    for _ in range(dialect.skip):
        next(whole, None)
    return _quoted(whole, path, dialect) if dialect.quote else _plain(whole, dialect)


def _plain(whole: Iterator[bytes], dialect: Dialect) -> Iterator[tuple[int, Cells]]:
    for number, line in enumerate(whole, 1 + dialect.skip):
        try:
            yield number, line.decode().split(dialect.delimiter)
        except UnicodeDecodeError:
            yield number, NOT_UTF8


def _quoted(whole: Iterator[bytes], path: str, dialect: Dialect) -> Iterator[tuple[int, Cells]]:
    csv.field_size_limit(MAX_LINE)  # a document's text may be longer than the library's 128 KiB
    text = _RecordLines(path, whole)
    reader = _reader(text, dialect)
    skip = dialect.skip
    while True:
        before, text.size = reader.line_num, 0
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error:
            # A quote left open swallows lines: each of them is lost, so each of them counts.
            for number in range(before + 1, reader.line_num + 1):
                yield number + skip, OPEN_QUOTE
            continue
        bad = any("\udc80" <= ch <= "\udcff" for cell in cells if not cell.isascii() for ch in cell)
        yield reader.line_num + skip, NOT_UTF8 if bad else cells


class _RecordLines:
    """Lines for the csv module, which reads more of them while a quote is open, up to a limit."""

    def __init__(self, path: str, whole: Iterator[bytes]) -> None:
        self._path = path
        # A lone carriage return ends a line too.
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


def parquet_rows(
    stream: BinaryIO, path: str, rejects: RejectLog | None = None, most: int | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The first `most` rows of a Parquet file, as dicts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source: Any = path if path != "-" else pa.BufferReader(stream.read())
    try:
        with pq.ParquetFile(source) as file:
            names = list(file.schema_arrow.names)
            number = 0
            for batch in file.iter_batches(batch_size=min(65536, most or 65536)):
                columns = [_values(column) for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    number += 1
                    if rejects is not None:
                        rejects.lines += 1
                    yield number, dict(zip(names, cells, strict=True))
                    if number == most:
                        return
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} is not a valid Parquet file ({reason}): fetch or write it again") from None


def parquet_names(stream: BinaryIO, path: str) -> list[str]:
    """The names of the columns of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(path if path != "-" else pa.BufferReader(stream.read())).names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} is not a valid Parquet file ({reason}): fetch or write it again") from None


def _values(column: pa.Array) -> list[Any]:
    """A column as Python values. Times in nanoseconds are rounded to what a datetime can hold, since PyArrow refuses
    them without pandas."""
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
    """A value that Python cannot represent. If it is needed, the row is rejected."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"of type {self.kind}, out of range,"
