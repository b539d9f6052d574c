"""The folder of an OpenSearch or Elasticsearch export."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clickbridge.export.folder import write_chunks, write_json
from clickbridge.export.lucene import Index
from clickbridge.export.recipe import Recipe, any_query
from clickbridge.export.source import SHOWN, Source
from clickbridge.wording import count_of

NAME = "clickbridge"


@dataclass(frozen=True)
class Engine:
    name: str
    index: type[Index]
    approximate: str


def write_index(engine: Engine, source: Source, folder: Path) -> None:
    index = engine.index(source.maps)
    write_json(folder / "index.json", index.mapping())
    chunks = write_chunks(folder, "bulk", ".ndjson", index.bulk(NAME))
    source.write_samples(folder, lambda query: index.request(query, SHOWN))
    first = f'"{source.samples[0]}"' if source.samples else "a query"
    vectors = [block.name for block in index.maps.blocks if index.is_vector(block)]
    features = [block.name for block in index.maps.blocks if not index.is_vector(block)]
    Recipe(
        f"{source.fitted.spec} in {engine.name}",
        f"{count_of(len(index.maps.doc_ids), 'document')} of the model `{source.fitted.spec}`.",
        {
            "index.json": "the index: settings and mapping",
            f"{chunks[0]} … {chunks[-1]}" if chunks else "bulk": "the documents, for `_bulk`",
            "query.json": f"the search for {first}, with the numbers of the query",
            "expected.json": f"{len(source.samples)} searches and the first ten results of each, in our scores and the "
            f"engine's",
        },
        [
            ("Make the index.", f"{_CURL} -X PUT $HOST/{NAME} -d @index.json"),
            (
                "Load the documents.",
                f"for f in bulk-*.ndjson; do {_CURL} -X POST $HOST/_bulk --data-binary @$f > /dev/null; done\n"
                f"{_CURL} -X POST $HOST/{NAME}/_refresh",
            ),
            ("Search. The ids must be those of the first entry in `expected.json`.",
             f"{_CURL} -X POST $HOST/{NAME}/_search -d @query.json"),
        ],
        _exact(features, vectors, engine.approximate),
        f"The numbers were checked with Lucene itself, which {engine.name} is built on. The requests follow the "
        f"published "
        f"documentation; they were not run against an {engine.name} server.",
        [any_query(source.fitted.spec).replace("TARGET", source.target)],
    ).write(folder)  # fmt: skip


_CURL = 'curl -s -H "Content-Type: application/json"'


def _exact(features: list[str], vectors: list[str], approximate: str) -> str:
    lines = ["`score = (engine's score - constant) / scale`. `expected.json` has constant and scale for each query."]
    if features:
        lines.append(
            f"- {_fields(features)}: Lucene keeps 8 bits of a feature's mantissa. The numbers here are rounded to "
            "that, so a score differs from ours by at most 0.2%, and two documents with closer scores may be swapped."
        )
    if vectors:
        lines.append(
            f"- {_fields(vectors)}: 32-bit numbers, multiplied by a script for every document: exact except for "
            "rounding. The constant keeps scores from being negative, as the engine requires."
        )
        lines.append(f"- For millions of documents, use `{approximate}` instead, which is fast but not exact.")
    return "\n".join([lines[0], "", *lines[1:]])


def _fields(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
