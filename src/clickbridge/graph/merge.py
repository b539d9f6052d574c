"""Two GRAPHs into one: ids united, events joined, pairs summed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from clickbridge.graph.clickgraph import ClickGraph, sum_pairs
from clickbridge.graph.parts import Array, Clicks, Impressions, Pairs


def merge_graphs(one: ClickGraph, two: ClickGraph) -> ClickGraph:
    """Pairs that have no events (plain `triples`) are added; all others are summed from the joint events,
    so that a user seen in both logs counts once."""
    queries, query_maps = _unite(one.query_keys, two.query_keys)
    doc_ids, doc_maps = _unite(one.doc_ids, two.doc_ids)
    sides = list(zip((one, two), query_maps, doc_maps, strict=True))
    impressions = _join_impressions([_renumber(g.impressions, q, d) for g, q, d in sides if g.impressions is not None])
    clicks = _join_clicks([_renumber(g.clicks, q, d) for g, q, d in sides if g.clicks is not None])
    from_events = sum_pairs(impressions, clicks)
    plain = [_renumber(_plain_pairs(g), q, d) for g, q, d in sides]
    pairs = _add_pairs([from_events, *plain])
    defaults = {**one.defaults, **two.defaults}
    return ClickGraph(queries, _merge_docs(one, two, doc_ids), pairs, impressions, clicks, defaults)


def _unite(one: Sequence[str], two: Sequence[str]) -> tuple[list[str], tuple[Array, Array]]:
    """Sorted union as UTF-8 bytes (the order ingest uses), and where each old number went."""
    ids = sorted(set(one) | set(two), key=str.encode)
    place = {value: number for number, value in enumerate(ids)}
    maps = tuple(np.array([place[v] for v in side], dtype=np.int32) for side in (one, two))
    return ids, (maps[0], maps[1])


def _renumber(part, query_map: Array, doc_map: Array):  # type: ignore[no-untyped-def]
    values = dict(part.__dict__)
    values["query"], values["doc"] = query_map[part.query], doc_map[part.doc]
    return type(part)(**values)


def _join_columns(parts, names: Sequence[str]) -> dict[str, Array | None]:  # type: ignore[no-untyped-def]
    """Columns end to end; a column only one side has is filled with 'unknown' on the other."""
    out: dict[str, Array | None] = {}
    for name in names:
        if all(getattr(p, name) is None for p in parts):
            out[name] = None
            continue
        fill = {"time": np.nan, "user": np.uint64(0)}
        out[name] = np.concatenate(
            [np.full(len(p), fill[name]) if getattr(p, name) is None else getattr(p, name) for p in parts]
        )
    return out


def _join_impressions(parts: list[Impressions]) -> Impressions | None:
    if not parts:
        return None
    joined = _join_columns(parts, ("query", "time", "user"))
    shown = {name: np.concatenate([getattr(p, name) for p in parts]) for name in ("doc", "clicked")}
    lengths = np.concatenate([np.diff(p.indptr) for p in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return Impressions(indptr=indptr, **joined, **shown)  # type: ignore[arg-type]


def _join_clicks(parts: list[Clicks]) -> Clicks | None:
    if not parts:
        return None
    return Clicks(**_join_columns(parts, ("query", "doc", "clicks", "time", "user")))  # type: ignore[arg-type]


def _plain_pairs(graph: ClickGraph) -> Pairs:
    """Pairs of a GRAPH without events; nothing where events account for them."""
    pairs = graph.pairs
    keep = slice(None) if graph.impressions is None and graph.clicks is None else slice(0, 0)
    return Pairs(pairs.query[keep], pairs.doc[keep], pairs.clicks[keep], pairs.impressions[keep])


def _add_pairs(parts: list[Pairs]) -> Pairs:
    query, doc = (np.concatenate([getattr(p, n) for p in parts]) for n in ("query", "doc"))
    order = np.lexsort((doc, query))
    query, doc = query[order], doc[order]
    first_of = np.ones(len(query), dtype=bool)
    first_of[1:] = (query[1:] != query[:-1]) | (doc[1:] != doc[:-1])
    starts = np.flatnonzero(first_of)
    columns: dict[str, Array | None] = {"query": query[starts], "doc": doc[starts]}
    reduce = {"clicks": np.add, "impressions": np.add, "users": np.add, "first": np.fmin, "last": np.fmax}
    for name, ufunc in reduce.items():
        if all(getattr(p, name) is None for p in parts):
            columns[name] = None
            continue
        fill = 0 if name == "users" else np.nan
        wide = np.concatenate([np.full(len(p), fill) if getattr(p, name) is None else getattr(p, name) for p in parts])[
            order
        ]
        columns[name] = ufunc.reduceat(wide, starts) if len(starts) else wide
    # Where the events' part knows no users or times, neither does the sum.
    if parts[0].users is None:
        columns["users"] = None
    return Pairs(**columns)  # type: ignore[arg-type]


def _merge_docs(one: ClickGraph, two: ClickGraph, doc_ids: list[str]) -> pa.Table:
    names = sorted(set(one.field_names) | set(two.field_names))
    columns = {"doc_id": pa.array(doc_ids, pa.string())}
    for name in names:
        texts: dict[str, str | None] = {}
        for graph in (one, two):
            if name in graph.field_names:
                values = zip(graph.doc_ids, graph.docs[name].to_pylist(), strict=True)
                texts.update((doc_id, text) for doc_id, text in values if text is not None)
        columns[name] = pa.array([texts.get(doc_id) for doc_id in doc_ids], pa.string())
    return pa.table(columns)
