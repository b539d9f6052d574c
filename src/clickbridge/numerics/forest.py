"""Boosted trees as flat arrays, and their predictions: the sum of the leaves that a row reaches."""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.numerics.threads import kernel, over_rows, unsigned

Array = np.ndarray[Any, Any]
ZERO = float(np.float32(1e-35))
"""LightGBM treats values up to this distance from 0 as 0."""
BLOCK = 32
"""Rows that go down a tree together. Their steps are independent and free of branches, so the processor overlaps
them."""


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
    """For each row of `x`, the sum of its leaf values, in the order of the trees.

    Tree t starts at `roots[t]`. A number >= 0 is a node, -1 - i is leaf i. Values above the threshold of a node go to
    its second child, all others to its first. All numbers must be in range; this function does not check them.
    """
    out = np.zeros(len(x))
    trees = (roots, unsigned(feature), threshold, nan_right, children, leaf)
    over_rows(len(x), engine, lambda start, stop: _sum_leaves(x, *trees, start, stop, out), smallest=2048)
    return out
