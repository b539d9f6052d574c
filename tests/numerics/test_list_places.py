"""Columns within their lists, against loops over the lists and against `Ragged`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickbridge.numerics import list_places
from clickbridge.numerics.list_places import places, trust
from clickbridge.numerics.ragged import Ragged

Array = np.ndarray[Any, Any]
values = st.sampled_from([-1.0, 0.0, 0.5, 2.0, float("nan")])


@given(st.lists(st.lists(st.tuples(values, values), max_size=6), max_size=5))
def test_ranks_gaps_and_deviations_are_those_of_each_list(lists: list[list[tuple[float, float]]]) -> None:
    ragged = Ragged.of_lengths([len(one) for one in lists])
    columns = np.array([pair for one in lists for pair in one]).reshape(-1, 2).T.copy()
    found = places(ragged.indptr, columns)
    for c, column in enumerate(columns):
        np.testing.assert_array_equal(found[3 * c], ragged.ranks(column))
        np.testing.assert_array_equal(found[3 * c + 1], ragged.gaps(column))
        np.testing.assert_allclose(found[3 * c + 2], ragged.standardised(column), atol=1e-12)
        for i in range(len(ragged)):
            rows = slice(ragged.indptr[i], ragged.indptr[i + 1])
            low = np.where(np.isnan(column[rows]), -np.inf, column[rows])
            assert found[3 * c, rows].tolist() == [int((low > value).sum()) for value in low]
            known = np.isfinite(low)
            if known.any():
                deviation = low[known].std()
                expected = np.where(known, low - low[known].mean(), 0.0) / (deviation if deviation > 1e-12 else 1.0)
                np.testing.assert_allclose(found[3 * c + 2, rows], np.where(known, expected, 0.0), atol=1e-12)
                np.testing.assert_array_equal(found[3 * c + 1, rows][known], low[known] - low.max())


@pytest.mark.parametrize("n", [1, list_places.SHORT, list_places.SHORT + 1, 2 * list_places.SHORT])
def test_long_lists(n: int) -> None:
    rng = np.random.default_rng(n)
    column = rng.integers(0, max(n // 3, 1), n).astype(float)
    column[rng.random(n) < 0.1] = np.nan
    ragged = Ragged.of_lengths([n])
    np.testing.assert_array_equal(places(ragged.indptr, column[None])[0], ragged.ranks(column))


def test_trust_of_each_list() -> None:
    ragged, items = Ragged.of_lengths([3, 0, 2]), np.array([4, -1, 5, 7, 8])
    scores = np.array([[1.0, 2, 0, 1, 1], [0, 2, 3, 1, 1]])
    trusted, best, even = trust(ragged.indptr, items, scores)
    votes = scores.mean(axis=0)
    raised = np.exp(votes) / np.repeat(ragged.sums(np.exp(votes))[[0, 2]], [3, 2])
    np.testing.assert_allclose(trusted, np.where(items >= 0, raised, 0))
    assert best.tolist() == [0, 0, 0, 1, 1]  # the best of the first list is unknown; those of the second tie
    np.testing.assert_allclose(even, [1 / 3, 0, 1 / 3, 0.5, 0.5])
    alike = trust(ragged.indptr, items, scores[:0])
    np.testing.assert_allclose(alike[0], alike[2])


def test_nothing() -> None:
    empty = np.zeros(1, dtype=np.int64)
    assert places(empty, np.empty((2, 0))).shape == (6, 0)
    assert places(np.array([0, 2]), np.empty((0, 2))).shape == (0, 2)
    assert trust(empty, np.empty(0, np.int64), np.empty((1, 0))).shape == (3, 0)
