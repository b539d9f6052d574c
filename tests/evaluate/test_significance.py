"""The paired t-test against SciPy, and the cases where SciPy has no answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from clickbridge.evaluate.significance import Paired, paired

VALUES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30)


def keyed(values: list[float]) -> dict[str, float]:
    return {f"q{i}": value for i, value in enumerate(values)}


@settings(max_examples=200, deadline=None)
@given(rows=VALUES)
def test_against_scipy(rows: list[tuple[float, float]]) -> None:
    ours, base = (list(column) for column in zip(*rows, strict=True))
    gains = np.array(ours) - np.array(base)
    assume(np.std(gains) > 1e-6)
    found = paired(keyed(ours), keyed(base))
    assert found.p_value == pytest.approx(stats.ttest_rel(ours, base).pvalue, rel=1e-6, abs=1e-12)
    assert found.difference == pytest.approx(gains.mean(), abs=1e-9)
    assert (found.wins, found.losses) == ((gains > 1e-12).sum(), (gains < -1e-12).sum())
    assert found.wins + found.ties + found.losses == len(rows)


def test_many_queries_against_scipy() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(1000)
    for gain in (0.0, 0.01, 0.05, 1.0):
        ours = base + rng.normal(gain, 0.2, 1000)
        found = paired(keyed(list(ours)), keyed(list(base)))
        assert found.p_value == pytest.approx(stats.ttest_rel(ours, base).pvalue, rel=1e-9)


def test_swapping_the_sides_only_turns_the_sign() -> None:
    one, two = keyed([0.5, 0.2, 0.9, 0.4]), keyed([0.1, 0.3, 0.5, 0.4])
    there, back = paired(one, two), paired(two, one)
    assert there == Paired(pytest.approx(0.175), back.p_value, back.losses, back.ties, back.wins)
    assert there.difference == -back.difference
    assert (there.wins, there.ties, there.losses) == (2, 1, 1)


def test_equal_rankings() -> None:
    assert paired(keyed([0.5, 0.7]), keyed([0.5, 0.7])) == Paired(0.0, 1.0, 0, 2, 0)


def test_rounding_is_a_tie() -> None:
    ours = keyed([0.1 + 0.2, 0.7, 1 / 3])
    base = keyed([0.3, 0.7 + 1e-16, 1 / 3 + 1e-15])
    assert paired(ours, base) == Paired(0.0, 1.0, 0, 3, 0)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_same_gain_everywhere_is_beyond_doubt(sign: int) -> None:
    base = np.array([0.1, 0.2, 0.3, 0.45, 0.7])
    found = paired(keyed(list(base + sign * 0.1)), keyed(list(base)))
    assert found.difference == pytest.approx(sign * 0.1)
    assert found.p_value == pytest.approx(0.0, abs=1e-12)
    assert (found.wins, found.losses) == ((5, 0) if sign > 0 else (0, 5))


def test_one_query_shows_nothing() -> None:
    assert paired({"q": 0.9}, {"q": 0.1}) == Paired(pytest.approx(0.8), 1.0, 1, 0, 0)


def test_only_shared_queries_count() -> None:
    found = paired({"a": 1.0, "b": 0.5, "mine": 1.0}, {"a": 0.0, "b": 0.5, "theirs": 1.0})
    assert (found.difference, found.wins, found.ties) == (0.5, 1, 1)
    assert paired({"a": 1.0}, {"b": 1.0}) == Paired(0.0, 1.0, 0, 0, 0)
    assert not math.isnan(found.p_value)
