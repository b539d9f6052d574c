"""ClickGraph: queries, documents, and every click between them, with the original ids.

Rows are queries and columns are documents, always: there is no matrix without a named orientation.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.errors import MissingPart
from clickbridge.frames import Frame
from clickbridge.graph.dense import Encoder, Vectors, document_texts, fill_vectors
from clickbridge.graph.parts import Array, Clicks, Impressions, Pairs, columns
from clickbridge.graph.storage import KIND as KIND
from clickbridge.graph.storage import parts_present, read_graph, write_graph
from clickbridge.graph.sums import sum_pairs as sum_pairs
from clickbridge.io.secret import Secret
from clickbridge.log.clean import find_query
from clickbridge.progress import Progress, logged
from clickbridge.types import OPAQUE, Document, LogRecord, edge_name, text_of_key
from clickbridge.wording import count_of

if TYPE_CHECKING:
    import pyarrow as pa

    from clickbridge.graph.hold_back import HoldBack

MEMORY_MB = 1024
NO_SECRET = Secret()


class ClickGraph:
    """A click log and its documents: the training data of every model.

    Create it with `build` from records, with `from_frame` from data frames, or with `open` from a folder. It keeps
    every click; thresholds are settings of the models. Its arrays may be memory-mapped, so do not write to them.

    Examples
    --------
    >>> from clickbridge import Document, Impression
    >>> pages = [Impression("NY  pizza", ["d1", "d2"], ["d2"]), Impression("ny pizza", ["d2", "d1"], ["d2"])]
    >>> graph = ClickGraph.build(pages, [Document("d1", {"title": "New York"}), Document("d2", {"title": "Pizza"})])
    >>> graph
    ClickGraph(1 query, 2 documents, 1 pair)
    >>> graph.field("title")
    ['New York', 'Pizza']
    """

    def __init__(
        self,
        queries: Sequence[str],
        docs: pa.Table,
        pairs: Pairs,
        impressions: Impressions | None = None,
        clicks: Clicks | None = None,
        defaults: Mapping[str, object] | None = None,
        summary: Mapping[str, object] | None = None,
        vectors: Vectors | None = None,
        secret: Secret | None = NO_SECRET,
        redact: str = "shown",
    ) -> None:
        self.query_keys = queries
        self.docs = docs
        self.pairs = pairs
        self.impressions = impressions
        self.clicks = clicks
        self.defaults: dict[str, Any] = dict(defaults or {})
        self.summary: dict[str, Any] = dict(summary or {})
        self.vectors = dict(vectors or {})
        self.secret = secret
        """By which users were hashed; None where only the owner of the GRAPH may read it."""
        self.redact = redact

    def __repr__(self) -> str:
        counts = {"query": self.n_queries, "document": self.n_docs, "pair": len(self.pairs)}
        return f"ClickGraph({', '.join(count_of(n, noun) for noun, n in counts.items())})"

    # --- made from -------------------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        log: Iterable[LogRecord] = (),
        docs: Iterable[Document] = (),
        out: str | Path | None = None,
        *,
        vectors: Mapping[str, str] | None = None,
        defaults: Mapping[str, object] | None = None,
        progress: Progress = logged,
        memory_mb: int = MEMORY_MB,
        secret: Secret | None = None,
        redact: str = "shown",
        engine: Engine | None = None,
    ) -> ClickGraph:
        """Builds a GRAPH from records. The log and the documents are read once and need not fit in memory.

        What looks wrong in files goes to the logger "clickbridge" as a warning: clicks on ids that no document has,
        clicks on what the page did not show, HTML in texts.

        Parameters
        ----------
        log : iterable of Impression, PairCount or Document
            The log: the result of `read_log`, or your own objects. Text models need none.
        docs : iterable of Document
            The documents: the result of `read_docs`, or your own objects.
        out : str or Path, optional
            A folder to write the GRAPH to.
        vectors : mapping of str to str, optional
            Files of dense vectors by name.
        defaults : mapping, optional
            Settings such as `min_clicks` that `fit` uses by default.
        progress : function of a str, optional
            Called with one line of text for each step, for example `print`. By default the lines go to the standard
            logger "clickbridge" at level INFO.
        memory_mb : int
            Memory for sorting and sums, in MB; the rest goes to disk.
        secret : Secret, optional
            The key for hashing users. By default that of the GRAPH at `out`, or a new one. To merge with another GRAPH
            later, pass the secret of that GRAPH.
        redact : str
            Where e-mail addresses, phone numbers, card numbers and the like are hidden. "shown": in everything that is
            shown to other people. "learned": they are also kept out of the GRAPH. "off": nowhere.
        engine : Engine, optional
            With `Ray`, several workers read the files of the log. All of them need access to these files and to `out`.

        Returns
        -------
        ClickGraph
        """
        # It needs DuckDB, which is not loaded just to use a GRAPH.
        from clickbridge.graph.build import build_graph, warn_of

        def build(place: str | Path) -> ClickGraph:
            more: dict[str, Any] = {"vectors": vectors or {}, "defaults": defaults or {}, "memory_mb": memory_mb}
            build_graph(log, docs, place, progress=progress, secret=secret, redact=redact, engine=engine, **more)
            graph = cls.open(place)
            warn_of(graph, log, docs)
            return graph

        if out is not None:
            return build(out)
        with tempfile.TemporaryDirectory(prefix="clickbridge-") as home:
            # What is mapped into memory stays there when its files go.
            return build(Path(home) / "graph")

    @classmethod
    def from_frame(
        cls,
        log: Frame | None = None,
        docs: Frame | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        doc_columns: Mapping[str, str] | None = None,
        time_unit: str | None = None,
        time_format: str | None = None,
        dedupe: bool = False,
        max_rejects: str | float = "1%",
        out: str | Path | None = None,
        vectors: Mapping[str, str] | None = None,
        defaults: Mapping[str, object] | None = None,
        progress: Progress = logged,
        memory_mb: int = MEMORY_MB,
        secret: Secret | None = None,
        redact: str = "shown",
    ) -> ClickGraph:
        """Builds a GRAPH from data frames: pandas, Polars, Arrow tables, or anything else that gives Arrow columns.

        What was guessed about the columns goes to the logger "clickbridge" at level INFO, as options of the command
        line; what looks wrong goes there as a warning.

        Parameters
        ----------
        log : frame, optional
            One click per row: `query`, `doc_id` and, if they are known, `clicks`, `impressions`, `user`, `time`. Or one
            result page per row, with lists in `results` and `clicks`. Text models need none.
        docs : frame, optional
            `doc_id` and columns of text.
        columns, doc_columns : mapping of str to str, optional
            The frame's column for each of our names, such as `{"query": "term"}`. Common names such as `search_term`
            and `sku` are recognised.
        time_unit, time_format : str, optional
            How times are written: s, ms, us or ns for numbers, a format such as `%d.%m.%Y` for text. Guessed by
            default.
        dedupe : bool
            Leave out rows that repeat an earlier one.
        max_rejects : str or float
            Rows that cannot be used are left out. If their share is larger than this, the frame is refused.

        The other parameters are those of `build`.

        Returns
        -------
        ClickGraph

        Examples
        --------
        >>> import pyarrow as pa
        >>> log = pa.table({"term": ["ny pizza", "big apple"], "sku": ["d2", "d1"]})
        >>> docs = pa.table({"sku": ["d1", "d2"], "title": ["New York", "Pizza"]})
        >>> ClickGraph.from_frame(log, docs, columns={"query": "term", "doc_id": "sku"})
        ClickGraph(2 queries, 2 documents, 2 pairs)
        """
        from clickbridge.log.frames import log_and_documents

        reading = {"time_unit": time_unit, "time_format": time_format, "dedupe": dedupe}
        records, documents = log_and_documents(log, docs, columns, doc_columns, max_rejects, **reading)
        return cls.build(
            records, documents, out, vectors=vectors, defaults=defaults, progress=progress, memory_mb=memory_mb,
            secret=secret, redact=redact,
        )  # fmt: skip

    @classmethod
    def open(cls, path: str | Path) -> ClickGraph:
        """Opens a GRAPH from its folder, memory-mapped.

        Parameters
        ----------
        path : str or Path
            A folder that `save`, `build` or `clickbridge ingest` has written.

        Returns
        -------
        ClickGraph
        """
        return cls(**read_graph(path))

    def save(self, path: str | Path) -> None:
        """Writes the GRAPH as a folder, which `open` opens.

        Parameters
        ----------
        path : str or Path
            The folder. If a GRAPH is there already, it is replaced in one step. A folder with anything else in it is
            refused.
        """
        write_graph(path, self)

    def __getstate__(self) -> dict[str, Any]:
        """The parts of the GRAPH with their data, even if it is memory-mapped, without cached results."""
        parts = {name: getattr(self, name) for name in ("pairs", "impressions", "clicks")}
        plain = {n: None if part is None else type(part)(**_plain(columns(part))) for n, part in parts.items()}
        vectors = {name: _plain(sides) for name, sides in self.vectors.items()}
        same = {name: getattr(self, name) for name in ("docs", "defaults", "summary", "secret", "redact")}
        return {"query_keys": list(self.query_keys), **same, **plain, "vectors": vectors}

    # --- who is who ------------------------------------------------------------------------------

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.query_keys)

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        return int(self.docs.num_rows)

    @property
    def parts(self) -> list[str]:
        """The names of the parts that the GRAPH has, as in its manifest."""

        def has(part: str, column: str) -> bool:
            return getattr(getattr(self, part), column, None) is not None

        return parts_present(has, bool(self.field_names))

    @property
    def has_times(self) -> bool:
        """Whether at least one event of the log has a time."""
        return any(part is not None and part.time is not None for part in (self.impressions, self.clicks))

    @property
    def field_names(self) -> list[str]:
        """The names of the documents' text fields."""
        return [name for name in self.docs.column_names if name != "doc_id"]

    @cached_property
    def doc_ids(self) -> list[str]:
        """The ids of all documents. A document's position in this list is its number."""
        ids: list[str] = self.docs["doc_id"].to_pylist()
        return ids

    @cached_property
    def _doc_numbers(self) -> dict[str, int]:
        return {doc_id: number for number, doc_id in enumerate(self.doc_ids)}

    @cached_property
    def _query_numbers(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self.query_keys)}

    def doc_idx(self, doc_id: str) -> int | None:
        """The number of a document; None if it is unknown."""
        return self._doc_numbers.get(doc_id)

    def query_idx(self, query: str, query_id: str | None = None) -> int | None:
        """The number of a query; None if it is unknown.

        A query is found by its text, which is normalised first. If no query has that text, it is found by its id,
        exactly as written. `query_id` is for a query without text."""
        return find_query(self._query_numbers, query if query.strip() else OPAQUE + (query_id or ""))

    @cached_property
    def query_texts(self) -> list[str]:
        """The text of every query; empty for a query that has only an id."""
        return [text_of_key(key) for key in self.query_keys]

    @cached_property
    def query_names(self) -> list[str]:
        """The name of every query: its text, or its id if it has no text. In `query_keys` such ids are marked."""
        return [edge_name(key) for key in self.query_keys]

    def field(self, name: str) -> list[str]:
        """The text of one field for every document; empty for documents without it."""
        if name not in self.field_names:
            raise MissingPart(f"the GRAPH's documents have no field {name!r}; they have {self._fields_in_words()}")
        return [text or "" for text in self.docs[name].to_pylist()]

    def _fields_in_words(self) -> str:
        return ", ".join(self.field_names) or "none: ingest with --docs"

    def matrix(self, *, rows: Literal["queries", "documents"], values: Array | None = None) -> sparse.csr_array:
        """The query-document pairs as a sparse matrix. Its rows are "queries" or "documents", as `rows` says. The
        values are clicks, unless others are given."""
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
        """A copy with the same queries and documents and only these events. Pairs are summed from them."""
        pairs = sum_pairs(impressions, clicks)
        return self._with(pairs, impressions, clicks)

    def with_pairs(self, pairs: Pairs) -> ClickGraph:
        """A copy with the same queries and documents, only these pairs and no events."""
        return self._with(pairs, None, None)

    def _with(self, pairs: Pairs, impressions: Impressions | None, clicks: Clicks | None) -> ClickGraph:
        return self.like(pairs=pairs, impressions=impressions, clicks=clicks)

    def like(self, **other: object) -> ClickGraph:
        """A copy of the GRAPH with some parts replaced."""
        same = ("docs", "pairs", "impressions", "clicks", "defaults", "summary", "vectors", "secret", "redact")
        return ClickGraph(**{"queries": self.query_keys, **{name: getattr(self, name) for name in same}, **other})

    def of_queries(self, keep: Array, impressions: Impressions | None, clicks: Clicks | None) -> ClickGraph:
        """A copy with only the queries in `keep`, with new numbers, and these events."""
        number = np.cumsum(keep) - 1
        if impressions is not None:
            impressions = replace(impressions, query=number[impressions.query].astype(np.int32))
        if clicks is not None:
            clicks = replace(clicks, query=number[clicks.query].astype(np.int32))
        keys = [key for key, kept in zip(self.query_keys, keep.tolist(), strict=True) if kept]
        vectors = {
            name: {side: values[keep] if side == "query" else values for side, values in sides.items()}
            for name, sides in self.vectors.items()
        }
        pairs = sum_pairs(impressions, clicks)
        return self.like(queries=keys, pairs=pairs, impressions=impressions, clicks=clicks, vectors=vectors)

    def of_several(self, min_users: int) -> ClickGraph:
        """A copy with only the queries and pairs of at least this many users: see `clickbridge.graph.several`."""
        from clickbridge.graph.several import of_several

        return of_several(self, min_users)

    def encoded(self, encode: Mapping[str, Encoder]) -> ClickGraph:
        """A copy in which queries and documents that have text but no vector get one. `encode` maps the name of a
        vector to a function from a list of texts to vectors."""
        vectors = {name: dict(sides) for name, sides in self.vectors.items()}
        for name, function in encode.items():
            sides = vectors.setdefault(name, {})
            for side, texts in (("query", self.query_texts), ("doc", list(document_texts(self.docs)))):
                made = fill_vectors(name, function, texts, sides.get(side))
                if made is not None:
                    sides[side] = made
        return self.like(vectors=vectors)

    def vectors_of(self, side: Literal["query", "doc"], rows: Array | None) -> dict[str, Array]:
        """The dense vectors of one side by name, for some rows or all; NaN for an item without a vector."""
        found = {name: sides[side] for name, sides in self.vectors.items() if side in sides}
        return found if rows is None else {name: values[rows] for name, values in found.items()}

    def merge(self, other: ClickGraph) -> ClickGraph:
        """Joins this log and another one. A document that is in both gets the text of `other`.

        Parameters
        ----------
        other : ClickGraph
            The other log. If both have users, it must be built with `secret=graph.secret` of this one.

        Returns
        -------
        ClickGraph
        """
        from clickbridge.graph.merge import merge_graphs

        return merge_graphs(self, other)

    def hold_back(
        self, fraction: float = 0.1, by: str = "auto", seed: int = 0, *, new_queries: float | None = None
    ) -> HoldBack:
        """Sets part of the clicks aside for tuning.

        Parameters
        ----------
        fraction : float
            The share of the clicks to hold back.
        by : str
            "time" holds back the newest events, "query" whole queries, "click" single clicks and some whole queries.
            "auto" chooses one of them for this log.
        seed : int
            The random seed.
        new_queries : float, optional
            For "click": the share of whole queries in the held-back part.

        Returns
        -------
        HoldBack
        """
        from clickbridge.graph.hold_back import NEW_QUERIES, hold_back

        return hold_back(self, fraction, by, seed, new_queries=NEW_QUERIES if new_queries is None else new_queries)


def _plain(arrays: Mapping[str, Array | None]) -> dict[str, Any]:
    return {name: None if values is None else np.asarray(values) for name, values in arrays.items()}
