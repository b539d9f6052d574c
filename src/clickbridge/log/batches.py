"""Collects records in batches of columns: the first step from a log to numbers, on one machine or on several.

Arrow numbers the texts of each batch. The memory is that of one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from clickbridge.io.secret import Secret
from clickbridge.log.blocks import Block, PageBlock

Array = np.ndarray[Any, Any]
BATCH_RECORDS, BATCH_SHOWN = 200_000, 1_000_000
PAGE_COLUMNS = {"query": np.int32, "length": np.int32, "time": np.float64, "user": np.uint64, "doc": np.int32}
CLICK_COLUMNS = {
    "query": np.int32, "doc": np.int32, "clicks": np.int32, "impressions": np.int32, "time": np.float64,
    "user": np.uint64,
}  # fmt: skip
TEXTS = ("query", "doc", "user")
"""Columns that are texts until a batch is numbered; a user ends as a keyed hash."""


@dataclass
class Summary:
    """Counts of a log. They are printed after ingest and stored in the manifest."""

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
    """Some of the log's events, by column. `pages` has `query`, `length`, `time` and `user` of each page, and `doc` and
    `clicked` of each shown document. `clicks` are clicks without a page."""

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
        """A copy with new numbers of queries and documents, indexed by the old ones."""
        maps = {"query": queries, "doc": docs}
        return EventBatch(
            *(
                {name: maps[name][values] if name in maps else values for name, values in part.items()}
                for part in (self.pages, self.clicks)
            )
        )


@dataclass(frozen=True)
class Batch(EventBatch):
    """A batch of events, and the texts of its queries and documents by number."""

    queries: pa.Array
    docs: pa.Array


class Numbering(dict[str, int]):
    """Numbers texts in the order in which they are first seen."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


class Batches:
    """Call `add` for blocks of records, and `flush` at the end. Every full batch is passed to `keep`."""

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
        self._pages: dict[str, list[Any]] = {column: [] for column in PAGE_COLUMNS}
        self._clicks: dict[str, list[Any]] = {column: [] for column in CLICK_COLUMNS}
        self._clicked: list[int] = []
        self._n_records = self._n_shown = 0

    def add(self, block: Block) -> None:
        # A block goes into arrays while its texts are still in the processor's cache.
        if isinstance(block, PageBlock):
            self._add_pages(block)
        else:
            self.summary.pair_rows += len(block)
            self.summary.clicks += sum(block.clicks)
            self._append_clicks(block.queries, block.docs, block.clicks, block.impressions, block.times, block.users)
        self._n_records += len(block)
        if self._n_records >= BATCH_RECORDS or self._n_shown >= BATCH_SHOWN:
            self.flush()

    def _add_pages(self, block: PageBlock) -> None:
        shown: list[str] = []
        others: list[tuple[Any, ...]] = []
        self.summary.clicks += sum(map(len, block.clicks))
        for number, (results, clicks) in enumerate(zip(block.results, block.clicks, strict=True)):
            for doc_id in clicks:
                if results and doc_id in results:
                    self._clicked.append(self._n_shown + len(shown) + results.index(doc_id))
                else:
                    self.summary.clicks_outside_results += bool(results)
                    others.append((block.queries[number], doc_id, 1, 0, block.times[number], block.users[number]))
            shown += results or ()
        if others:
            self._append_clicks(*map(list, zip(*others, strict=True)))
        lengths = [len(results) if results else 0 for results in block.results]
        self.summary.impressions += len(lengths) - lengths.count(0)
        self._n_shown += len(shown)
        columns: dict[str, list[Any]] = {"query": block.queries, "time": block.times, "user": block.users}
        if not all(lengths):
            columns = {name: list(compress(values, lengths)) for name, values in columns.items()}
            lengths = list(filter(None, lengths))
        for name, values in (columns | {"length": lengths, "doc": shown}).items():
            self._pages[name].append(_array(name, values, PAGE_COLUMNS))

    def _append_clicks(self, *columns: list[Any]) -> None:
        for name, values in zip(CLICK_COLUMNS, columns, strict=True):
            self._clicks[name].append(_array(name, values, CLICK_COLUMNS))

    def flush(self) -> None:
        if not self._n_records:
            return
        pages, clicks = self._pages, self._clicks
        own = {name: np.concatenate(pages[name] or [[]]).astype(PAGE_COLUMNS[name]) for name in ("length", "time")}
        others = {
            name: np.concatenate(clicks[name] or [[]]).astype(CLICK_COLUMNS[name])
            for name in ("clicks", "impressions", "time")
        }
        own["query"], others["query"], queries = _numbered(pages["query"], clicks["query"])
        own["doc"], others["doc"], docs = _numbered(pages["doc"], clicks["doc"])
        own["user"], others["user"], users = _numbered(pages["user"], clicks["user"])
        marks = np.array([0, *map(self.secret.user, users.to_pylist())], dtype=np.uint64)
        own["user"], others["user"] = marks[own["user"] + 1], marks[others["user"] + 1]
        own["clicked"] = np.zeros(len(own["doc"]), dtype=np.uint8)
        own["clicked"][self._clicked] = 1
        self.summary.has_times |= any(np.isfinite(arrays["time"]).any() for arrays in (own, others))
        self.summary.has_users |= len(users) > 0
        self.has_clicks |= len(others["query"]) > 0
        self.has_stated_impressions |= bool(others["impressions"].any())
        self._start()
        self._keep(Batch(own, others, queries, docs))


def _array(name: str, values: list[Any], kinds: Mapping[str, Any]) -> Any:
    """The values of a column: texts in Arrow, numbers in NumPy. A time of None becomes NaN."""
    return pa.array(values, pa.string()) if name in TEXTS else np.array(values, kinds[name])


def _numbered(pages: list[pa.Array], clicks: list[pa.Array]) -> tuple[Array, Array, pa.Array]:
    """The texts of pages and of clicks as numbers, -1 for a missing one, and the texts by number."""
    encoded = pa.chunked_array([*pages, *clicks], pa.string()).combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy()
    n_pages = sum(map(len, pages))
    return codes[:n_pages], codes[n_pages:], encoded.dictionary
