"""What this machine can do at most: the floors that other benchmarks are measured against. No benchmark by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def triad() -> float:
    """Bytes a second of a = b + 3 c over arrays far larger than any cache."""
    a, b, c = (np.ones(1 << 25, dtype=np.float32) for _ in range(3))
    best = min(_seconds(lambda: np.add(b, np.multiply(c, np.float32(3), out=a), out=a)) for _ in range(5))
    return 5 * a.nbytes / best  # two passes: read c, write a; read b, read a, write a


def sgemm() -> float:
    """Operations a second of a float32 product."""
    a = np.random.default_rng(0).random((3000, 3000), dtype=np.float32)
    return 2 * 3000**3 / min(_seconds(lambda: a @ a) for _ in range(5))


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def status_mib(name: str) -> float:
    """A line of this process's status, as VmHWM (peak) or RssAnon (memory of its own): the peak that getrusage gives
    begins with the parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 2**10
