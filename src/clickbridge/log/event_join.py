"""Joins searches and the actions on their results into result pages, out of core.

Both are collected in DuckDB, which spills to disk, until all are read: an action may come before its search, and in
another file. Two things can only be decided from all events together: whether positions are counted from 0 or from 1,
and whether the ids of the results are those of documents.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import astuple, fields
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from clickbridge.log.pair_sums import connect, database_errors, stream
from clickbridge.log.rejects import RejectLog
from clickbridge.log.searches import Action, Search
from clickbridge.types import Impression
from clickbridge.wording import count_of

BATCH_ROWS, MEMORY_MB = 100_000, 512
MOST_STRANGE = 0.5
"""Share of clicks outside of the results above which ids of unnamed origin are not the documents'."""
_TEXT, _NUMBER = pa.string(), pa.float64()
SEARCH = pa.schema(
    {
        "place": pa.int64(), "key": _TEXT, "query": _TEXT, "results": pa.list_(_TEXT), "user": _TEXT, "time": _NUMBER,
        "named": pa.bool_(), "until": _NUMBER,
    }
)  # fmt: skip
ACTION = pa.schema(
    {
        "place": pa.int64(), "key": _TEXT, "kind": _TEXT, "doc_id": _TEXT, "query": _TEXT, "user": _TEXT,
        "time": _NUMBER, "ordinal": pa.int64(), "engine_id": _TEXT, "source": _TEXT, "line": pa.int64(),
    }
)  # fmt: skip
_SQL_TYPES = {"int64": "BIGINT", "string": "VARCHAR", "double": "DOUBLE", "bool": "BOOL"}


class Counts(NamedTuple):
    """What is decided from all events of the log together."""

    searches: int
    first_ordinal: int
    internal_ids: bool
    """Whether results without a named id field hold numbers of the engine's own."""


