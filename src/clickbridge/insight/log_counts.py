"""Counts everything that the checks of a log need, in one pass. Memory grows with the number of queries, users and
clicked documents, not with the number of lines."""

from __future__ import annotations

import time
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from clickbridge.log.personal import looks_personal, redacted
from clickbridge.log.readers import LogReader
from clickbridge.progress import Progress, silent
from clickbridge.types import Document, Impression, PairCount, query_key
from clickbridge.views.stopwords import STOP_WORDS

EXAMPLES = 3
POSITIONS = 50
"""The ranks of a page that are counted separately."""
MINUTE, DAY = 60.0, 86_400.0


@dataclass
class UserRate:
    """The number of events of one user, and the largest number within one minute."""

    records: int = 0
    minute: float = -1.0
    now: int = 0
    most: int = 0

    def add(self, moment: float | None) -> None:
        self.records += 1
        if moment is None:
            return
        minute = moment // MINUTE
        self.now = self.now + 1 if minute == self.minute else 1
        self.minute, self.most = minute, max(self.most, self.now)


@dataclass
class Found:
    """How often something was seen, and the first few examples."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str) -> None:
        self.count += 1
        if len(self.examples) < EXAMPLES and example not in self.examples:
            self.examples.append(example)


@dataclass
class LogCounts:
    records: int = 0
    pages: int = 0
    shown_pages: int = 0
    """The number of pages that list what was shown."""
    clicks: int = 0
    timed: int = 0
    backwards: Found = field(default_factory=Found)
    future: Found = field(default_factory=Found)
    outside: Found = field(default_factory=Found)
    one_document: Found = field(default_factory=Found)
    personal: Found = field(default_factory=Found)
    first: float | None = None
    last: float | None = None
    positions: Counter[int] = field(default_factory=Counter)
    queries: Counter[str] = field(default_factory=Counter)
    documents: Counter[str] = field(default_factory=Counter)
    """Clicks by document."""
    users: dict[str, UserRate] = field(default_factory=dict)
    languages: Counter[str] = field(default_factory=Counter)
    own_documents: int = 0
    """The documents that the log itself contains."""


def count_log(log: LogReader, progress: Progress = silent) -> LogCounts:
    """Reads the log once."""
    counts, soon = LogCounts(), time.time() + DAY
    for number, record in enumerate(log, 1):
        if isinstance(record, Document):
            counts.own_documents += 1
            continue
        counts.records += 1
        _count_query(counts, record)
        _count_time(counts, record, soon)
        if record.user:
            counts.users.setdefault(record.user, UserRate()).add(record.time)
        if isinstance(record, Impression):
            _count_page(counts, record)
        elif record.clicks:
            counts.clicks += record.clicks
            counts.documents[record.doc_id] += record.clicks
        if number % 10_000 == 0:
            progress(f"{log.reads.lines} {number:,}")
    return counts


def _count_query(counts: LogCounts, record: Impression | PairCount) -> None:
    key = query_key(record.query, record.query_id)
    counts.queries[key] += 1
    if counts.queries[key] > 1 or not record.query:
        return
    counts.languages[language_of(record.query)] += 1
    if looks_personal(record.query):
        counts.personal.add(redacted(record.query))


def _count_time(counts: LogCounts, record: Impression | PairCount, soon: float) -> None:
    if record.time is None:
        return
    counts.timed += 1
    when = _shown_time(record.time)
    if record.time > soon:
        counts.future.add(when)
    if counts.last is not None and record.time < counts.last:
        counts.backwards.add(when)
    counts.first = record.time if counts.first is None else min(counts.first, record.time)
    counts.last = record.time if counts.last is None else max(counts.last, record.time)


def _count_page(counts: LogCounts, page: Impression) -> None:
    counts.pages += 1
    counts.clicks += len(page.clicks)
    counts.documents.update(page.clicks)
    if page.results is None:
        return
    counts.shown_pages += 1
    place = {doc_id: i for i, doc_id in enumerate(page.results, 1)}
    if len(place) == 1:
        counts.one_document.add(redacted(page.query) or str(page.query_id))
    for doc_id in page.clicks:
        if doc_id in place:
            counts.positions[min(place[doc_id], POSITIONS)] += 1
        else:
            counts.outside.add(doc_id)


def _shown_time(moment: float) -> str:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return str(moment)


def language_of(text: str) -> str:
    """A rough guess of the language: the name of the script if it is not Latin, else by the query's function words."""
    letters = next((ch for ch in text if ch.isalpha()), "")
    script = unicodedata.name(letters, "").partition(" ")[0].lower() if letters else ""
    if not script:
        return "no letters"
    if script != "latin":
        return script
    words = set(text.lower().split())
    return _most((language, len(words & small)) for language, small in STOP_WORDS.items())


def _most(counted: Iterable[tuple[str, int]]) -> str:
    """The name with the largest count, if it is larger than every other."""
    ordered = sorted(counted, key=lambda item: -item[1])
    return ordered[0][0] if ordered[0][1] > ordered[1][1] else "Latin letters, language not recognised"
