"""The log that a MODEL keeps if it cannot learn single clicks, so that `update` can learn again.

Trees, kernels and gradient descent cannot add one more click. Such a model is saved with the log of its fit. An update
learns its parts again from that log and the new one, with the choices of the first fit. Users are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.parts import Clicks, Impressions, Pairs, columns
from clickbridge.graph.storage import check_part
from clickbridge.graph.without_documents import without_documents
from clickbridge.io.values import stored
from clickbridge.models.change import Change

Array = np.ndarray[Any, Any]
PARTS: dict[str, type[Any]] = {"pairs": Pairs, "impressions": Impressions, "clicks": Clicks}


@stored
class KeptLog:
    """A GRAPH without its users. If it comes from a MODEL, it is only loaded when an update needs it."""

    def __init__(self, kept: Mapping[str, Any]) -> None:
        self._kept = kept

    @classmethod
    def of(cls, graph: ClickGraph) -> Self:
        out = cls({})
        out.graph = without_users(graph)
        return out

    @cached_property
    def graph(self) -> ClickGraph:
        import pyarrow as pa

        kept = self._kept
        queries, ids = unpacked(kept["queries"]), unpacked(kept["doc_ids"])
        texts = {name: pa.array(unpacked(own), pa.string()) for name, own in kept["fields"].items()}
        parts = {name: None if kept[name] is None else kind(**kept[name]) for name, kind in PARTS.items()}
        for name, part in parts.items():
            if part is not None:
                check_part("the log in the MODEL", name, part, len(queries), len(ids))
        docs = pa.table({"doc_id": pa.array(ids, pa.string()), **texts})
        return ClickGraph(queries, docs, **parts, vectors=kept["vectors"], redact=kept["redact"])  # type: ignore[arg-type]

    def to_stored(self) -> dict[str, Any]:
        if self._kept:
            return dict(self._kept)
        graph = self.graph
        parts = {name: getattr(graph, name) for name in PARTS}
        return {
            "queries": packed(graph.query_keys),
            "doc_ids": packed(graph.doc_ids),
            "fields": {name: packed(graph.field(name)) for name in graph.field_names},
            **{name: None if part is None else columns(part) for name, part in parts.items()},
            "vectors": graph.vectors,
            "redact": graph.redact,
        }

    @classmethod
    def from_stored(cls, value: Mapping[str, Any]) -> Self:
        return cls(value)

    def __getstate__(self) -> dict[str, Any]:
        return {"_kept": self.to_stored()}

    def changed(self, change: Change) -> KeptLog:
        """The log with the changes of an update. Removed documents are removed from every page."""
        graph = self.graph
        if change.records or change.documents:
            more = ClickGraph.build(change.records, change.documents, redact=graph.redact)
            graph = graph.merge(more).like(redact=graph.redact)
        gone = {d for d, kept in zip(change.before.doc_ids, change.kept, strict=True) if not kept}
        return KeptLog.of(without_documents(graph, gone) if gone else graph)


def without_users(graph: ClickGraph) -> ClickGraph:
    pages, clicks = graph.impressions, graph.clicks
    return graph.like(
        pairs=replace(graph.pairs, users=None),
        impressions=None if pages is None else replace(pages, user=None),
        clicks=None if clicks is None else replace(clicks, user=None),
        secret=type(graph.secret)() if graph.secret else graph.secret,
    )


def packed(texts: Iterable[str]) -> dict[str, Array]:
    """Texts joined into two arrays, which stay on disk until they are read."""
    coded = [text.encode() for text in texts]
    ends = np.concatenate([[0], np.cumsum([len(text) for text in coded], dtype=np.int64)])
    return {"ends": ends, "bytes": np.frombuffer(b"".join(coded), dtype=np.uint8)}


def unpacked(kept: Mapping[str, Array]) -> list[str]:
    whole, ends = kept["bytes"].tobytes(), kept["ends"].tolist()
    return [whole[start:end].decode() for start, end in pairwise(ends)]
