"""Qdrant: named dense vectors with the dot product, and sparse vectors, which may be negative here.

A model with one dense block becomes a dense vector. Any other model becomes one sparse vector, with its blocks side by
side, so that a sum is one exact dot product. Qdrant's ids are numbers or UUIDs. The UUID of a document is computed from
its id, which is kept in the payload.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from clickbridge.export.folder import packed, write_json
from clickbridge.export.maps import Maps, as_row
from clickbridge.export.recipe import Recipe, any_query
from clickbridge.export.source import SHOWN, Request, Source
from clickbridge.numerics.row import Row
from clickbridge.wording import count_of

NAME = "clickbridge"
DENSE, SPARSE = "dense", "sparse"
POINTS_AT_ONCE = 500
IDS = uuid.UUID("7d9c1a52-6f0e-5b8e-9a56-0d1f6c1b2a90")
"""The name space of documents' ids."""


def point_id(doc_id: str) -> str:
    """The UUID of a document. It is always the same for the same id."""
    return str(uuid.uuid5(IDS, doc_id))


def is_dense(maps: Maps) -> bool:
    return len(maps.blocks) == 1 and not maps.blocks[0].is_sparse


def collection(maps: Maps) -> dict[str, Any]:
    if is_dense(maps):
        return {"vectors": {DENSE: {"size": maps.blocks[0].width, "distance": "Dot"}}}
    return {"vectors": {}, "sparse_vectors": {SPARSE: {}}}


def points(maps: Maps) -> Iterator[dict[str, Any]]:
    for number in maps.documents():
        if is_dense(maps):
            vector: dict[str, Any] = {DENSE: maps.blocks[0].vector(number)}
        else:
            rows = [block.row(number) if block.found[number] else None for block in maps.blocks]
            vector = {SPARSE: _sparse(maps, rows)}
        payload = {"doc_id": maps.doc_ids[number], "title": maps.title(number)}
        yield {"id": point_id(maps.doc_ids[number]), "vector": vector, "payload": payload}


def search(maps: Maps, query: str, k: int) -> dict[str, Any]:
    """The body of `points/query`."""
    values = maps.query(query)
    if is_dense(maps):
        asked: Any = values[0]
    else:
        asked = _sparse(maps, [as_row(block) for block in values])
    return {"query": asked, "using": DENSE if is_dense(maps) else SPARSE, "limit": k, "with_payload": True}


def _sparse(maps: Maps, rows: list[Row | None]) -> dict[str, Any]:
    """The rows of all blocks side by side."""
    starts = np.cumsum([0, *(block.width for block in maps.blocks[:-1])])
    there = [(row, start) for row, start in zip(rows, starts, strict=True) if row is not None]
    return {
        "indices": np.concatenate([np.empty(0, np.int64), *(row.columns + int(start) for row, start in there)]),
        "values": np.concatenate([np.empty(0, np.float32), *(row.values for row, _ in there)]),
    }


def write(source: Source, folder: Path) -> None:
    maps = source.maps
    write_json(folder / "collection.json", collection(maps))
    names = _write_points(maps, folder)
    source.write_samples(folder, lambda query: Request(search(maps, query, SHOWN)))
    url, json = f"$HOST/collections/{NAME}", '-H "Content-Type: application/json"'
    Recipe(
        f"{source.fitted.spec} in Qdrant",
        f"{count_of(len(maps.doc_ids), 'document')} of the model `{source.fitted.spec}`, "
        + ("as dense vectors." if is_dense(maps) else "as sparse vectors, the parts of the model side by side."),
        {
            "collection.json": "the collection",
            f"{names[0]} … {names[-1]}": "the points",
            "query.json": "a search with the numbers of its query",
            "expected.json": "searches and the first ten results of each",
        },
        [
            ("Make the collection.", f"curl -s -X PUT {url} {json} -d @collection.json"),
            ("Load the points.",
             f'for f in points-*.json; do curl -s -X PUT "{url}/points?wait=true" {json} --data-binary @$f > '
             f'/dev/null; done'),
            ("Search. `payload.doc_id` must be as in the first entry of `expected.json`.",
             f"curl -s -X POST {url}/points/query {json} -d @query.json"),
        ],
        "Scores are ours but for the rounding of 32-bit sums. Dense vectors are searched through an HNSW graph once a "
        'collection is large; `"params": {"exact": true}` in the query turns that off. Sparse search is always exact.',
        "Loaded into and searched in `qdrant-client`, in memory, by the tests.",
        [any_query(source.fitted.spec).replace("TARGET", "qdrant")],
    ).write(folder)  # fmt: skip


def _write_points(maps: Maps, folder: Path) -> list[str]:
    names: list[str] = []
    waiting: list[bytes] = []

    def flush() -> None:
        names.append(f"points-{len(names) + 1:04d}.json")
        (folder / names[-1]).write_bytes(b'{"points":[' + b",\n".join(waiting) + b"]}\n")
        waiting.clear()

    for point in points(maps):
        waiting.append(packed(point))
        if len(waiting) == POINTS_AT_ONCE:
            flush()
    if waiting or not names:
        flush()
    return names


def request(source: Source, query: str, k: int) -> dict[str, Any]:
    return search(source.maps, query, k)
