"""An engine that uses one card: what is stored there, what fits, and which kernels do each operation.

gpu.py has the card itself; emulation.py has a slow substitute that runs anywhere. Between `hold` and `fetch`, maps and
blocks are on the card: dense, as float32 or (RMLS only) bf16. If the card is too small for a step, columns are
processed in tiles and rows in chunks, and the rest stays in this machine's memory. A matrix must fit.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Array, Item, Result
from clickbridge.errors import SettingError
from clickbridge.numerics import qr
from clickbridge.numerics.rmls import Half, ProductRows, Shrinkage, decorrelation
from clickbridge.numerics.rows import Maps, SparseRows, Survey, sparse_rows

STORES = {"float32": np.float32, "bfloat16": np.uint16}
CHUNK_BYTES = 1 << 30
QUERIES = 1 << 14
"""The most queries that are searched for together: many more would leave no room for images beside their scores."""
SMALLEST = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-7}
"""If the smallest diagonal entry of the triangular factor, divided by the largest, is below this, Cholesky QR in double
precision is not accurate enough."""


@dataclass(frozen=True, eq=False)
class Held:
    """A block or a map on the card, or in this machine's memory if it is too large."""

    array: Any

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.array.shape[0]), int(self.array.shape[1])


Block = Held | Array
"""Wherever it is: held, or an array of this process."""


