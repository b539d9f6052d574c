"""Learning on one CUDA card: fused kernels for RMLS (cuda.py), block SVD through cuBLAS, exact top-k.

Maps and blocks lie on the card between `hold` and `fetch`, dense, as float32 or (RMLS alone) bf16. Where the card is
too small for a step, columns go through it in tiles and rows in chunks, and this machine's memory holds the rest. This
is the only file that imports cupy, and needs nothing but NumPy, SciPy and CuPy to be imported.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines import cuda
from clickbridge.engines.base import Array, Item, Result
from clickbridge.engines.emulation import LONG_ROW
from clickbridge.errors import EngineError, SettingError
from clickbridge.numerics import qr
from clickbridge.numerics.rmls import Half, Shrinkage, decorrelation
from clickbridge.numerics.rows import SparseRows, Survey, sparse_rows

STORES = {"float32": np.float32, "bfloat16": np.uint16}
SHARE = 0.9
"""Of the card's free memory that arrays may take."""
CHUNK_BYTES = 1 << 30
SMALLEST = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-7}
"""Least over largest diagonal of a triangular factor with which Cholesky QR in double precision is sound."""
MOST_K = 32


@dataclass(frozen=True, eq=False)
class Held:
    """A block or a map on the card, or beside it where it is too large."""

    array: Any

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.array.shape[0]), int(self.array.shape[1])


