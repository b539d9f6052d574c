"""Exact top-k of dense rows: tiles of a BLAS product, and a heap per row for the best scores of all tiles.

The tiles depend only on the sizes of the matrices, so scores are the same to the last bit for any number of threads and
any memory limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.numerics.threads import kernel
from clickbridge.numerics.topk import best_first, offer

Array = np.ndarray[Any, Any]
ROWS = 256
"""Query rows of a tile: enough that arithmetic, not reading the images, takes most of the time."""
SCORES = 1 << 21
"""Scores in a tile."""


@kernel
def _offer_tile(tile, first, hidden, scores, items, sizes):  # type: ignore[no-untyped-def]
    """Offers every score of a tile to the heap of its row. The columns are the items from `first` on. Items come in
    increasing order, so a score equal to the smallest of a full heap is not added."""
    for row in range(tile.shape[0]):
        values, best, numbers, size = tile[row], scores[row], items[row], sizes[row]
        bar = best[0] if size == len(best) else -np.inf
        for c in range(len(values)):
            # Written so that NaN is never above the bar.
            if not values[c] > bar or (len(hidden) > 0 and hidden[first + c]):
                continue
            size = offer(best, numbers, size, values[c], first + c)
            if size == len(best):
                bar = best[0]
        sizes[row] = size


@kernel
def _best_first(scores, items, sizes):  # type: ignore[no-untyped-def]
    for row in range(len(sizes)):
        best_first(scores[row], items[row], sizes[row])


class _Heaps:
    """The k best scores of each row so far."""

    def __init__(self, n_rows: int, k: int) -> None:
        self.scores, self.items = np.empty((n_rows, k)), np.empty((n_rows, k), dtype=np.int32)
        self.sizes = np.zeros(n_rows, dtype=np.int64)

    def offer(self, tile: Array, first: int, hidden: Array) -> None:
        _offer_tile(tile, first, hidden, self.scores, self.items, self.sizes)

    def ranked(self) -> tuple[Array, Array]:
        _best_first(self.scores, self.items, self.sizes)
        return self.items, self.scores


def largest_of_rows(scores: Array, k: int) -> tuple[Array, Array]:
    """Columns and values of the k largest values of each row, best first; of equal ones the lower column first. If a
    row has fewer than k values above -inf, the rest is -1 and -inf."""
    heaps = _Heaps(len(scores), min(k, scores.shape[1]))
    if heaps.scores.size:
        heaps.offer(scores, 0, np.empty(0, dtype=bool))
    return heaps.ranked()


def nearest(queries: Array, images: Array, k: int, hidden: Array | None, engine: Engine) -> tuple[Array, Array]:
    """`Engine.top_k` in this process. Blocks of query rows are divided among as many threads as there is memory for
    tiles. A single block runs in the calling thread."""
    n_rows, n_items = len(queries), len(images)
    k = min(k, n_items)
    items, scores = np.full((n_rows, k), -1, dtype=np.int32), np.full((n_rows, k), -np.inf)
    if not items.size:
        return items, scores
    without = np.empty(0, dtype=bool) if hidden is None else hidden
    dtype = np.result_type(queries, images)
    columns = min(max(SCORES // min(n_rows, ROWS), 1), n_items)
    starts = range(0, n_rows, ROWS)
    tile_bytes = min(n_rows, ROWS) * columns * dtype.itemsize
    shares = max(min(engine.threads, len(starts), engine.memory // tile_bytes), 1)

    def work(share: int) -> None:
        room = np.empty(min(n_rows, ROWS) * columns, dtype=dtype)
        for start in starts[share::shares]:
            rows = queries[start : start + ROWS]
            heaps = _Heaps(len(rows), k)
            for first in range(0, n_items, columns):
                part = images[first : first + columns]
                tile = room[: len(rows) * len(part)].reshape(len(rows), len(part))
                heaps.offer(np.matmul(rows, part.T, out=tile), first, without)
            items[start : start + ROWS], scores[start : start + ROWS] = heaps.ranked()

    for _ in engine.map(work, range(shares)):
        pass
    return items, scores
