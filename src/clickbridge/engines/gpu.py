"""Learning on one CUDA card with CuPy: the card, and how the kernels of cuda.py are launched.

This is the only file that imports cupy. Importing it needs only NumPy, SciPy and CuPy. The engine itself is in
on_card.py.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines import cuda
from clickbridge.engines.base import Array
from clickbridge.engines.emulation import LONG_ROW
from clickbridge.engines.on_card import OnCard, packed, unpacked
from clickbridge.errors import EngineError

SHARE = 0.9
"""The share of the card's free memory that arrays may use."""
MOST_K = 32
"""Up to this k every thread keeps its own best scores. For a larger k all scores are sorted."""


class Gpu(OnCard):
    """Learns and searches on the first CUDA card of this machine: `model.fit(graph, engine=Gpu())`.

    Needs the extra `[gpu]`. Without a card it raises EngineError with the reason.

    Parameters
    ----------
    threads : int
        The number of threads for work that stays on the processor. 0 means one for each core.
    memory : int
        Bytes of this machine's memory for working arrays. 0 means half of it.
    store : str
        How RMLS stores its maps on the card: float32 or bfloat16. Sums are float32 in any case.
    card : object, optional
        A substitute for the card, for tests and this example.

    Examples
    --------
    >>> from clickbridge import Gpu
    >>> from clickbridge.engines.emulation import Emulation
    >>> Gpu(threads=2, memory=1 << 30, card=Emulation())
    Gpu(threads=2, memory=1073741824, store='float32')
    """

    name = "gpu"

    def __init__(
        self, threads: int = 0, memory: int = 0, *, store: str = "float32", card: object | None = None
    ) -> None:
        super().__init__(threads, memory, store=store, card=Card() if card is None else card)


class SizeOfCard:
    """A substitute for a card of a given memory size, which is all that planning needs."""

    xp = None

    def __init__(self, memory: int) -> None:
        self.memory = memory


class Card:
    """The first CUDA card: copies arrays to it and back, and launches kernels."""

    per_thread = 4
    """How many packs of 16 bytes of a row a thread works on, if the row is long enough (measured on an H200)."""
    resident = (768, 512)
    """The number of threads per multiprocessor for which registers must suffice, in the gather and shrink kernels. With
    more threads, each would have too few registers."""

    def __init__(self) -> None:
        advice = "or use --engine local"
        try:
            import cupy
        except ImportError as error:
            need = "CuPy is not installed; pip install 'clickbridge[gpu]'"
            raise EngineError(f"the GPU cannot be used: {need}, {advice}") from error
        try:
            if not cupy.cuda.runtime.getDeviceCount():
                raise EngineError(f"the GPU cannot be used: this machine has no CUDA device; {advice}")
            free, total = cupy.cuda.runtime.memGetInfo()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise EngineError(f"the GPU cannot be used: {str(error).splitlines()[0]}; {advice}") from error
        self.xp: Any = cupy
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        self.name = properties["name"].decode()
        self.processors = int(properties["multiProcessorCount"])
        # What this process holds or keeps for later is counted by `used`, or can be given out again.
        mine = cupy.get_default_memory_pool().total_bytes()
        self.memory, self.size = int((free + mine) * SHARE), int(total * SHARE)

    def used(self) -> int:
        """Bytes of the arrays that are on the card now."""
        return int(self.xp.get_default_memory_pool().used_bytes())

    def holds(self, array: Any) -> bool:
        """Whether an array is on the card, and not in this machine's memory."""
        return isinstance(array, self.xp.ndarray)

    def put(self, array: Array) -> Any:
        return self.xp.asarray(array)

    def get(self, array: Any) -> Array:
        return array if isinstance(array, np.ndarray) else self.xp.asnumpy(array)

    def matrix(self, a: sparse.csr_array, dtype: Any) -> Any:
        """The rows of a matrix on the card, and the segments of the long ones."""
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
        """Sparse rows times a block. The type of `out` may differ from that of the block, float32 or bf16. Sums are
        float32 in both cases."""
        indptr, indices, data, part_of, _, _ = matrix
        width = block.shape[1]
        target = out if out.dtype == block.dtype else self.xp.empty(out.shape, block.dtype)
        parts = self._segments(matrix, block, width)
        kernel, threads = self._kernel("gather", width, block.dtype)
        given = (np.int64(len(out)), indptr, indices, data, block, part_of, parts, target, np.int32(width))
        kernel((self._blocks(len(out), threads),), (threads,), given)
        if target is not out:
            out[...] = unpacked(self.xp, target) if out.dtype == np.float32 else packed(self.xp, target)
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
        """The k best scores of each row of a tile. Its first column is item `first`."""
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
        # The sort is stable, so columns with equal scores stay in the order of their numbers.
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
