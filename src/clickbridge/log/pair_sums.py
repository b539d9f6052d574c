"""Sums over query-document pairs in DuckDB: one statement serves ingest, hold-back and merge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from clickbridge.io.artifact import PartWriter

Array = np.ndarray[Any, Any]
PAIR_COLUMNS = ("query", "doc", "clicks", "impressions", "users", "first", "last")


class PairSums:
    """Sums clicks, impressions, distinct clicking users, first and last click of each pair, in DuckDB."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._sql = connection
        connection.execute(
            "CREATE TABLE pair_part (query INT, doc INT, clicks BIGINT, impressions BIGINT,"
            " first DOUBLE, last DOUBLE, stated BOOL)"
        )
        connection.execute("CREATE TABLE pair_user (query INT, doc INT, user UBIGINT)")

    def add(
        self,
        query: Array,
        doc: Array,
        clicks: Array,
        impressions: Array,
        time: Array,
        user: Array,
        stated: bool,
    ) -> None:
        """Rows to be summed. `stated` rows are kept as pairs even without a click."""
        rows = pa.table(  # noqa: F841 - DuckDB reads it by name
            {
                "query": query,
                "doc": doc,
                "clicks": clicks,
                "impressions": impressions,
                "time": time,
                "user": user,
            }
        )
        self._sql.execute(
            "INSERT INTO pair_part SELECT query, doc, sum(clicks), sum(impressions),"
            " min(time) FILTER (clicks > 0 AND NOT isnan(time)), max(time) FILTER (clicks > 0 AND NOT isnan(time)),"
            f" {stated} FROM rows GROUP BY query, doc"
        )
        self._sql.execute(
            "INSERT INTO pair_user SELECT DISTINCT query, doc, user FROM rows WHERE clicks > 0 AND user <> 0"
        )

    def table(self) -> pa.Table:
        """All pairs, by query then document; `users` is 0 and times are NaN where unknown."""
        return self._sql.sql(
            "WITH sums AS (SELECT query, doc, sum(clicks) AS clicks, sum(impressions) AS impressions,"
            "   min(first) AS first, max(last) AS last FROM pair_part GROUP BY query, doc"
            "   HAVING sum(clicks) > 0 OR bool_or(stated)),"
            " people AS (SELECT query, doc, count(DISTINCT user) AS users FROM pair_user GROUP BY query, doc)"
            " SELECT query, doc, clicks::BIGINT AS clicks, impressions::BIGINT AS impressions,"
            "   coalesce(users, 0)::INT AS users, coalesce(first, 'nan')::DOUBLE AS first,"
            "   coalesce(last, 'nan')::DOUBLE AS last"
            " FROM sums LEFT JOIN people USING (query, doc) ORDER BY query, doc"
        ).to_arrow_table()


def write_pairs(pairs: pa.Table, writer: PartWriter, users: bool, times: bool) -> None:
    """One .npy file a column; columns the log knows nothing about are absent, not zero."""
    for name in PAIR_COLUMNS:
        if (name == "users" and not users) or (name in ("first", "last") and not times):
            continue
        writer.array(f"pairs.{name}", pairs[name].to_numpy())


def connect(folder: Path, memory_mb: int, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB database in `folder` that spills there."""
    connection = duckdb.connect(str(folder / "aggregate.duckdb"))
    connection.execute(f"SET memory_limit = '{memory_mb}MB'")
    connection.execute(f"SET temp_directory = '{quoted(folder / 'spill')}'")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET enable_progress_bar = false")
    if threads:
        connection.execute(f"SET threads = {threads}")
    return connection


def quoted(path: Path) -> str:
    return str(path).replace("'", "''")
