"""nDCG of many lists against the measure of one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge.measures import parse_measures
from clickbridge.numerics.ndcg import ndcg_of_lists

LISTS = st.lists(
    st.lists(st.tuples(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]), st.sampled_from([0.0, 0.3, 1.0, 2.0, 4.0]))),
    max_size=5,
)


@settings(deadline=None)
@given(LISTS, st.sampled_from([1, 3, 5, 10]))
def test_equals_the_measure(lists: list[list[tuple[float, float]]], k: int) -> None:
    scores = np.array([s for one in lists for s, _ in one])
    labels = np.array([g for one in lists for _, g in one])
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in lists], dtype=np.int64)]).astype(np.int64)
    (measure,) = parse_measures(f"nDCG@{k}")
    expected = []
    for one in lists:
        ranked = [g for _, g in sorted(one, key=lambda pair: -pair[0])]  # sorted is stable: ties keep their order
        expected.append(measure(ranked, [g for _, g in one]))
    np.testing.assert_allclose(ndcg_of_lists(scores, labels, indptr, k), expected, rtol=1e-12)


def test_by_hand() -> None:
    value = ndcg_of_lists(np.array([1.0, 2.0]), np.array([1.0, 0.0]), np.array([0, 2]), 5)
    assert value.tolist() == [pytest.approx(1 / np.log2(3))]


def test_lists_without_a_positive_label_or_a_result_have_no_value() -> None:
    assert np.isnan(ndcg_of_lists(np.zeros(2), np.zeros(2), np.array([0, 2, 2]), 5)).tolist() == [True, True]
    assert ndcg_of_lists(np.zeros(0), np.zeros(0), np.array([0]), 5).shape == (0,)


def test_a_score_that_is_no_number_comes_last() -> None:
    values = ndcg_of_lists(np.array([np.nan, 1.0, np.nan]), np.array([1.0, 0.0, 0.0]), np.array([0, 3]), 5)
    assert values.tolist() == [pytest.approx(1 / np.log2(3))]


def test_arguments_are_left_alone() -> None:
    scores, labels = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    ndcg_of_lists(scores, labels, np.array([0, 2]), 1)
    assert scores.tolist() == [1, 2]
    assert labels.tolist() == [1, 0]
