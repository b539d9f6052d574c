"""Position bias: rates by rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge.log import bias
from clickbridge.log.bias import click_rates, expected_clicks, falling, position_based


def test_rates_are_shares_of_clicked_pages() -> None:
    pages = np.tile([1, 0, 0, 0, 1, 0, 0, 0, 0], 3000).astype(float)  # two clicked pages of three, and one not
    rates = click_rates(np.arange(9001) * 3, pages, 3)
    assert rates[:2] == pytest.approx([0.5, 0.5 * 2**-0.1], abs=0.01)
    assert 0 < rates[2] < 0.01


def test_no_page_at_all_falls_as_one_over_r() -> None:
    rates = click_rates(np.zeros(1, dtype=int), np.empty(0), 4)
    assert (np.diff(rates) < 0).all()
    assert rates[0] == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(deadline=None)
def test_falling_is_the_nearest_that_never_rises(values: list[float]) -> None:
    found = falling(np.array(values), np.ones(len(values)))
    assert (np.diff(found) <= 1e-12).all()
    assert found.sum() == pytest.approx(sum(values))
    if sorted(values, reverse=True) == values:
        np.testing.assert_allclose(found, values)


def test_expected_clicks_by_rank() -> None:
    clicked = np.array([1, 0, 1, 1, 0, 0.0])
    assert expected_clicks(np.array([0, 2, 4, 6]), clicked, 2) == pytest.approx([2 / 3, 1 / 3] * 3)


SEEN = np.array([1.0, 0.7, 0.5, 0.3])


def examined_pages(shuffled: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(indptr, clicked, pair) of users who follow the position-based model on 40 queries with 4 documents each."""
    rng = np.random.default_rng(0)
    n = 20_000
    query = rng.integers(40, size=n)
    docs = np.argsort(rng.random((n, 4)), axis=1) if shuffled else np.tile(np.arange(4), (n, 1))
    drawn = rng.uniform(0.1, 0.9, (40, 4))
    clicked = rng.random((n, 4)) < SEEN * drawn[query[:, None], docs]
    return np.arange(0, 4 * n + 1, 4), clicked.ravel(), (query[:, None] * 4 + docs).ravel()


def test_looks_are_told_apart_from_attraction_where_orders_differ() -> None:
    found = position_based(*examined_pages(shuffled=True), 4).examined
    np.testing.assert_allclose(found, SEEN, atol=0.03)


def test_one_order_only_stays_near_the_rates_by_rank() -> None:
    indptr, clicked, pair = examined_pages(shuffled=False)
    rates = clicked.reshape(-1, 4).mean(axis=0)
    np.testing.assert_allclose(position_based(indptr, clicked, pair, 4).examined, rates / rates[0], atol=0.1)


def test_it_ends_where_nothing_changes_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = examined_pages(shuffled=True)
    found = position_based(*pages, 4)
    monkeypatch.setattr(bias, "MOST_ROUNDS", 2 * bias.MOST_ROUNDS)
    np.testing.assert_array_equal(position_based(*pages, 4).examined, found.examined)
    monkeypatch.setattr(bias, "LEAST_CHANGE", 0.0)
    assert (position_based(*pages, 4).examined != found.examined).any()


def test_what_stands_lower_counts_for_the_last_place() -> None:
    found = position_based(*examined_pages(shuffled=True), 2)
    assert found.examined[0] == 1.0
    assert 0.4 < found.examined[1] < 0.6  # .7, .5 and .3, each as often
    assert len(found.examined) == 2


def test_nobody_clicked() -> None:
    assert position_based(np.array([0, 2]), np.zeros(2, dtype=bool), np.arange(2), 2).examined.tolist() == [1.0, 1.0]
