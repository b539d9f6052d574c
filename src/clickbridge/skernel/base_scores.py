"""The scores of a base S-function for the robust model around it: never negative, and 0 if nothing matches.

They are divided by the base's normaliser, so that they are comparable between queries, unless the paper is followed
exactly. If a base can be negative, the lowest score of a query over some documents is subtracted: a shift that depends
only on the query keeps an S-function an S-function (with one more coordinate).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.io.values import expect, stored
from clickbridge.models.algebra import FittedSum
from clickbridge.models.candidates import Query
from clickbridge.models.sfunction import FittedSFunction, Image, blocks_of, row_image
from clickbridge.numerics.ragged import Ragged
from clickbridge.numerics.topk import paired_dots
from clickbridge.skernel.training_data import KernelTraining

Array = np.ndarray[Any, Any]
REFERENCES = 256
"""Documents that a query's zero is looked for among."""
BLOCK = 2048
"""Queries that are scored at once."""


@stored
@dataclass(frozen=True, eq=False)
class BaseScores:
    """The base scores of all training points. `mean` is their mean, which makes epsilon and the ridge comparable
    between bases; also whether the base can be negative, and whether scores are normalised at all (if not, the mean
    is 1)."""

    points: Array
    mean: float
    negative: bool
    scaled: bool = True

    def check_stored(self) -> None:
        expect("scores of points", self.points, (None,))


def references(n_docs: int) -> Array:
    """A fixed sample of documents, spread over the collection."""
    return np.arange(0, n_docs, max(n_docs // REFERENCES, 1))


def above_zero(base: FittedSFunction, query: Query, items: Array, spread: Array | None, scaled: bool = True) -> Array:
    """The scores of one list, at least 0. `spread` are the documents whose lowest score becomes 0; None if no shift is
    needed."""
    image = base.image(query)
    norm = base.normaliser(image) if scaled else 1.0
    scores = base.score_image(image, items) / norm
    zero = 0.0
    if spread is not None:
        others = base.score_image(image, spread) / norm
        zero = float(np.min(others, where=np.isfinite(others), initial=0.0))
    return np.maximum(np.where(np.isfinite(scores), scores - zero, 0.0), 0.0)


def score_points(
    base: FittedSFunction, keys: Sequence[str], training: KernelTraining, scaled: bool = True
) -> BaseScores:
    """The scores of all training points, one block of queries at a time."""
    queries = [Query(key) for key in keys]
    spread = references(len(base.catalogue))
    sample = (base.score_items(query, spread) for query in queries[:REFERENCES])
    negative = any(bool(np.any(scores[np.isfinite(scores)] < 0)) for scores in sample)
    starts = np.searchsorted(training.point_query, np.arange(len(queries) + 1))
    blocks = [np.empty(0)]
    for first in range(0, len(queries), BLOCK):
        indptr = starts[first : first + BLOCK + 1]
        docs = training.point_doc[indptr[0] : indptr[-1]]
        lists = Ragged(indptr - indptr[0])
        blocks.append(_scored(base, queries[first : first + BLOCK], lists, docs, spread, negative, scaled))
    points = np.concatenate(blocks)
    return BaseScores(points, float(points.mean()) if scaled and points.any() else 1.0, negative, scaled)


def _scored(
    base: FittedSFunction, queries: Sequence[Query], lists: Ragged, docs: Array, spread: Array, negative: bool,
    scaled: bool,
) -> Array:  # fmt: skip
    """`above_zero` of many lists, one after the other."""
    images = blocks_of(base.map_keys(queries))
    norms = np.array([base.normaliser(_image(images, row)) if scaled else 1.0 for row in range(len(queries))])
    scores = _dots(images, image_blocks(base), lists, docs) / norms[lists.owner]
    if negative:
        there = spread[base.scorable[spread]]
        every = Ragged.of_lengths(np.full(len(queries), len(there)))
        others = _dots(images, image_blocks(base), every, np.tile(there, len(queries))).reshape(len(queries), -1)
        scores -= (np.min(others, axis=1, initial=0.0) / norms)[lists.owner]
    return np.where(base.scorable[docs], np.maximum(scores, 0.0), 0.0)


def _image(images: Sequence[Any], row: int) -> Image:
    rows = [row_image(block, row) for block in images]
    return rows[0] if len(rows) == 1 else rows


def _dots(images: Sequence[Any], documents: Sequence[Any], lists: Ragged, docs: Array) -> Array:
    """The dot products of each list's query with its documents. Both sides consist of the same blocks."""
    total = np.zeros(len(docs))
    for one, two in zip(images, documents, strict=True):
        if sparse.issparse(two):
            total += paired_dots(one, two, lists.indptr, docs)
            continue
        for row, (start, stop) in enumerate(zip(lists.indptr[:-1].tolist(), lists.indptr[1:].tolist(), strict=True)):
            total[start:stop] += np.einsum("ij,j->i", two[docs[start:stop]], one[row])
    return total


def image_blocks(base: FittedSFunction) -> list[Any]:
    """The base's document images, in the form in which they are stored."""
    return [part.images for part in base.parts] if isinstance(base, FittedSum) else [base.images]
