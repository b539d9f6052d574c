"""Sums over query-document pairs in DuckDB, which spills to disk, so that logs can be larger than memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]


class PairSums:
    """Sums clicks, impressions, distinct clicking users, and first and last click of each pair. Most shown documents
    are never clicked and make no pair. They are only counted, and looked up at the end for the existing pairs."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._sql = connection
        connection.execute(
            "CREATE TABLE pair_part (query INT, doc INT, clicks BIGINT, impressions BIGINT, first DOUBLE, last DOUBLE)"
        )
        connection.execute("CREATE TABLE shown_part (query INT, doc INT, impressions INT)")
        connection.execute("CREATE TABLE pair_user (query INT, doc INT, user UBIGINT)")

    def add_pages(self, pages: Mapping[str, Array]) -> None:
        """Adds shown documents. Only clicked ones make a pair."""
        page = np.repeat(np.arange(len(pages["length"])), pages["length"])
        key = np.sort((pages["query"].astype(np.int64)[page] << 32) | pages["doc"])
        first = np.flatnonzero(np.diff(key, prepend=-1))
        counts = np.diff(first, append=len(key)).astype(np.int32)
        key = key[first]
        rows = pa.table(  # noqa: F841 - DuckDB reads it by name
            {
                "query": (key >> 32).astype(np.int32),
                "doc": (key & 0xFFFFFFFF).astype(np.int32),
                "impressions": counts,
            }
        )
        self._sql.execute("INSERT INTO shown_part SELECT * FROM rows")
        clicked = np.flatnonzero(pages["clicked"])
        own = {name: pages[name][page[clicked]] for name in ("query", "time", "user")}
        ones = np.ones(len(clicked), dtype=np.int32)
        self._add(own | {"doc": pages["doc"][clicked], "clicks": ones, "impressions": 0 * ones})

    def add_clicks(self, clicks: Mapping[str, Array]) -> None:
        """Adds rows of a table. Each makes a pair, even without a click."""
        self._add(clicks)

    def _add(self, columns: Mapping[str, Array]) -> None:
        if not len(columns["query"]):
            return
        rows = pa.table(dict(columns))  # noqa: F841 - DuckDB reads it by name
        self._sql.execute(
            "INSERT INTO pair_part SELECT query, doc, sum(clicks), sum(impressions),"
            " min(time) FILTER (clicks > 0 AND NOT isnan(time)), max(time) FILTER (clicks > 0 AND NOT isnan(time))"
            " FROM rows GROUP BY query, doc"
        )
        self._sql.execute(
            "INSERT INTO pair_user SELECT DISTINCT query, doc, user FROM rows WHERE clicks > 0 AND user <> 0"
        )

    def pairs(self, rows: int) -> pa.RecordBatchReader:
        """All pairs, sorted by query, then document. `users` is 0 and times are NaN if they are unknown."""
        return stream(self._sql, f"{SUMS} ORDER BY query, doc", rows)


SUMS = (
    "WITH sums AS (SELECT query, doc, sum(clicks) AS clicks, sum(impressions) AS impressions,"
    "   min(first) AS first, max(last) AS last FROM pair_part GROUP BY query, doc),"
    " shown AS (SELECT query, doc, sum(impressions) AS shown FROM shown_part"
    "   SEMI JOIN pair_part USING (query, doc) GROUP BY query, doc),"
    " people AS (SELECT query, doc, count(DISTINCT user) AS users FROM pair_user GROUP BY query, doc)"
    " SELECT query, doc, clicks::BIGINT AS clicks, (impressions + coalesce(shown, 0))::BIGINT AS impressions,"
    "   coalesce(users, 0)::INT AS users, coalesce(first, 'nan')::DOUBLE AS first,"
    "   coalesce(last, 'nan')::DOUBLE AS last"
    " FROM sums LEFT JOIN shown USING (query, doc) LEFT JOIN people USING (query, doc)"
)
"""Selects the pairs, in any order."""


@contextmanager
def database_errors() -> Iterator[None]:
    """Translates errors of DuckDB, such as a full disk, into one line and an OSError. An interrupt during a query,
    which DuckDB reports as one of its own errors or as another Python error, becomes a KeyboardInterrupt again; also
    one that arrives while it reads an Arrow table, of which it only keeps the name."""
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise
    except duckdb.Error as error:
        if re.search("Python object .* failed: KeyboardInterrupt", str(error)):
            raise KeyboardInterrupt from None
        raise OSError(str(error).splitlines()[0]) from error


def connect(folder: Path, memory_mb: int, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB database in `folder` that spills there."""
    # DuckDB takes what follows a question mark in a path for options; tables in memory spill to the folder as well.
    connection = duckdb.connect(":memory:" if "?" in str(folder) else str(folder / "aggregate.duckdb"))
    connection.execute(f"SET memory_limit = '{memory_mb}MB'")
    connection.execute(f"SET temp_directory = '{quoted(folder / 'spill')}'")
    connection.execute("SET preserve_insertion_order = false")
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        # Not unless it is on: in a notebook without ipywidgets it is off, and DuckDB refuses even to switch it off.
        connection.execute("SET enable_progress_bar = false")
    connection.execute("PRAGMA disable_checkpoint_on_shutdown")  # the database goes when it is closed
    if threads:
        connection.execute(f"SET threads = {threads}")
    return connection


def stream(connection: duckdb.DuckDBPyConnection, query: str, rows: int) -> pa.RecordBatchReader:
    """The result of a query, in batches of rows. It uses its own connection, so that others can be used
    meanwhile."""
    found = connection.cursor().sql(query)
    # Older versions of DuckDB have it under another name.
    read = found.to_arrow_reader if hasattr(found, "to_arrow_reader") else found.fetch_record_batch
    return read(rows)


def quoted(path: Path) -> str:
    return str(path).replace("'", "''")
