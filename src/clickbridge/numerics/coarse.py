"""Dense rows quantised to one byte per number, with a bound on the error. A search reads a quarter of the bytes, and
then computes exact scores only for the few rows that can still be among the best.

    d = step * code + rest, |rest| = miss          a row, code of int8
    q = step * code + rest                         a query, code of 12 bits, so that products fit int32
    |q.d - steps * code.code| <= |q - q'| |d'| + |q| miss

The bound is the Cauchy-Schwarz inequality. The rounding error of the exact product in float32 is added to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from clickbridge.numerics.threads import kernel
from clickbridge.numerics.topk import offer

Array = np.ndarray[Any, Any]
ROW_LIMIT, QUERY_LIMIT = 127, 2047
ROWS_AT_ONCE = 4096
ROUNDING = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class CoarseRows:
    codes: Array
    steps: Array
    misses: Array
    lengths: Array

    @classmethod
    def of(cls, rows: Array) -> CoarseRows:
        codes = np.empty(rows.shape, dtype=np.int8)
        steps, misses, lengths = (np.empty(len(rows)) for _ in range(3))
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            codes[part], steps[part], misses[part] = _coded(rows[part], ROW_LIMIT, np.int8)
            lengths[part] = _lengths(rows[part])
        return cls(codes, steps, misses, lengths)

    def add(self, query: Array, scale: float, total: Array, slack: Array) -> None:
        """Adds `scale` times the dot product of every row with the query to `total`, and the bound on its error to
        `slack`."""
        code, step, miss = (found[0] for found in _coded(query[None], QUERY_LIMIT, np.int16))
        length = float(_lengths(query[None])[0])
        rounding = len(query) * ROUNDING * length
        _add(
            self.codes, self.steps, self.misses, self.lengths, code, float(step), float(miss), length, rounding, scale,
            total, slack,
        )  # fmt: skip


def _lengths(rows: Array) -> Array:
    return np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


def _coded(rows: Array, limit: int, dtype: Any) -> tuple[Array, Array, Array]:
    steps = np.abs(rows).max(axis=1, initial=0.0).astype(np.float64) / limit
    codes = np.rint(rows / np.where(steps > 0, steps, 1.0)[:, None])
    return codes.astype(dtype), steps, _lengths(rows - codes * steps[:, None])


@kernel
def _add(  # type: ignore[no-untyped-def]
    codes, steps, misses, lengths, code, step, miss, length, rounding, scale, total, slack
):
    for i in range(codes.shape[0]):
        row = codes[i]
        # Without the casts Numba would use a 64-bit sum, which is half as fast.
        products = np.int32(0)
        for c in range(len(code)):
            products = np.int32(products + np.int32(np.int16(row[c]) * np.int32(code[c])))
        total[i] += scale * (steps[i] * step * products)
        slack[i] += abs(scale) * (miss * (lengths[i] + misses[i]) + length * misses[i] + rounding * lengths[i])


@kernel
def within_reach(total, slack, found, k):  # type: ignore[no-untyped-def]
    """The items that may be among the k best: their upper bounds reach the k-th largest lower bound."""
    least, items, size = np.empty(k), np.empty(k, dtype=np.int32), 0
    for i in range(len(total)):
        if found[i]:
            size = offer(least, items, size, total[i] - slack[i], i)
    bar = least[0] if size == k else -np.inf
    out, n = np.empty(len(total), dtype=np.int64), 0
    for i in range(len(total)):
        if found[i] and total[i] + slack[i] >= bar:
            out[n] = i
            n += 1
    return out[:n].copy()
