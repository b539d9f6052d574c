"""From a stream of records to numbers, out of core.

Records are staged in batches with ids numbered per batch. `finish` lets DuckDB merge the batches' dictionaries into one
sorted numbering; then everything can be read, a batch at a time: the queries, the documents, the events renumbered with
NumPy, and the pairs, which DuckDB sums while the events go by, spilling to disk. Memory is one batch and DuckDB's
budget; it does not grow with the log. What is read here is written by `graph/storage.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from clickbridge.errors import InputError
from clickbridge.io.secret import Secret
from clickbridge.log.pair_sums import PairSums, connect, stream
from clickbridge.types import Document, Impression, LogRecord, PairCount, query_key

Array = np.ndarray[Any, Any]
BATCH_RECORDS, BATCH_SHOWN, BATCH_DOCUMENTS = 200_000, 2_000_000, 50_000
ROWS_AT_ONCE, DOCUMENTS_AT_ONCE = 200_000, 10_000
AFTER_FILES = 2**48
"""Added to the place of a document that a log brought along: documents files come first."""


@dataclass
class Summary:
    """What a log was made of; printed after ingest and kept in the manifest."""

    impressions: int = 0
    pair_rows: int = 0
    clicks: int = 0
    clicks_outside_results: int = 0
    documents: int = 0
    repeated_documents: int = 0
    queries: int = 0
    docs: int = 0
    pairs: int = 0
    has_times: bool = False
    has_users: bool = False
    has_impressions: bool = False

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class EventBatch:
    """Some of the log's events, by column. `pages` has `query`, `length`, `time` and `user` of each page and `doc` and
    `clicked` of each shown document; `clicks` are clicks that no page accounts for."""

    pages: dict[str, Array]
    clicks: dict[str, Array]


class Numbering(dict[str, int]):
    """Numbers for texts, in order of first sight."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


PAGE_COLUMNS = {"query": np.int32, "length": np.int32, "time": np.float64, "user": np.uint64, "doc": np.int32}
CLICK_COLUMNS = {
    "query": np.int32, "doc": np.int32, "clicks": np.int32, "impressions": np.int32, "time": np.float64,
    "user": np.uint64,
}  # fmt: skip


