"""PostgreSQL with pgvector: a `vector` or `sparsevec` column for each block, and `<#>`, the negative dot product."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clickbridge.errors import NotSupported
from clickbridge.export.folder import write_chunks
from clickbridge.export.maps import Block, Maps, as_row, as_vector
from clickbridge.export.recipe import Recipe, any_query
from clickbridge.export.source import SHOWN, Request, Source
from clickbridge.models.fitted import Array
from clickbridge.numerics.row import Row
from clickbridge.wording import count_of

TABLE = "clickbridge"
MOST_DIMENSIONS, MOST_NONZERO = 16_000, 16_000
"""pgvector's limits, of a `vector` and of a `sparsevec`."""


def is_vector(block: Block) -> bool:
    return not block.is_sparse


def schema(maps: Maps) -> str:
    columns = ["doc_id text PRIMARY KEY", "title text"]
    for block in maps.blocks:
        if is_vector(block) and block.width > MOST_DIMENSIONS:
            raise NotSupported(f"{block.name} has {block.width:,} dimensions; pgvector takes {MOST_DIMENSIONS:,}")
        columns.append(f"{block.name} {'vector' if is_vector(block) else 'sparsevec'}({block.width})")
    inner = ",\n  ".join(columns)
    return f"CREATE EXTENSION IF NOT EXISTS vector;\nCREATE TABLE {TABLE} (\n  {inner}\n);\n"


def rows(maps: Maps) -> Iterator[bytes]:
    """Lines for PostgreSQL's COPY: tabs between columns, `\\N` for nothing."""
    for number in maps.documents():
        cells = [_text(maps.doc_ids[number]), _text(maps.title(number))]
        for block in maps.blocks:
            if not block.found[number]:
                cells.append("\\N")
            elif is_vector(block):
                cells.append(vector_text(block.vector(number)))
            else:
                cells.append(sparse_text(block.row(number), block))
        yield "\t".join(cells).encode()


def sql(maps: Maps, query: str, k: int) -> str:
    """The exact search. A document that no block finds has no score and is left out."""
    terms, found = [], []
    for block, values in zip(maps.blocks, maps.query(query), strict=True):
        if is_vector(block):
            literal = f"'{vector_text(as_vector(values, block.width))}'::vector({block.width})"
        else:
            literal = f"'{sparse_text(as_row(values), block)}'::sparsevec({block.width})"
        if not as_row(values):
            continue
        terms.append(f"coalesce(-({block.name} <#> {literal}), 0)")
        # A sparse block finds the documents that share a word; a dense one finds all that have a vector.
        found.append(f"{block.name} IS NOT NULL" if is_vector(block) else f"({block.name} <#> {literal}) <> 0")
    if not terms:
        return f"SELECT doc_id, 0.0 AS score FROM {TABLE} WHERE false;\n"
    return (
        f"SELECT doc_id, {' + '.join(terms)} AS score\nFROM {TABLE}\nWHERE {' OR '.join(found)}\n"
        f"ORDER BY score DESC, doc_id\nLIMIT {k};\n"
    )


def vector_text(values: Array) -> str:
    return "[" + ",".join(f"{v:.9g}" for v in values.tolist()) + "]"


def sparse_text(row: Row, block: Block) -> str:
    """A sparse vector as text, such as `{1:0.5,7:2}/1000`. Its indices start at 1."""
    if len(row.columns) > MOST_NONZERO:
        raise NotSupported(f"{block.name} has a row of {len(row.columns):,} numbers; pgvector takes {MOST_NONZERO:,}")
    pairs = zip((row.columns + 1).tolist(), row.values.tolist(), strict=True)
    return "{" + ",".join(f"{column}:{value:.9g}" for column, value in pairs) + f"}}/{block.width}"


def _text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r").replace("\0", "")


def write(source: Source, folder: Path) -> None:
    maps = source.maps
    (folder / "schema.sql").write_text(schema(maps), encoding="utf8")
    chunks = write_chunks(folder, "documents", ".tsv", rows(maps))
    load = "".join(f"\\copy {TABLE} FROM '{name}'\n" for name in chunks)
    (folder / "load.sql").write_text(load, encoding="utf8")
    if source.samples:
        (folder / "query.sql").write_text(sql(maps, source.samples[0], SHOWN), encoding="utf8")
    source.write_samples(folder, lambda query: Request(sql(maps, query, SHOWN)), query_file=False)
    dense = [block for block in maps.blocks if is_vector(block) and block.width <= 2000]
    steps = [
        ("Make the table.", "psql $URL -f schema.sql"),
        ("Load the documents.", "psql $URL -f load.sql"),
        ("Search. The ids must be those of the first entry in `expected.json`.", "psql $URL -f query.sql"),
    ]
    if dense:
        indexes = "\n".join(
            f"psql $URL -c 'CREATE INDEX ON {TABLE} USING hnsw ({block.name} vector_ip_ops)'" for block in dense
        )
        steps.append(
            ("For millions of documents, an index; it serves `ORDER BY column <#> …`, and is not exact.", indexes)
        )
    Recipe(
        f"{source.fitted.spec} in PostgreSQL",
        f"{count_of(len(maps.doc_ids), 'document')} of the model `{source.fitted.spec}`. pgvector 0.7 or later.",
        {
            "schema.sql": "the table",
            f"{chunks[0]} … {chunks[-1]}" if chunks else "documents": "the documents, for COPY",
            "load.sql": "loads them",
            "query.sql": "a search with the numbers of its query",
            "expected.json": "searches and the first ten results of each",
        },
        steps,
        "Scores are ours but for the rounding of 32-bit sums; negative numbers and sums are no matter here.",
        "Run against PostgreSQL with pgvector by the tests.",
        [any_query(source.fitted.spec).replace("TARGET", "pgvector")],
    ).write(folder)


def request(source: Source, query: str, k: int) -> str:
    return sql(source.maps, query, k)
