"""Data frames in and out. PyArrow is the only library that is needed: pandas, Polars and others hand over their columns
through the Arrow PyCapsule interface (`__arrow_c_stream__`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from clickbridge.errors import InputError, SettingError

if TYPE_CHECKING:
    import pyarrow as pa


class Frame(Protocol):
    """A data frame: any object that exports its columns through Arrow, such as pandas, Polars and Arrow tables."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Value = str | int | float | None
"""The value of a table cell."""


class Table(Protocol):
    """The type that `to_frame` returns: a pandas or Polars data frame, or an Arrow table."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, name: str, /) -> object: ...


KINDS = ("pandas", "polars", "arrow")
IDS = ("query_id", "doc_id", "user", "session")
BATCH = 65_536


def is_frame(value: object) -> bool:
    """Whether a value is a data frame: pandas, Polars, an Arrow table, or anything else that exports Arrow columns."""
    return hasattr(value, "__arrow_c_stream__") or _is_pandas(value) or type(value).__name__ == "LazyFrame"


def _is_pandas(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "columns")


def arrow_table(frame: Any, what: str = "the frame") -> pa.Table:
    """Converts a frame to an Arrow table. A row index is left out, unless it has a name."""
    import pyarrow as pa

    if hasattr(frame, "collect") and not hasattr(frame, "__arrow_c_stream__"):
        raise InputError(f"{what} is not computed yet: call its collect() first")
    series = type(frame).__name__ in ("Series", "ChunkedArray")
    if not is_frame(frame) or series:
        one = ", which is one column" if series else ""
        raise InputError(f"{what} must be a pandas or Polars frame or an Arrow table; got {type(frame).__name__}{one}")
    try:
        table = pa.Table.from_pandas(frame) if _is_pandas(frame) else pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{what} has a column of mixed values ({reason}): make each column of one type") from None
    kept = [name for name in table.column_names if not name.startswith("__index_level_")]
    if len(set(kept)) != len(kept):
        twice = next(name for name in kept if kept.count(name) > 1)
        raise InputError(f"{what} has two columns {twice!r}: rename one")
    return table.select(kept)


def renamed(table: pa.Table, columns: Mapping[str, str], known: Sequence[str], what: str) -> pa.Table:
    """The table with our column names. `columns` maps our names to those of the frame. `known` are the names that can
    be mapped; if it is empty, all can be."""
    for ours, theirs in columns.items():
        if known and ours not in known:
            raise SettingError(f"columns renames {', '.join(known)}; got {ours!r}")
        if theirs not in table.column_names:
            has = ", ".join(table.column_names)
            raise InputError(f"{what} has no column {theirs!r} for {ours}; it has {has}")
    ours_of = {theirs: ours for ours, theirs in columns.items()}
    # A column that has one of our names but was not mapped to it is dropped.
    kept = [name for name in table.column_names if name in ours_of or name not in columns]
    return table.select(kept).rename_columns([ours_of.get(name, name) for name in kept])


def frame_rows(table: pa.Table, ids: Collection[str] = IDS) -> Iterator[dict[str, Any]]:
    """Rows as dicts of Python values. Ids that became floats because of a missing value become integers again."""
    import pyarrow as pa

    names = table.column_names
    for place, name in enumerate(names):
        column = table.column(place)
        if name in ids and pa.types.is_floating(column.type):
            try:
                table = table.set_column(place, name, column.cast(pa.int64()))
            except pa.ArrowInvalid:
                continue  # fractions are no ids: the reader says so row by row
    for batch in table.to_batches(max_chunksize=BATCH):
        for cells in zip(*(column_values(column) for column in batch.columns), strict=True):
            yield dict(zip(names, cells, strict=True))


def column_values(column: pa.Array) -> list[Any]:
    """A column as Python values. Times in nanoseconds are rounded to what a datetime can hold, since PyArrow refuses
    them without pandas."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    values: list[Any] = column.to_pylist()
    return values


def make_frame(columns: Mapping[str, Sequence[object]], kind: str | None = None) -> Table:
    """Makes a data frame from columns: pandas if it is installed, else Polars, else an Arrow table. `kind` chooses one:
    "pandas", "polars" or "arrow"."""
    if kind is not None and kind not in KINDS:
        raise SettingError(f"a frame is one of {', '.join(KINDS)}; got {kind!r}")
    if kind in ("pandas", "polars") and find_spec(kind) is None:
        raise SettingError(f"{kind} is not installed: install it, or take another of {', '.join(KINDS)}")
    chosen = kind or next((name for name in ("pandas", "polars") if find_spec(name) is not None), "arrow")
    home = "pyarrow" if chosen == "arrow" else chosen
    make: Callable[..., Table] = getattr(import_module(home), "table" if chosen == "arrow" else "DataFrame")
    return make({name: list(values) for name, values in columns.items()})


def html_table(rows: Sequence[Mapping[str, object]]) -> str:
    """A small HTML table for notebooks. Text is escaped; numbers have four decimals."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(_cell(row.get(name)) for name in names) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    known = value is not None and not (isinstance(value, float) and math.isinf(value))
    text = "" if not known else f"{value:.4f}" if isinstance(value, float) else str(value)
    return f'<td style="text-align:right">{text}</td>' if isinstance(value, int | float) else f"<td>{escape(text)}</td>"


def frame_of_rows(rows: Sequence[Mapping[str, object]], kind: str | None = None) -> Table:
    """Makes a data frame from dicts. Missing keys become missing values."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return make_frame({name: [row.get(name) for row in rows] for name in names}, kind)
