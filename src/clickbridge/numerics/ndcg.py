"""nDCG@k of many lists at once. All tuning runs this loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]


@kernel
def _top_gain(keys, gains, k):  # type: ignore[no-untyped-def]
    """The discounted gain of the k largest keys. Equal keys keep their order. Overwrites the keys."""
    total = 0.0
    for rank in range(min(k, len(keys))):
        best = -1
        for i in range(len(keys)):
            if not np.isnan(keys[i]) and (best < 0 or keys[i] > keys[best]):
                best = i
        total += gains[best] / np.log2(rank + 2.0)
        keys[best] = np.nan
    return total


@kernel
def _ndcg(scores, gains, indptr, k, out):  # type: ignore[no-untyped-def]
    for row in range(len(indptr) - 1):
        start, stop = indptr[row], indptr[row + 1]
        ideal = _top_gain(gains[start:stop].copy(), gains[start:stop], k)
        out[row] = _top_gain(scores[start:stop].copy(), gains[start:stop], k) / ideal if ideal > 0 else np.nan


def ndcg_of_lists(scores: Array, labels: Array, indptr: Array, k: int) -> Array:
    """nDCG@k with gain 2^label - 1 of each list `scores[indptr[i]:indptr[i + 1]]`. Ties keep their order, and NaN
    scores come last. The result is NaN for a list without a positive label."""
    out = np.empty(len(indptr) - 1, dtype=np.float64)
    ranked_by = np.where(np.isnan(scores), -np.inf, scores).astype(np.float64)
    _ndcg(ranked_by, np.exp2(labels.astype(np.float64)) - 1, indptr, k, out)
    return out
