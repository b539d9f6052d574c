"""Simulated clicks follow the models they claim: marginals against sums over all that can happen on a page."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from clickbridge.errors import SettingError
from clickbridge.simulate.clicks import CLICK_MODELS, FADING, LIKING, PERSEVERANCE, clicks_on_page, draw_clicks

Array = np.ndarray[Any, Any]
N = 60_000
PAGE = np.array([0.3, 0.9, 0.1, 0.5, 0.7])
SATISFYING = np.array([0.2, 0.6, 0.9, 0.1, 0.5])


def probability(model: str, clicks: tuple[int, ...]) -> float:
    """P(exactly these clicks on PAGE), by following the user down the page."""
    if model == "pbm":
        p = np.arange(1, 6) ** -FADING * PAGE
        return float(np.prod(np.where(clicks, p, 1 - p)))
    reading, gone = 1.0, 0.0  # P(clicks so far and still reading), P(clicks so far and gone)
    for rank, clicked in enumerate(clicks):
        if clicked:
            leave = 1.0 if model == "cascade" else SATISFYING[rank]
            go_on = 1.0 if model == "cascade" else PERSEVERANCE
            here = reading * PAGE[rank]
            reading, gone = here * (1 - leave) * go_on, here * (leave + (1 - leave) * (1 - go_on))
        else:
            go_on = 1.0 if model == "cascade" else PERSEVERANCE
            here = reading * (1 - PAGE[rank])
            reading, gone = here * go_on, gone + here * (1 - go_on)
    return reading + gone


def exact_marginals(model: str) -> Array:
    outcomes = list(product((0, 1), repeat=len(PAGE)))
    p = np.array([probability(model, clicks) for clicks in outcomes])
    assert p.sum() == pytest.approx(1.0)
    return p @ np.array(outcomes)


@pytest.mark.parametrize("model", CLICK_MODELS)
def test_marginals_are_exact(model: str) -> None:
    rows = np.tile(PAGE, (N, 1))
    clicks = draw_clicks(model, rows, np.random.default_rng(0), satisfying=np.tile(SATISFYING, (N, 1)))
    expected = exact_marginals(model)
    error = np.sqrt(expected * (1 - expected) / N)
    assert (np.abs(clicks.mean(axis=0) - expected) < 4.5 * error).all()


def test_closed_forms() -> None:
    """cascade: a_r times the product of 1 - a_i above; dbn: examination falls by PERSEVERANCE (1 - a s)."""
    above = np.concatenate([[1], np.cumprod(1 - PAGE)[:-1]])
    assert exact_marginals("cascade") == pytest.approx(PAGE * above)
    look = np.concatenate([[1], np.cumprod(PERSEVERANCE * (1 - PAGE * SATISFYING))[:-1]])
    assert exact_marginals("dbn") == pytest.approx(PAGE * look)


def test_what_each_model_allows() -> None:
    rng = np.random.default_rng(1)
    rows = rng.random((5_000, 8))
    assert draw_clicks("cascade", rows, rng).sum(axis=1).max() == 1
    assert draw_clicks("dbn", rows, rng).sum(axis=1).max() > 1
    # Nobody reads on after a result that satisfies for certain.
    sated = draw_clicks("dbn", rows, rng, satisfying=np.ones_like(rows))
    assert sated.sum(axis=1).max() == 1
    # In the position-based model, clicks at different ranks are independent.
    together = np.corrcoef(draw_clicks("pbm", np.tile(PAGE, (N, 1)), rng).T.astype(float))
    assert np.abs(together - np.eye(5)).max() < 4.5 / np.sqrt(N)


@pytest.mark.parametrize("model", CLICK_MODELS)
def test_pages_by_grades(model: str) -> None:
    rng = np.random.default_rng(2)
    rate = np.mean([clicks_on_page([2, 0], rng, model)[0] for _ in range(10_000)])
    assert abs(rate - LIKING[2]) < 0.02
    one, two = (clicks_on_page([0, 2, 1] * 9, np.random.default_rng(3), model) for _ in range(2))
    assert one.tolist() == two.tolist()
    assert one.dtype == bool
    assert clicks_on_page([], rng, model).shape == (0,)


def test_an_unknown_model() -> None:
    with pytest.raises(SettingError, match="pbm, cascade, dbn"):
        draw_clicks("ubm", np.ones((1, 1)), np.random.default_rng(0))