class OnCard:
    """The engine. `store` is how RMLS stores maps and intermediate results: float32 or bfloat16. Sums are float32 in
    any case."""

    name = "gpu"
    narrow = False

    def __init__(self, threads: int = 0, memory: int = 0, *, store: str = "float32", card: Any) -> None:
        if store not in STORES:
            raise SettingError(f"store is float32 or bfloat16; got {store!r}")
        if threads < 0 or memory < 0:
            raise SettingError(f"threads and memory must be 0 or more, not {threads} and {memory}")
        self.threads = threads or len(os.sched_getaffinity(0))
        self.memory = memory or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        self.store = store
        self._card = card
        self._xp = self._card.xp
        self._matrices: dict[tuple[int, Any], Any] = {}
        self._local: Any = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(threads={self.threads}, memory={self.memory}, store={self.store!r})"

    @property
    def card_memory(self) -> int:
        """Bytes of the card that arrays may use. Larger data is processed in tiles."""
        return int(self._card.memory)

    @property
    def card_size(self) -> int:
        """The same where nothing else is on the card. Plans go by it: they must not depend on who else works."""
        return int(getattr(self._card, "size", self._card.memory))

    @property
    def stored_bytes(self) -> int:
        """Bytes of a number of a map on the card."""
        return int(np.dtype(STORES[self.store]).itemsize)

    # --- this process ----------------------------------------------------------------------------

    def _here(self) -> Any:
        """The threads for work that stays in this process. They are started once, not for every piece of work."""
        if self._local is None:
            from clickbridge.engines.local import Local  # needs more than NumPy, SciPy and CuPy

            self._local = Local(self.threads, self.memory)
        return self._local

    def at_work(self) -> AbstractContextManager[object]:
        return nullcontext()  # little is left for BLAS on the processor, which may use all of its threads

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        return self._here().map(work, items)

    def by_rows(self, work: Callable[..., Result], n_rows: int, *shared: object) -> list[Result]:
        found: list[Result] = self._here().by_rows(work, n_rows, *shared)
        return found

    def exchange(
        self,
        split: Callable[[Item, int], tuple[object, ...]],
        items: list[Item],
        merge: Callable[..., Result],
        *shared: object,
    ) -> tuple[list[object], list[Result]]:
        found: tuple[list[object], list[Result]] = self._here().exchange(split, items, merge, *shared)
        return found

    def close(self) -> None:
        """Frees the memory of the card, and ends the threads."""
        self._matrices.clear()
        if self._local is not None:
            self._local.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- what is held ----------------------------------------------------------------------------

    def hold(self, array: Held | Maps) -> Held:
        if isinstance(array, Held):
            return array
        dense = array.dense() if isinstance(array, SparseRows) else array
        return Held(self._card.put(dense) if self._free() >= dense.nbytes else dense)

    def fetch(self, held: Held | Maps) -> Maps:
        return self._fetched(held) if isinstance(held, Held) else held

    def _fetched(self, held: Held) -> Array:
        array = self._card.get(held.array)
        return unpacked(np, array) if array.dtype == np.uint16 else array

    def _free(self) -> int:
        """Bytes of the card for one more array. Some are left for the chunks of rows that go through it."""
        return int(self._card.memory - self._card.used() - min(self._card.memory // 4, 4 * CHUNK_BYTES))

    def _empty(self, shape: tuple[int, int], dtype: Any, *sources: Any) -> Any:
        """Room for a result: on the card, if it fits and the arrays that it is computed from are there, too."""
        needed = shape[0] * shape[1] * np.dtype(dtype).itemsize
        there = all(self._card.holds(array) for array in sources) and self._free() >= needed
        return self._xp.empty(shape, dtype) if there else np.empty(shape, dtype)

    def _store(self, out: Any, where: Any, made: Any) -> None:
        """Writes a result that is on the card to an array that may be in this machine's memory."""
        out[where] = made if self._card.holds(out) else self._card.get(made)

    def _matrix(self, a: sparse.csr_array, dtype: Any) -> Any:
        """A matrix on the card. It is copied once, and stays there as long as it exists here, unless another one needs
        its place."""
        key = (id(a), np.dtype(dtype))
        if key not in self._matrices:
            if self._free() < matrix_bytes(a, np.dtype(dtype).itemsize):
                self._matrices.clear()
            self._matrices[key] = self._card.matrix(a, np.dtype(dtype))
            weakref.finalize(a, self._matrices.pop, key, None)
        return self._matrices[key]

    def _chunks(self, n_rows: int, row_bytes: int) -> list[slice]:
        step = max(min(CHUNK_BYTES, self._card.memory // 16) // max(row_bytes, 1), 1)
        return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]

    # --- blocks ----------------------------------------------------------------------------------

    def times(self, a: sparse.csr_array, block: Block) -> Block:
        if a.shape[1] != block.shape[0]:
            raise ValueError(f"shapes {a.shape} and {block.shape} do not fit")
        array = block.array if isinstance(block, Held) else block
        width, size = array.shape[1], array.dtype.itemsize
        numbers = np.float64 if array.dtype == np.float64 else np.float32
        self._matrix(a, numbers)  # first, because it decides how much is left
        if isinstance(block, Held) and self._card.holds(array) and self._free() >= a.shape[0] * width * size:
            return Held(self._through([a], array, array.dtype))
        out = np.empty((a.shape[0], width), array.dtype)
        for tile in _tiles(width, self._free() // max(sum(a.shape) * size, 1)):
            part = self._columns(array, tile, array.dtype)
            out[:, tile] = self._card.get(self._through([a], part, array.dtype))
        return Held(out) if isinstance(block, Held) else out

    def _columns(self, array: Any, tile: slice, dtype: Any) -> Any:
        """Some columns, on the card."""
        xp = self._xp if self._card.holds(array) else np
        part = xp.ascontiguousarray(array[:, tile])
        part = (unpacked(xp, part) if part.dtype == np.uint16 else part).astype(dtype, copy=False)
        return part if self._card.holds(part) else self._card.put(part)

    def _through(self, chain: list[sparse.csr_array], block: Any, dtype: Any) -> Any:
        """A chain of products, on the card."""
        numbers = np.float64 if block.dtype == np.float64 else np.float32
        for a in chain:
            out = self._xp.empty((a.shape[0], block.shape[1]), dtype)
            block = self._card.gather(self._matrix(a, numbers), block, out) if out.size else out
        return block

    def gram(self, block: Block) -> Array:
        return self._card.get(self._gram(self.hold(block).array, np.float64))

    def _gram(self, array: Any, dtype: Any) -> Any:
        """The Gram matrix. Chunks of rows are multiplied in this precision and added in double precision."""
        total = self._xp.zeros((array.shape[1], array.shape[1]))
        for rows in self._chunks(len(array), 8 * array.shape[1]):
            part = self._xp.asarray(array[rows]).astype(dtype, copy=False)
            total += part.T @ part
        return total

    def orthonormal(self, block: Block) -> tuple[Block, Array]:
        """Cholesky QR with the Gram matrix in double precision. A block in double precision gets two passes."""
        held = self.hold(block)
        dtype = held.array.dtype
        total = self._xp.eye(held.shape[1])
        for _ in range(1 if dtype == np.float32 else 2):
            r = self._root(self._gram(held.array, np.float64), SMALLEST[dtype])
            if r is None:
                q, small = qr.orthonormal(self._fetched(held).copy())
                return (self.hold(q) if isinstance(block, Held) else q), (small @ self._card.get(total)).astype(dtype)
            held, total = self._times_small(held, self._xp.linalg.inv(r), dtype), r @ total
        return (held if isinstance(block, Held) else self._fetched(held)), self._card.get(total).astype(dtype)

    def _root(self, square: Any, least: float) -> Any:
        """The upper triangular r of a Gram matrix r'r; None if the matrix is nearly singular."""
        try:
            r = self._xp.linalg.cholesky(square).T
        except np.linalg.LinAlgError:
            return None
        diagonal = self._card.get(r.diagonal())
        # If the matrix is not positive definite, the result may contain NaN.
        return r if len(diagonal) and diagonal.min() > diagonal.max() * least else None

    def _times_small(self, held: Held, turn: Any, dtype: Any) -> Held:
        """The block times a small matrix, in the precision of the matrix, by chunks of rows."""
        out = self._empty((held.shape[0], turn.shape[1]), dtype, held.array)
        for rows in self._chunks(held.shape[0], 8 * held.shape[1]):
            made = self._xp.asarray(held.array[rows]).astype(turn.dtype, copy=False) @ turn
            self._store(out, rows, made.astype(dtype, copy=False))
        return Held(out)

    def combined(self, block: Block, matrix: Array) -> Held:
        held = self.hold(block)
        return self._times_small(held, self._card.put(np.ascontiguousarray(matrix)), held.array.dtype)

    def cross(self, blocks: Sequence[Block], block: Block) -> Array:
        array, others = self.hold(block).array, [self.hold(one).array for one in blocks]
        total = np.zeros((sum(other.shape[1] for other in others), array.shape[1]))
        for rows in self._chunks(len(array), 8 * (array.shape[1] + max((o.shape[1] for o in others), default=0))):
            part = self._xp.asarray(array[rows])
            found = [self._xp.asarray(other[rows]).T @ part for other in others]
            total += np.concatenate([self._card.get(one) for one in found])
        return total

    def joined(self, blocks: Sequence[Block]) -> Held:
        arrays = [self.hold(one).array for one in blocks]
        ends = np.cumsum([0, *(array.shape[1] for array in arrays)])
        out = self._empty((len(arrays[0]), int(ends[-1])), arrays[0].dtype, *arrays)
        for array, start, stop in zip(arrays, ends, ends[1:], strict=False):
            own = slice(int(start), int(stop))
            out[:, own] = array if self._card.holds(out) else self._card.get(array)
        return Held(out)

    def mixed(self, blocks: Sequence[Block], matrices: Sequence[Array]) -> Held:
        arrays, small = [self.hold(one).array for one in blocks], [self._card.put(matrix) for matrix in matrices]
        out = self._empty((len(arrays[0]), matrices[0].shape[1]), arrays[0].dtype, *arrays)
        for rows in self._chunks(len(out), 8 * max(out.shape[1], *(array.shape[1] for array in arrays))):
            total = self._xp.asarray(arrays[0][rows]) @ small[0]
            for array, matrix in zip(arrays[1:], small[1:], strict=True):
                total += self._xp.asarray(array[rows]) @ matrix
            self._store(out, rows, total)
        return Held(out)

    def scaled(self, block: Held | Maps, factors: Array | float) -> Held:
        array = self.hold(block).array
        xp = self._xp if self._card.holds(array) else np
        if array.dtype == np.uint16:
            for rows in self._chunks(len(array), 20 * array.shape[1]):
                array[rows] = packed(xp, unpacked(xp, array[rows]) * xp.asarray(factors, dtype=np.float32))
            return Held(array)
        array *= xp.asarray(factors, dtype=array.dtype)
        return Held(array)

    def lengths(self, block: Block, minus: Block | None = None, factors: Array | float = 1.0) -> Array:
        array, total = self.hold(block).array, np.zeros(block.shape[1])
        other = None if minus is None else self.hold(minus).array
        for rows in self._chunks(len(array), 8 * array.shape[1]):
            part = self._xp.asarray(array[rows]).astype(np.float64)
            if other is not None:
                part -= self._xp.asarray(other[rows]) * self._xp.asarray(factors)
            total += self._card.get((part * part).sum(axis=0))
        return np.sqrt(total)

    def extremes(self, block: Block) -> tuple[Array, Array]:
        array = self.hold(block).array
        high, low = np.full(array.shape[1], -np.inf), np.full(array.shape[1], np.inf)
        for rows in self._chunks(len(array), 8 * array.shape[1]):
            part = self._xp.asarray(array[rows])
            high = np.maximum(high, self._card.get(part.max(axis=0)))
            low = np.minimum(low, self._card.get(part.min(axis=0)))
        return high, low

    def survey(self, maps: Held | Maps, gram: bool) -> Survey:
        array, xp = self.hold(maps).array, self._xp
        width = array.shape[1]
        nnz, size, longest, lengths, total = 0, 0.0, 0.0, 0.0, np.zeros(width)
        square = np.zeros((width, width)) if gram else None
        for rows in self._chunks(len(array), 12 * width):
            part = xp.asarray(array[rows])
            part = unpacked(xp, part) if part.dtype == np.uint16 else part
            norms = xp.sqrt((part.astype(np.float64) ** 2).sum(axis=1))
            nnz, size = nnz + int(xp.count_nonzero(part)), size + float(xp.abs(part).sum(dtype=np.float64))
            longest, lengths = max(longest, float(norms.max())), lengths + float(norms.sum())
            total += self._card.get(part.sum(axis=0, dtype=np.float64))
            if square is not None:
                square += self._card.get(part.T @ part)
        return Survey(nnz, size, longest, lengths, total, square)

    # --- RMLS ------------------------------------------------------------------------------------

    def half(self, rows: ProductRows, maps: Held | Maps, how: Shrinkage, keep_dense: bool) -> Half:
        chain, width = rows.chain, maps.shape[1]
        store = np.dtype(STORES[self.store])
        array = self.hold(maps).array
        between = sum(a.shape[0] for a in chain) + maps.shape[0]
        needed = between * width * store.itemsize + sum(map(matrix_bytes, chain))
        needed += chain[-1].shape[0] * width * 4 if how.decorrelate else 0
        if self._free() + self._there(chain, array, store) < needed:
            self._matrices.clear()  # perhaps those of other work are in the way
        fits = self._free() + self._there(chain, array, store) >= needed
        made, alignment = (self._on_card if fits else self._by_tiles)(chain, array, how, store)
        if isinstance(maps, Held):
            return Half(Held(made), alignment)  # type: ignore[arg-type]
        fetched = self._fetched(Held(made))
        return Half(fetched if keep_dense else sparse_rows(fetched), alignment)

    def _there(self, chain: list[sparse.csr_array], maps: Any, store: Any) -> int:
        """Bytes of these matrices and of the map that are on the card already, as they are needed."""
        matrices = sum(matrix_bytes(a) for a in chain if (id(a), np.dtype(np.float32)) in self._matrices)
        return matrices + (int(maps.nbytes) if self._card.holds(maps) and maps.dtype == store else 0)

    def _on_card(self, chain: list[sparse.csr_array], maps: Any, how: Shrinkage, store: Any) -> tuple[Any, Array]:
        block, last = self._through(chain[:-1], self._stored(maps, store), store), chain[-1]
        settings = (how.mode, how.value, how.theta, how.norm_power)
        out = self._xp.empty((last.shape[0], block.shape[1]), store)
        if not out.size:
            return out, np.zeros(block.shape[1])
        if not how.decorrelate:
            alignment = self._card.gather_shrink(self._matrix(last, np.float32), block, out, *settings)
            return out, self._card.get(alignment)
        omega = self._through([last], block, np.float32)
        del block
        return out, self._turned(omega, out, how)

    def _stored(self, maps: Any, store: Any) -> Any:
        """The map on the card, as numbers of this type."""
        if maps.dtype == store or store != np.uint16:
            return self._xp.asarray(maps)
        out = self._xp.empty(maps.shape, store)
        for rows in self._chunks(len(out), 20 * out.shape[1]):
            out[rows] = packed(self._xp, self._xp.asarray(maps[rows]))
        return out

    def _by_tiles(self, chain: list[sparse.csr_array], maps: Any, how: Shrinkage, store: Any) -> tuple[Any, Array]:
        """Products by tiles of columns, then thresholds by chunks of rows. The data that is not in use stays in this
        machine's memory."""
        width, tallest = maps.shape[1], 2 * max(maps.shape[0], *(a.shape[0] for a in chain))
        omega = np.empty((chain[-1].shape[0], width), np.float32)
        self._matrices.clear()
        room = self._free() - max(map(matrix_bytes, chain))
        for tile in _tiles(width, room // (tallest * 4)):
            part = self._columns(maps, tile, np.float32)
            for a in chain:
                part = self._through([a], part, np.float32)
                self._matrices.pop((id(a), np.dtype(np.float32)), None)
            omega[:, tile] = self._card.get(part)
        out = np.zeros_like(omega)
        return out, self._turned(omega, out, how)

    def _turned(self, omega: Any, out: Any, how: Shrinkage) -> Array:
        """Decorrelates if `how` says so, and applies thresholds, by chunks of rows."""
        turn = None
        if how.decorrelate:
            gram = self._card.get(self._gram(omega, np.float32))
            turn = self._card.put(decorrelation(gram, how.decorrelate))
        alignment = np.zeros(omega.shape[1])
        for rows in self._chunks(len(omega), 8 * omega.shape[1]):
            raw = self._xp.asarray(omega[rows])
            new = self._xp.empty(raw.shape, out.dtype)
            source = raw if turn is None else raw @ turn
            found = self._card.shrink(source, raw, new, how.mode, how.value, how.theta, how.norm_power)
            alignment += self._card.get(found)
            self._store(out, rows, new)
        return alignment

    # --- search ----------------------------------------------------------------------------------

    def top_k(self, queries: Block, images: Block, k: int, hidden: Array | None = None) -> tuple[Array, Array]:
        """The best images of each tile, then the best of all tiles. The images may be held."""
        queries, images = (side.array if isinstance(side, Held) else side for side in (queries, images))
        k = min(k, len(images))
        if not len(queries) or not k:
            return np.full((len(queries), k), -1, np.int32), np.full((len(queries), k), -np.inf)
        dtype = np.result_type(queries.dtype, images.dtype)
        shadow = None if hidden is None else self._card.put(hidden)
        room = max(min(2 * CHUNK_BYTES, self._card.memory // 4), 1)
        rows = min(len(queries), max(min(QUERIES, room // (16 * max(images.shape[1], k, 1))), 1))
        step = max(room // max((rows + images.shape[1]) * dtype.itemsize, 1), k)
        items, scores = np.empty((len(queries), k), np.int32), np.empty((len(queries), k))
        for first in range(0, len(images), step):
            part = self._card.put(images[first : first + step]).astype(dtype, copy=False)
            for start in range(0, len(queries), rows):
                own = slice(start, start + rows)
                asked = self._card.put(queries[own]).astype(dtype, copy=False)
                best, values = self._card.top(asked @ part.T, first, shadow, min(k, len(part)))
                if first:
                    before = self._card.put(items[own].astype(np.int64)), self._card.put(scores[own].astype(dtype))
                    best, values = self._card.merge([before[0], best], [before[1], values], k)
                items[own], scores[own] = self._card.get(best), self._card.get(values)
        return items, scores


def _tiles(width: int, columns: int) -> list[slice]:
    step = min(max(int(columns), 1), max(width, 1))
    return [slice(start, min(start + step, width)) for start in range(0, width, step)]


def matrix_bytes(a: sparse.csr_array, size: int = 4) -> int:
    """Bytes of a matrix on the card, with numbers of this size."""
    return int((size + 4) * a.nnz + 12 * (a.shape[0] + 1))


def packed(xp: Any, values: Any) -> Any:
    bits = xp.ascontiguousarray(values).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def unpacked(xp: Any, bits: Any) -> Any:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
