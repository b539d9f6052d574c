"""Records in batches of columns: the first step from a log to numbers, on this machine or on each of several.

Texts are numbered batch by batch, by Arrow. Memory is that of one batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from clickbridge.io.secret import Secret
from clickbridge.types import Impression, PairCount, query_key

Array = np.ndarray[Any, Any]
BATCH_RECORDS, BATCH_SHOWN = 200_000, 1_000_000
PAGE_COLUMNS = {"query": np.int32, "length": np.int32, "time": np.float64, "user": np.uint64, "doc": np.int32}
CLICK_COLUMNS = {
    "query": np.int32, "doc": np.int32, "clicks": np.int32, "impressions": np.int32, "time": np.float64,
    "user": np.uint64,
}  # fmt: skip


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

    def save(self, path: Path) -> None:
        parts = (("pages", self.pages), ("clicks", self.clicks))
        columns = {f"{part}.{name}": values for part, own in parts for name, values in own.items()}
        np.savez(path, **columns)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: Path) -> EventBatch:
        with np.load(path, allow_pickle=False) as stored:
            columns = {name: stored[name] for name in stored.files}
        pages, clicks = (
            {name.removeprefix(part): values for name, values in columns.items() if name.startswith(part)}
            for part in ("pages.", "clicks.")
        )
        return cls(pages, clicks)

    def renumbered(self, queries: Array, docs: Array) -> EventBatch:
        """With other numbers of queries and documents, given by the old ones."""
        maps = {"query": queries, "doc": docs}
        return EventBatch(
            *(
                {name: maps[name][values] if name in maps else values for name, values in part.items()}
                for part in (self.pages, self.clicks)
            )
        )


@dataclass(frozen=True)
class Batch(EventBatch):
    """And the texts of their queries and documents, by number."""

    queries: pa.Array
    docs: pa.Array


class Numbering(dict[str, int]):
    """Numbers for texts, in order of first sight."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


class Batches:
    """`add` records, `flush` at the end; every batch is handed to `keep` when it is full."""

    def __init__(self, secret: Secret, keep: Callable[[Batch], None], summary: Summary) -> None:
        self.secret = secret
        self.summary = summary
        self.has_clicks = False
        """Whether there are clicks that no page accounts for."""
        self.has_stated_impressions = False
        """Whether a row of a table says how often a document was shown."""
        self._keep = keep
        self._start()

    def _start(self) -> None:
        self._users = Numbering()
        self._pages: dict[str, list[Any]] = {column: [] for column in PAGE_COLUMNS}
        self._clicked: list[int] = []
        self._clicks: dict[str, list[Any]] = {column: [] for column in CLICK_COLUMNS}

    def add(self, record: Impression | PairCount) -> None:
        if isinstance(record, Impression):
            self._add_impression(record)
        else:
            self._add_count(record)
        if len(self._pages["doc"]) >= BATCH_SHOWN or (
            len(self._pages["query"]) + len(self._clicks["query"]) >= BATCH_RECORDS
        ):
            self.flush()

    def _add_impression(self, record: Impression) -> None:
        rows, results, clicks = self._pages, record.results, record.clicks
        if results:
            self.summary.impressions += 1
            rows["query"].append(query_key(record.query, record.query_id))
            rows["time"].append(record.time)
            rows["user"].append(self._user(record.user))
            rows["length"].append(len(results))
            shown = rows["doc"]
            start = len(shown)
            shown.extend(results)
        if not clicks:
            return
        self.summary.clicks += len(clicks)
        for doc_id in clicks:
            if results and doc_id in results:
                self._clicked.append(start + results.index(doc_id))
            else:
                self.summary.clicks_outside_results += bool(results)
                self._append_click(record, doc_id, 1, 0)

    def _add_count(self, record: PairCount) -> None:
        self.summary.pair_rows += 1
        self.summary.clicks += record.clicks
        shown = record.impressions if record.impressions is not None else 0
        self._append_click(record, record.doc_id, record.clicks, shown)

    def _append_click(self, record: Impression | PairCount, doc_id: str, clicks: int, shown: int) -> None:
        rows = self._clicks
        rows["query"].append(query_key(record.query, record.query_id))
        rows["doc"].append(doc_id)
        rows["clicks"].append(clicks)
        rows["impressions"].append(shown)
        rows["time"].append(record.time)
        rows["user"].append(self._user(record.user))

    def _user(self, user: str | None) -> int:
        return 0 if user is None else self._users[user] + 1

    def flush(self) -> None:
        pages, clicks = self._pages, self._clicks
        if not pages["query"] and not clicks["query"]:
            return
        users = np.array([0, *map(self.secret.user, self._users)], dtype=np.uint64)
        own: dict[str, Array] = {}
        others: dict[str, Array] = {}
        own["query"], others["query"], queries = _numbered(pages["query"], clicks["query"])
        own["doc"], others["doc"], docs = _numbered(pages["doc"], clicks["doc"])
        for arrays, rows, kinds in ((own, pages, PAGE_COLUMNS), (others, clicks, CLICK_COLUMNS)):
            arrays["user"] = users[np.array(rows["user"], np.int64)]
            for column, dtype in kinds.items():
                if column not in arrays:  # a time of None becomes NaN
                    arrays[column] = np.array(rows[column], dtype)
        own["clicked"] = np.zeros(len(own["doc"]), dtype=np.uint8)
        own["clicked"][self._clicked] = 1
        self.summary.has_times |= any(np.isfinite(arrays["time"]).any() for arrays in (own, others))
        self.summary.has_users |= len(self._users) > 0
        self.has_clicks |= len(others["query"]) > 0
        self.has_stated_impressions |= bool(others["impressions"].any())
        self._start()
        self._keep(Batch(own, others, queries, docs))


def _numbered(pages: list[str], clicks: list[str]) -> tuple[Array, Array, pa.Array]:
    """Texts of pages and of clicks as numbers, and the texts by these numbers."""
    encoded = pa.array(pages + clicks, pa.string()).dictionary_encode()
    codes = encoded.indices.to_numpy()
    return codes[: len(pages)], codes[len(pages) :], encoded.dictionary
