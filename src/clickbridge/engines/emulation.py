"""A slow version of the GPU kernels on the CPU, for tests on machines without a card.

Sums are taken in the same order as in the kernels, and each step is rounded once, like a fused multiply-add. bf16 is
rounded to nearest, ties to even. Sums of squares over a block of threads are in double precision in both versions; only
their order differs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Array

LONG_ROW = 512
"""A row with more non-zeros than this is summed by segments of this length."""


def to_bf16(values: Array) -> Array:
    """The bits of bf16 numbers, as unsigned 16-bit integers."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def from_bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def as_numbers(block: Array) -> Array:
    return from_bf16(block) if block.dtype == np.uint16 else block


def _summed(acc: Array, weights: Array, rows: Array) -> Array:
    for weight, row in zip(weights, rows, strict=True):
        acc = (np.float64(weight) * row.astype(np.float64) + acc).astype(acc.dtype)
    return acc


def gather(a: sparse.csr_array, block: Array) -> Array:
    """`a` times a block. Sums are in float32, or in float64 for a float64 block."""
    dense = as_numbers(block)
    out = np.zeros((a.shape[0], block.shape[1]), dense.dtype)
    data = a.data.astype(dense.dtype)
    for i in range(a.shape[0]):
        first, last = int(a.indptr[i]), int(a.indptr[i + 1])
        long = last - first > LONG_ROW
        for start in range(first, last, LONG_ROW if long else max(last - first, 1)):
            part = slice(start, min(start + LONG_ROW, last) if long else last)
            made = _summed(np.zeros_like(out[i]), data[part], dense[a.indices[part]])
            out[i] = out[i] + made if long else made
    return out


def shrink(source: Array, raw: Array, mode: int, value: float, theta: float, norm_power: float) -> tuple[Array, Array]:
    """The new rows, and their contribution to the alignment."""
    out = np.zeros_like(source)
    for i, row in enumerate(source):
        squares = float((row * row).astype(np.float64).sum())
        threshold = np.float32(value)
        if mode == 1:
            threshold = np.float32(value * np.sqrt(squares / len(row)))
        elif mode == 2:
            sizes = np.sort(np.abs(row))[::-1]
            threshold = sizes[int(value)] if int(value) < len(row) else np.float32(0)
        size = np.maximum(np.abs(row) - threshold, np.float32(0))
        left = float((size * size).astype(np.float64).sum())
        if left > 0:
            scale = np.float32(theta * squares ** (0.5 * norm_power) / np.sqrt(left))
            out[i] = np.where(row > 0, size, -size) * scale
    return out, (raw * out).astype(np.float64).sum(axis=0)


class Emulation:
    """A substitute for the card, with NumPy instead of CuPy and the functions above instead of the kernels."""

    xp: Any = np

    def __init__(self, memory: int = 1 << 30) -> None:
        self.memory = memory
        self.name = "emulation"

    def used(self) -> int:
        return 0

    def holds(self, array: Any) -> bool:
        return True

    def put(self, array: Array) -> Array:
        return np.array(array)

    def get(self, array: Array) -> Array:
        return array

    def matrix(self, a: sparse.csr_array, dtype: Any) -> Any:
        return a.copy()

    def gather(self, a: Any, block: Array, out: Array) -> Array:
        out[...] = to_bf16(gather(a, block)) if out.dtype == np.uint16 else gather(a, block)
        return out

    def gather_shrink(self, a: Any, block: Array, out: Array, *how: Any) -> Array:
        raw = gather(a, block)
        return self.shrink(raw, raw, out, *how)

    def shrink(self, source: Array, raw: Array, out: Array, *how: Any) -> Array:
        made, alignment = shrink(source, raw, *how)
        out[...] = to_bf16(made) if out.dtype == np.uint16 else made
        return alignment

    def top(self, scores: Array, first: int, hidden: Array | None, k: int) -> tuple[Array, Array]:
        scores = np.where(hidden[first : first + scores.shape[1]], -np.inf, scores) if hidden is not None else scores
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(scores, order, axis=1)
        return np.where(best > -np.inf, order + first, -1), best

    def merge(self, items: list[Array], scores: list[Array], k: int) -> tuple[Array, Array]:
        every, values = np.concatenate(items, axis=1), np.concatenate(scores, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(every, order, axis=1), np.take_along_axis(values, order, axis=1)
