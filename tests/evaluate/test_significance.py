"""Every test against SciPy, worked examples, the cases where SciPy has no answer, and labels without meaning."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from clickbridge.evaluate.significance import (
    Paired,
    against,
    gains_over,
    holm,
    interval,
    paired,
    randomisation_test,
    sign_test,
    t_test,
)

VALUES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30)
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
"""Heights of crossed over self-fertilised plants, in eighths of an inch: Fisher's own example (The Design of
Experiments, 1935, III), for which he counted 1,726 of 32,768 sign patterns with a sum as far from 0."""


def keyed(values: list[float]) -> dict[str, float]:
    return {f"q{i}": value for i, value in enumerate(values)}


@settings(max_examples=200, deadline=None)
@given(rows=VALUES)
def test_against_scipy(rows: list[tuple[float, float]]) -> None:
    ours, base = (list(column) for column in zip(*rows, strict=True))
    gains = np.array(ours) - np.array(base)
    assume(np.std(gains) > 1e-6)
    found = paired(keyed(ours), keyed(base), rounds=100)
    peer = stats.ttest_rel(ours, base)
    assert found.p_value == pytest.approx(peer.pvalue, rel=1e-6, abs=1e-12)
    assert (found.low, found.high) == pytest.approx(tuple(peer.confidence_interval(0.95)), abs=1e-9)
    assert found.difference == pytest.approx(gains.mean(), abs=1e-9)
    assert (found.wins, found.losses) == ((gains > 1e-12).sum(), (gains < -1e-12).sum())
    assert found.wins + found.ties + found.losses == len(rows)
    if found.wins + found.losses:
        decided = found.wins + found.losses
        assert found.p_sign == pytest.approx(stats.binomtest(found.wins, decided).pvalue, rel=1e-9)


def test_many_queries_against_scipy() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(1000)
    for gain in (0.0, 0.01, 0.05, 1.0):
        ours = base + rng.normal(gain, 0.2, 1000)
        found = paired(keyed(list(ours)), keyed(list(base)))
        assert found.p_value == pytest.approx(stats.ttest_rel(ours, base).pvalue, rel=1e-9)
        # For so many, the randomisation test and the t-test all but agree (10,000 draws: within .015).
        assert found.p_random == pytest.approx(found.p_value, abs=0.015)


@settings(max_examples=40, deadline=None)
@given(gains=st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=9))
def test_few_queries_are_randomised_exactly(gains: list[float]) -> None:
    """SciPy permutes the two samples of every pair, which is to turn the sign of the gain."""
    peer = stats.permutation_test(
        (np.array(gains), np.zeros(len(gains))), lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples", n_resamples=math.inf, vectorized=True,
    )  # fmt: skip
    assert randomisation_test(np.array(gains)) == pytest.approx(peer.pvalue)


def test_thousands_of_queries() -> None:
    gains = np.random.default_rng(0).normal(0.005, 0.2, 3000)
    assert randomisation_test(gains) == pytest.approx(t_test(gains), abs=0.015)
    assert randomisation_test(gains + 1) == 1 / 10_001


@pytest.mark.parametrize(("n", "rounds"), [(3, 8), (3, 7), (4, 16), (4, 15)])
def test_exact_where_all_sign_patterns_are_no_more_than_the_rounds(n: int, rounds: int) -> None:
    found = randomisation_test(np.ones(n), rounds)
    assert (found == 2 / 2**n) == (rounds >= 2**n)


def test_fishers_darwin_example() -> None:
    gains = np.array(DARWIN, dtype=float)
    assert t_test(gains) == pytest.approx(0.0497, abs=5e-5)
    assert randomisation_test(gains, rounds=2**15) == 1726 / 2**15
    assert randomisation_test(gains, rounds=10_000) == pytest.approx(1726 / 2**15, abs=0.008)
    assert sign_test(13, 2) == pytest.approx(0.00739, abs=5e-6)  # 2 * (1 + 15 + 105) / 2^15


def test_sign_test_by_hand() -> None:
    assert sign_test(9, 1) == pytest.approx(2 * 11 / 1024)
    assert sign_test(1, 9) == sign_test(9, 1)
    assert sign_test(5, 5) == 1.0
    assert sign_test(0, 0) == 1.0


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@settings(max_examples=100, deadline=None)
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_what_the_steps_reject(p: list[float]) -> None:
    """The definition: go up from the smallest p while p_(i) <= level / (m - i + 1)."""
    level, rejected = 0.05, set()
    for place, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if p[i] * (len(p) - place) > level:
            break
        rejected.add(i)
    assert {i for i, own in enumerate(holm(p)) if own <= level} == rejected


def test_labels_without_meaning_are_found_significant_at_the_stated_rate() -> None:
    """Each pair's labels are shuffled: whatever is then found is chance. 600 comparisons at .05 give 30, with a
    deviation of 5.3; sign tests of discrete counts give no more. Over families of five, Holm keeps the rate of
    any false finding at .05: 120 families give 6, with a deviation of 2.4."""
    rng = np.random.default_rng(5)
    quality = rng.beta(2, 1, (2, 150))
    found = {"p_value": 0, "p_random": 0, "p_sign": 0}
    families = 0
    for _ in range(120):
        base = keyed(list(quality[0]))
        shuffled = {}
        for model in "abcde":
            swap = rng.random(150) < 0.5
            one, two = np.where(swap, quality[1], quality[0]), np.where(swap, quality[0], quality[1])
            shuffled[model] = keyed(list(quality[0] + one - two))
            raw = paired(shuffled[model], base, rounds=999)
            for test in found:
                found[test] += getattr(raw, test) < 0.05
        families += any(p < 0.05 for p in holm([t_test(gains_over(own, base)) for own in shuffled.values()]))
    assert 15 <= found["p_value"] <= 46
    assert 15 <= found["p_random"] <= 46
    assert found["p_sign"] <= 46
    assert families <= 13


def test_a_real_difference_is_found() -> None:
    rng = np.random.default_rng(1)
    base = keyed(list(rng.random(300)))
    tested = against(
        base,
        {"better": {q: v + 0.1 + rng.normal(0, 0.2) for q, v in base.items()},
         "worse": {q: v - 0.1 + rng.normal(0, 0.2) for q, v in base.items()},
         "same": {q: v + rng.normal(0, 0.2) for q, v in base.items()}},
    )  # fmt: skip
    assert {name: p.mark for name, p in tested.items()} == {"better": "▲▲", "worse": "▼▼", "same": ""}
    assert tested["better"].low > 0 > tested["worse"].high


def test_correction_is_over_all_that_meet_the_baseline() -> None:
    rng = np.random.default_rng(2)
    base = keyed(list(rng.random(40)))
    others = {f"m{i}": keyed(list(rng.random(40))) for i in range(4)}
    raw, corrected = {n: paired(v, base) for n, v in others.items()}, against(base, others)
    for test in ("p_value", "p_random", "p_sign"):
        expected = holm([getattr(raw[name], test) for name in others])
        assert [getattr(corrected[name], test) for name in others] == expected
    kept = {name: replace(own, p_value=0, p_random=0, p_sign=0) for name, own in raw.items()}
    assert {name: replace(own, p_value=0, p_random=0, p_sign=0) for name, own in corrected.items()} == kept


def test_swapping_the_sides_only_turns_the_sign() -> None:
    one, two = keyed([0.5, 0.2, 0.9, 0.4]), keyed([0.1, 0.3, 0.5, 0.4])
    there, back = paired(one, two), paired(two, one)
    assert (there.difference, there.low, there.high) == pytest.approx((-back.difference, -back.high, -back.low))
    assert (there.p_value, there.p_random, there.p_sign) == (back.p_value, back.p_random, back.p_sign)
    assert (there.wins, there.ties, there.losses) == (back.losses, back.ties, back.wins) == (2, 1, 1)


def test_equal_rankings() -> None:
    nothing = Paired(0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0, 2, 0)
    assert paired(keyed([0.5, 0.7]), keyed([0.5, 0.7])) == nothing
    assert nothing.mark == ""


def test_rounding_is_a_tie() -> None:
    ours = keyed([0.1 + 0.2, 0.7, 1 / 3])
    base = keyed([0.3, 0.7 + 1e-16, 1 / 3 + 1e-15])
    assert paired(ours, base) == Paired(0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0, 3, 0)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_same_gain_everywhere_has_no_t_and_goes_by_the_randomisation_test(sign: int) -> None:
    """The queries do not differ, so nothing says how far the mean could be off: five of them prove little, as the
    other tests say, and ten are enough."""
    base = np.array([0.1, 0.2, 0.3, 0.45, 0.7])
    found = paired(keyed(list(base + sign * 0.1)), keyed(list(base)))
    assert found.difference == pytest.approx(sign * 0.1)
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert found.p_value == found.p_random == found.p_sign == 2 / 2**5
    assert found.mark == ""
    assert (found.wins, found.losses) == ((5, 0) if sign > 0 else (0, 5))
    assert t_test(np.full(10, sign * 0.1)) == 2 / 2**10


def test_two_lists_with_an_equal_gain_are_not_significant() -> None:
    found = paired(keyed([1.0, 1.0]), keyed([0.5, 0.5]))
    assert (found.p_value, found.p_random, found.p_sign, found.mark) == (0.5, 0.5, 0.5, "")


def test_one_query_shows_nothing() -> None:
    found = paired({"q": 0.9}, {"q": 0.1})
    assert found == Paired(pytest.approx(0.8), -math.inf, math.inf, 1.0, 1.0, 1.0, 1, 0, 0)


def test_no_query_shows_nothing() -> None:
    assert paired({"a": 1.0}, {"b": 1.0}) == Paired(0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0, 0, 0)
    assert interval(np.array([])) == (0.0, 0.0)


def test_only_shared_queries_count() -> None:
    found = paired({"a": 1.0, "b": 0.5, "mine": 1.0}, {"a": 0.0, "b": 0.5, "theirs": 1.0})
    assert (found.difference, found.wins, found.ties) == (0.5, 1, 1)
    assert not math.isnan(found.p_value)