class EventJoin:
    """Call `add` for every event, then read `impressions` once. `notes` has lines about what was found."""

    def __init__(self, rejects: RejectLog) -> None:
        self._rejects = rejects
        self._files = ExitStack()
        self._opened: duckdb.DuckDBPyConnection | None = None
        self._rows: dict[str, list[tuple[Any, ...]]] = {"search": [], "action": []}
        self._place = 0
        self.notes: list[str] = []
        self._lost: dict[str, int] = {}

    def _database(self) -> duckdb.DuckDBPyConnection:
        """The database. It is opened at the first event, since that takes longer than reading a small file."""
        if self._opened is None:
            folder = Path(self._files.enter_context(tempfile.TemporaryDirectory(prefix="clickbridge-")))
            self._opened = connect(folder, MEMORY_MB)
            self._files.callback(self._opened.close)
            for name, schema in (("search", SEARCH), ("action", ACTION)):
                columns = ", ".join(f'"{field.name}" {_sql_type(field.type)}' for field in schema)
                self._opened.execute(f"CREATE TABLE {name} ({columns})")
        return self._opened

    def close(self) -> None:
        self._files.close()

    def add(self, event: Search | Action, format: str, source: str, line: int) -> None:
        self._place += 1
        # An event without a search id is a search of its own.
        key = f"{format} {event.search_id}" if event.search_id is not None else f"{self._place}"
        if isinstance(event, Search):
            row = (self._place, key, *astuple(event)[1:])
            self._rows["search"].append(row)
        else:
            by_name = {field.name: getattr(event, field.name) for field in fields(Action)}
            by_name |= {"place": self._place, "key": key, "source": source, "line": line}
            self._rows["action"].append(tuple(by_name[name] for name in ACTION.names))
        if self._place % BATCH_ROWS == 0:
            self._flush()

    @database_errors()
    def _flush(self) -> None:
        for name, schema in (("search", SEARCH), ("action", ACTION)):
            if rows := self._rows[name]:
                columns = zip(*rows, strict=True)
                arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
                batch = pa.table(arrays, schema=schema)  # noqa: F841 - DuckDB reads it by name
                self._database().execute(f"INSERT INTO {name} SELECT * FROM batch")
                self._rows[name] = []

    # --- out -------------------------------------------------------------------------------------

    def impressions(self) -> Iterator[Impression]:
        """One result page for each search, in the order of the log. If a search is only known from its actions, its
        results are those that the actions name."""
        if not self._place:
            self.notes.append("0 searches and 0 clicked results were joined")
            return
        self._flush()
        clicks = pages = 0
        with database_errors():
            counts = self._count()
            for _, group in groupby(self._events(), key=lambda row: row["key"]):
                for page in self._pages(list(group), counts):
                    clicks += len(page.clicks)
                    pages += 1
                    yield page
        joined = f"{count_of(counts.searches or pages, 'search')} and {count_of(clicks, 'clicked result')} were joined"
        self.notes.insert(0, joined)
        self.notes += [f"{what}: {count:,}" for what, count in self._lost.items()]

    def _events(self) -> Iterator[dict[str, Any]]:
        """Searches and actions, grouped by search id; the searches come first in each group."""
        names = list(dict.fromkeys([*SEARCH.names, *ACTION.names]))
        parts = [
            ", ".join(f'"{n}"' if n in schema.names else f'NULL AS "{n}"' for n in names) for schema in (SEARCH, ACTION)
        ]
        union = f"SELECT {parts[0]}, 0 AS kept FROM search UNION ALL SELECT {parts[1]}, 1 AS kept FROM action"
        for batch in stream(
            self._database(),
            f"SELECT *, min(place) OVER (PARTITION BY key) AS first FROM ({union}) ORDER BY first, kept, place",
            10_000,
        ):
            yield from batch.to_pylist()

    def _count(self) -> Counts:
        searches, unnamed = self._one("SELECT count(*), count(*) FILTER (NOT named AND len(results) > 0) FROM search")
        joined = (
            "FROM action JOIN (SELECT key, named, flatten(list(results)) AS results FROM search"
            " WHERE len(results) > 0 GROUP BY key, named) USING (key) WHERE kind = 'click' AND doc_id IS NOT NULL"
        )
        inside, clicked = self._one(
            "SELECT count(*) FILTER (list_contains(results, doc_id) OR list_contains(results, engine_id)), count(*)"
            f" {joined} AND NOT named"
        )
        from_one, from_zero = self._one(
            "SELECT count(*) FILTER (list_position(results, doc_id) = ordinal),"
            f" count(*) FILTER (list_position(results, doc_id) = ordinal + 1) {joined}"
        )
        (least,) = self._one("SELECT min(ordinal) FROM action")
        first = 0 if from_zero > from_one or (from_zero == from_one and least == 0) else 1
        internal = inside < (1 - MOST_STRANGE) * clicked
        self._explain(unnamed, internal, inside, clicked, least is not None and first == 0)
        return Counts(searches, first, internal)

    def _one(self, query: str) -> tuple[Any, ...]:
        return self._database().execute(query).fetchall()[0]

    def _explain(self, unnamed: int, internal: bool, inside: int, clicked: int, from_zero: bool) -> None:
        if internal:
            self.notes.append(
                f"results of {count_of(unnamed, 'search')} are left out: they name no object_id_field and hold "
                f"{inside:,} of the {clicked:,} clicked documents, so their ids are the engine's own numbers; set "
                "object_id_field"
            )
        elif unnamed and not clicked:
            self.notes.append(
                f"{count_of(unnamed, 'search', 'name')} no object_id_field, and no click tells whether their "
                "results are documents' ids or the engine's own numbers"
            )
        if from_zero:
            self.notes.append("places on a page are counted from 0")

    def _pages(self, events: list[dict[str, Any]], counts: Counts) -> Iterator[Impression]:
        searches = [event for event in events if not event["kept"]]
        actions = [event for event in events if event["kept"]]
        if not searches:
            yield from self._page_of_actions(actions, counts)
            return
        for search in searches:
            if counts.internal_ids and not search["named"]:
                search["results"] = None
        clicks: list[list[str]] = [[] for _ in searches]
        shown = [event for event in actions if event["kind"] == "shown"]
        for action in (event for event in actions if event["kind"] == "click"):
            place = _search_of(action, searches)
            if place is None:
                self._leave("clicks that came too late after their search, left out")
            elif doc_id := _document(action, searches[place]["results"], counts.first_ordinal):
                clicks[place].append(doc_id)
            else:
                self._reject(action, "a click has a position outside the results, and no document id")
        query = next((event["query"] for event in events if event["query"]), "")
        if not query:
            self._leave("searches without words, left out")
            return
        user = next((event["user"] for event in events if event["user"]), None)
        for search, clicked in zip(searches, clicks, strict=True):
            results = search["results"]
            if results is None and search is searches[0]:
                results = _shown_order(shown)
            if not results and not clicked:
                self._leave("searches without results and clicks")
            time = search["time"] if search["time"] is not None else next((a["time"] for a in actions), None)
            yield Impression(
                search["query"] or query, results, list(dict.fromkeys(clicked)), None, search["user"] or user, time
            )

    def _page_of_actions(self, actions: list[dict[str, Any]], counts: Counts) -> Iterator[Impression]:
        query = next((event["query"] for event in actions if event["query"]), "")
        clicks = [event for event in actions if event["kind"] == "click"]
        if not query:
            for event in clicks:
                self._reject(event, "no search with its query_id, and no user_query")
            return
        clicked = [doc_id for event in clicks if (doc_id := _document(event, None, counts.first_ordinal))]
        user = next((event["user"] for event in actions if event["user"]), None)
        results = _shown_order([event for event in actions if event["kind"] == "shown"])
        if clicked or results:
            yield Impression(query, results, list(dict.fromkeys(clicked)), None, user, actions[0]["time"])

    def _leave(self, what: str) -> None:
        self._lost[what] = self._lost.get(what, 0) + 1

    def _reject(self, action: dict[str, Any], reason: str) -> None:
        self._rejects.add(action["source"], action["line"], reason)


