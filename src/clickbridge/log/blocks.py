"""Cleans records by column, a few hundred at a time.

If no record needs a special treatment, `pages_in` and `pairs_in` clean all of them at once, which is much faster than
one by one. They return the same as `clean_session` and `clean_triple`, or None if a record must be cleaned by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice, pairwise
from types import NoneType
from typing import Any

import numpy as np

from clickbridge.log.clean import (
    END_OF_TIME,
    FIRST_LOGS,
    MAX_QUERY,
    RecordError,
    clean_user,
    event_time,
    normalise_query,
    whole_number,
)
from clickbridge.log.personal import redacted
from clickbridge.types import OPAQUE, Document, Impression, LogRecord, PairCount, query_key

BLOCK = 300
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PageBlock:
    """Searches, by column."""

    queries: list[str]
    """Keys, see `types.query_key`."""
    results: list[list[str] | None]
    clicks: list[list[str]]
    users: list[str | None]
    times: list[float | None]

    @classmethod
    def of(cls, records: Sequence[Impression]) -> PageBlock:
        return cls(
            [query_key(record.query, record.query_id) for record in records],
            [record.results for record in records],
            [record.clicks for record in records],
            [record.user for record in records],
            [record.time for record in records],
        )

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, i: int) -> tuple[Any, ...]:
        return self.queries[i], self.results[i], self.clicks[i], self.users[i], self.times[i]


@dataclass(frozen=True, slots=True)
class PairBlock:
    """Rows of a table of clicks, by column."""

    queries: list[str]
    docs: list[str]
    clicks: list[int]
    impressions: list[int]
    """0 where the table does not say."""
    users: list[str | None]
    times: list[float | None]

    @classmethod
    def of(cls, records: Sequence[PairCount]) -> PairBlock:
        return cls(
            [query_key(record.query, record.query_id) for record in records],
            [record.doc_id for record in records],
            [record.clicks for record in records],
            [record.impressions or 0 for record in records],
            [record.user for record in records],
            [record.time for record in records],
        )

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, i: int) -> tuple[Any, ...]:
        return self.queries[i], self.docs[i], self.clicks[i], self.impressions[i], self.users[i], self.times[i]


Block = PageBlock | PairBlock


def in_blocks(parts: Iterable[LogRecord | Block]) -> Iterator[Block | Document]:
    """Records in blocks, in their order. Blocks and documents are passed on as they are."""
    for kind, same in groupby(parts, type):
        own: Any = same
        if kind is Impression:
            yield from map(PageBlock.of, _chunks(own))
        elif kind is PairCount:
            yield from map(PairBlock.of, _chunks(own))
        else:
            yield from own


def _chunks(records: Iterator[Any]) -> Iterator[list[Any]]:
    while some := list(islice(records, BLOCK)):
        yield some


def without_names(block: Block) -> Block:
    """For `redact=learned`: removes what names a person, so that it is not learned either."""
    keys = block.queries
    return replace(block, queries=[key if key.startswith(OPAQUE) else redacted(key) for key in keys])


def repeats(block: Block, before: tuple[Any, ...] | None) -> int:
    """The number of records that equal the one before them; the one before the first is `before`. Rows without a time
    are not repeats: equal rows are several clicks."""
    queries, times = block.queries, block.times
    same = [i for i, (query, last) in enumerate(pairwise(queries), 1) if query == last]
    count = sum(times[i] is not None and block[i] == block[i - 1] for i in same)
    return count + (before is not None and times[0] is not None and block[0] == before)


def pages_in(rows: Sequence[Row], scale: float) -> PageBlock | None:
    """The result of `clean_session` for each row; None if one of them must be cleaned separately."""
    queries, clicks = _queries(rows), [row.get("clicks") for row in rows]
    results = [row.get("results") for row in rows]
    if queries is None or {*map(type, clicks)} != {list} or not {*map(type, results)} <= {list, NoneType}:
        return None
    if not _are_ids(clicks) or not _are_ids([ids for ids in results if ids]):
        return None
    try:
        return PageBlock(queries, _once(results), _once(clicks), _users(rows), _times(rows, scale))
    except RecordError:
        return None


def pairs_in(rows: Sequence[Row], scale: float) -> PairBlock | None:
    """The result of `clean_triple` for each row; None if one of them must be cleaned separately."""
    docs: list[Any] = [row.get("doc_id") for row in rows]
    queries = _queries(rows)
    if queries is None or not _are_ids([docs]):
        return None
    try:
        clicks, shown = _counts(rows, "clicks", 1), _counts(rows, "impressions", 0)
        return PairBlock(queries, docs, clicks, shown, _users(rows), _times(rows, scale))
    except RecordError:
        return None


def _queries(rows: Sequence[Row]) -> list[str] | None:
    texts: list[Any] = [row.get("query") for row in rows]
    if {*map(type, texts)} != {str} or [row.get("query_id") for row in rows].count(None) != len(rows):
        return None
    if max(map(len, texts)) > MAX_QUERY:
        return None
    queries = _folded(texts)
    return None if "" in queries else queries


def _folded(texts: list[str]) -> list[str]:
    """The texts as normalised by `normalise_query`. Most only need lower case, which is done for all at once."""
    joined = "\n".join(texts)
    if joined.isascii() and "  " not in joined and " \n" not in joined and "\n " not in joined:
        lower = joined.lower().strip(" ").split("\n")
        if len(lower) == len(texts) and "".join(lower).isprintable():
            return lower
    return [normalise_query(text) for text in texts]


def _are_ids(lists: list[Any]) -> bool:
    """Whether all lists contain only ordinary ids: text without white space."""
    flat = list(chain.from_iterable(lists))
    try:
        text = "".join(flat)
    except TypeError:
        return False
    return text.isprintable() and " " not in text and all(flat)


def _once(lists: list[Any]) -> list[Any]:
    if sum(len({*ids}) for ids in lists if ids) == sum(len(ids) for ids in lists if ids):
        return lists
    return [ids and list(dict.fromkeys(ids)) for ids in lists]


def _users(rows: Sequence[Row]) -> list[str | None]:
    users = [row.get("user") for row in rows]
    return users if {*map(type, users)} == {str} and "" not in users else [clean_user(row) for row in rows]


def _times(rows: Sequence[Row], scale: float) -> list[float | None]:
    times = [row.get("time") for row in rows]
    if {*map(type, times)} <= {int, float}:
        try:
            seconds = np.array(times, np.float64) * scale
        except OverflowError:
            return [event_time(time, scale) for time in times]  # it says which one
        if ((seconds >= FIRST_LOGS) & (seconds < END_OF_TIME)).all():
            return seconds.tolist()
    return [event_time(time, scale) for time in times]


def _counts(rows: Sequence[Row], name: str, default: int) -> list[int]:
    counts: list[Any] = [row.get(name) for row in rows]
    if counts.count(None) == len(counts):
        return [default] * len(counts)
    if {*map(type, counts)} == {int} and min(counts) >= 0 and max(counts) < 2**31:
        return counts
    return [whole_number(count, name, default) or 0 for count in counts]
