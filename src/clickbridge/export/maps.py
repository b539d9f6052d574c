"""The two maps of a model for an engine: blocks of document images, and the numbers of a query for each block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import NotSupported
from clickbridge.models.algebra import FittedSum
from clickbridge.models.fitted import Array, Fitted
from clickbridge.models.sfunction import FittedSFunction, blocks_of
from clickbridge.numerics.row import Row, row_of


@dataclass(frozen=True, eq=False)
class Block:
    """The document images of one part of a model. A plain model has one block; `bm25+pls` has two."""

    name: str
    """Short, of letters, digits and underscores: the name of a field."""
    images: Any
    """A sparse matrix or a dense array, one row per document."""
    found: Array
    """Which documents have an image here."""

    @property
    def is_sparse(self) -> bool:
        return bool(sparse.issparse(self.images))

    @property
    def width(self) -> int:
        return int(self.images.shape[1])

    @property
    def signed(self) -> bool:
        values = self.images.data if self.is_sparse else self.images
        return bool(values.size) and bool(values.min() < 0)

    def row(self, number: int) -> Row:
        """A document's image: its columns and values, without zeros."""
        if self.is_sparse:
            row = row_of(self.images, number)
        else:
            row = Row(np.arange(self.width, dtype=np.int32), self.images[number])
        there = np.flatnonzero(row.values)
        return Row(row.columns[there], row.values[there].astype(np.float32))

    def vector(self, number: int) -> Array:
        """A document's image as a dense vector."""
        if not self.is_sparse:
            return np.asarray(self.images[number], dtype=np.float32)
        out = np.zeros(self.width, dtype=np.float32)
        row = row_of(self.images, number)
        out[row.columns] = row.values
        return out


@dataclass(frozen=True, eq=False)
class Maps:
    """Both maps of a fitted S-function. The score of a document is the sum over blocks of dot products."""

    fitted: FittedSFunction
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, fitted: Fitted, target: str) -> Maps:
        if not isinstance(fitted, FittedSFunction) or "maps" not in fitted.abilities:
            raise NotSupported(
                f"{fitted.spec} is not an S-function, so {target} cannot hold its scores: export bm25+pls or another "
                "model with maps, and re-rank what the engine finds with `clickbridge rank`"
            )
        parts = list(_leaves(fitted))
        names: dict[str, int] = {}
        blocks = []
        for part in parts:
            plain = re.sub(r"\W+", "_", part.spec).strip("_").lower() or "model"
            names[plain] = names.get(plain, 0) + 1
            name = plain if names[plain] == 1 else f"{plain}_{names[plain]}"
            blocks.append(Block(name, part.images, np.asarray(part.scorable, dtype=bool)))
        return cls(fitted, tuple(blocks))

    @property
    def doc_ids(self) -> list[str]:
        return self.fitted.catalogue.doc_ids

    def title(self, number: int) -> str:
        return self.fitted.catalogue.titles[number]

    def documents(self) -> Iterator[int]:
        """The numbers of the documents that have an image."""
        return iter(np.flatnonzero(self.fitted.scorable).tolist())

    def query(self, text: str) -> list[Array | Row]:
        """The numbers of a query, including the weights and normalisers of a sum: a Row for a sparse block, a vector
        for a dense one."""
        images = blocks_of(self.fitted.map_keys([self.fitted.query(text)]))
        return [
            _whole(row_of(sparse.csr_array(image), 0)) if sparse.issparse(image) else np.asarray(image[0], np.float32)
            for image in images
        ]


def as_row(values: Array | Row) -> Row:
    """The numbers of a query for one block, without zeros."""
    if not isinstance(values, Row):
        values = Row(np.arange(len(values), dtype=np.int32), values)
    return _whole(values)


def as_vector(values: Array | Row, width: int) -> Array:
    if not isinstance(values, Row):
        return values
    out = np.zeros(width, dtype=np.float32)
    out[values.columns] = values.values
    return out


def _whole(row: Row) -> Row:
    order = np.argsort(row.columns, kind="stable")
    columns, values = row.columns[order], row.values[order].astype(np.float32)
    return Row(columns[values != 0], values[values != 0])


def _leaves(fitted: FittedSFunction) -> Iterator[FittedSFunction]:
    if isinstance(fitted, FittedSum):
        for part in fitted.parts:
            yield from _leaves(part)
    else:
        yield fitted
