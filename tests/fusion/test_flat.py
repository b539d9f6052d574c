"""Columns within their lists, against loops over the lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from clickbridge.fusion.flat import FlatLists
from clickbridge.fusion.linear import standardised
from clickbridge.types import ResultList

values = st.sampled_from([-1.0, 0.0, 0.5, 2.0, float("nan")])
columns = st.lists(st.lists(values, max_size=6), max_size=5)


def flat_of(lengths: list[int]) -> FlatLists:
    numbers = {f"d{i}": i for i in range(6)}
    return FlatLists.of(
        [ResultList(str(n), f"q{n}", [f"d{i}" for i in range(k)]) for n, k in enumerate(lengths)], numbers
    )


@given(columns)
def test_ranks_gaps_and_deviations_are_those_of_each_list(lists: list[list[float]]) -> None:
    flat = flat_of([len(column) for column in lists])
    column = np.array([value for one in lists for value in one])
    at = 0
    found = flat.ranks(column), flat.gaps(column), flat.standardised(column)
    for one in (np.array(one) for one in lists):
        ranks, gaps, deviations = (part[at : at + len(one)] for part in found)
        low = np.where(np.isnan(one), -np.inf, one)
        assert ranks.tolist() == [int((low > value).sum()) for value in low]
        best = np.nanmax(one) if np.isfinite(one).any() else np.nan
        np.testing.assert_array_equal(gaps, one - best)
        np.testing.assert_allclose(deviations, standardised(np.where(np.isnan(one), -np.inf, one)), atol=1e-9)
        at += len(one)


@given(st.lists(st.lists(st.floats(-50, 50), max_size=6), max_size=5))
def test_softmax_sums_to_one_in_each_list(lists: list[list[float]]) -> None:
    flat = flat_of([len(column) for column in lists])
    weights = flat.softmax(np.array([value for one in lists for value in one]))
    for row, one in enumerate(lists):
        if one:
            assert weights[flat.owner == row].sum() == pytest.approx(1)


def test_unknown_documents_have_no_value() -> None:
    flat = FlatLists.of([ResultList("1", "q", ["d1", "nowhere"]), ResultList("2", "q", [])], {"d0": 0, "d1": 1})
    rows = sparse.csr_array(np.array([[1.0, 0], [2, 3]], dtype=np.float32))
    queries = sparse.csr_array(np.array([[1.0, 1], [1, 1]], dtype=np.float32))
    assert flat.dots(queries, rows).tolist() == [5, 0]
    np.testing.assert_array_equal(flat.of_documents(np.array([7.0, 8])), [8, np.nan])
    assert flat.dots(queries, rows[:0]).tolist() == [0, 0]
    assert np.isnan(flat.of_documents(np.empty(0))).all()
