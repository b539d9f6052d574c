"""From a stream of records to the arrays of a GRAPH, out of core.

Records are staged in batches with ids numbered per batch; DuckDB merges the batches' dictionaries into
one sorted numbering and sums pairs, spilling to disk; then the batches are renumbered with NumPy. Memory
is one batch, DuckDB's budget and the summed pairs; it does not grow with the lines of the log.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clickbridge.errors import InputError
from clickbridge.io.artifact import PartWriter
from clickbridge.log.pair_sums import PairSums, connect, quoted, write_pairs
from clickbridge.log.readers import LogRecord
from clickbridge.types import Document, Impression, PairCount, query_key

Array = np.ndarray[Any, Any]
BATCH_RECORDS, BATCH_SHOWN, BATCH_DOCUMENTS = 200_000, 2_000_000, 50_000
_SEQUENCE, _FROM_LOG = "clickbridge sequence", "clickbridge from log"


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


class Numbering(dict[str, int]):
    """Numbers for texts, in order of first sight."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


def user_hash(user: str) -> int:
    """64 bits that stand for a user; 0 is kept for 'unknown'."""
    return int.from_bytes(hashlib.blake2b(user.encode(), digest_size=8).digest(), "little") or 1


class LogAggregator:
    def __init__(self, folder: Path, memory_mb: int = 1024, threads: int | None = None) -> None:
        self.folder = folder
        self.summary = Summary()
        self._sql = connect(folder, memory_mb, threads)
        self._sql.execute("CREATE TABLE query_local (batch INT, code INT, key VARCHAR)")
        self._sql.execute("CREATE TABLE doc_local (batch INT, code INT, key VARCHAR)")
        self._batches: list[tuple[Path, int, int]] = []
        self._document_files: list[Path] = []
        self._documents: list[Document] = []
        self._documents_from_log: list[bool] = []
        self._field_names: set[str] = set()
        self._shown_before: set[str] = set()
        self.wrote_clicks = False
        self._start_batch()

    def _start_batch(self) -> None:
        self._queries, self._docs, self._users = Numbering(), Numbering(), Numbering()
        self._impressions: dict[str, list[Any]] = {c: [] for c in ("query", "time", "user", "length", "doc")}
        self._clicked: list[int] = []
        self._counts: dict[str, list[Any]] = {c: [] for c in ("query", "doc", "clicks", "impressions", "time", "user")}

    @property
    def parts(self) -> list[str]:
        """What was written, by the names of `ClickGraph.parts`."""
        there = {
            "pairs": True,
            "impressions": self.summary.has_impressions,
            "clicks": self.wrote_clicks,
            "users": self.summary.has_users,
            "times": self.summary.has_times,
            "documents": bool(self._field_names),
        }
        return [name for name, present in there.items() if present]

    def close(self) -> None:
        self._sql.close()

    def add(self, record: LogRecord) -> None:
        if isinstance(record, Impression):
            self._add_impression(record)
        elif isinstance(record, PairCount):
            self._add_count(record)
        elif record.doc_id not in self._shown_before:
            # Only formats that bring their documents along come here; a page shown again is skipped.
            self._shown_before.add(record.doc_id)
            self.add_document(record, from_log=True)
        if len(self._impressions["doc"]) >= BATCH_SHOWN or (
            len(self._impressions["query"]) + len(self._counts["query"]) >= BATCH_RECORDS
        ):
            self._flush()

    def _add_impression(self, record: Impression) -> None:
        rows, results = self._impressions, record.results
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
            self._append_count(record, doc_id, 1, 0)

    def _add_count(self, record: PairCount) -> None:
        self.summary.pair_rows += 1
        self.summary.clicks += record.clicks
        shown = record.impressions if record.impressions is not None else 0
        self._append_count(record, record.doc_id, record.clicks, shown)

    def _append_count(self, record: Impression | PairCount, doc_id: str, clicks: int, shown: int) -> None:
        rows = self._counts
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
        self._documents_from_log.append(from_log)
        self.summary.documents += not from_log
        if len(self._documents) >= BATCH_DOCUMENTS:
            self._flush_documents()

    def _flush_documents(self) -> None:
        if not self._documents:
            return
        names = sorted({name for document in self._documents for name in document.fields})
        known = self._field_names.union(names)
        if len({name.lower() for name in known} | {"", "doc_id"}) < len(known) + 2:
            raise InputError(f"field names must differ in more than case and not be doc_id; got {sorted(known)}")
        start = len(self._document_files) * BATCH_DOCUMENTS
        columns: dict[str, pa.Array] = {
            "doc_id": pa.array([d.doc_id for d in self._documents], pa.string()),
            _SEQUENCE: pa.array(np.arange(start, start + len(self._documents))),
            _FROM_LOG: pa.array(self._documents_from_log),
        }
        for name in names:
            columns[name] = pa.array([d.fields.get(name) for d in self._documents], pa.string())
        path = self.folder / f"documents-{len(self._document_files)}.parquet"
        pq.write_table(pa.table(columns), path)
        self._document_files.append(path)
        self._field_names.update(names)
        self._documents, self._documents_from_log = [], []

    def _flush(self) -> None:
        users = np.array([0, *map(user_hash, self._users)], dtype=np.uint64)
        rows, counts, batch = self._impressions, self._counts, len(self._batches)
        if not rows["query"] and not counts["query"]:
            return
        clicked = np.zeros(len(rows["doc"]), dtype=np.uint8)
        clicked[self._clicked] = 1
        arrays: dict[str, Array] = {
            "query": np.array(rows["query"], dtype=np.int32),
            "time": np.array(rows["time"], dtype=np.float64),  # None becomes NaN
            "user": users[np.array(rows["user"], dtype=np.int64)],
            "length": np.array(rows["length"], dtype=np.int32),
            "doc": np.array(rows["doc"], dtype=np.int32),
            "clicked": clicked,
            "count.query": np.array(counts["query"], dtype=np.int32),
            "count.doc": np.array(counts["doc"], dtype=np.int32),
            "count.clicks": np.array(counts["clicks"], dtype=np.int32),
            "count.impressions": np.array(counts["impressions"], dtype=np.int32),
            "count.time": np.array(counts["time"], dtype=np.float64),
            "count.user": users[np.array(counts["user"], dtype=np.int64)],
        }
        path = self.folder / f"batch-{batch}.npz"
        np.savez(path, **arrays)  # type: ignore[arg-type]
        self._batches.append((path, len(rows["query"]), len(rows["doc"])))
        self.summary.has_times |= bool(np.isfinite(arrays["time"]).any() or np.isfinite(arrays["count.time"]).any())
        self.summary.has_users |= len(self._users) > 0
        for table, numbering in (("query_local", self._queries), ("doc_local", self._docs)):
            local = pa.table(  # noqa: F841 - DuckDB reads it by name
                {"code": np.arange(len(numbering), dtype=np.int32), "key": pa.array(numbering, pa.string())}
            )
            self._sql.execute(f"INSERT INTO {table} SELECT {batch}, code, key FROM local")
        self._start_batch()

    def finish(self, writer: PartWriter) -> Summary:
        """Writes every part of the GRAPH that the log supports and returns what it was made of."""
        self._flush()
        self._flush_documents()
        summary, sql = self.summary, self._sql
        summary.has_impressions = summary.impressions > 0
        summary.queries = self._number_globally("query", "")
        files = ", ".join(f"'{quoted(path)}'" for path in self._document_files)
        documents = f"read_parquet([{files}], union_by_name = true)"
        summary.docs = self._number_globally(
            "doc", f"UNION SELECT doc_id AS key FROM {documents}" if self._document_files else ""
        )
        sql.execute(f"COPY (SELECT key FROM query ORDER BY idx) TO '{quoted(writer.path('queries.parquet'))}'")
        self._write_documents(documents, writer)
        sums = PairSums(sql)
        self._write_events(sums, writer)
        pairs = sums.table()
        summary.pairs = int(np.count_nonzero(pairs["clicks"].to_numpy()))
        write_pairs(pairs, writer, summary.has_users, summary.has_times)
        sql.close()
        return summary

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

    def _write_documents(self, documents: str, writer: PartWriter) -> None:
        target = quoted(writer.path("docs.parquet"))
        if not self._document_files:
            self._sql.execute(f"COPY (SELECT key AS doc_id FROM doc ORDER BY idx) TO '{target}'")
            return
        own = f'FROM {documents} WHERE NOT "{_FROM_LOG}"'
        distinct = self._sql.execute(f"SELECT count(DISTINCT doc_id) {own}").fetchall()[0][0]
        self.summary.repeated_documents = self.summary.documents - int(distinct)
        fields = "".join(f', f."{_escaped(name)}"' for name in sorted(self._field_names))
        # The first of several documents with one id counts; a documents file beats the log's own.
        self._sql.execute(
            f"COPY (SELECT d.key AS doc_id{fields} FROM doc d LEFT JOIN (SELECT * FROM {documents}"
            f' QUALIFY row_number() OVER (PARTITION BY doc_id ORDER BY "{_FROM_LOG}", "{_SEQUENCE}") = 1) f'
            f" ON f.doc_id = d.key ORDER BY d.idx) TO '{target}' (COMPRESSION zstd)"
        )

    def _write_events(self, sums: PairSums, writer: PartWriter) -> None:
        summary = self.summary
        n_impressions = sum(pages for _, pages, _ in self._batches)
        n_shown = sum(shown for _, _, shown in self._batches)
        out: dict[str, Array] = {}
        if summary.has_impressions:
            kinds: dict[str, Any] = {"query": np.int32, "doc": np.int32, "clicked": np.uint8, "indptr": np.int64}
            kinds |= {"time": np.float64} if summary.has_times else {}
            kinds |= {"user": np.uint64} if summary.has_users else {}
            sizes = {"doc": n_shown, "clicked": n_shown, "indptr": n_impressions + 1}
            for name, dtype in kinds.items():
                path = writer.path(f"impressions.{name}.npy")
                shape = (sizes.get(name, n_impressions),)
                out[name] = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
            out["indptr"][0] = 0
        counts: list[dict[str, Array]] = []
        row = shown = 0
        for number, (path, _, _) in enumerate(self._batches):
            with np.load(path, allow_pickle=False) as stored:
                batch = {name: stored[name] for name in stored.files}
            query, doc = (self._map(side, number) for side in ("query", "doc"))
            batch["query"], batch["doc"] = query[batch["query"]], doc[batch["doc"]]
            batch["count.query"], batch["count.doc"] = query[batch["count.query"]], doc[batch["count.doc"]]
            length = batch["length"]
            end, shown_end = row + len(length), shown + len(batch["doc"])
            for name in out:
                if name == "indptr":
                    out["indptr"][row + 1 : end + 1] = shown + np.cumsum(length, dtype=np.int64)
                elif name in ("doc", "clicked"):
                    out[name][shown:shown_end] = batch[name]
                else:
                    out[name][row:end] = batch[name]
            if len(length):
                wide = {name: np.repeat(batch[name], length) for name in ("query", "time", "user")}
                ones = np.ones(len(batch["doc"]), dtype=np.int32)
                sums.add(
                    wide["query"],
                    batch["doc"],
                    batch["clicked"],
                    ones,
                    wide["time"],
                    wide["user"],
                    stated=False,
                )
            if len(batch["count.query"]):
                count = {name: batch["count." + name] for name in self._counts}
                sums.add(
                    count["query"],
                    count["doc"],
                    count["clicks"],
                    count["impressions"],
                    count["time"],
                    count["user"],
                    stated=True,
                )
                counts.append(count)
            row, shown = end, shown_end
            path.unlink()
        # Without pages, times and users the pairs alone say all there is to say.
        self.wrote_clicks = bool(counts) and (summary.has_times or summary.has_users or summary.has_impressions)
        if self.wrote_clicks:
            _write_click_events(counts, writer, summary)

    def _map(self, side: str, batch: int) -> Array:
        query = f"SELECT idx FROM {side}_map WHERE batch = {batch} ORDER BY code"
        return np.asarray(self._sql.execute(query).fetchnumpy()["idx"], dtype=np.int32)


def _write_click_events(counts: list[dict[str, Array]], writer: PartWriter, summary: Summary) -> None:
    names = ["query", "doc", "clicks"]
    names += ["time"] if summary.has_times else []
    names += ["user"] if summary.has_users else []
    names += ["impressions"] if any(count["impressions"].any() for count in counts) else []
    for name in names:
        writer.array(f"clicks.{name}", np.concatenate([count[name] for count in counts]))


def _escaped(name: str) -> str:
    return name.replace('"', '""')
