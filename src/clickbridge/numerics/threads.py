"""Threads over row partitions. Kernels release the interpreter lock, so plain threads are enough: no
threading layer that dies in a forked child or aborts on a second caller."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit as _njit

kernel = _njit(nogil=True, cache=True, error_model="python")
"""Decorator of every compiled loop here. Inner loops run over slices of rows, and look things up by `unsigned` numbers:
an index that may be negative, or that is made of several, keeps the compiler from wide instructions."""


def unsigned(indices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers, none of them negative, in a type that says so; nothing is copied."""
    return indices.view(np.dtype(f"u{indices.dtype.itemsize}"))


def over_rows(n_rows: int, threads: int, work: Callable[[int, int], None], smallest: int = 64) -> None:
    """Calls `work(start, stop)` over a partition of the rows, one part a thread. Results are in place."""
    parts = min(threads or os.cpu_count() or 1, max(n_rows // smallest, 1))
    if parts <= 1:
        work(0, n_rows)
        return
    bounds = [n_rows * i // parts for i in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        for done in [pool.submit(work, bounds[i], bounds[i + 1]) for i in range(parts)]:
            done.result()
