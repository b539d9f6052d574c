"""Two GRAPHs into one: ids united, events joined, pairs summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa

from clickbridge.errors import InputError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.dense import Vectors
from clickbridge.graph.parts import Array, Clicks, Impressions
from clickbridge.graph.sums import sum_pairs
from clickbridge.numerics.ragged import Ragged


def merge_graphs(one: ClickGraph, two: ClickGraph) -> ClickGraph:
    """Merges two GRAPHs. Pairs are summed from all events, so that a user in both logs counts once. Pairs without
    events (plain `triples`) become clicks without time and user."""
    if all(_has_users(graph) for graph in (one, two)) and one.secret != two.secret:
        raise InputError(
            "the two GRAPHs hash their users by different secrets: build the second with secret=first.secret, "
            "so that one person in both counts once"
        )
    queries, query_maps = _unite(one.query_keys, two.query_keys)
    doc_ids, doc_maps = _unite(one.doc_ids, two.doc_ids)
    sides = list(zip((one, two), query_maps, doc_maps, strict=True))
    impressions = _join_impressions([_renumber(g.impressions, q, d) for g, q, d in sides if g.impressions is not None])
    singles = [(_clicks(g), q, d) for g, q, d in sides]
    clicks = _join_clicks([_renumber(part, q, d) for part, q, d in singles if part is not None])
    pairs = sum_pairs(impressions, clicks)
    if all(_is_plain(g) for g in (one, two)):
        clicks = None
    defaults = {**one.defaults, **two.defaults}
    vectors = _merge_vectors([(g.vectors, {"query": q, "doc": d}) for g, q, d in sides], len(queries), len(doc_ids))
    docs = _merge_docs(one, two, doc_ids)
    secret = one.secret if _has_users(one) else two.secret
    redact = "off" if one.redact == two.redact == "off" else "shown"
    return one.like(
        queries=queries, docs=docs, pairs=pairs, impressions=impressions, clicks=clicks, defaults=defaults,
        summary={}, vectors=vectors, secret=secret, redact=redact,
    )  # fmt: skip


def _has_users(graph: ClickGraph) -> bool:
    return any(part is not None and part.user is not None for part in (graph.impressions, graph.clicks))


def _unite(one: Sequence[str], two: Sequence[str]) -> tuple[list[str], tuple[Array, Array]]:
    """The union, sorted by UTF-8 bytes as in ingest, and the new number for each old one."""
    ids = sorted(set(one) | set(two), key=str.encode)
    place = {value: number for number, value in enumerate(ids)}
    maps = tuple(np.array([place[v] for v in side], dtype=np.int32) for side in (one, two))
    return ids, (maps[0], maps[1])


def _renumber(part, query_map: Array, doc_map: Array):  # type: ignore[no-untyped-def]
    return replace(part, query=query_map[part.query], doc=doc_map[part.doc])


def _join_columns(parts, names: Sequence[str]) -> dict[str, Array | None]:  # type: ignore[no-untyped-def]
    """Joins columns. A column that only one side has is filled with 'unknown' for the other."""
    out: dict[str, Array | None] = {}
    for name in names:
        if all(getattr(p, name) is None for p in parts):
            out[name] = None
            continue
        fill = {"time": np.nan, "user": np.uint64(0), "impressions": 0}
        out[name] = np.concatenate(
            [np.full(len(p), fill[name]) if getattr(p, name) is None else getattr(p, name) for p in parts]
        )
    return out


def _join_impressions(parts: list[Impressions]) -> Impressions | None:
    if not parts:
        return None
    joined = _join_columns(parts, ("query", "time", "user"))
    shown = {name: np.concatenate([getattr(p, name) for p in parts]) for name in ("doc", "clicked")}
    lists = Ragged.of_lengths(np.concatenate([p.lists.lengths for p in parts]))
    return Impressions(indptr=lists.indptr, **joined, **shown)  # type: ignore[arg-type]


def _join_clicks(parts: list[Clicks]) -> Clicks | None:
    if not parts:
        return None
    return Clicks(**_join_columns(parts, [f.name for f in fields(Clicks)]))  # type: ignore[arg-type]


def _is_plain(graph: ClickGraph) -> bool:
    return graph.impressions is None and graph.clicks is None


def _clicks(graph: ClickGraph) -> Clicks | None:
    pairs = graph.pairs
    return (
        Clicks(pairs.query, pairs.doc, pairs.clicks, None, None, pairs.impressions)
        if _is_plain(graph)
        else graph.clicks
    )


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


def _merge_vectors(parts: list[tuple[Vectors, dict[str, Array]]], n_queries: int, n_docs: int) -> Vectors:
    """Merges vectors. If an item has a vector in both, the second one is used, as for text."""
    out: Vectors = {}
    for vectors, maps in parts:
        for name, sides in vectors.items():
            for side, values in sides.items():
                length = n_queries if side == "query" else n_docs
                empty = np.full((length, values.shape[1]), np.nan, dtype=np.float32)
                joint = out.setdefault(name, {}).setdefault(side, empty)
                if joint.shape[1] != values.shape[1]:
                    widths = f"{joint.shape[1]} and {values.shape[1]}"
                    raise InputError(f"vectors {name!r} have {widths} numbers in the two GRAPHs: make them equal first")
                there = np.flatnonzero(~np.isnan(values).all(axis=1))
                joint[maps[side][there]] = values[there]
    return out