class LogAggregator:
    """`add` and `add_document` everything, `finish`, then read `query_keys`, `documents`, `events` and `pairs`, each
    once and in this order; the summary is complete after that."""

    def __init__(
        self, folder: Path, memory_mb: int = 1024, threads: int | None = None, secret: Secret | None = None
    ) -> None:
        self.folder = folder
        self.secret = secret or Secret.new()
        self.summary = Summary()
        self.has_clicks = False
        """Whether there are clicks that no page accounts for."""
        self.has_stated_impressions = False
        """Whether a row of a table says how often a document was shown."""
        self._sql = connect(folder, memory_mb, threads)
        self._sql.execute("CREATE TABLE query_local (batch INT, code INT, key VARCHAR)")
        self._sql.execute("CREATE TABLE doc_local (batch INT, code INT, key VARCHAR)")
        self._sql.execute("CREATE TABLE document (place BIGINT, doc_id VARCHAR)")
        self._sums = PairSums(self._sql)
        self._n_batches = 0
        self._n_documents = 0
        self._documents: list[Document] = []
        self._places: list[int] = []
        self._fields = Numbering()
        self._shown_before: set[str] = set()
        self._start_batch()

    def _start_batch(self) -> None:
        self._queries, self._docs, self._users = Numbering(), Numbering(), Numbering()
        self._pages: dict[str, list[Any]] = {column: [] for column in PAGE_COLUMNS}
        self._clicked: list[int] = []
        self._clicks: dict[str, list[Any]] = {column: [] for column in CLICK_COLUMNS}

    def close(self) -> None:
        self._sql.close()

    # --- in --------------------------------------------------------------------------------------

    def add(self, record: LogRecord) -> None:
        if isinstance(record, Impression):
            self._add_impression(record)
        elif isinstance(record, PairCount):
            self._add_count(record)
        elif record.doc_id not in self._shown_before:
            # Only formats that bring their documents along come here; a page shown again is skipped.
            self._shown_before.add(record.doc_id)
            self.add_document(record, from_log=True)
        if len(self._pages["doc"]) >= BATCH_SHOWN or (
            len(self._pages["query"]) + len(self._clicks["query"]) >= BATCH_RECORDS
        ):
            self._flush()

    def _add_impression(self, record: Impression) -> None:
        rows, results = self._pages, record.results
        self.summary.clicks += len(record.clicks)
        outside = record.clicks
        if results:
            self.summary.impressions += 1
            rows["query"].append(self._queries[query_key(record.query, record.query_id)])
            rows["time"].append(record.time)
            rows["user"].append(self._user(record.user))
            rows["length"].append(len(results))
            start = len(rows["doc"])
            rows["doc"].extend(map(self._docs.__getitem__, results))
            if record.clicks:
                inside = [c for c in record.clicks if c in results]
                self._clicked.extend(start + results.index(c) for c in inside)
                outside = [c for c in record.clicks if c not in results]
                self.summary.clicks_outside_results += len(outside)
        for doc_id in outside:
            self._append_click(record, doc_id, 1, 0)

    def _add_count(self, record: PairCount) -> None:
        self.summary.pair_rows += 1
        self.summary.clicks += record.clicks
        shown = record.impressions if record.impressions is not None else 0
        self._append_click(record, record.doc_id, record.clicks, shown)

    def _append_click(self, record: Impression | PairCount, doc_id: str, clicks: int, shown: int) -> None:
        rows = self._clicks
        rows["query"].append(self._queries[query_key(record.query, record.query_id)])
        rows["doc"].append(self._docs[doc_id])
        rows["clicks"].append(clicks)
        rows["impressions"].append(shown)
        rows["time"].append(record.time)
        rows["user"].append(self._user(record.user))

    def _user(self, user: str | None) -> int:
        return 0 if user is None else self._users[user] + 1

    def add_document(self, document: Document, from_log: bool = False) -> None:
        self._documents.append(document)
        self._places.append(self._n_documents + (AFTER_FILES if from_log else 0))
        self._n_documents += 1
        self.summary.documents += not from_log
        if len(self._documents) >= BATCH_DOCUMENTS:
            self._flush_documents()

    def _flush_documents(self) -> None:
        known = set(self._fields).union(*(document.fields for document in self._documents))
        if len({name.lower() for name in known} | {"", "doc_id"}) < len(known) + 2:
            raise InputError(f"field names must differ in more than case and not be doc_id; got {sorted(known)}")
        for name in sorted(known - set(self._fields)):
            # Columns are numbered: a field may have any name.
            self._sql.execute(f"ALTER TABLE document ADD COLUMN f{self._fields[name]} VARCHAR")
        columns = {f"f{n}": [d.fields.get(name) for d in self._documents] for name, n in self._fields.items()}
        ids = pa.array([d.doc_id for d in self._documents], pa.string())
        rows = pa.table(  # noqa: F841 - DuckDB reads it by name
            {"place": pa.array(self._places, pa.int64()), "doc_id": ids}
            | {column: pa.array(texts, pa.string()) for column, texts in columns.items()}
        )
        self._sql.execute("INSERT INTO document BY NAME SELECT * FROM rows")
        self._documents, self._places = [], []

    def _flush(self) -> None:
        pages, clicks = self._pages, self._clicks
        if not pages["query"] and not clicks["query"]:
            return
        users = np.array([0, *map(self.secret.user, self._users)], dtype=np.uint64)
        arrays: dict[str, Array] = {}
        for part, rows, kinds in (("pages", pages, PAGE_COLUMNS), ("clicks", clicks, CLICK_COLUMNS)):
            for column, dtype in kinds.items():  # a time of None becomes NaN
                arrays[f"{part}.{column}"] = np.array(rows[column], np.int64 if column == "user" else dtype)
            arrays[f"{part}.user"] = users[arrays[f"{part}.user"]]
        arrays["pages.clicked"] = np.zeros(len(pages["doc"]), dtype=np.uint8)
        arrays["pages.clicked"][self._clicked] = 1
        np.savez(self._batch_file(self._n_batches), **arrays)  # type: ignore[arg-type]
        self.has_clicks |= len(clicks["query"]) > 0
        self.has_stated_impressions |= bool(arrays["clicks.impressions"].any())
        self.summary.has_times |= any(np.isfinite(arrays[f"{part}.time"]).any() for part in ("pages", "clicks"))
        self.summary.has_users |= len(self._users) > 0
        for table, numbering in (("query_local", self._queries), ("doc_local", self._docs)):
            local = pa.table(  # noqa: F841 - DuckDB reads it by name
                {"code": np.arange(len(numbering), dtype=np.int32), "key": pa.array(numbering, pa.string())}
            )
            self._sql.execute(f"INSERT INTO {table} SELECT {self._n_batches}, code, key FROM local")
        self._n_batches += 1
        self._start_batch()

    def _batch_file(self, number: int) -> Path:
        return self.folder / f"batch-{number}.npz"

    # --- out -------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Numbers queries and documents; what was added can be read from now on."""
        self._flush()
        self._flush_documents()
        summary = self.summary
        summary.has_impressions = summary.impressions > 0
        summary.queries = self._number_globally("query", "")
        summary.docs = self._number_globally("doc", "UNION ALL SELECT doc_id AS key FROM document")
        own = self._sql.execute(f"SELECT count(DISTINCT doc_id) FROM document WHERE place < {AFTER_FILES}").fetchall()
        summary.repeated_documents = summary.documents - int(own[0][0])

    def _number_globally(self, side: str, more: str) -> int:
        self._sql.execute(
            f"CREATE TABLE {side} AS SELECT key, (row_number() OVER (ORDER BY key) - 1)::INT AS idx"
            f" FROM (SELECT DISTINCT key FROM (SELECT key FROM {side}_local {more}))"
        )
        self._sql.execute(
            f"CREATE TABLE {side}_map AS SELECT batch, code, idx FROM {side}_local JOIN {side} USING (key)"
            " ORDER BY batch, code"
        )
        return int(self._sql.execute(f"SELECT count(*) FROM {side}").fetchall()[0][0])

    def query_keys(self) -> pa.RecordBatchReader:
        """A column `key`, by query number."""
        return stream(self._sql, "SELECT key FROM query ORDER BY idx", ROWS_AT_ONCE)

    def documents(self) -> pa.RecordBatchReader:
        """A column `doc_id` and one for each field, by name; by document number. Of several documents with one id the
        first counts, and one of a documents file before one that the log brought along."""
        names = sorted(self._fields)
        columns = "".join(f", f{self._fields[name]}" for name in names)
        found = stream(
            self._sql,
            f"SELECT d.key AS doc_id{columns} FROM doc d"
            " LEFT JOIN (SELECT doc_id, min(place) AS place FROM document GROUP BY doc_id) c ON c.doc_id = d.key"
            " LEFT JOIN document t ON t.place = c.place ORDER BY d.idx",
            DOCUMENTS_AT_ONCE,
        )
        schema = pa.schema([(name, pa.string()) for name in ("doc_id", *names)])
        batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in found)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def events(self) -> Iterator[EventBatch]:
        """The events in the order of the log, in the numbers of the whole. Each batch is summed as it goes by."""
        for number in range(self._n_batches):
            path = self._batch_file(number)
            with np.load(path, allow_pickle=False) as stored:
                columns = {name: stored[name] for name in stored.files}
            path.unlink()
            maps = {side: self._map(side, number) for side in ("query", "doc")}
            for name, values in columns.items():
                side = name.rpartition(".")[2]
                columns[name] = maps[side][values] if side in maps else values
            batch = EventBatch(
                *({k.removeprefix(p): v for k, v in columns.items() if k.startswith(p)} for p in ("pages.", "clicks."))
            )
            self._sums.add_pages(batch.pages)
            self._sums.add_clicks(batch.clicks)
            yield batch

    def _map(self, side: str, batch: int) -> Array:
        query = f"SELECT idx FROM {side}_map WHERE batch = {batch} ORDER BY code"
        return np.asarray(self._sql.execute(query).fetchnumpy()["idx"], dtype=np.int32)

    def pairs(self) -> Iterator[dict[str, Array]]:
        """The pairs of all events that were read, by query, then document; `users` is 0 and times are NaN where they
        are unknown."""
        for batch in self._sums.pairs(ROWS_AT_ONCE):
            columns = {name: batch[name].to_numpy(zero_copy_only=False) for name in batch.schema.names}
            self.summary.pairs += int(np.count_nonzero(columns["clicks"]))
            yield columns