def _search_of(action: dict[str, Any], searches: list[dict[str, Any]]) -> int | None:
    """The first page of a search that shows the document, or else the first page; None if all pages have ended."""
    late = [s["until"] is not None and action["time"] is not None and action["time"] > s["until"] for s in searches]
    open_ones = [place for place, is_late in enumerate(late) if not is_late]
    ids = {action["doc_id"], action["engine_id"]} - {None}
    return next((p for p in open_ones if ids & {*(searches[p]["results"] or ())}), next(iter(open_ones), None))


def _document(action: dict[str, Any], results: list[str] | None, first_ordinal: int) -> str | None:
    """The document of an action, with the same id as in the results if it is there."""
    doc_id, engine_id = action["doc_id"], action["engine_id"]
    if results and doc_id not in results and engine_id in results:
        return str(engine_id)
    if doc_id is not None:
        return str(doc_id)
    place = action["ordinal"] - first_ordinal
    return results[place] if results and 0 <= place < len(results) else None


def _shown_order(shown: list[dict[str, Any]]) -> list[str] | None:
    """The documents that were seen on a page, by position. Those without a position keep the order of the events."""
    named = [event for event in shown if event["doc_id"]]
    last = max((event["ordinal"] or 0 for event in named), default=0) + 1
    named.sort(key=lambda event: event["ordinal"] if event["ordinal"] is not None else last)
    return list(dict.fromkeys(event["doc_id"] for event in named)) or None


def _sql_type(kind: pa.DataType) -> str:
    return f"{_SQL_TYPES[str(kind.value_type)]}[]" if pa.types.is_list(kind) else _SQL_TYPES[str(kind)]
