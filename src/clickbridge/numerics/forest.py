"""Boosted trees as flat arrays, and the sum of the leaves that rows of numbers fall into."""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.numerics.threads import kernel, over_rows, unsigned

Array = np.ndarray[Any, Any]
ZERO = float(np.float32(1e-35))
"""LightGBM takes what is no further from 0 for 0."""
BLOCK = 32
"""Rows that walk down a tree together: their steps do not wait for one another, and no step is a guess."""


@kernel
def _sum_leaves(x, roots, feature, threshold, nan_right, children, leaf, start, stop, out):  # type: ignore[no-untyped-def]
    n_features = x.shape[1]
    values = np.empty((BLOCK, n_features), dtype=x.dtype)
    at = np.empty(BLOCK, dtype=np.int32)
    for first in range(start, stop, BLOCK):
        size = min(BLOCK, stop - first)
        for i in range(size):
            for c in range(n_features):
                value = x[first + i, c]
                values[i, c] = 0 if -ZERO <= value <= ZERO else value
            out[first + i] = 0.0
        for tree in range(len(roots)):
            at[:size] = roots[tree]
            walking = roots[tree] >= 0
            while walking:
                walking = False
                for i in range(size):
                    node = np.uint32(max(at[i], 0))
                    value = np.float64(values[i, feature[node]])
                    goes_right = (value > threshold[node]) | ((value != value) & nan_right[node])
                    child = children[node, np.uint8(goes_right)]
                    at[i] = child if at[i] >= 0 else at[i]
                    walking |= at[i] >= 0
            for i in range(size):
                out[first + i] += leaf[np.uint32(~at[i])]


def sum_leaves(
    x: Array,
    roots: Array,
    feature: Array,
    threshold: Array,
    nan_right: Array,
    children: Array,
    leaf: Array,
    engine: Engine | None = None,
) -> Array:
    """For each row of `x` the sum over trees of its leaf, added in the order of the trees.

    A tree starts at `roots[t]`. A number of at least 0 is a node, -1 - i is leaf i. What is above a node's threshold
    goes to its second child, all else to its first. Numbers must be in range: nothing is checked here.
    """
    out = np.zeros(len(x))
    trees = (roots, unsigned(feature), threshold, nan_right, children, leaf)
    over_rows(len(x), engine, lambda start, stop: _sum_leaves(x, *trees, start, stop, out), smallest=2048)
    return out
