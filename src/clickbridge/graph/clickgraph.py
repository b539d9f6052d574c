"""ClickGraph: queries, documents, and every click between them, with the original ids.

Rows are queries and columns are documents, always: there is no matrix without a named orientation.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from scipy import sparse

from clickbridge.errors import ArtifactError, InputError, MissingPart
from clickbridge.graph.dense import Encoder, Vectors, document_texts, fill_vectors, read_vectors, write_vectors
from clickbridge.graph.parts import Array, Clicks, Impressions, Pairs, read_part, write_part
from clickbridge.io.artifact import Artifact, ArtifactWriter, PartWriter, open_artifact
from clickbridge.log.aggregate import LogAggregator
from clickbridge.log.clean import normalise_query
from clickbridge.log.pair_sums import PairSums, connect
from clickbridge.log.readers import LogReader, LogRecord
from clickbridge.types import Document, edge_name, query_key, text_of_key

KIND = "graph"
MEMORY_MB = 1024


class ClickGraph:
    """Built by `build` from a log, or opened from a folder. Arrays may be memory-mapped: do not write to them."""

    def __init__(
        self,
        queries: Sequence[str],
        docs: pa.Table,
        pairs: Pairs,
        impressions: Impressions | None = None,
        clicks: Clicks | None = None,
        defaults: Mapping[str, Any] | None = None,
        summary: Mapping[str, Any] | None = None,
        vectors: Vectors | None = None,
    ) -> None:
        self.query_keys = queries
        self.docs = docs
        self.pairs = pairs
        self.impressions = impressions
        self.clicks = clicks
        self.defaults = dict(defaults or {})
        self.summary = dict(summary or {})
        self.vectors = dict(vectors or {})

    def __repr__(self) -> str:
        return f"ClickGraph({self.n_queries:,} queries, {self.n_docs:,} documents, {len(self.pairs):,} pairs)"

    # --- made from -------------------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        log: Iterable[LogRecord],
        docs: Iterable[Document] = (),
        out: str | Path | None = None,
        *,
        vectors: Mapping[str, str] | None = None,
        defaults: Mapping[str, Any] | None = None,
        progress: Callable[[str, int], None] | None = None,
        memory_mb: int = MEMORY_MB,
    ) -> ClickGraph:
        """Reads the log and the documents once, out of core; with `out`, the GRAPH is written there."""
        if out is None:
            home = tempfile.TemporaryDirectory(prefix="clickbridge-")
            try:
                place = Path(home.name) / "graph"
                graph = cls.build(
                    log, docs, place, vectors=vectors, defaults=defaults, progress=progress, memory_mb=memory_mb
                )
            except BaseException:
                home.cleanup()
                raise
            weakref.finalize(graph, home.cleanup)
            return graph
        with ArtifactWriter(out, KIND) as writer, closing(LogAggregator(writer.scratch(), memory_mb)) as aggregator:
            for count, document in enumerate(docs, 1):
                aggregator.add_document(document)
                if progress and count % 10_000 == 0:
                    progress("documents", count)
            # A reader normalises queries; records made by hand may hold them as they were typed.
            clean = log if isinstance(log, LogReader) else map(_normalised, log)
            for count, record in enumerate(clean, 1):
                aggregator.add(record)
                if progress and count % 20_000 == 0:
                    progress("log lines", count)
            if not aggregator.summary.impressions and not aggregator.summary.clicks:
                raise InputError("the log has neither a shown result nor a click: is it the right file and format?")
            if progress:
                progress("merging", 0)
            summary = aggregator.finish(writer)
            if defaults:
                _check_thresholds(writer, defaults)
            for source in (docs, log):
                rejects = getattr(source, "rejects", None)
                if rejects is not None and rejects.count and rejects.path is not None:
                    # A copy: the file may be the user's own, or on another disk.
                    writer.beside("rejects.jsonl", rejects.path)
            for name, path in (vectors or {}).items():
                write_vectors(writer, name, path)
            writer.commit(defaults=dict(defaults or {}), summary=summary.as_dict(), parts_present=aggregator.parts)
        return cls.open(out)

    @classmethod
    def open(cls, path: str | Path) -> ClickGraph:
        artifact = open_artifact(path, KIND)
        pairs = read_part(artifact, "pairs", Pairs)
        if pairs is None:
            raise ArtifactError(f"the manifest of {path} has no pairs: ingest again")
        return cls(
            _Keys(artifact),
            artifact.table("docs"),
            pairs,
            read_part(artifact, "impressions", Impressions),
            read_part(artifact, "clicks", Clicks),
            artifact.manifest.get("defaults"),
            artifact.manifest.get("summary"),
            read_vectors(artifact),
        )

    def save(self, path: str | Path) -> None:
        with ArtifactWriter(path, KIND) as writer:
            writer.table("queries", pa.table({"key": pa.array(list(self.query_keys), pa.string())}))
            writer.table("docs", self.docs)
            for name in ("pairs", "impressions", "clicks"):
                part = getattr(self, name)
                if part is not None:
                    write_part(writer, name, part)
            for name, sides in self.vectors.items():
                for side, values in sides.items():
                    writer.array(f"vectors.{name}.{side}", values)
            writer.commit(defaults=self.defaults, summary=self.summary, parts_present=self.parts)

    # --- who is who ------------------------------------------------------------------------------

    @property
    def n_queries(self) -> int:
        return len(self.query_keys)

    @property
    def n_docs(self) -> int:
        return int(self.docs.num_rows)

    @property
    def parts(self) -> list[str]:
        """What the GRAPH holds, as the manifest names it."""
        there = {
            "pairs": True,
            "impressions": self.impressions is not None,
            "clicks": self.clicks is not None,
            "users": self.pairs.users is not None,
            "times": self.pairs.first is not None,
            "documents": bool(self.field_names),
        }
        return [name for name, present in there.items() if present]

    @property
    def has_times(self) -> bool:
        return any(part is not None and part.time is not None for part in (self.impressions, self.clicks))

    @property
    def field_names(self) -> list[str]:
        return [name for name in self.docs.column_names if name != "doc_id"]

    @cached_property
    def doc_ids(self) -> list[str]:
        ids: list[str] = self.docs["doc_id"].to_pylist()
        return ids

    @cached_property
    def _doc_numbers(self) -> dict[str, int]:
        return {doc_id: number for number, doc_id in enumerate(self.doc_ids)}

    @cached_property
    def _query_numbers(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self.query_keys)}

    def doc_idx(self, doc_id: str) -> int | None:
        return self._doc_numbers.get(doc_id)

    def query_idx(self, query: str, query_id: str | None = None) -> int | None:
        """By text (normalised here) or, where there is none, by id."""
        return self._query_numbers.get(query_key(normalise_query(query), query_id))

    @cached_property
    def query_texts(self) -> list[str]:
        """Text of every query; empty for one known by its id alone."""
        return [text_of_key(key) for key in self.query_keys]

    @cached_property
    def query_names(self) -> list[str]:
        """How every query is called: by its text, or by its id where it has none. `query_keys` mark the latter."""
        return [edge_name(key) for key in self.query_keys]

    def field(self, name: str) -> list[str]:
        """The text of one field for every document, empty where it has none."""
        if name not in self.field_names:
            raise MissingPart(f"the GRAPH's documents have no field {name!r}; they have {self._fields_in_words()}")
        return [text or "" for text in self.docs[name].to_pylist()]

    def _fields_in_words(self) -> str:
        return ", ".join(self.field_names) or "none: ingest with --docs"

    def matrix(self, *, rows: Literal["queries", "documents"], values: Array | None = None) -> sparse.csr_array:
        """The pairs as a sparse matrix whose rows are what `rows` says; values default to clicks."""
        data = (self.pairs.clicks if values is None else values).astype(np.float64)
        shape = (self.n_queries, self.n_docs)
        out = sparse.coo_array((data, (self.pairs.query, self.pairs.doc)), shape=shape).tocsr()
        out.eliminate_zeros()
        if rows == "queries":
            return out
        if rows == "documents":
            return sparse.csr_array(out.T)
        raise ValueError(f"rows must be 'queries' or 'documents', got {rows!r}")

    # --- made into -------------------------------------------------------------------------------

    def with_events(self, impressions: Impressions | None, clicks: Clicks | None) -> ClickGraph:
        """The same queries and documents with only these events; pairs are summed from them."""
        pairs = sum_pairs(impressions, clicks)
        return self._with(pairs, impressions, clicks)

    def with_pairs(self, pairs: Pairs) -> ClickGraph:
        """The same queries and documents with only these pairs and no events."""
        return self._with(pairs, None, None)

    def _with(self, pairs: Pairs, impressions: Impressions | None, clicks: Clicks | None) -> ClickGraph:
        return ClickGraph(
            self.query_keys, self.docs, pairs, impressions, clicks, self.defaults, self.summary, self.vectors
        )

    def encoded(self, encode: Mapping[str, Encoder]) -> ClickGraph:
        """The same GRAPH in which what has text and no vector gets one: `encode` is a function of texts by name."""
        vectors = {name: dict(sides) for name, sides in self.vectors.items()}
        for name, function in encode.items():
            sides = vectors.setdefault(name, {})
            for side, texts in (("query", self.query_texts), ("doc", list(document_texts(self.docs)))):
                made = fill_vectors(name, function, texts, sides.get(side))
                if made is not None:
                    sides[side] = made
        parts = (self.pairs, self.impressions, self.clicks, self.defaults, self.summary)
        return ClickGraph(self.query_keys, self.docs, *parts, vectors)

    def vectors_of(self, side: Literal["query", "doc"], rows: Array | None) -> dict[str, Array]:
        """Dense vectors of one side by name, of some rows or all; NaN where an item has none."""
        found = {name: sides[side] for name, sides in self.vectors.items() if side in sides}
        return found if rows is None else {name: values[rows] for name, values in found.items()}

    def merge(self, other: ClickGraph) -> ClickGraph:
        """Both logs as one GRAPH; of a document in both, `other`'s text counts."""
        from clickbridge.graph.merge import merge_graphs

        return merge_graphs(self, other)

    def hold_back(self, fraction: float = 0.1, by: str = "auto", seed: int = 0, **more: float):  # type: ignore[no-untyped-def]
        """Splits off part of the clicks for tuning: see `clickbridge.graph.hold_back`."""
        from clickbridge.graph.hold_back import hold_back

        return hold_back(self, fraction, by, seed, **more)


