"""What OpenSearch and Elasticsearch share, since both use Lucene: fields of positive features, vectors, and a script.

A sparse block of positive numbers becomes a field of features; every other block becomes a vector. Lucene keeps 8 bits
of a feature's mantissa. Numbers are rounded in the same way before they are written, with an error of at most 0.2%.

Features must be positive. If a block has negative numbers and is too wide for a vector (`lmir`), its signed columns are
shifted: instead of y, a document has y - low and high - y, both positive, and a query uses one of the two, depending on
its sign. The score then differs by a constant of the query, and the order is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import NotSupported
from clickbridge.export.folder import packed
from clickbridge.export.maps import Block, Maps, as_row, as_vector
from clickbridge.export.source import Request
from clickbridge.models.fitted import Array
from clickbridge.numerics.row import Row

MOST_DIMENSIONS = 4096
MOST_WEIGHT = 64.0
"""Lucene's limit for the weight of a feature in a query."""
MOST_MOVED = 256
LEAST = float(np.finfo(np.float32).tiny)
LONGEST_ID = 512


def kept(values: Array) -> Array:
    """The nearest numbers that Lucene's features can represent."""
    bits = np.asarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0x4000)) & np.uint32(0xFFFF8000)).view(np.float32)


@dataclass(frozen=True, eq=False)
class Features:
    """A sparse block as tokens with positive values."""

    block: Block

    @cached_property
    def bounds(self) -> tuple[Array, Array, Array]:
        """The columns with a negative number, and the smallest and largest value of each."""
        images = sparse.csc_array(self.block.images)
        low = np.minimum(images.min(axis=0).toarray().ravel(), 0.0)
        high = np.maximum(images.max(axis=0).toarray().ravel(), 0.0)
        moved = np.flatnonzero(low < 0)
        if len(moved) > MOST_MOVED:
            raise NotSupported(
                f"{self.block.name} has {len(moved):,} signed columns and {self.block.width:,} in all: too many for "
                "features and too wide for a vector; export it to qdrant, pgvector or vespa"
            )
        return moved, low[moved], high[moved]

    def document(self, number: int) -> dict[str, np.float32]:
        row = self.block.row(number)
        moved, low, high = self.bounds
        plain = ~np.isin(row.columns, moved)
        tokens = {f"t{c}": v for c, v in zip(row.columns[plain].tolist(), kept(row.values[plain]), strict=True)}
        if len(moved) and self.block.found[number]:
            own = np.zeros(len(moved), dtype=np.float32)
            place = np.searchsorted(moved, row.columns[~plain])
            own[place] = row.values[~plain]
            up, down = kept(own - low), kept(high - own)
            tokens |= {f"t{c}": v for c, v in zip(moved.tolist(), up, strict=True)}
            tokens |= {f"t{c}-": v for c, v in zip(moved.tolist(), down, strict=True)}
        return {token: value for token, value in tokens.items() if value >= LEAST}

    def query(self, row: Row) -> tuple[dict[str, float], float]:
        """The tokens with their weights, and the constant to subtract from the score."""
        moved, low, high = self.bounds
        tokens: dict[str, float] = {}
        constant = 0.0
        for column, value in zip(row.columns.tolist(), row.values.tolist(), strict=True):
            place = int(np.searchsorted(moved, column))
            if place < len(moved) and moved[place] == column:
                tokens[f"t{column}" if value > 0 else f"t{column}-"] = abs(value)
                constant += -value * float(low[place]) if value > 0 else -value * float(high[place])
            elif value < 0:
                raise NotSupported(
                    f"{self.block.name} gives a word of this query a negative weight, which features cannot have: "
                    "export it to qdrant, pgvector or vespa"
                )
            else:
                tokens[f"t{column}"] = value
        return tokens, constant


