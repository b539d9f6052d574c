"""Vespa: an application with one tensor for each block, `tensor<float>(t{})` or `tensor<float>(x[600])`, and a rank
profile that adds up their dot products."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from clickbridge.export.folder import packed, write_chunks
from clickbridge.export.maps import Block, Maps, as_row, as_vector
from clickbridge.export.recipe import Recipe, any_query
from clickbridge.export.source import SHOWN, Request, Source
from clickbridge.models.fitted import Array
from clickbridge.numerics.row import Row
from clickbridge.wording import count_of

NAME, DOCUMENT = "clickbridge", "doc"
SERVICES = f"""<?xml version="1.0" encoding="utf-8" ?>
<services version="1.0">
  <container id="default" version="1.0">
    <search/>
    <document-api/>
  </container>
  <content id="{NAME}" version="1.0">
    <min-redundancy>1</min-redundancy>
    <documents>
      <document type="{DOCUMENT}" mode="index"/>
    </documents>
  </content>
</services>
"""


def tensor(block: Block) -> str:
    return "tensor<float>(t{})" if block.is_sparse else f"tensor<float>(x[{block.width}])"


def schema(maps: Maps) -> str:
    fields = "".join(
        f"        field {b.name} type {tensor(b)} {{\n            indexing: summary | attribute\n        }}\n"
        for b in maps.blocks
    )
    inputs = "".join(f"            query({b.name}) {tensor(b)}\n" for b in maps.blocks)
    score = " + ".join(f"sum(query({b.name}) * attribute({b.name}))" for b in maps.blocks)
    return f"""schema {DOCUMENT} {{
    document {DOCUMENT} {{
        field doc_id type string {{
            indexing: summary | attribute
        }}
        field title type string {{
            indexing: summary | index
        }}
{fields}    }}
    rank-profile {NAME} {{
        inputs {{
{inputs}        }}
        first-phase {{
            expression: {score}
        }}
    }}
}}
"""


def cells(block: Block, values: Array | Row) -> Any:
    if not block.is_sparse:
        return {"values": as_vector(values, block.width)}
    row = as_row(values)
    return {"cells": {str(c): v for c, v in zip(row.columns.tolist(), row.values, strict=True)}}


def feed(maps: Maps) -> Iterator[bytes]:
    for number in maps.documents():
        doc_id = maps.doc_ids[number]
        fields: dict[str, Any] = {"doc_id": doc_id, "title": maps.title(number)}
        for block in maps.blocks:
            if block.found[number]:
                own = block.row(number) if block.is_sparse else block.vector(number)
                fields[block.name] = cells(block, own)
        yield packed({"put": f"id:{NAME}:{DOCUMENT}::{quote(doc_id, safe='')}", "fields": fields})


def search(maps: Maps, query: str, k: int) -> dict[str, Any]:
    inputs = {
        f"input.query({block.name})": cells(block, values)
        for block, values in zip(maps.blocks, maps.query(query), strict=True)
    }
    return {"yql": f"select doc_id, title from {DOCUMENT} where true", "ranking": NAME, "hits": k, **inputs}


def write(source: Source, folder: Path) -> None:
    maps = source.maps
    (folder / "application" / "schemas").mkdir(parents=True)
    (folder / "application" / "services.xml").write_text(SERVICES, encoding="utf8")
    (folder / "application" / "schemas" / f"{DOCUMENT}.sd").write_text(schema(maps), encoding="utf8")
    chunks = write_chunks(folder, "feed", ".jsonl", feed(maps))
    source.write_samples(folder, lambda query: Request(search(maps, query, SHOWN)))
    Recipe(
        f"{source.fitted.spec} in Vespa",
        f"{count_of(len(maps.doc_ids), 'document')} of the model `{source.fitted.spec}`.",
        {
            "application/": "schema and services",
            f"{chunks[0]} … {chunks[-1]}" if chunks else "feed": "the documents",
            "query.json": "a search with the numbers of its query",
            "expected.json": "searches and the first ten results of each",
        },
        [
            ("Deploy the application.", "vespa deploy --wait 300 application"),
            ("Feed the documents.", "for f in feed-*.jsonl; do vespa feed $f; done"),
            ("Search. The ids must be those of the first entry in `expected.json`.",
             'curl -s -H "Content-Type: application/json" -X POST $HOST/search/ -d @query.json'),
        ],
        "32-bit tensors: scores are ours but for rounding. `where true` scores every document; documents that share "
        "no word "
        "with the query score 0 in a sparse block, where our own search leaves them out.",
        "Written to the published schema language and formats; not run against a server.",
        [any_query(source.fitted.spec).replace("TARGET", "vespa")],
    ).write(folder)  # fmt: skip


def request(source: Source, query: str, k: int) -> dict[str, Any]:
    return search(source.maps, query, k)
