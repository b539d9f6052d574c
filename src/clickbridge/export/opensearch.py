"""OpenSearch 2.11 and later: `rank_features` with `neural_sparse`, `knn_vector` with a script or `knn`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clickbridge.export import lucene
from clickbridge.export.lucene_folder import Engine, write_index
from clickbridge.export.source import Source


class Index(lucene.Index):
    def features_type(self) -> dict[str, Any]:
        return {"type": "rank_features"}

    def vector_type(self, width: int) -> dict[str, Any]:
        return {"type": "knn_vector", "dimension": width, "space_type": "innerproduct"}

    def features_query(self, field: str, tokens: dict[str, float]) -> dict[str, Any]:
        return {"neural_sparse": {field: {"query_tokens": tokens}}}

    def product(self, field: str) -> str:
        return f"innerProduct(params.{field}, doc['{field}'])"

    def mapping(self) -> dict[str, Any]:
        has_vectors = any(self.is_vector(block) for block in self.maps.blocks)
        return {**({"settings": {"index.knn": True}} if has_vectors else {}), **super().mapping()}


ENGINE = Engine(
    "OpenSearch",
    Index,
    approximate='{"knn": {"FIELD": {"vector": [...], "k": 100}}}',
)


def write(source: Source, folder: Path) -> None:
    write_index(ENGINE, source, folder)


def request(source: Source, query: str, k: int) -> dict[str, Any]:
    return Index(source.maps).request(query, k).body
