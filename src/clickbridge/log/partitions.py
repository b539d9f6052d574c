"""Aggregates a log with several workers: each reads some of its files, and they exchange events by a hash of the query.

    read, clean, number      a file each        -> batches of events, written beside the GRAPH
    exchange                 by hash of query   -> each batch in pieces, files too: one for each share of the queries
    sum                      a share of queries -> its pairs, written beside the GRAPH

A worker has one batch of events in memory, or one piece of a batch, and DuckDB's budget for the sums; neither grows
with the log. From worker to worker, and to the caller, go names of files and counts. The caller numbers queries and
documents and writes the GRAPH from the files, one batch at a time. All workers need access to the files of the log and
to the folder of the GRAPH, on a shared disk.

What is run again after a worker was lost writes to a folder of its own, so that nobody reads a file half written.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4
from zlib import crc32

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from clickbridge.engines.base import Engine
from clickbridge.errors import InputError, SettingError
from clickbridge.io.secret import Secret
from clickbridge.log.aggregate import LogAggregator, write_batch
from clickbridge.log.batches import Array, Batch, Batches, Summary
from clickbridge.log.blocks import without_names
from clickbridge.log.pair_sums import database_errors
from clickbridge.log.readers import LogReader, is_joined
from clickbridge.log.recognise import Layout, Reading
from clickbridge.log.rejects import RejectLog
from clickbridge.types import Document

PIECES, REJECTS = "pieces", "rejects.jsonl"


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

    folder: str
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
        rejects = Path(found.folder) / REJECTS
        for line in rejects.read_bytes().splitlines() if rejects.is_file() else ():
            lost = orjson.loads(line)
            log.rejects.add(log.paths[partition.number], lost["line"], lost["reason"])
        _add_counts(aggregator, found)
    log.rejects.close()
    aggregator.adopt((Path(path) for found in staged for path in found.batches), map(Path, summed))
    for pieces in Path(folder).glob(f"*/{PIECES}"):
        shutil.rmtree(pieces, ignore_errors=True)


def _add_counts(aggregator: LogAggregator, found: Staged) -> None:
    total, own = aggregator.summary, found.summary
    for name in ("impressions", "pair_rows", "clicks", "clicks_outside_results"):
        setattr(total, name, getattr(total, name) + getattr(own, name))
    total.has_times |= own.has_times
    total.has_users |= own.has_users
    aggregator.batches.has_clicks |= found.has_clicks
    aggregator.batches.has_stated_impressions |= found.has_stated_impressions


# --- a worker --------------------------------------------------------------------------------------


def stage(partition: Partition, parts: int) -> tuple[Any, ...]:
    """Reads a file, and writes its batches and their pieces. Returns the result, and the names of the pieces in `parts`
    parts, by query."""
    if not Path(partition.folder).is_dir():
        raise InputError(f"{partition.folder} cannot be seen by all nodes: write the GRAPH to a disk that they share")
    place = _own_folder(partition.folder, f"partition-{partition.number}")
    (place / PIECES).mkdir()
    pieces: list[list[str]] = [[] for _ in range(parts)]
    names: list[str] = []

    def keep(batch: Batch) -> None:
        owner = np.array([crc32(key.encode()) % parts for key in batch.queries.to_pylist()], dtype=np.int64)
        for number in np.unique(owner).tolist():
            path = place / PIECES / f"{len(names)}-of-{number}.npz"
            write_batch(path, _of_queries(batch, owner == number))
            pieces[number].append(str(path))
        path = place / f"batch-{len(names)}.npz"
        write_batch(path, batch)
        names.append(str(path))

    rejects = RejectLog(1.0, place / REJECTS)
    log, summary = LogReader((partition.path,), partition.reading, rejects), Summary()
    batches = Batches(partition.secret, keep, summary)
    for block in log.blocks():
        if isinstance(block, Document) or is_joined(log.layouts[partition.path]):
            raise InputError(f"{partition.path} cannot be read without the other files: use --engine local")
        batches.add(without_names(block) if partition.hide_names else block)
    batches.flush()
    has = batches.has_clicks, batches.has_stated_impressions
    layout, lines = log.layouts[partition.path], rejects.lines
    return Staged(str(place), layout, names, summary, *has, lines, log.repeated, log.notes), *pieces


def _own_folder(folder: str, name: str) -> Path:
    place = Path(folder) / f"{name}-{uuid4().hex}"
    place.mkdir()
    return place


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


@database_errors()
def add_up(number: int, folder: str, memory_mb: int, *pieces: list[str]) -> str:
    """Writes the pairs of some of the queries to a file. Returns its name."""
    place = _own_folder(folder, f"sums-{number}")
    out, unfinished = Path(folder) / f"pairs-{number}.parquet", place / "pairs.parquet"
    with closing(LogAggregator(place, memory_mb)) as sums:
        sums.adopt((Path(path) for piece in pieces for path in piece), keep=True)
        sums.finish()
        sums.sum_events()
        with pq.ParquetWriter(unfinished, SCHEMA) as writer:
            for pairs in sums.pairs_in_texts():
                writer.write_batch(pa.RecordBatch.from_arrays(pairs.columns, schema=SCHEMA))
    unfinished.replace(out)
    shutil.rmtree(place, ignore_errors=True)
    return str(out)


SCHEMA = pa.schema(
    {
        "query": pa.string(), "doc": pa.string(), "clicks": pa.int64(), "impressions": pa.int64(), "users": pa.int32(),
        "first": pa.float64(), "last": pa.float64(),
    }
)  # fmt: skip