@dataclass(frozen=True, eq=False)
class Index:
    """A model as a Lucene index. Subclasses define the names that their engine uses."""

    maps: Maps

    def features_type(self) -> dict[str, Any]:
        raise NotImplementedError

    def vector_type(self, width: int) -> dict[str, Any]:
        raise NotImplementedError

    def features_query(self, field: str, tokens: dict[str, float]) -> dict[str, Any]:
        raise NotImplementedError

    def product(self, field: str) -> str:
        """The script for the dot product of a parameter and a field, both with that name."""
        raise NotImplementedError

    @cached_property
    def features(self) -> dict[str, Features]:
        return {b.name: Features(b) for b in self.maps.blocks if not self.is_vector(b)}

    def is_vector(self, block: Block) -> bool:
        if block.is_sparse and (not block.signed or block.width > MOST_DIMENSIONS):
            return False
        if block.width > MOST_DIMENSIONS:
            raise NotSupported(f"{block.name} has {block.width:,} dimensions; a vector may have {MOST_DIMENSIONS:,}")
        return True

    def mapping(self) -> dict[str, Any]:
        fields = {
            b.name: self.vector_type(b.width) if self.is_vector(b) else self.features_type() for b in self.maps.blocks
        }
        known = {"doc_id": {"type": "keyword"}, "title": {"type": "text"}}
        return {"mappings": {"dynamic": False, "properties": {**known, **fields}}}

    def bulk(self, index: str) -> Iterator[bytes]:
        """Two lines for each document: the action, and its fields."""
        for number in self.maps.documents():
            doc_id = self.maps.doc_ids[number]
            document: dict[str, Any] = {"doc_id": doc_id, "title": self.maps.title(number)}
            for block in self.maps.blocks:
                if not block.found[number]:
                    continue
                if self.is_vector(block):
                    document[block.name] = block.vector(number)
                elif tokens := self.features[block.name].document(number):
                    document[block.name] = tokens
            own = {"_id": doc_id} if len(doc_id.encode()) <= LONGEST_ID else {}
            yield packed({"index": {"_index": index, **own}}) + b"\n" + packed(document)

    def request(self, query: str, k: int) -> Request:
        """The exact search: features are added up; vectors are multiplied by a script for every document that has
        one."""
        vectors: dict[str, Array] = {}
        clauses: list[tuple[str, dict[str, float]]] = []
        constant = 0.0
        for block, values in zip(self.maps.blocks, self.maps.query(query), strict=True):
            if self.is_vector(block):
                vectors[block.name] = as_vector(values, block.width)
                continue
            tokens, extra = self.features[block.name].query(as_row(values))
            constant += extra
            if tokens:
                clauses.append((block.name, tokens))
        largest = max((w for _, tokens in clauses for w in tokens.values()), default=0.0)
        scale = min(1.0, MOST_WEIGHT / largest) if largest else 1.0
        should = [self.features_query(f, {t: w * scale for t, w in tokens.items()}) for f, tokens in clauses]
        if not any(vector.any() for vector in vectors.values()):
            return Request(self._body({"bool": {"should": should}}, k), scale, constant * scale)
        for name in vectors:
            should.append({"constant_score": {"filter": {"exists": {"field": name}}, "boost": 0}})
        # A score must not be negative. By Cauchy-Schwarz, a product cannot be lower than this.
        shift = float(sum(np.linalg.norm(v) * self._longest[name] for name, v in vectors.items())) * scale
        products = [f"(doc['{name}'].size() == 0 ? 0 : {self.product(name)})" for name in vectors]
        script = {
            "source": " + ".join(["_score", "params.shift", *products]),
            "params": {"shift": shift, **{name: (v * np.float32(scale)) for name, v in vectors.items()}},
        }
        whole = {"script_score": {"query": {"bool": {"should": should}}, "script": script}}
        return Request(self._body(whole, k), scale, constant * scale + shift)

    @staticmethod
    def _body(query: dict[str, Any], k: int) -> dict[str, Any]:
        return {"size": k, "_source": ["doc_id", "title"], "query": query}

    @cached_property
    def _longest(self) -> dict[str, float]:
        """The length of the longest document vector of each block."""
        out = {}
        for block in self.maps.blocks:
            if self.is_vector(block):
                squares = block.images.multiply(block.images) if block.is_sparse else np.square(block.images)
                out[block.name] = float(np.sqrt(np.asarray(squares.sum(axis=1)).max(initial=0.0)))
        return out
