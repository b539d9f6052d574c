"""Removes documents from a GRAPH: their text, their clicks, and their position on every page."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.parts import Array, Impressions, Pairs, columns
from clickbridge.graph.sums import sum_pairs
from clickbridge.numerics.ragged import Ragged


def without_documents(graph: ClickGraph, gone: Set[str]) -> ClickGraph:
    """The GRAPH without the documents with these ids. A page that showed nothing else is removed, too."""
    import pyarrow as pa

    keep = np.array([doc_id not in gone for doc_id in graph.doc_ids], dtype=bool)
    number = (np.cumsum(keep) - 1).astype(np.int32)
    pages = None if graph.impressions is None else _without(graph.impressions, keep, number)
    clicks = graph.clicks
    if clicks is not None:
        clicks = clicks.take(keep[clicks.doc])
        clicks = replace(clicks, doc=number[clicks.doc])
    if pages is None and clicks is None:
        there = keep[graph.pairs.doc]
        left = {name: None if v is None else np.asarray(v)[there] for name, v in columns(graph.pairs).items()}
        pairs = Pairs(**{**left, "doc": number[left["doc"]]})  # type: ignore[arg-type]
    else:
        pairs = sum_pairs(pages, clicks)
    vectors = {
        name: {side: values[keep] if side == "doc" else values for side, values in sides.items()}
        for name, sides in graph.vectors.items()
    }
    docs = graph.docs.filter(pa.array(keep))
    return graph.like(docs=docs, pairs=pairs, impressions=pages, clicks=clicks, vectors=vectors)


def _without(pages: Impressions, keep: Array, number: Array) -> Impressions:
    there = keep[pages.doc]
    lengths = pages.lists.sums(there).astype(np.int64)
    left = replace(
        pages, indptr=Ragged.of_lengths(lengths).indptr, doc=number[pages.doc[there]], clicked=pages.clicked[there]
    )
    return left.take(lengths > 0)
