"""Simulated users: three models of how people read a result page from the top and click.

    pbm      position-based: a result is clicked if it is looked at, P(look at rank r) = r^-FADING, and liked
    cascade  Craswell and others (2008): from the top, click the first result that is liked, and stop
    dbn      dynamic Bayesian network, Chapelle and Zhang (2009): from the top; after a click stop if satisfied;
             otherwise go on with probability PERSEVERANCE

All take `liking`, P(click | look), one row per page and one column per rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clickbridge.errors import SettingError

Array = np.ndarray[Any, Any]
FADING = 0.8
"""How fast looks fall with rank: P(look at rank r) = r^-FADING."""
LIKING = (0.03, 0.4, 0.8)
"""P(click | look) by grade: not relevant, acceptable, best."""
PERSEVERANCE = 0.9
"""dbn: P(look at the next result | not satisfied)."""
CLICK_MODELS = ("pbm", "cascade", "dbn")


def check_click_model(name: str) -> str:
    if name not in CLICK_MODELS:
        raise SettingError(f"clicks must be one of {', '.join(CLICK_MODELS)}; got {name!r}")
    return name


def draw_clicks(
    model: str, liking: Array, rng: np.random.Generator, *, satisfying: Array | None = None, fading: float = FADING
) -> Array:
    """Which results are clicked, one row per page. `satisfying` is dbn's P(satisfied | click), by default `liking`."""
    check_click_model(model)
    n_pages, n_ranks = liking.shape
    liked, stops, goes = rng.random((3, n_pages, n_ranks))
    if model == "pbm":
        return liked < np.arange(1, n_ranks + 1) ** -fading * liking
    leave, go_on = (liking if satisfying is None else satisfying), PERSEVERANCE
    if model == "cascade":
        leave, go_on = np.ones_like(liking), 1.0
    clicked = np.zeros(liking.shape, dtype=bool)
    reading = np.ones(n_pages, dtype=bool)
    for rank in range(n_ranks):
        clicked[:, rank] = reading & (liked[:, rank] < liking[:, rank])
        reading &= ~(clicked[:, rank] & (stops[:, rank] < leave[:, rank])) & (goes[:, rank] < go_on)
    return clicked


def clicks_on_page(grades: Sequence[int], rng: np.random.Generator, model: str = "pbm") -> Array:
    """Which of the shown results are clicked, given their grades."""
    liking = np.take(LIKING, np.asarray(grades, dtype=int))[None]
    clicked: Array = draw_clicks(model, liking, rng)[0]
    return clicked
