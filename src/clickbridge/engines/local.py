"""Learning on this machine, with compiled loops in threads.

The only thread pool of the package is here. BLAS would start threads of its own, but is limited to one in each of ours:
large dense products are cut into blocks here.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

from clickbridge.engines.base import Array, Block, Item, Result
from clickbridge.errors import SettingError
from clickbridge.numerics import qr
from clickbridge.numerics.csr import product
from clickbridge.numerics.nearest import nearest
from clickbridge.numerics.rmls import Half, ProductRows, Shrinkage, half_by_blocks
from clickbridge.numerics.rows import Maps, Survey, scaled_block, surveyed

AHEAD = 2
"""Items per thread that are submitted ahead of the results taken: enough to keep threads busy with few results
waiting."""
FEWEST = 16
"""A part with fewer rows is not worth a thread."""
_here = threading.local()


def machine_memory() -> int:
    """Bytes of memory of this machine, whether they are free or not."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class Local:
    """Limits the threads and the memory that a fit may use: `model.fit(graph, engine=Local(threads=2))`.

    The limits do not change what is learned.

    Parameters
    ----------
    threads : int
        The number of threads. 0 means one for each core.
    memory : int
        Bytes for working arrays. 0 means half of the machine's memory, whether it is free or not, so that every run
        makes the same decisions.

    Examples
    --------
    >>> from clickbridge import Local
    >>> Local(threads=2, memory=1 << 30)
    Local(threads=2, memory=1073741824)
    """

    name = "local"
    narrow = True

    def __init__(self, threads: int = 0, memory: int = 0) -> None:
        if not isinstance(threads, int) or not isinstance(memory, int):
            raise SettingError(f"threads and memory, in bytes, are whole numbers, not {threads!r} and {memory!r}")
        if threads < 0 or memory < 0:
            raise SettingError(f"threads and memory must be 0 or more, not {threads} and {memory}")
        self.threads = threads or len(os.sched_getaffinity(0))
        self.memory = memory or machine_memory() // 2
        self._pools: dict[int, ThreadPoolExecutor] = {}

    def __repr__(self) -> str:
        return f"Local(threads={self.threads}, memory={self.memory})"

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has the same limits, but not the threads."""
        return Local, (self.threads, self.memory)

    # --- threads ---------------------------------------------------------------------------------

    def at_work(self) -> AbstractContextManager[object]:
        return _BLAS

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        # A thread of the pool must not wait for others of the same pool: it might wait forever.
        alone = self.threads == 1 or getattr(_here, "at_work", False) or (isinstance(items, Sized) and len(items) < 2)
        return self._alone(work, items) if alone else self._map(work, items)

    def _alone(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        # With threads of its own, BLAS would round as their number goes.
        with self.at_work():
            yield from map(work, items)

    def _map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        pool = self._pool()
        waiting: deque[Future[Result]] = deque()
        with self.at_work():
            try:
                for item in items:
                    waiting.append(pool.submit(work, item))
                    if len(waiting) > AHEAD * self.threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                # After an error, no work continues in the background.
                wait([job for job in waiting if not job.cancel()])

    def _pool(self) -> ThreadPoolExecutor:
        """The pool of this process. A forked child has this object, but not its threads."""
        process = os.getpid()
        if process not in self._pools:
            # Threads are started by their first work, so an unused pool costs nothing.
            self._pools.setdefault(process, ThreadPoolExecutor(self.threads, "clickbridge", _begin))
        return self._pools[process]

    def close(self) -> None:
        """Ends the threads. New work starts new ones. They also end when the object is deleted."""
        pool = self._pools.pop(os.getpid(), None)
        if pool is not None:
            pool.shutdown()

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- operations ------------------------------------------------------------------------------

    def times(self, a: sparse.csr_array, block: Array) -> Array:
        return product(a, block, self)

    def gram(self, block: Array) -> Array:
        return qr.gram(block, self)

    def orthonormal(self, block: Array) -> tuple[Array, Array]:
        return qr.orthonormal(block, self)

    def hold(self, array: Block) -> Block:
        return array

    def fetch(self, held: Block) -> Block:
        return held

    def combined(self, block: Array, matrix: Array) -> Array:
        with self.at_work():
            return qr.turned(block, matrix)

    def cross(self, blocks: Sequence[Array], block: Array) -> Array:
        return qr.cross(blocks, block, self)

    def joined(self, blocks: Sequence[Array]) -> Array:
        return np.hstack(blocks)

    def mixed(self, blocks: Sequence[Array], matrices: Sequence[Array]) -> Array:
        return qr.mixed(blocks, matrices, self)

    def scaled(self, block: Maps, factors: Array | float) -> Maps:
        return scaled_block(block, factors)

    def lengths(self, block: Array, minus: Array | None = None, factors: Array | float = 1.0) -> Array:
        return np.sqrt(qr.squares(block, minus, factors, self))

    def extremes(self, block: Array) -> tuple[Array, Array]:
        return block.max(axis=0, initial=-np.inf), block.min(axis=0, initial=np.inf)

    def survey(self, maps: Maps, gram: bool) -> Survey:
        return surveyed(maps, gram)

    def half(self, rows: ProductRows, maps: Maps, how: Shrinkage, keep_dense: bool) -> Half:
        return half_by_blocks(rows, maps, how, keep_dense, self)

    def by_rows(self, work: Callable[..., Result], n_rows: int, *shared: object) -> list[Result]:
        parts = max(min(self.threads, n_rows // FEWEST), 1)
        bounds = [n_rows * i // parts for i in range(parts + 1)]
        return list(self.map(lambda ends: work(self, *ends, *shared), list(pairwise(bounds))))

    def exchange(
        self,
        split: Callable[[Item, int], tuple[object, ...]],
        items: list[Item],
        merge: Callable[..., Result],
        *shared: object,
    ) -> tuple[list[object], list[Result]]:
        made = list(self.map(lambda item: split(item, self.threads), items))
        pieces = [[one[1 + number] for one in made] for number in range(self.threads)]
        merged = self.map(lambda pair: merge(pair[0], *shared, *pair[1]), list(enumerate(pieces)))
        return [one[0] for one in made], list(merged)

    def top_k(self, queries: Array, images: Array, k: int, hidden: Array | None = None) -> tuple[Array, Array]:
        return nearest(queries, images, k, hidden, self)


class _OneThreadOfBlas:
    """A context in which BLAS has one thread. The limit is one of the process, and so is this object: the first caller
    sets the limit, and the last one takes it back, in whatever order they come and go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callers = 0
        self._found: ThreadpoolController | None = None
        self._limit: Any = None

    def _libraries(self) -> ThreadpoolController:
        if self._found is None:
            import scipy.linalg  # noqa: F401 - SciPy brings a BLAS of its own, which comes with this

            self._found = ThreadpoolController().select(user_api="blas")
        return self._found

    def __enter__(self) -> None:
        with self._lock:
            if not self._callers:
                self._limit = self._libraries().limit(limits=1)
            self._callers += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._callers -= 1
            if not self._callers:
                self._limit.restore_original_limits()

    def in_child(self) -> None:
        """After a fork: the lock may have been held by a thread that the child does not have."""
        self._lock = threading.Lock()


_BLAS = _OneThreadOfBlas()
os.register_at_fork(after_in_child=_BLAS.in_child)


def _begin() -> None:
    _here.at_work = True
