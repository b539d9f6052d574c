"""Simulated clicks follow the position-based model they claim."""

from __future__ import annotations

import numpy as np

from clickbridge.simulate.clicks import FADING, LIKING, position_based_clicks

GRADES = [0, 2, 1, 0, 2, 0, 0, 1, 2, 0]
N = 40_000


def test_frequencies_match_the_formula() -> None:
    rng = np.random.default_rng(0)
    clicks = np.array([position_based_clicks(GRADES, rng) for _ in range(N)])
    expected = np.array([(rank**-FADING) * LIKING[grade] for rank, grade in enumerate(GRADES, 1)])
    error = np.sqrt(expected * (1 - expected) / N)
    assert (np.abs(clicks.mean(axis=0) - expected) < 4.5 * error).all()
    # Clicks at different ranks are independent of each other.
    correlation = np.corrcoef(clicks.T.astype(float))
    assert np.abs(correlation - np.eye(len(GRADES))).max() < 4.5 / np.sqrt(N)


def test_a_look_at_the_first_rank_is_certain() -> None:
    rng = np.random.default_rng(1)
    rate = np.mean([position_based_clicks([2], rng)[0] for _ in range(10_000)])
    assert abs(rate - LIKING[2]) < 0.02


def test_a_seed_gives_the_same_clicks() -> None:
    one, two = (position_based_clicks(GRADES * 20, np.random.default_rng(3)) for _ in range(2))
    assert one.tolist() == two.tolist()
    assert one.dtype == bool


def test_an_empty_page() -> None:
    assert position_based_clicks([], np.random.default_rng(0)).shape == (0,)
