"""Writes a click log in the format given by its name: `triples` for .csv, .tsv and .parquet, else `sessions` JSONL.

A table has counts, so equal rows are summed in DuckDB, which spills to disk; a page becomes one row for each shown
document. A line of `sessions` is a page, so a row of counts becomes one line for each of its clicks.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from clickbridge.errors import InputError, SettingError, shown
from clickbridge.io.files import Waiting, written_aside
from clickbridge.io.streams import file_stem_suffix
from clickbridge.log.pair_sums import connect
from clickbridge.types import Impression, PairCount

TABLES = (".csv", ".tsv", ".parquet", ".pq")
BATCH_ROWS = 100_000
MEMORY_MB = 512
MOST_LINES = 100_000
"""A line for each click of a row; a short row must not become a file without end."""
SCHEMA = pa.schema(
    {
        "query": pa.string(),
        "query_id": pa.string(),
        "doc_id": pa.string(),
        "clicks": pa.int64(),
        "impressions": pa.int64(),
        "user": pa.string(),
        "time": pa.float64(),
    }
)
SUMMED = ("clicks", "impressions")
Rows = Iterator[list[tuple[Any, ...]]]


class LogWriter(Protocol):
    pages_lost: int
    """Result pages that the format could keep as counts alone."""

    def add(self, record: Impression | PairCount) -> None: ...


@contextmanager
def log_writer(path: str, waiting: Waiting | None = None) -> Iterator[LogWriter]:
    """A writer of records. The file gets its name only when it, and the others in `waiting`, are complete."""
    suffix = file_stem_suffix(path)
    if suffix in (".parquet", ".pq") and not path.lower().endswith(suffix):
        raise SettingError(f"Parquet is packed already: name it {path[: path.lower().rindex(suffix)]}{suffix}")
    with written_aside(path, waiting) as out:
        if suffix not in TABLES:
            yield SessionsWriter(out)
            return
        with tempfile.TemporaryDirectory(prefix="clickbridge-") as folder:
            table = TableWriter(Path(folder))
            try:
                yield table
                table.write(out, suffix)
            finally:
                table.close()


class SessionsWriter:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.pages_lost = 0

    def add(self, record: Impression | PairCount) -> None:
        fields = {name: getattr(record, name) for name in record.__slots__}
        n_lines = 1
        if isinstance(record, PairCount):
            n_lines, doc_id, _ = (fields.pop(name) for name in ("clicks", "doc_id", "impressions"))
            fields["clicks"] = [doc_id]
            if n_lines > MOST_LINES:
                raise InputError(
                    f"a row of {n_lines:,} clicks would become as many lines: write the log as .csv, .tsv or .parquet"
                )
        line = orjson.dumps({k: v for k, v in fields.items() if v is not None and v != ""})
        for _ in range(n_lines):
            self._out.write(line + b"\n")


class TableWriter:
    """Sums equal rows, and writes them in the order in which they were first seen."""

    def __init__(self, folder: Path) -> None:
        self._sql = connect(folder, MEMORY_MB)
        columns = ", ".join(f'"{f.name}" {_SQL_TYPES[str(f.type)]}' for f in SCHEMA)
        self._sql.execute(f"CREATE TABLE row ({columns}, place BIGINT)")
        self._rows: list[tuple[Any, ...]] = []
        self._written = 0
        self.pages_lost = 0

    def add(self, record: Impression | PairCount) -> None:
        who = record.query or None, record.query_id
        when = record.user, record.time
        if isinstance(record, PairCount):
            self._rows.append((*who, record.doc_id, record.clicks, record.impressions, *when))
        else:
            # A click outside of what was shown is a click without an impression.
            shown, clicked = record.results or [], dict.fromkeys(record.clicks, 1)
            self.pages_lost += record.results is not None
            for doc_id in dict.fromkeys([*shown, *clicked]):
                seen = None if record.results is None else int(doc_id in shown)
                self._rows.append((*who, doc_id, clicked.get(doc_id, 0), seen, *when))
        if len(self._rows) >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = zip(*self._rows, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
        places = pa.array(range(self._written, self._written + len(self._rows)), pa.int64())
        rows = pa.table([*arrays, places], names=[*SCHEMA.names, "place"])  # noqa: F841 - DuckDB reads it by name
        self._sql.execute("INSERT INTO row SELECT * FROM rows")
        self._written += len(self._rows)
        self._rows = []

    def write(self, out: BinaryIO, suffix: str) -> None:
        self._flush()
        names = self._columns()
        keys = [name for name in SCHEMA.names if name not in SUMMED]
        chosen = ", ".join(f'sum("{n}")::BIGINT AS "{n}"' if n in SUMMED else f'"{n}"' for n in names)
        grouped = ", ".join(f'"{name}"' for name in keys)
        found = self._sql.execute(f"SELECT {chosen} FROM row GROUP BY {grouped} ORDER BY min(place)")
        write = {".csv": _write_csv, ".tsv": _write_tsv}.get(suffix, _write_parquet)
        write(out, names, iter(lambda: found.fetchmany(BATCH_ROWS), []))

    def _columns(self) -> list[str]:
        """The columns that have values; `query`, `doc_id` and `clicks` are always there."""
        counts = ", ".join(f'count("{name}")' for name in SCHEMA.names)
        filled = self._sql.execute(f"SELECT {counts} FROM row").fetchall()[0]
        needed = ("query", "doc_id", "clicks")
        return [name for name, count in zip(SCHEMA.names, filled, strict=True) if count or name in needed]

    def close(self) -> None:
        self._sql.close()


_SQL_TYPES = {"string": "VARCHAR", "int64": "BIGINT", "double": "DOUBLE"}


def _write_csv(out: BinaryIO, names: list[str], batches: Rows) -> None:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="")
    rows = csv.writer(text)
    try:
        rows.writerow(names)
        for batch in batches:
            rows.writerows(batch)
    finally:
        text.detach()  # closed by who opened it


def _write_tsv(out: BinaryIO, names: list[str], batches: Rows) -> None:
    out.write("\t".join(names).encode() + b"\n")
    for row in chain.from_iterable(batches):
        cells = ["" if cell is None else str(cell) for cell in row]
        for cell in cells:
            if "\t" in cell or "\n" in cell or "\r" in cell:
                raise InputError(f"a TSV file cannot hold {shown(cell)}: write the log as .csv, .parquet or .jsonl")
        out.write("\t".join(cells).encode() + b"\n")


def _write_parquet(out: BinaryIO, names: list[str], batches: Rows) -> None:
    schema = pa.schema([SCHEMA.field(name) for name in names])
    with pq.ParquetWriter(out, schema, compression="zstd") as file:
        for batch in batches:
            columns = zip(*batch, strict=True)
            file.write_table(pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema))
