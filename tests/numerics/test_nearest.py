"""The largest of rows of scores, against sorting; the search itself is in the contract of engines."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge.numerics.nearest import largest_of_rows


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 12))
def test_ties_go_to_the_lower_column(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random((5, 9)) < 0.2, -np.inf, rng.integers(-2, 3, (5, 9)))
    columns, values = largest_of_rows(scores, k)
    assert columns.shape == values.shape == (5, min(k, 9))
    for row in range(5):
        there = [i for i in range(9) if scores[row, i] > -np.inf]
        expected = sorted(there, key=lambda i: (-scores[row, i], i))[:k]
        missing = min(k, 9) - len(expected)
        assert columns[row].tolist() == expected + [-1] * missing
        assert values[row].tolist() == scores[row, expected].tolist() + [-np.inf] * missing


def test_what_is_no_number_is_not_found() -> None:
    columns, values = largest_of_rows(np.array([[np.nan, 1.0, np.nan, 3.0]], dtype=np.float32), 3)
    assert columns.tolist() == [[3, 1, -1]]
    assert values.tolist() == [[3.0, 1.0, -np.inf]]


def test_nothing() -> None:
    for shape in ((0, 4), (3, 0)):
        columns, values = largest_of_rows(np.zeros(shape), 2)
        assert columns.shape == values.shape == (shape[0], min(2, shape[1]))
