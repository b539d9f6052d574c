"""Rows in another order give the same product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge.engines.local import Local
from clickbridge.numerics.csr import product
from clickbridge.numerics.locality import neighbours_together, product_in_order


def test_rows_of_one_column_come_together() -> None:
    a = sparse.csr_array(np.array([[1, 0, 3], [0, 0, 0], [0, 2, 2], [-4, 1, 0], [0, 0, 5]], dtype=np.float32))
    assert neighbours_together(a).tolist() == [1, 3, 2, 0, 4], "empty, column 0, 1 (the first of equals), 2, 2"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_product_is_the_same_to_the_bit(threads: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a = sparse.csr_array(sparse.random_array((400, 90), density=0.15, random_state=rng, dtype=np.float32))
    dense = rng.standard_normal((90, 33)).astype(dtype)
    expected = product(a, dense)
    for order in (neighbours_together(a), rng.permutation(400), np.arange(400)):
        assert product_in_order(a, dense, order, Local(threads)).tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (3, 5)])
def test_nothing_stored(shape: tuple[int, int]) -> None:
    a = sparse.csr_array(shape, dtype=np.float32)
    found = product_in_order(a, np.ones((shape[1], 2), np.float32), neighbours_together(a), Local(1))
    np.testing.assert_array_equal(found, np.zeros((shape[0], 2)))
