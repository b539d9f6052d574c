"""Sums of leaves against a walk down each tree by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge.engines.local import Local
from clickbridge.numerics.forest import sum_leaves

Array = np.ndarray[Any, Any]

TREES: dict[str, Array] = {
    # Two trees: x0 > 1 ? (x1 > -2 ? leaf 2 : leaf 1) : leaf 0, and a lone leaf 3.
    "roots": np.array([0, -4], dtype=np.int32),
    "feature": np.array([0, 1], dtype=np.int32),
    "threshold": np.array([1.0, -2.0]),
    "nan_right": np.array([False, True]),
    "children": np.array([[-1, 1], [-2, -3]], dtype=np.int32),
    "leaf": np.array([1.0, 2.0, 4.0, 8.0]),
}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_each_row_falls_into_its_leaf(kind: type) -> None:
    nan, inf = np.nan, np.inf
    rows = [[0, 0], [1, 0], [1.5, 0], [1.5, -3], [nan, -3], [inf, nan], [-inf, nan], [2, -2], [-0.0, inf]]
    expected = [9, 9, 12, 10, 9, 12, 9, 10, 9]
    assert sum_leaves(np.array(rows, dtype=kind), **TREES).tolist() == expected


def test_what_is_nearly_zero_is_zero() -> None:
    trees = TREES | {"threshold": np.array([-1e-40, 0.0])}
    # -1e-36 is above the first threshold as 0 is, though it is below -1e-40.
    assert sum_leaves(np.array([[-1e-36, 1.0], [-1e-34, 1.0]]), **trees).tolist() == [12, 9]


def test_no_row_and_no_tree() -> None:
    assert sum_leaves(np.empty((0, 2)), **TREES).tolist() == []
    empty = {name: values[:0] for name, values in TREES.items()}
    assert sum_leaves(np.ones((3, 2)), **empty).tolist() == [0, 0, 0]


def test_more_rows_than_one_block() -> None:
    x = np.random.default_rng(0).normal(size=(5000, 2)) * 3
    expected = np.where(x[:, 0] > 1, np.where(x[:, 1] > -2, 4.0, 2.0), 1.0) + 8
    np.testing.assert_array_equal(sum_leaves(x, **TREES, engine=Local(threads=2)), expected)
