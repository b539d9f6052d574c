"""`split`: splits a log into a training log and lists labelled by clicks, for evaluation without judgments.

It reads the files twice. The training part is written as a log that `ingest` reads. The other part becomes one list per
query: all results that were shown, with label 1 for clicked ones. If the log has no shown results, the most clicked
documents of the training part are added to the clicked ones.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

import numpy as np
import orjson

from clickbridge.errors import InputError, SettingError
from clickbridge.io.files import named_together, written_aside
from clickbridge.io.lists import list_lines
from clickbridge.log.clean import RecordError, clean_time
from clickbridge.log.pair_sums import database_errors
from clickbridge.log.readers import LogReader
from clickbridge.log.writers import log_writer
from clickbridge.types import Document, Impression, PairCount, ResultList, query_key
from clickbridge.wording import count_of

DISTRACTORS = 50
NO_ORDER = (
    "the log has no shown results: lists are in the order of ids, which says nothing; compare with bm25, not given"
)


@dataclass
class SplitReport:
    train_lines: int = 0
    held_lines: int = 0
    lists: int = 0
    documents: int = 0
    by: str = "time"
    at: str = ""
    notes: list[str] = field(default_factory=list)


@database_errors()
def split_log(
    log: LogReader, *, at: str, by: str, train: str, lists: str, docs: str | None = None, seed: int = 0
) -> SplitReport:
    """Writes the training log, the lists and, to `docs`, the documents that the log contains."""
    if "-" in log.paths:
        raise SettingError("split reads the log twice: give files, not standard input")
    if by == "time":
        return _split(log, _time_cut(log, at), SplitReport(by=by), train, lists, docs)
    if by == "query":
        return _split(log, _query_cut(at, seed), SplitReport(by=by, at=at), train, lists, docs)
    raise SettingError(f"--by must be time or query; got {by!r}")


def _split(
    log: LogReader, cut: _TimeCut | _HashCut, report: SplitReport, train: str, lists: str, docs: str | None
) -> SplitReport:
    report.at = report.at or cut.label
    shown: dict[str, dict[str, float]] = {}
    texts: dict[str, Impression | PairCount] = {}
    popular: Counter[str] = Counter()
    brought: dict[str, Document] = {}
    has_results = False
    with named_together() as waiting, ExitStack() as files:
        list_file = files.enter_context(written_aside(lists, waiting))
        docs_file = files.enter_context(written_aside(docs, waiting)) if docs is not None else None
        out = files.enter_context(log_writer(train, waiting))
        for record in log:
            if isinstance(record, Document):
                brought.setdefault(record.doc_id, record)
                continue
            if not cut.holds(record):
                report.train_lines += 1
                out.add(record)
                if isinstance(record, Impression):
                    popular.update(record.clicks)
                elif record.clicks:
                    popular[record.doc_id] += record.clicks
                continue
            report.held_lines += 1
            key = query_key(record.query, record.query_id)
            texts.setdefault(key, record)
            labels = shown.setdefault(key, {})
            if isinstance(record, Impression):
                has_results |= bool(record.results)
                for doc_id in record.results or []:
                    labels.setdefault(doc_id, 0.0)
                labels.update(dict.fromkeys(record.clicks, 1.0))
            elif record.clicks:
                labels[record.doc_id] = 1.0
        if not report.train_lines or not report.held_lines:
            raise InputError(
                f"--at {report.at} leaves {count_of(report.train_lines, 'line')} to train on and {report.held_lines} "
                "to test: move the cut"
            )
        if out.pages_lost:
            report.notes.append(
                f"{train} is a table: {count_of(out.pages_lost, 'result page')} became counts; .jsonl keeps pages"
            )
        if not has_results:
            report.notes.append(NO_ORDER)
        others = [] if has_results else [doc_id for doc_id, _ in popular.most_common(DISTRACTORS)]
        kept = list(_lists(shown, texts, others))
        if not kept:
            raise InputError("the held part has no query with both a clicked and an unclicked result: move the cut")
        list_file.writelines(list_lines(kept))
        if docs_file is not None:
            docs_file.writelines(_document_lines(brought.values()))
    report.lists, report.documents = len(kept), len(brought)
    if docs is None and brought:
        report.notes.append(
            f"{train} has no text of documents, and the log brings along {count_of(len(brought), 'document')}: "
            "--docs FILE keeps them"
        )
    return report


def _document_lines(documents: Iterable[Document]) -> Iterator[bytes]:
    for document in documents:
        yield orjson.dumps({"doc_id": document.doc_id, **document.fields}, option=orjson.OPT_APPEND_NEWLINE)


def _lists(shown: dict[str, dict[str, float]], records: dict[str, Any], others: list[str]) -> Iterator[ResultList]:
    own_ids = {record.query_id for record in records.values() if not record.query}
    free = (name for number in count() if (name := f"q{number}") not in own_ids)
    for key, labels in shown.items():
        results = list(dict.fromkeys([*labels, *others]))
        if others:
            results.sort()
        grades = [labels.get(doc_id, 0.0) for doc_id in results]
        if 0 < sum(grades) < len(grades):
            record = records[key]
            # A query that has only an id keeps it, since models find it by that id.
            query_id = record.query_id if not record.query else next(free)
            yield ResultList(query_id, record.query, results, grades)


class _TimeCut:
    def __init__(self, cut: float) -> None:
        self.cut = cut
        self.label = datetime.fromtimestamp(cut, UTC).isoformat()

    def holds(self, record: Impression | PairCount) -> bool:
        return record.time is not None and record.time > self.cut


class _HashCut:
    def __init__(self, share: float, seed: int) -> None:
        self.share = share
        self.salt = seed.to_bytes(4, "little")
        self.label = f"{share:.0%}"

    def holds(self, record: Impression | PairCount) -> bool:
        key = query_key(record.query, record.query_id)
        return zlib.crc32(self.salt + key.encode()) / 2**32 >= self.share


def _time_cut(log: LogReader, at: str) -> _TimeCut:
    if not _is_share(at):
        try:
            moment = clean_time(at, 1.0)
        except RecordError as error:
            raise SettingError(f"--at takes a share like 80% or a date like 2026-01-31: {error}") from None
        if moment is None:
            raise SettingError("--at takes a share like 80% or a date like 2026-01-31")
        return _TimeCut(moment)
    times = np.fromiter((r.time for r in log if not isinstance(r, Document) and r.time is not None), dtype=np.float64)
    log.rejects.reset()
    if not len(times):
        raise InputError("the log has no times: split it with --by query")
    return _TimeCut(float(np.quantile(times, _share(at))))


def _query_cut(at: str, seed: int) -> _HashCut:
    if not _is_share(at):
        raise SettingError(f"--by query takes a share like --at 80%; got {at!r}")
    return _HashCut(_share(at), seed)


def _is_share(at: str) -> bool:
    """Whether it is written like `80%`, or like `0.8`, which is no time of any log."""
    return at.endswith("%") or re.fullmatch(r"0?\.\d+", at) is not None


def _share(at: str) -> float:
    try:
        share = float(at.removesuffix("%")) / (100 if at.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise SettingError(f"--at takes a share between 0% and 100%; got {at!r}")
    return share
