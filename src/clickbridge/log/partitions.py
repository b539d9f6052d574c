"""Aggregates a log with several workers: each reads some of its files, and they exchange events by a hash of the query.

    read, clean, number      a file each        -> batches of events, written beside the GRAPH
    exchange                 by hash of query   -> all events of a query are with one worker
    sum                      a share of queries -> its pairs, written beside the GRAPH

The caller only gets names of files and counts. It numbers queries and documents and writes the GRAPH from the files,
one batch at a time. All workers need access to the files of the log and to the folder of the GRAPH, on a shared disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from clickbridge.engines.base import Engine
from clickbridge.errors import InputError, SettingError
from clickbridge.io.secret import Secret
from clickbridge.log.aggregate import LogAggregator, write_batch
from clickbridge.log.batches import Array, Batch, Batches, EventBatch, Numbering, Summary
from clickbridge.log.blocks import without_names
from clickbridge.log.pair_sums import PairSums, connect
from clickbridge.log.readers import LogReader, is_joined
from clickbridge.log.recognise import Layout, Reading
from clickbridge.log.rejects import RejectLog
from clickbridge.types import Document

ROWS_AT_ONCE = 200_000


@dataclass(frozen=True)
class Partition:
    """A file of the log, and how to read it."""

    number: int
    path: str
    reading: Reading
    folder: str
    secret: Secret
    hide_names: bool


@dataclass
class Staged:
    """The result of a partition: names of files and counts."""

    layout: Layout
    batches: list[str]
    summary: Summary
    has_clicks: bool
    has_stated_impressions: bool
    lines: int
    repeated: int
    notes: list[str]


def aggregate(log: LogReader, aggregator: LogAggregator, engine: Engine, hide_names: bool) -> None:
    """Adds a log to an aggregator, using the workers of an engine."""
    if log.reading.dedupe or "-" in log.paths:
        raise SettingError("--engine ray reads each file by itself: leave out --dedupe and standard input")
    folder, secret = str(aggregator.folder.resolve()), aggregator.secret
    work = [
        Partition(number, str(Path(path).resolve()), log.reading, folder, secret, hide_names)
        for number, path in enumerate(log.paths)
    ]
    made, summed = engine.exchange(stage, work, add_up, folder, aggregator.memory_mb)
    staged: list[Staged] = made
    for partition, found in zip(work, staged, strict=True):
        log.know(log.paths[partition.number], replace(found.layout, path=log.paths[partition.number]))
        log.rejects.lines += found.lines
        log.repeated += found.repeated
        log.notes += found.notes
        for line in _rejects_file(partition).read_bytes().splitlines() if _rejects_file(partition).is_file() else ():
            lost = orjson.loads(line)
            log.rejects.add(log.paths[partition.number], lost["line"], lost["reason"])
        _add_counts(aggregator, found)
    log.rejects.close()
    aggregator.adopt((Path(path) for found in staged for path in found.batches), map(Path, summed))


def _add_counts(aggregator: LogAggregator, found: Staged) -> None:
    total, own = aggregator.summary, found.summary
    for name in ("impressions", "pair_rows", "clicks", "clicks_outside_results"):
        setattr(total, name, getattr(total, name) + getattr(own, name))
    total.has_times |= own.has_times
    total.has_users |= own.has_users
    aggregator.batches.has_clicks |= found.has_clicks
    aggregator.batches.has_stated_impressions |= found.has_stated_impressions


def _rejects_file(partition: Partition) -> Path:
    return Path(partition.folder) / f"rejects-{partition.number}.jsonl"


# --- a worker --------------------------------------------------------------------------------------


def stage(partition: Partition, parts: int) -> tuple[Any, ...]:
    """Reads a file and writes its batches. Returns the result, and its events in `parts` parts, by query."""
    if not Path(partition.folder).is_dir():
        raise InputError(f"{partition.folder} cannot be seen by all nodes: write the GRAPH to a disk that they share")
    pieces: list[list[Batch]] = [[] for _ in range(parts)]
    names: list[str] = []

    def keep(batch: Batch) -> None:
        path = Path(partition.folder) / f"partition-{partition.number}-{len(names)}.npz"
        write_batch(path, batch)
        names.append(str(path))
        owner = np.array([crc32(key.encode()) % parts for key in batch.queries.to_pylist()], dtype=np.int64)
        for number, piece in enumerate(pieces):
            piece.append(_of_queries(batch, owner == number))

    rejects = RejectLog(1.0, _rejects_file(partition))
    log, summary = LogReader((partition.path,), partition.reading, rejects), Summary()
    batches = Batches(partition.secret, keep, summary)
    for block in log.blocks():
        if isinstance(block, Document) or is_joined(log.layouts[partition.path]):
            raise InputError(f"{partition.path} cannot be read without the other files: use --engine local")
        batches.add(without_names(block) if partition.hide_names else block)
    batches.flush()
    has = batches.has_clicks, batches.has_stated_impressions
    found = Staged(log.layouts[partition.path], names, summary, *has, rejects.lines, log.repeated, log.notes)
    return found, *pieces


def _of_queries(batch: Batch, chosen: Array) -> Batch:
    """The events of some queries, with their own texts and numbers."""
    page = chosen[batch.pages["query"]]
    shown = np.repeat(page, batch.pages["length"])
    by_page = ("query", "length", "time", "user")
    pages = {name: values[page if name in by_page else shown] for name, values in batch.pages.items()}
    row = chosen[batch.clicks["query"]]
    clicks = {name: values[row] for name, values in batch.clicks.items()}
    docs, places = np.unique(np.concatenate([pages["doc"], clicks["doc"]]), return_inverse=True)
    pages["doc"], clicks["doc"] = np.split(places.astype(np.int32), [len(pages["doc"])])
    numbers = (np.cumsum(chosen) - 1).astype(np.int32)
    pages["query"], clicks["query"] = numbers[pages["query"]], numbers[clicks["query"]]
    return Batch(pages, clicks, batch.queries.filter(pa.array(chosen)), batch.docs.take(pa.array(docs)))


def add_up(number: int, folder: str, memory_mb: int, *pieces: list[Batch]) -> str:
    """Writes the pairs of some of the queries to a file. Returns its name."""
    # A folder of its own: Ray calls this again after a worker was lost, perhaps while its tables were half filled.
    place = Path(tempfile.mkdtemp(prefix=f"sums-{number}-", dir=folder))
    connection = connect(place, memory_mb)
    sums, queries, docs = PairSums(connection), Numbering(), Numbering()
    for batch in (batch for piece in pieces for batch in piece):
        events: EventBatch = batch.renumbered(_numbers(queries, batch.queries), _numbers(docs, batch.docs))
        sums.add_pages(events.pages)
        sums.add_clicks(events.clicks)
    out, unfinished = Path(folder) / f"pairs-{number}.parquet", place / "pairs.parquet"
    texts = pa.array(queries, pa.string()), pa.array(docs, pa.string())
    with pq.ParquetWriter(unfinished, SCHEMA) as writer:
        for batch_of_pairs in _in_texts(sums.pairs(ROWS_AT_ONCE), *texts):
            writer.write_batch(batch_of_pairs)
    connection.close()
    unfinished.replace(out)
    return str(out)


SCHEMA = pa.schema(
    {
        "query": pa.string(), "doc": pa.string(), "clicks": pa.int64(), "impressions": pa.int64(), "users": pa.int32(),
        "first": pa.float64(), "last": pa.float64(),
    }
)  # fmt: skip


def _numbers(numbering: Numbering, texts: pa.Array) -> Array:
    return np.array([numbering[text] for text in texts.to_pylist()], dtype=np.int32)


def _in_texts(pairs: pa.RecordBatchReader, queries: pa.Array, docs: pa.Array) -> Iterator[pa.RecordBatch]:
    for batch in pairs:
        rest = [batch[name] for name in SCHEMA.names[2:]]
        yield pa.RecordBatch.from_arrays([queries.take(batch["query"]), docs.take(batch["doc"]), *rest], schema=SCHEMA)
