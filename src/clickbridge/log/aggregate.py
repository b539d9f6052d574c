"""Turns a stream of records into numbers, out of core.

Records are written in batches, and Arrow numbers the ids of each batch. In `finish`, DuckDB merges the dictionaries of
the batches into one sorted numbering. Then everything can be read, one batch at a time: the queries, the documents, the
events with their new numbers, and the pairs, which DuckDB sums while the events are read, spilling to disk. The memory
is that of one batch and DuckDB's budget; it does not grow with the log. `graph/storage.py` writes the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clickbridge.errors import InputError
from clickbridge.io.secret import Secret
from clickbridge.log.batches import Batch, Batches, EventBatch, Numbering, Summary
from clickbridge.log.blocks import Block
from clickbridge.log.pair_sums import SUMS, PairSums, connect, quoted, stream
from clickbridge.types import Document

Array = np.ndarray[Any, Any]
BATCH_DOCUMENTS = 50_000
ROWS_AT_ONCE, DOCUMENTS_AT_ONCE = 200_000, 10_000
AFTER_FILES = 2**48
"""Added to the place of a document that a log brought along: documents files come first."""


class LogAggregator:
    """Call `add` and `add_document` for everything, then `finish`, then read `query_keys`, `documents`, `events` and
    `pairs`, each once and in this order. After that the summary is complete."""

    def __init__(
        self, folder: Path, memory_mb: int = 1024, threads: int | None = None, secret: Secret | None = None
    ) -> None:
        self.folder = folder
        self.memory_mb = memory_mb
        self.secret = secret or Secret.new()
        self.summary = Summary()
        self.batches = Batches(self.secret, self._keep, self.summary)
        self._sql = connect(folder, memory_mb, threads)
        self._sql.execute("CREATE TABLE query_local (batch INT, code INT, key VARCHAR)")
        self._sql.execute("CREATE TABLE doc_local (batch INT, code INT, key VARCHAR)")
        self._sql.execute("CREATE TABLE document (place BIGINT, doc_id VARCHAR)")
        self._sums = PairSums(self._sql)
        self._stored: list[Path] = []
        self._keeps_files = False
        self._n_documents = 0
        self._documents: list[Document] = []
        self._places: list[int] = []
        self._fields = Numbering()
        self._shown_before: set[str] = set()
        self._summed: list[Path] = []

    def close(self) -> None:
        self._sql.close()

    # --- in --------------------------------------------------------------------------------------

    def add(self, part: Block | Document) -> None:
        if not isinstance(part, Document):
            self.batches.add(part)
        elif part.doc_id not in self._shown_before:
            # Only formats that bring their documents along come here; a page shown again is skipped.
            self._shown_before.add(part.doc_id)
            self.add_document(part, from_log=True)

    def adopt(self, staged: Iterable[Path], summed: Iterable[Path] = (), keep: bool = False) -> None:
        """Takes batches that other processes wrote with `write_batch`, in the order of the log, and the pairs of all of
        them, if these have been summed by others: files of `pairs_in_texts`. A file is removed when it has been read,
        unless `keep` says that others need it, too."""
        self._keeps_files |= keep
        for path in staged:
            for side in ("query", "doc"):
                keys = keys_file(path, side)
                source = f"read_parquet('{quoted(keys)}')"
                self._sql.execute(f"INSERT INTO {side}_local SELECT {len(self._stored)}, code, key FROM {source}")
                if not keep:
                    keys.unlink()
            self._stored.append(path)
        self._summed += summed

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

    def _keep(self, batch: Batch) -> None:
        number = len(self._stored)
        path = self.folder / f"batch-{number}.npz"
        batch.save(path)
        for side, keys in (("query", batch.queries), ("doc", batch.docs)):
            local = keys_table(keys)  # noqa: F841 - DuckDB reads it by name
            self._sql.execute(f"INSERT INTO {side}_local SELECT {number}, code, key FROM local")
        self._stored.append(path)

    def _pairs_of_others(self) -> pa.RecordBatchReader:
        files = ", ".join(f"'{quoted(path)}'" for path in self._summed)
        return stream(
            self._sql,
            "SELECT q.idx AS query, d.idx AS doc, clicks, impressions, users, first, last"
            f" FROM read_parquet([{files}]) p JOIN query q ON p.query = q.key JOIN doc d ON p.doc = d.key"
            " ORDER BY q.idx, d.idx",
            ROWS_AT_ONCE,
        )

    # --- out -------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Numbers queries and documents. After that, everything that was added can be read."""
        self.batches.flush()
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
        """A column `key`, in the order of query numbers."""
        return stream(self._sql, "SELECT key FROM query ORDER BY idx", ROWS_AT_ONCE)

    def documents(self) -> pa.RecordBatchReader:
        """A column `doc_id` and one for each field, in the order of document numbers. If several documents have the
        same id, the first one is used; those of a documents file come before those in the log."""
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
        """The events in the order of the log, with the final numbers. Each batch is summed while it is read."""
        return map(self._read, range(len(self._stored)))

    def _read(self, number: int) -> EventBatch:
        path = self._stored[number]
        stored = EventBatch.load(path)
        if not self._keeps_files:
            path.unlink()
        batch = stored.renumbered(self._map("query", number), self._map("doc", number))
        if not self._summed:
            self._sums.add_pages(batch.pages)
            self._sums.add_clicks(batch.clicks)
        return batch

    def sum_events(self) -> None:
        """Reads all events for their sums alone."""
        for number in range(len(self._stored)):
            self._read(number)

    def _map(self, side: str, batch: int) -> Array:
        query = f"SELECT idx FROM {side}_map WHERE batch = {batch} ORDER BY code"
        return np.asarray(self._sql.execute(query).fetchnumpy()["idx"], dtype=np.int32)

    def pairs(self) -> Iterator[dict[str, Array]]:
        """The pairs of all events that were read, sorted by query, then document. `users` is 0 and times are NaN if
        they are unknown."""
        for batch in self._pairs_of_others() if self._summed else self._sums.pairs(ROWS_AT_ONCE):
            columns = {name: batch[name].to_numpy(zero_copy_only=False) for name in batch.schema.names}
            self.summary.pairs += int(np.count_nonzero(columns["clicks"]))
            yield columns

    def pairs_in_texts(self) -> pa.RecordBatchReader:
        """The same with the texts of queries and documents, in any order."""
        return stream(
            self._sql,
            "SELECT q.key AS query, d.key AS doc, clicks, impressions, users, first, last"
            f" FROM ({SUMS}) p JOIN query q ON p.query = q.idx JOIN doc d ON p.doc = d.idx",
            ROWS_AT_ONCE,
        )


def write_batch(path: Path, batch: Batch) -> None:
    """Writes a batch to files, for `adopt`."""
    batch.save(path)
    for side, keys in (("query", batch.queries), ("doc", batch.docs)):
        pq.write_table(keys_table(keys), keys_file(path, side))


def keys_file(path: Path, side: str) -> Path:
    return path.with_suffix(f".{side}.parquet")


def keys_table(keys: pa.Array) -> pa.Table:
    return pa.table({"code": np.arange(len(keys), dtype=np.int32), "key": keys})
