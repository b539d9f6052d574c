"""ClickGraph: queries, documents, and every click between them, with the original ids.

Rows are queries and columns are documents, always: there is no matrix without a named orientation.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.frames import Frame
from clickbridge.graph.contents import Contents
from clickbridge.graph.dense import Encoder, filled
from clickbridge.graph.parts import Array, Clicks, Impressions, Pairs, columns
from clickbridge.graph.storage import KIND as KIND
from clickbridge.graph.storage import read_graph, write_graph
from clickbridge.graph.sums import sum_pairs as sum_pairs
from clickbridge.io.secret import Secret
from clickbridge.progress import Progress, logged
from clickbridge.types import Document, LogRecord

if TYPE_CHECKING:
    from clickbridge.graph.hold_back import HoldBack

MEMORY_MB = 1024


class ClickGraph(Contents):
    """A click log and its documents: the training data of every model.

    Create it with `build` from records, with `from_frame` from data frames, or with `open` from a folder. It keeps
    every click; thresholds are settings of the models. Its arrays may be memory-mapped, so do not write to them.

    Parameters
    ----------
    queries : sequence of str
        The key of every query: its text, or its id with a mark.
    docs : Arrow table
        A row for each document: `doc_id`, then columns of text.
    pairs : Pairs
        The clicks of each query-document pair.
    impressions, clicks : Impressions, Clicks, optional
        The events: result pages, and clicks without a page.
    defaults, summary : mapping, optional
        Settings that `fit` uses by default, and counts of what was read.
    vectors : mapping, optional
        Dense vectors by name, then by side (`query`, `doc`): one row for each item.
    secret : Secret, optional
        By which users were hashed; None where only the owner of the GRAPH may read it.
    redact : str
        As in `build`.

    Examples
    --------
    >>> from clickbridge import ClickGraph, Document, Impression
    >>> pages = [Impression("NY  pizza", ["d1", "d2"], ["d2"]), Impression("ny pizza", ["d2", "d1"], ["d2"])]
    >>> graph = ClickGraph.build(pages, [Document("d1", {"title": "New York"}), Document("d2", {"title": "Pizza"})])
    >>> graph
    ClickGraph(1 query, 2 documents, 1 pair)
    >>> graph.field("title")
    ['New York', 'Pizza']
    """

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

        out, vectors, defaults, progress, memory_mb, secret, redact : optional
            As in `build`.

        Returns
        -------
        ClickGraph

        Examples
        --------
        >>> from clickbridge import ClickGraph
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

    # --- made into -------------------------------------------------------------------------------

    def with_events(self, impressions: Impressions | None, clicks: Clicks | None) -> ClickGraph:
        """A copy with the same queries and documents and only these events.

        Parameters
        ----------
        impressions, clicks : Impressions, Clicks, optional
            The events. Pairs are summed from them.

        Returns
        -------
        ClickGraph
        """
        return self.like(pairs=sum_pairs(impressions, clicks), impressions=impressions, clicks=clicks)

    def with_pairs(self, pairs: Pairs) -> ClickGraph:
        """A copy with the same queries and documents, only these pairs and no events.

        Parameters
        ----------
        pairs : Pairs
            The pairs.

        Returns
        -------
        ClickGraph
        """
        return self.like(pairs=pairs, impressions=None, clicks=None)

    def like(self, **other: object) -> ClickGraph:
        """A copy of the GRAPH with some parts replaced.

        Parameters
        ----------
        other : object
            The new parts by the names of the constructor's parameters, such as `defaults={"min_clicks": 2}`.

        Returns
        -------
        ClickGraph
        """
        same = ("docs", "pairs", "impressions", "clicks", "defaults", "summary", "vectors", "secret", "redact")
        return ClickGraph(**{"queries": self.query_keys, **{name: getattr(self, name) for name in same}, **other})

    def of_several(self, min_users: int) -> ClickGraph:
        """A copy with only what at least this many people did.

        Parameters
        ----------
        min_users : int
            Pairs with fewer different users are left out, and so are queries without any pair left.

        Returns
        -------
        ClickGraph
        """
        from clickbridge.graph.several import of_several

        return of_several(self, min_users)

    def encoded(self, encode: Mapping[str, Encoder]) -> ClickGraph:
        """A copy in which queries and documents that have text but no vector get one.

        Parameters
        ----------
        encode : mapping of str to function
            For each name of vectors, a function from a list of texts to their vectors.

        Returns
        -------
        ClickGraph
        """
        return self.like(vectors=filled(self.vectors, encode, self.query_texts, self.docs))

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
