"""Builds a GRAPH from a log and documents: each is read once, out of core, and written to a folder."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickbridge.engines.base import Engine
from clickbridge.errors import InputError, SettingError, shown_names
from clickbridge.graph.dense import write_vectors
from clickbridge.graph.oddities import html_removed, oddities
from clickbridge.graph.responses import kept_pairs
from clickbridge.graph.storage import KIND, earlier_secret, header, write_log, written_pairs
from clickbridge.io.artifact import ArtifactWriter
from clickbridge.io.secret import Secret
from clickbridge.log.aggregate import LogAggregator
from clickbridge.log.blocks import in_blocks, without_names
from clickbridge.log.clean import normalise_query
from clickbridge.log.documents import DocumentReader
from clickbridge.log.given import check_record, check_records, checked_document
from clickbridge.log.pair_sums import database_errors
from clickbridge.log.personal import REDACT
from clickbridge.log.readers import LogReader
from clickbridge.progress import Progress
from clickbridge.types import Document, LogRecord
from clickbridge.wording import count_of

if TYPE_CHECKING:
    from clickbridge.graph.clickgraph import ClickGraph

LOGGER = logging.getLogger("clickbridge.graph")


@database_errors()
def build_graph(
    log: Iterable[LogRecord],
    docs: Iterable[Document],
    out: str | Path,
    *,
    vectors: Mapping[str, str],
    defaults: Mapping[str, Any],
    progress: Progress,
    memory_mb: int,
    secret: Secret | None,
    redact: str,
    engine: Engine | None = None,
) -> None:
    """Builds a GRAPH. The workers of `engine` share the files of the log; with None or `Local`, they are read one after
    the other."""
    check_records(log, docs)
    if redact not in REDACT:
        raise SettingError(f"redact must be one of {', '.join(REDACT)}; got {redact!r}")
    secret = secret or earlier_secret(out)
    with (
        ArtifactWriter(out, KIND) as writer,
        closing(LogAggregator(writer.scratch(), memory_mb, secret=secret)) as aggregator,
    ):
        _add_documents(aggregator, docs, progress)
        if engine is not None and engine.name == "ray" and isinstance(log, LogReader):
            from clickbridge.log.partitions import aggregate

            progress(count_of(len(log.paths), "log file"))
            aggregate(log, aggregator, engine, redact == "learned")
            n_records = len(log.paths)
        else:
            n_records = _add_log(aggregator, log, progress, redact)
        _check_any(aggregator, log, n_records)
        progress("merging")
        aggregator.finish()
        parts = write_log(writer, aggregator)
        limits = {name: defaults[name] for name in ("min_clicks", "min_users") if name in defaults}
        if limits:
            # Refuses defaults that would leave a model nothing to learn from.
            kept_pairs(written_pairs(writer), **limits)
        for source in (docs, log):
            rejects = getattr(source, "rejects", None)
            if rejects is not None and rejects.count and rejects.path is not None:
                # A copy: the file may be the user's own, or on another disk.
                writer.beside("rejects.jsonl", rejects.path)
        for name, path in vectors.items():
            write_vectors(writer, name, path)
        writer.commit(**header(defaults, aggregator.summary.as_dict(), parts, redact))


def warn_of(graph: ClickGraph, log: Iterable[LogRecord], docs: Iterable[Document]) -> None:
    """Logs what is odd in a GRAPH made from files or frames. Records made by hand, of an update or of a part of a log,
    need not be complete."""
    if not isinstance(log, LogReader) and not isinstance(docs, DocumentReader):
        return
    if isinstance(docs, DocumentReader) and docs.with_html:
        LOGGER.warning(html_removed(docs.with_html))
    if isinstance(docs, DocumentReader) and docs.ignored:
        LOGGER.info(f"fields of documents that are not text were left out: {', '.join(sorted(docs.ignored))}")
    for line in log.notes if isinstance(log, LogReader) else ():
        LOGGER.info(line)
    for line in oddities(graph):
        LOGGER.warning(line)


def _add_documents(aggregator: LogAggregator, docs: Iterable[Document], progress: Progress) -> None:
    for count, document in enumerate(docs, 1):
        aggregator.add_document(checked_document(document))
        if count % 10_000 == 0:
            progress(f"documents {count:,}")


def _add_log(aggregator: LogAggregator, log: Iterable[LogRecord], progress: Progress, redact: str) -> int:
    """Adds the log. Returns the number of records."""
    # A reader normalises queries; records made by hand may hold them as they were typed.
    blocks = log.blocks() if isinstance(log, LogReader) else in_blocks(map(_normalised, log))
    count = told = 0
    for block in blocks:
        if isinstance(block, Document):
            count += 1
        else:
            count += len(block)
            block = without_names(block) if redact == "learned" else block
        aggregator.add(block)
        if count - told >= 20_000:
            told = count
            progress(f"{log.reads.lines if isinstance(log, LogReader) else 'log lines'} {count:,}")
    return count


def _check_any(aggregator: LogAggregator, log: Iterable[LogRecord], n_records: int) -> None:
    summary, reader = aggregator.summary, log if isinstance(log, LogReader) else None
    has_log = n_records > 0 or (reader is not None and bool(reader.paths))
    if summary.impressions or summary.clicks or (summary.documents and not has_log):
        return
    if reader is not None and reader.layouts:
        raise InputError(_nothing_in(reader))
    raise InputError("the log has neither a shown result nor a click: is it the right file and format?")


def _nothing_in(log: LogReader) -> str:
    """Why a log gave neither a shown result nor a click, as far as can be told: how it was read, and what it has."""
    layout = next(iter(log.layouts.values()))
    lost, read = log.rejects.count, log.rejects.lines
    what = "the log has neither a shown result nor a click"
    if not read:
        return f"{what}: {layout.path} has no records"
    columns = ", ".join(f"{ours} is {theirs}" for ours, theirs in layout.columns.items())
    how = f"{layout.path} was read as {layout.format}" + (f" ({columns})" if columns else "")
    counted = f"{count_of(read - lost, 'record', 'are', of=read)} empty, {lost:,} left out"
    if not layout.names:
        return f"{what}: {how}; {counted}: is it the right file and format?"
    other = f"it has {shown_names(list(layout.names))}: name others with --columns query=...,clicks=...,results=..."
    return f"{what}: {how}; {counted}; {other}, or give --format"


def _normalised(record: LogRecord) -> LogRecord:
    check_record(record)
    if isinstance(record, Document):
        return record
    query = normalise_query(record.query)
    return record if query == record.query else replace(record, query=query)
