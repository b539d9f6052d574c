"""Parquet: `doc_id`, `title` and `vector`; a sparse block has `indices` and `values`. If there are several blocks,
their names are appended: `vector_pls`, `indices_bm25`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from clickbridge.export.folder import write_json
from clickbridge.export.maps import Block, Maps, as_row, as_vector
from clickbridge.export.recipe import Recipe, any_query
from clickbridge.export.source import Source
from clickbridge.models.fitted import Array
from clickbridge.numerics.row import Row
from clickbridge.wording import count_of

ROWS_AT_ONCE = 2_000


def columns(maps: Maps, block: Block) -> list[tuple[str, pa.DataType]]:
    tail = f"_{block.name}" if len(maps.blocks) > 1 else ""
    if block.is_sparse:
        return [(f"indices{tail}", pa.list_(pa.int32())), (f"values{tail}", pa.list_(pa.float32()))]
    return [(f"vector{tail}", pa.list_(pa.float32(), block.width))]


def cells(block: Block, values: Array | Row | None) -> list[Any]:
    if values is None:
        return [None, None] if block.is_sparse else [None]
    if block.is_sparse:
        row = as_row(values)
        return [row.columns, row.values]
    return [as_vector(values, block.width)]


def _table(path: Path, maps: Maps, names: list[str], rows: Iterator[list[Any]]) -> None:
    kinds = [(name, pa.string()) for name in names] + [c for block in maps.blocks for c in columns(maps, block)]
    schema = pa.schema(kinds)
    with pq.ParquetWriter(path, schema, compression="zstd") as file:
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            arrays = [pa.array(c, f.type) for c, f in zip(zip(*batch, strict=True), schema, strict=True)]
            file.write_table(pa.table(arrays, schema=schema))


def document_rows(maps: Maps) -> Iterator[list[Any]]:
    for number in maps.documents():
        row: list[Any] = [maps.doc_ids[number], maps.title(number)]
        for block in maps.blocks:
            own = block.row(number) if block.is_sparse else block.vector(number)
            row += cells(block, own if block.found[number] else None)
        yield row


def query_rows(maps: Maps, queries: list[str]) -> Iterator[list[Any]]:
    for query in queries:
        parts = zip(maps.blocks, maps.query(query), strict=True)
        yield [query, *(cell for block, values in parts for cell in cells(block, values))]


def write(source: Source, folder: Path) -> None:
    maps = source.maps
    _table(folder / "documents.parquet", maps, ["doc_id", "title"], document_rows(maps))
    _table(folder / "queries.parquet", maps, ["query"], query_rows(maps, source.samples))
    write_json(folder / "expected.json", [{"query": q, "results": source.expected(q)} for q in source.samples])
    names = ", ".join(f"`{name}`" for block in maps.blocks for name, _ in columns(maps, block))
    Recipe(
        f"{source.fitted.spec} as Parquet",
        f"{count_of(len(maps.doc_ids), 'document')} of the model `{source.fitted.spec}`: {names}.",
        {
            "documents.parquet": "the document map",
            "queries.parquet": "the query map of a few queries",
            "expected.json": "the first ten results of each",
        },
        [
            (
                "Look at it.",
                "python -c \"import pyarrow.parquet as pq; print(pq.read_table('documents.parquet').schema)\"",
            )
        ],
        "The score of a document is the dot product of its row and the query's, summed over blocks, but for the "
        "rounding of "
        "32-bit sums. Weights and normalisers of a sum are in the query's numbers. A sparse block finds what it "
        "shares a "
        "column with; a dense one finds every document that has a vector.",
        "Run with PyArrow by the tests.",
        [any_query(source.fitted.spec).replace("TARGET", "parquet")],
    ).write(folder)


def request(source: Source, query: str, k: int) -> dict[str, Any]:
    (row,) = query_rows(source.maps, [query])
    names = ["query", *(name for block in source.maps.blocks for name, _ in columns(source.maps, block))]
    return dict(zip(names, row, strict=True))