def _normalised(record: LogRecord) -> LogRecord:
    if isinstance(record, Document):
        return record
    query = normalise_query(record.query)
    return record if query == record.query else replace(record, query=query)


def _check_thresholds(writer: PartWriter, defaults: Mapping[str, Any]) -> None:
    """Refuses defaults that would leave a model nothing to learn from."""
    from clickbridge.graph.responses import kept_pairs

    names = [f.name for f in fields(Pairs) if writer.has(f"pairs.{f.name}.npy")]
    pairs = Pairs(**{name: np.load(writer.written(f"pairs.{name}.npy"), mmap_mode="r") for name in names})
    limits = {name: defaults[name] for name in ("min_clicks", "min_users") if name in defaults}
    if limits:
        kept_pairs(pairs, **limits)


class _Keys(Sequence[str]):
    """Query keys of an opened GRAPH, read when first used."""

    def __init__(self, artifact: Artifact) -> None:
        self._column = artifact.table("queries")["key"]

    @cached_property
    def _values(self) -> list[str]:
        values: list[str] = self._column.to_pylist()
        return values

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        return self._values[i]


def sum_pairs(impressions: Impressions | None, clicks: Clicks | None) -> Pairs:
    """Pairs of the given events, by the same sums as ingest."""
    with tempfile.TemporaryDirectory(prefix="clickbridge-") as folder:
        sql = connect(Path(folder), MEMORY_MB)
        sums = PairSums(sql)
        if impressions is not None and len(impressions):
            length = np.diff(impressions.indptr)
            wide = (
                np.repeat(impressions.query, length),
                impressions.doc,
                impressions.clicked,
                np.ones(len(impressions.doc), dtype=np.int32),
                np.repeat(time_or_nan(impressions), length),
                np.repeat(user_or_zero(impressions), length),
            )
            sums.add(*wide, stated=False)
        if clicks is not None and len(clicks):
            shown = np.zeros(len(clicks), dtype=np.int32) if clicks.impressions is None else clicks.impressions
            sums.add(
                clicks.query, clicks.doc, clicks.clicks, shown, time_or_nan(clicks), user_or_zero(clicks), stated=True
            )
        table = sums.table()
        sql.close()
    known = [part for part in (impressions, clicks) if part is not None]
    absent = set()
    if not any(part.user is not None for part in known):
        absent.add("users")
    if not any(part.time is not None for part in known):
        absent |= {"first", "last"}
    values: dict[str, Any] = {n: None if n in absent else table[n].to_numpy() for n in table.column_names}
    return Pairs(**values)


def time_or_nan(part: Impressions | Clicks) -> Array:
    return np.full(len(part), np.nan) if part.time is None else part.time


def user_or_zero(part: Impressions | Clicks) -> Array:
    return np.zeros(len(part), dtype=np.uint64) if part.user is None else part.user
