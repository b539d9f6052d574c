"""The work of a cluster's workers: they run the loops of `numerics` on their share of the rows.

Every function takes parts of blocks or maps from the object store, and returns a new part. Nothing here depends on the
cluster: `ray.py` sends the work, and tests call these functions in one process.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Array, Engine
from clickbridge.engines.local import Local
from clickbridge.numerics import qr
from clickbridge.numerics.csr import product
from clickbridge.numerics.nearest import largest_of_rows, nearest
from clickbridge.numerics.rmls import FormedRows, KeptRows, Omega, Shrinkage, shrunk, with_gram
from clickbridge.numerics.rows import (
    BLOCK_ROWS,
    Maps,
    SparseRows,
    Survey,
    dense_columns,
    joined,
    row_blocks,
    scaled_block,
    surveyed,
)

Blocks = list[tuple[int, int]]


def cut(indptr: Array, parts: int) -> list[Blocks]:
    """Divides rows into parts of whole blocks, with about the same number of non-zeros each. The blocks are the same as
    on one machine, so results are equal to the last bit."""
    blocks = row_blocks(indptr)
    ends = np.array([indptr[stop] + stop for _, stop in blocks])
    wanted = (int(indptr[-1]) + len(indptr) - 1) * np.arange(1, parts) / parts
    cuts = np.unique([0, *(int(np.searchsorted(ends, w)) + 1 for w in wanted), len(blocks)])
    return [blocks[a:b] for a, b in pairwise(cuts.tolist()) if a < len(blocks)]


def bounds_of(parts: list[Blocks]) -> list[int]:
    """The first row of each part, and the end of the last part."""
    return [0, *(blocks[-1][1] for blocks in parts)]


def even_bounds(n_rows: int, parts: int, step: int = BLOCK_ROWS) -> list[int]:
    """Bounds of parts for rows of equal cost, in multiples of `step`."""
    steps = -(-n_rows // step)
    return sorted({min(steps * part // parts * step, n_rows) for part in range(parts + 1)})


def rows_between(a: sparse.csr_array, start: int, stop: int) -> sparse.csr_array:
    """Some rows of a matrix, as views."""
    first, last = int(a.indptr[start]), int(a.indptr[stop])
    own = a.data[first:last], a.indices[first:last], a.indptr[start : stop + 1] - a.indptr[start]
    return sparse.csr_array(own, shape=(stop - start, a.shape[1]))


def split(array: Maps, bounds: list[int]) -> list[Maps]:
    """Divides a block or a map by rows."""
    if isinstance(array, SparseRows):
        return [_sparse_between(array, a, b) for a, b in pairwise(bounds)]
    return [np.ascontiguousarray(array[a:b]) for a, b in pairwise(bounds)]


def _sparse_between(rows: SparseRows, start: int, stop: int) -> SparseRows:
    first, last = int(rows.indptr[start]), int(rows.indptr[stop])
    indptr = rows.indptr[start : stop + 1] - first
    return SparseRows(indptr, rows.indices[first:last], rows.data[first:last], rows.width)


def whole(parts: tuple[Any, ...]) -> Maps:
    """Joins the parts of a block or a map."""
    dense = not isinstance(parts[0], SparseRows)
    return joined(list(parts), parts[0].shape[1], dense)


# --- blocks ----------------------------------------------------------------------------------------


def times(threads: int, a: sparse.csr_array, *parts: Any) -> Array:
    with Local(threads) as engine, engine.at_work():
        return product(a, np.asarray(whole(parts)), engine)


def gram(threads: int, part: Array) -> Array:
    with Local(threads) as engine, engine.at_work():
        return qr.gram(part, engine)


def factored(threads: int, part: Array) -> tuple[Array, Array]:
    """The first step of a tall-skinny QR: the factors of one part."""
    with Local(threads) as engine, engine.at_work():
        return qr.orthonormal(part.copy(), engine)


def combined(threads: int, part: Array, matrix: Array) -> Array:
    with Local(threads).at_work():
        return part @ matrix


def cross(threads: int, part: Array, *others: Array) -> Array:
    with Local(threads) as engine, engine.at_work():
        return qr.cross(others, part, engine)


def side_by_side(threads: int, *parts: Array) -> Array:
    return np.hstack(parts)


def mixed(threads: int, matrices: list[Array], *parts: Array) -> Array:
    with Local(threads) as engine, engine.at_work():
        return qr.mixed(parts, matrices, engine)


def scaled(threads: int, part: Maps, factors: Array | float) -> Maps:
    return scaled_block(part if isinstance(part, SparseRows) else part.copy(), factors)


def squares(threads: int, factors: Array | float, part: Array, *minus: Array) -> Array:
    with Local(threads) as engine:
        return qr.squares(part, minus[0] if minus else None, factors, engine)


def between(threads: int, start: int, stop: int, *parts: Maps) -> Maps:
    """Some rows of a block or a map."""
    return split(whole(parts), [start, stop])[0]


def extremes(threads: int, part: Array) -> tuple[Array, Array]:
    return part.max(axis=0, initial=-np.inf), part.min(axis=0, initial=np.inf)


def survey(threads: int, part: Maps, with_l: bool) -> Survey:
    return surveyed(part, with_l)


def columns(threads: int, part: Maps, start: int, stop: int) -> Array:
    return dense_columns(part, start, stop)


# --- half an RMLS iteration ------------------------------------------------------------------------


class Share:
    """A worker's rows of W L: either its rows of W with the whole map, or finished tiles of columns."""

    def __init__(self, blocks: Blocks, w: sparse.csr_array | None = None) -> None:
        first = blocks[0][0]
        self.blocks = [(start - first, stop - first) for start, stop in blocks]
        self._w = w

    def rows(self, parts: tuple[Any, ...], engine: Engine) -> Omega:
        if self._w is None:
            return KeptRows(parts[0] if len(parts) == 1 else np.hstack(parts), self.blocks)
        return FormedRows(self._w, self.blocks).omega(whole(parts), engine)


