"""Lists of different lengths against loops over one list at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickbridge.numerics.ragged import Ragged

Array = np.ndarray[Any, Any]
Lists = list[list[float]]
FEW = st.sampled_from([-2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 1e6])
"""Few values, so that there are ties."""


def lists_of(values: Any) -> Any:
    return st.lists(st.lists(values, max_size=6), max_size=8)


finite_lists = lists_of(FEW)
any_lists = lists_of(FEW | st.sampled_from([math.nan, -math.inf]))


def ragged(lists: Lists) -> tuple[Ragged, Array]:
    return Ragged.of_lengths([len(values) for values in lists]), np.array([v for values in lists for v in values])


def flat(lists: list[list[Any]]) -> list[Any]:
    return [value for values in lists for value in values]


@given(finite_lists)
def test_where_rows_are(lists: Lists) -> None:
    found, values = ragged(lists)
    assert len(found) == len(lists)
    assert found.n_rows == len(values)
    assert found.lengths.tolist() == [len(own) for own in lists]
    assert found.owner.tolist() == flat([[n] * len(own) for n, own in enumerate(lists)])
    assert found.places.tolist() == flat([list(range(len(own))) for own in lists])
    assert found.indptr.dtype == np.int64
    assert Ragged.of_lengths(found.lengths).indptr.tolist() == found.indptr.tolist()
    assert Ragged.of_lengths(len(own) for own in lists).indptr.tolist() == found.indptr.tolist()


@given(finite_lists, st.data())
def test_some_of_the_lists(lists: Lists, data: st.DataObject) -> None:
    found, values = ragged(lists)
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(lists), max_size=len(lists))), dtype=bool)
    kept = [own for own, there in zip(lists, keep, strict=True) if there]
    assert values[found.kept_rows(keep)].tolist() == flat(kept)
    assert found.take(keep).lengths.tolist() == [len(own) for own in kept]
    numbers = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=9)) if lists else []
    for most in (None, 0, 2):
        out, rows = found.rows_of(np.array(numbers, dtype=np.int64), most)
        expected = [lists[n][:most] for n in numbers]
        assert values[rows].tolist() == flat(expected)
        assert out.lengths.tolist() == [len(own) for own in expected]


@given(finite_lists)
def test_one_number_a_list(lists: Lists) -> None:
    found, values = ragged(lists)
    np.testing.assert_allclose(found.sums(values), [sum(own) for own in lists])
    largest = [max(own) if own else math.nan for own in lists]
    np.testing.assert_array_equal(found.reduce(np.maximum, values), np.array(largest, dtype=float))


@given(any_lists)
def test_ranks_and_order(lists: Lists) -> None:
    found, values = ragged(lists)
    ranks, order = [], []
    for own in lists:
        low = [-math.inf if math.isnan(v) else v for v in own]
        ranks.append([sum(other > value for other in low) for value in low])
        order.append(sorted(range(len(own)), key=lambda i, low=low: -low[i]))  # type: ignore[misc]
    assert found.ranks(values).tolist() == flat(ranks)
    filled = np.where(np.isnan(values), -np.inf, values)
    starts = found.indptr[:-1].tolist()
    assert found.order(filled).tolist() == flat([[s + i for i in own] for s, own in zip(starts, order, strict=True)])


@given(any_lists)
def test_standardised(lists: Lists) -> None:
    found, values = ragged(lists)
    expected: list[float] = []
    for own in lists:
        known = [v for v in own if math.isfinite(v)]
        mean = sum(known) / max(len(known), 1)
        deviation = math.sqrt(sum((v - mean) ** 2 for v in known) / max(len(known), 1))
        expected += [(v - mean) / (deviation if deviation > 1e-12 else 1.0) if math.isfinite(v) else 0.0 for v in own]
    np.testing.assert_allclose(found.standardised(values), expected, rtol=1e-9, atol=1e-9)


@given(finite_lists)
def test_gaps_and_softmax(lists: Lists) -> None:
    found, values = ragged(lists)
    np.testing.assert_array_equal(found.gaps(values), flat([[v - max(own) for v in own] for own in lists]))
    expected: list[float] = []
    for own in lists:
        raised = [math.exp(v - max(own)) for v in own]
        expected += [r / sum(raised) for r in raised]
    weights = found.softmax(values)
    np.testing.assert_allclose(weights, expected)
    np.testing.assert_allclose(found.sums(weights)[found.lengths > 0], 1.0)


def test_gaps_pass_over_what_is_missing() -> None:
    one = Ragged.of_lengths([3])
    np.testing.assert_array_equal(one.gaps(np.array([1.0, np.nan, 3.0])), [-2, np.nan, 0])


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0, 3.0], [-1, 1]), ([1.0, -np.inf, 3.0], [-1, 0, 1]), ([5.0, 5.0], [0, 0]), ([-np.inf], [0]), ([], [])],
)
def test_one_list_standardised(values: list[float], expected: list[float]) -> None:
    assert Ragged.of_lengths([len(values)]).standardised(np.array(values)).tolist() == expected


def test_no_lists_at_all() -> None:
    none, values = Ragged.of_lengths([]), np.empty(0)
    assert (len(none), none.n_rows) == (0, 0)
    for column in (none.owner, none.places, none.ranks(values), none.order(values), none.softmax(values)):
        assert column.tolist() == []
    assert none.sums(values).tolist() == none.reduce(np.maximum, values).tolist() == []
