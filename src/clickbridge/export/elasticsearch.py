"""Elasticsearch 8.15 and later: `sparse_vector`, and `dense_vector` with a script or `knn`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clickbridge.export import lucene
from clickbridge.export.lucene_folder import Engine, write_index
from clickbridge.export.source import Source


class Index(lucene.Index):
    def features_type(self) -> dict[str, Any]:
        return {"type": "sparse_vector"}

    def vector_type(self, width: int) -> dict[str, Any]:
        # hnsw, by name: the default of late versions keeps 8 bits or 1 of a number.
        return {
            "type": "dense_vector", "dims": width, "index": True, "similarity": "max_inner_product",
            "index_options": {"type": "hnsw"},
        }  # fmt: skip

    def features_query(self, field: str, tokens: dict[str, float]) -> dict[str, Any]:
        # Late versions leave out frequent tokens with small weights unless they are told not to.
        return {"sparse_vector": {"field": field, "query_vector": tokens, "prune": False}}

    def product(self, field: str) -> str:
        return f"dotProduct(params.{field}, '{field}')"


ENGINE = Engine(
    "Elasticsearch",
    Index,
    approximate='{"knn": {"field": "FIELD", "query_vector": [...], "k": 10, "num_candidates": 100}}',
)


def write(source: Source, folder: Path) -> None:
    write_index(ENGINE, source, folder)


def request(source: Source, query: str, k: int) -> dict[str, Any]:
    return Index(source.maps).request(query, k).body