def omega_gram(threads: int, share: Share, width: int, *parts: Any) -> Array:
    with Local(threads, 1) as engine, engine.at_work():
        return with_gram(share.rows(parts, engine), width, engine)[1]


def new_rows(
    threads: int, share: Share, width: int, how: Shrinkage, turn: Array | None, keep_dense: bool, *parts: Any
) -> tuple[Maps, list[Array]]:
    with Local(threads) as engine, engine.at_work():
        return shrunk(share.rows(parts, engine), width, how, turn, keep_dense, engine)


# --- search, and work by rows ----------------------------------------------------------------------


def top_k(threads: int, first: int, images: Array, hidden: Array | None, queries: Array, k: int) -> tuple[Array, Array]:
    with Local(threads) as engine, engine.at_work():
        items, scores = nearest(queries, images, k, hidden, engine)
    return np.where(items >= 0, items + first, -1).astype(np.int32), scores


def best_of(found: list[tuple[Array, Array]], k: int) -> tuple[Array, Array]:
    """The best results of consecutive parts. Equal scores keep the order of the parts."""
    items, scores = (np.concatenate(side, axis=1) for side in zip(*found, strict=True))
    places, best = largest_of_rows(np.ascontiguousarray(scores), k)
    return np.where(places >= 0, np.take_along_axis(items, places.astype(np.int64), axis=1), -1).astype(np.int32), best


def rows_done(threads: int, work: Callable[..., Any], start: int, stop: int, *shared: Any) -> Any:
    with Local(threads) as engine, engine.at_work():
        return work(engine, start, stop, *shared)


def pieces(threads: int, split: Callable[..., Any], item: Any, n: int) -> Any:
    return split(item, n)


def merged(threads: int, merge: Callable[..., Any], *given: Any) -> Any:
    return merge(*given)