class Gpu:
    """`store` is how RMLS keeps maps and what lies between them, float32 or bfloat16; sums are float32 in any case.
    `card` is for tests: what stands in for one."""

    name = "gpu"

    def __init__(self, threads: int = 0, memory: int = 0, *, store: str = "float32", card: Any = None) -> None:
        if store not in STORES:
            raise SettingError(f"store is float32 or bfloat16; got {store!r}")
        if threads < 0 or memory < 0:
            raise SettingError(f"threads and memory must be 0 or more, not {threads} and {memory}")
        self.threads = threads or len(os.sched_getaffinity(0))
        self.memory = memory or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        self.store = store
        self._card = Card() if card is None else card
        self._xp = self._card.xp
        self._matrices: dict[tuple[int, Any], Any] = {}

    def __repr__(self) -> str:
        return f"Gpu(threads={self.threads}, memory={self.memory}, store={self.store!r})"

    # --- this process ----------------------------------------------------------------------------

    def _here(self) -> Any:
        from clickbridge.engines.local import Local  # needs more than NumPy, SciPy and CuPy

        return Local(self.threads, self.memory)

    def at_work(self) -> AbstractContextManager[Any]:
        return nullcontext()  # the little that is left to this machine's BLAS may have all of its threads

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        return self._here().map(work, items)

    def by_rows(self, work: Callable[..., Any], n_rows: int, *shared: Any) -> list[Any]:
        return self._here().by_rows(work, n_rows, *shared)

    def close(self) -> None:
        """Gives the card's memory back."""
        self._matrices.clear()

    def __enter__(self) -> Gpu:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- what is held ----------------------------------------------------------------------------

    def hold(self, array: Any) -> Held:
        if isinstance(array, Held):
            return array
        dense = array.dense() if isinstance(array, SparseRows) else array
        return Held(self._card.put(dense) if self._fits(dense.nbytes) else dense)

    def fetch(self, held: Any) -> Any:
        if not isinstance(held, Held):
            return held
        array = self._card.get(held.array)
        return _unpacked(np, array) if array.dtype == np.uint16 else array

    def _fits(self, needed: float) -> bool:
        return needed <= self._card.memory

    def _matrix(self, a: sparse.csr_array, dtype: Any) -> Any:
        """A matrix on the card: once for as long as it lives here."""
        key = (id(a), np.dtype(dtype))
        if key not in self._matrices:
            self._matrices[key] = self._card.matrix(a, np.dtype(dtype))
            weakref.finalize(a, self._matrices.pop, key, None)
        return self._matrices[key]

    def _chunks(self, n_rows: int, row_bytes: int) -> list[slice]:
        step = max(min(CHUNK_BYTES, self._card.memory // 8) // max(row_bytes, 1), 1)
        return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]

    # --- blocks ----------------------------------------------------------------------------------

    def times(self, a: sparse.csr_array, block: Any) -> Any:
        if a.shape[1] != block.shape[0]:
            raise ValueError(f"shapes {a.shape} and {block.shape} do not fit")
        if isinstance(block, Held):
            return Held(self._through([a], block.array, block.array.dtype))
        rows, width, size = a.shape[0] + a.shape[1], block.shape[1], block.dtype.itemsize
        out = np.empty((a.shape[0], width), block.dtype)
        for tile in _tiles(width, (self._card.memory - 12 * a.nnz) // max(rows * size, 1)):
            part = self._card.put(np.ascontiguousarray(block[:, tile]))
            out[:, tile] = self._card.get(self._through([a], part, block.dtype))
        return out

    def _through(self, chain: list[sparse.csr_array], block: Any, dtype: Any) -> Any:
        """Products one after the other, on the card."""
        numbers = np.float64 if block.dtype == np.float64 else np.float32
        for a in chain:
            out = self._xp.empty((a.shape[0], block.shape[1]), dtype)
            block = self._card.gather(self._matrix(a, numbers), block, out) if out.size else out
        return block

    def gram(self, block: Any) -> Array:
        return self._card.get(self._gram(self.hold(block).array, np.float64))

    def _gram(self, array: Any, dtype: Any) -> Any:
        """Products of chunks of rows in this precision, added up in double."""
        total = self._xp.zeros((array.shape[1], array.shape[1]))
        for rows in self._chunks(len(array), 8 * array.shape[1]):
            part = self._xp.asarray(array[rows]).astype(dtype, copy=False)
            total += part.T @ part
        return total

    def orthonormal(self, block: Any) -> tuple[Any, Array]:
        """Cholesky QR with the Gram matrix in double precision; twice for a block in double precision."""
        held = self.hold(block)
        dtype = held.array.dtype
        total = self._xp.eye(held.shape[1])
        for _ in range(1 if dtype == np.float32 else 2):
            r = self._root(self._gram(held.array, np.float64), SMALLEST[dtype])
            if r is None:
                q, small = qr.orthonormal(self.fetch(held).copy())
                return (self.hold(q) if isinstance(block, Held) else q), (small @ self._card.get(total)).astype(dtype)
            held, total = self._times_small(held, self._xp.linalg.inv(r), dtype), r @ total
        return (held if isinstance(block, Held) else self.fetch(held)), self._card.get(total).astype(dtype)

    def _root(self, square: Any, least: float) -> Any:
        """The upper triangular r of a Gram matrix r'r; None where that is too near to a singular one."""
        try:
            r = self._xp.linalg.cholesky(square).T
        except np.linalg.LinAlgError:
            return None
        diagonal = self._card.get(r.diagonal())
        # What is not positive definite may come as numbers that are none.
        return r if len(diagonal) and diagonal.min() > diagonal.max() * least else None

    def _times_small(self, held: Held, turn: Any, dtype: Any) -> Held:
        """block times a small matrix, in the matrix's precision, by chunks of rows."""
        out = self._xp.empty((held.shape[0], turn.shape[1]), dtype)
        for rows in self._chunks(held.shape[0], 8 * held.shape[1]):
            out[rows] = self._xp.asarray(held.array[rows]).astype(turn.dtype, copy=False) @ turn
        return Held(out)

    def combined(self, block: Any, matrix: Array) -> Held:
        held = self.hold(block)
        return self._times_small(held, self._card.put(np.ascontiguousarray(matrix)), held.array.dtype)

    def scaled(self, block: Any, factors: Array | float) -> Held:
        array = self.hold(block).array
        if array.dtype == np.uint16:
            return Held(_packed(self._xp, _unpacked(self._xp, array) * np.float32(factors)))
        array *= self._xp.asarray(factors, dtype=array.dtype)
        return Held(array)

    def lengths(self, block: Any, minus: Any = None, factors: Array | float = 1.0) -> Array:
        array, total = self.hold(block).array, np.zeros(block.shape[1])
        other = None if minus is None else self.hold(minus).array
        for rows in self._chunks(len(array), 8 * array.shape[1]):
            part = self._xp.asarray(array[rows]).astype(np.float64)
            if other is not None:
                part -= self._xp.asarray(other[rows]) * self._xp.asarray(factors)
            total += self._card.get((part * part).sum(axis=0))
        return np.sqrt(total)

    def extremes(self, block: Any) -> tuple[Array, Array]:
        array = self._xp.asarray(self.hold(block).array)
        if not len(array):
            return np.full(array.shape[1], -np.inf), np.full(array.shape[1], np.inf)
        return self._card.get(array.max(axis=0)), self._card.get(array.min(axis=0))

    def survey(self, maps: Any, gram: bool) -> Survey:
        array, xp = self.hold(maps).array, self._xp
        width = array.shape[1]
        nnz, longest, lengths, total = 0, 0.0, 0.0, np.zeros(width)
        square = np.zeros((width, width)) if gram else None
        for rows in self._chunks(len(array), 12 * width):
            part = xp.asarray(array[rows])
            part = _unpacked(xp, part) if part.dtype == np.uint16 else part
            norms = xp.sqrt((part.astype(np.float64) ** 2).sum(axis=1))
            nnz += int(xp.count_nonzero(part))
            longest, lengths = max(longest, float(norms.max())), lengths + float(norms.sum())
            total += self._card.get(part.sum(axis=0, dtype=np.float64))
            if square is not None:
                square += self._card.get(part.T @ part)
        return Survey(nnz, longest, lengths, total, square)

    # --- RMLS ------------------------------------------------------------------------------------

    def half(self, rows: Any, maps: Any, how: Shrinkage, keep_dense: bool) -> Half:
        chain, width = rows.chain, maps.shape[1]
        store = np.dtype(STORES[self.store])
        between = sum(a.shape[0] for a in chain) + maps.shape[0]
        needed = between * width * store.itemsize + 12 * sum(a.nnz for a in chain)
        needed += chain[-1].shape[0] * width * 4 if how.decorrelate else 0
        whole = self._on_card if self._fits(needed) else self._by_tiles
        made, alignment = whole(chain, self.hold(maps).array, how, store)
        if isinstance(maps, Held):
            return Half(Held(made), alignment)  # type: ignore[arg-type]
        fetched = self.fetch(Held(made))
        return Half(fetched if keep_dense else sparse_rows(fetched), alignment)

    def _on_card(self, chain: list[sparse.csr_array], maps: Any, how: Shrinkage, store: Any) -> tuple[Any, Array]:
        block = maps if maps.dtype == store or store != np.uint16 else _packed(self._xp, self._xp.asarray(maps))
        block, last = self._through(chain[:-1], self._xp.asarray(block), store), chain[-1]
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

    def _by_tiles(self, chain: list[sparse.csr_array], maps: Any, how: Shrinkage, store: Any) -> tuple[Any, Array]:
        """Some columns at a time through the products, then some rows at a time through the threshold; what waits is
        in this machine's memory."""
        maps = self.fetch(Held(maps))
        width, tallest = maps.shape[1], 2 * max(maps.shape[0], *(a.shape[0] for a in chain))
        omega = np.empty((chain[-1].shape[0], width), np.float32)
        room = self._card.memory - 12 * max(a.nnz for a in chain)
        for tile in _tiles(width, room // (tallest * 4)):
            part = self._card.put(np.ascontiguousarray(maps[:, tile], dtype=np.float32))
            for a in chain:
                part = self._through([a], part, np.float32)
                self._matrices.pop((id(a), np.dtype(np.float32)), None)
            omega[:, tile] = self._card.get(part)
        out = np.zeros_like(omega)
        return out, self._turned(omega, out, how)

    def _turned(self, omega: Any, out: Any, how: Shrinkage) -> Array:
        """Decorrelation, if it is asked for, and thresholds, by chunks of rows."""
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
            out[rows] = self._card.get(new) if isinstance(out, np.ndarray) else new
        return alignment

    # --- search ----------------------------------------------------------------------------------

    def top_k(self, queries: Any, images: Any, k: int, hidden: Array | None = None) -> tuple[Array, Array]:
        """By tiles of images, which may be held: the best of each tile, then the best of these."""
        queries, images = (side.array if isinstance(side, Held) else side for side in (queries, images))
        k = min(k, len(images))
        if not len(queries) or not k:
            return np.full((len(queries), k), -1, np.int32), np.full((len(queries), k), -np.inf)
        dtype = np.result_type(queries.dtype, images.dtype)
        asked = self._card.put(queries).astype(dtype, copy=False)
        shadow = None if hidden is None else self._card.put(hidden)
        room = max(min(2 * CHUNK_BYTES, self._card.memory // 4), 1)
        step = max(room // max((len(queries) + images.shape[1]) * dtype.itemsize, 1), k)
        found: list[tuple[Any, Any]] = []
        for first in range(0, len(images), step):
            part = self._card.put(images[first : first + step]).astype(dtype, copy=False)
            found.append(self._card.top(asked @ part.T, first, shadow, min(k, len(part))))
        best, values = found[0]
        if len(found) > 1:
            best, values = self._card.merge([items for items, _ in found], [scores for _, scores in found], k)
        return self._card.get(best).astype(np.int32), self._card.get(values).astype(np.float64)


def _tiles(width: int, columns: int) -> list[slice]:
    step = min(max(int(columns), 1), max(width, 1))
    return [slice(start, min(start + step, width)) for start in range(0, width, step)]


def _packed(xp: Any, values: Any) -> Any:
    bits = xp.ascontiguousarray(values).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def _unpacked(xp: Any, bits: Any) -> Any:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


class Card:
    """The first CUDA card: arrays go there and come back, and kernels are started on them."""

    per_thread = 4
    """Packs of 16 bytes of a row that a thread works on, where the row is long enough (measured on an H200)."""
    resident = (768, 512)
    """Threads of one multiprocessor for which there must be registers, to gather and to shrink: more would have each
    of them wait for less, and spill."""

    def __init__(self) -> None:
        advice = "or use --engine local"
        try:
            import cupy
        except ImportError as error:
            need = "CuPy is not installed; pip install 'clickbridge[gpu]'"
            raise EngineError(f"no card is used: {need}, {advice}") from error
        try:
            if not cupy.cuda.runtime.getDeviceCount():
                raise EngineError(f"no card is used: this machine has no CUDA device; {advice}")
            free, _ = cupy.cuda.runtime.memGetInfo()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise EngineError(f"no card is used: {str(error).splitlines()[0]}; {advice}") from error
        self.xp: Any = cupy
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        self.name = properties["name"].decode()
        self.processors = int(properties["multiProcessorCount"])
        self.memory = int(free * SHARE)

    def put(self, array: Array) -> Any:
        return self.xp.asarray(array)

    def get(self, array: Any) -> Array:
        return array if isinstance(array, np.ndarray) else self.xp.asnumpy(array)

    def matrix(self, a: sparse.csr_array, dtype: Any) -> Any:
        """Rows, and the segments of those that are long."""
        indptr = a.indptr.astype(np.int64)
        counts = np.diff(indptr)
        segments = np.where(counts > LONG_ROW, -(-counts // LONG_ROW), 0)
        part_of = np.concatenate([[0], np.cumsum(segments)]).astype(np.int32)
        long = np.flatnonzero(segments)
        within = np.arange(part_of[-1]) - np.repeat(part_of[long], segments[long])
        begin = np.repeat(indptr[long], segments[long]) + within * LONG_ROW
        end = np.minimum(begin + LONG_ROW, np.repeat(indptr[long + 1], segments[long]))
        parts = (indptr, a.indices.astype(np.int32), a.data.astype(dtype), part_of, begin, end)
        return tuple(self.put(part) for part in parts)

    def _kernel(self, name: str, width: int, dtype: Any) -> tuple[Any, int]:
        vec = next(v for v in (8, 4, 2, 1) if width % v == 0 and v * np.dtype(dtype).itemsize <= 16)
        packs = width // vec
        threads = min((packs // self.per_thread + 31) // 32 * 32, 1024) or 32
        chunks = (packs + threads - 1) // threads
        return self._compiled(vec, chunks, threads, np.dtype(dtype).itemsize).get_function(name), threads

    @cache  # noqa: B019 - one card for the life of the process
    def _compiled(self, vec: int, chunks: int, threads: int, size: int) -> Any:
        given = {"VEC": vec, "CHUNKS": chunks, "BF16": int(size == 2), "WIDE": int(size == 8), "THREADS": threads}
        given["BLOCKS"], given["FEWER"] = (max(most // threads, 1) for most in self.resident)
        options = tuple(f"-D{name}={value}" for name, value in given.items())
        return self.xp.RawModule(code=cuda.SOURCE, options=("-std=c++17", *options))

    def _blocks(self, n_rows: int, threads: int) -> int:
        return max(min(n_rows, self.processors * (2048 // threads)), 1)

    def _segments(self, matrix: Any, block: Any, width: int) -> Any:
        _, indices, data, _, begin, end = matrix
        parts = self.xp.empty((len(begin), width), data.dtype)
        if len(begin):
            kernel, threads = self._kernel("gather_segments", width, block.dtype)
            given = (begin, end, np.int64(len(begin)), indices, data, block, parts, np.int32(width))
            kernel((min(len(begin), 1 << 20),), (threads,), given)
        return parts

    def gather(self, matrix: Any, block: Any, out: Any) -> Any:
        """Sparse rows times a block. A block of float32 may become one of bf16 and the other way round: through the
        type of `out`, which is then made from float32 sums."""
        indptr, indices, data, part_of, _, _ = matrix
        width = block.shape[1]
        target = out if out.dtype == block.dtype else self.xp.empty(out.shape, block.dtype)
        parts = self._segments(matrix, block, width)
        kernel, threads = self._kernel("gather", width, block.dtype)
        given = (np.int64(len(out)), indptr, indices, data, block, part_of, parts, target, np.int32(width))
        kernel((self._blocks(len(out), threads),), (threads,), given)
        if target is not out:
            out[...] = _unpacked(self.xp, target) if out.dtype == np.float32 else _packed(self.xp, target)
        return out

    def gather_shrink(self, matrix: Any, block: Any, out: Any, *how: Any) -> Any:
        indptr, indices, data, part_of, _, _ = matrix
        width = block.shape[1]
        parts = self._segments(matrix, block, width)
        kernel, threads = self._kernel("gather_shrink", width, block.dtype)
        blocks = self._blocks(len(out), threads)
        alignment = self.xp.zeros((blocks, width))
        given = (np.int64(len(out)), indptr, indices, data, block, part_of, parts, out, np.int32(width))
        kernel((blocks,), (threads,), (*given, *self._settings(how), alignment))
        return alignment.sum(axis=0)

    def shrink(self, source: Any, raw: Any, out: Any, *how: Any) -> Any:
        width = source.shape[1]
        kernel, threads = self._kernel("shrink", width, out.dtype)
        blocks = self._blocks(len(out), threads)
        alignment = self.xp.zeros((blocks, width))
        given = (np.int64(len(out)), source, raw, out, np.int32(width))
        kernel((blocks,), (threads,), (*given, *self._settings(how), alignment))
        return alignment.sum(axis=0)

    @staticmethod
    def _settings(how: Any) -> tuple[Any, ...]:
        mode, *numbers = how
        return (np.int32(mode), *(np.float64(number) for number in numbers))

    # --- search ----------------------------------------------------------------------------------

    def top(self, scores: Any, first: int, hidden: Any, k: int) -> tuple[Any, Any]:
        """The best k of each row of a tile, whose first column is item `first`."""
        if k > MOST_K:
            numbers = self.xp.broadcast_to(self.xp.arange(first, first + scores.shape[1]), scores.shape)
            if hidden is not None:
                scores = self.xp.where(hidden[first : first + scores.shape[1]], -np.inf, scores)
            return self._sorted(scores, numbers, k)
        return self._top(scores, None, hidden, first, k)

    def merge(self, items: list[Any], scores: list[Any], k: int) -> tuple[Any, Any]:
        numbers, values = self.xp.concatenate(items, axis=1), self.xp.concatenate(scores, axis=1)
        return self._sorted(values, numbers, k) if k > MOST_K else self._top(values, numbers, None, 0, k)

    def _sorted(self, scores: Any, numbers: Any, k: int) -> tuple[Any, Any]:
        # Columns are in the order of their numbers among equals, and the sort keeps it.
        order = self.xp.argsort(-scores, axis=1, kind="stable")[:, :k]
        best = self.xp.take_along_axis(scores, order, axis=1)
        return self.xp.where(best > -np.inf, self.xp.take_along_axis(numbers, order, axis=1), -1), best

    def _top(self, scores: Any, numbers: Any, hidden: Any, first: int, k: int) -> tuple[Any, Any]:
        scores = self.xp.ascontiguousarray(scores)
        n, columns = scores.shape
        best, items = self.xp.empty((n, k), scores.dtype), self.xp.empty((n, k), np.int64)
        kernel = self._top_kernel(k, str(scores.dtype))
        null = np.intp(0)
        given = (scores, null if numbers is None else numbers, null if hidden is None else hidden)
        sizes = (np.int64(first), np.int64(columns), np.int64(n))
        kernel((n,), (256,), (*given, *sizes, best, items, np.int64(k), np.int64(0)))
        return items, best

    @cache  # noqa: B019
    def _top_kernel(self, k: int, dtype: str) -> Any:
        real = {"float32": "float", "float64": "double"}[dtype]
        return self.xp.RawModule(code=cuda.TOP, options=(f"-DK={k}", f"-DREAL={real}")).get_function("top")
