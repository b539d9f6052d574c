"""Points under an S-kernel: numbers outside of the tables are refused, and nothing is a sum over nothing."""

from __future__ import annotations

import numpy as np
import pytest

from clickbridge.numerics.points import EXPONENTIAL, LINE, inner_values, points_gram, sums_over_points

TABLE = np.arange(16.0).reshape(4, 4)
NUMBERS = np.array([3, 0, 3])


def test_a_product_of_chosen_entries() -> None:
    table = TABLE + TABLE.T
    found = points_gram(LINE, 0.0, 1.0, table, NUMBERS, table, NUMBERS, np.array([1.0, 2.0, 3.0]))
    wanted = table[np.ix_(NUMBERS, NUMBERS)] ** 2 * np.outer([1, 2, 3], [1, 2, 3])
    np.testing.assert_allclose(found, wanted)


def test_sums_do_not_depend_on_the_rows_beside_them() -> None:
    rng = np.random.default_rng(0)
    k_x, k_y, y_of, weights = rng.random(50), rng.random((4, 6)), rng.integers(0, 6, 50), rng.standard_normal(50)
    whole = sums_over_points(EXPONENTIAL, 1.0, 2.0, k_x, k_y, y_of, weights)
    np.testing.assert_allclose(whole, (np.exp(2 * k_x * k_y[:, y_of]) * weights).sum(axis=1))
    for row in range(4):
        assert sums_over_points(EXPONENTIAL, 1.0, 2.0, k_x, k_y[[row]], y_of, weights)[0] == whole[row]


def test_nothing() -> None:
    none, numbers = np.empty(0), NUMBERS[:0]
    assert points_gram(LINE, 0.0, 1.0, TABLE, numbers, TABLE, numbers, none).shape == (0, 0)
    assert sums_over_points(LINE, 0.0, 1.0, none, TABLE, numbers, none).tolist() == [0.0] * 4
    assert inner_values(LINE, 1.0, 1.0, np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("outside", [4, -1])
def test_numbers_outside(outside: int) -> None:
    wrong, ones = np.array([0, outside]), np.ones(2)
    with pytest.raises(IndexError, match="from 0 to 3"):
        points_gram(LINE, 0.0, 1.0, TABLE, wrong, TABLE, np.array([0, 0]), ones)
    with pytest.raises(IndexError, match="from 0 to 3"):
        sums_over_points(LINE, 0.0, 1.0, ones, TABLE, wrong, ones)
