"""One clock: every event fades what was learned before once, and an undo takes out exactly what is left."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge import ClickGraph, build_model
from clickbridge.online.online import Online
from clickbridge.online.state import State
from clickbridge.types import Impression
from oracles.pages import random_pages

Array = np.ndarray[Any, Any]
GRAPH = ClickGraph.build(random_pages(0, 60))
PAGES = random_pages(1, 6)
NOTHING = replace(PAGES[0], clicks=[])


@cache
def base(kappa: float) -> Online:
    settings = {"blend": "0.5,0.3,4", "dim": 5, "clusters": 3, "kappa": kappa, "per_user": 0.5}
    model: Any = build_model("online", settings).fit(GRAPH)
    return Online.from_fitted(replace(model.fitted, state=State.empty(model.projection_)))


def fresh(kappa: float) -> Online:
    return Online.from_fitted(base(kappa).fitted)


Learned = dict[str, Any]


def learned(model: Online) -> Learned:
    """What is left of everything at this moment."""
    a, scale = model.state_.arrays(), model.state_.scale
    rows = [a["user.weights"][first:last] for first, last in pairwise(a["user.start"])]
    users = zip(a["user.keys"].tolist(), a["user.components"].tolist(), rows, strict=True)
    return {
        "weights": a["weights"] * scale,
        "evidence": a["evidence"] * scale,
        "table": dict(zip(a["keys"].tolist(), (a["values"] * scale).tolist(), strict=True)),
        "users": {(u, c): w * scale for u, c, w in users},
    }


@cache
def alone(page: int) -> Learned:
    """What one page teaches by itself."""
    model = fresh(1.0)
    model.learn(PAGES[page])
    return learned(model)


def expected(surviving: list[tuple[int, int]], last: int, kappa: float) -> Learned:
    """From the events that were not undone, by their ages."""
    nothing = learned(fresh(1.0))
    out: Learned = {"weights": nothing["weights"], "evidence": nothing["evidence"], "table": {}, "users": {}}
    for number, page in surviving:
        own, left = alone(page), kappa ** (last - number)
        for name in ("weights", "evidence"):
            out[name] = out[name] + left * own[name]
        for name in ("table", "users"):
            for key, value in own[name].items():
                out[name][key] = out[name].get(key, 0.0) + left * value
    return out


def same(one: Learned, two: Learned) -> None:
    for name in ("weights", "evidence"):
        np.testing.assert_allclose(one[name], two[name], atol=1e-9, rtol=1e-9, err_msg=name)
    for name in ("table", "users"):
        for key in {*one[name], *two[name]}:
            np.testing.assert_allclose(one[name].get(key, 0.0), two[name].get(key, 0.0), atol=1e-9, rtol=1e-9)


STEPS = st.lists(
    st.one_of(st.tuples(st.just("learn"), st.integers(0, len(PAGES) - 1)), st.tuples(st.just("empty"), st.just(0)),
              st.tuples(st.sampled_from(["undo", "unlearn"]), st.integers(0, 99))), max_size=25,
)  # fmt: skip


@pytest.mark.parametrize("kappa", [1.0, 0.9, 0.3])
@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_any_interleaving_is_what_survives_at_its_age(kappa: float, steps: list[tuple[str, int]]) -> None:
    model = fresh(kappa)
    surviving: list[tuple[int, int]] = []
    events = 0
    for what, which in steps:
        if what == "learn":
            surviving.append((model.learn(PAGES[which]), which))
        elif what == "empty":
            model.learn(NOTHING)
        elif surviving:
            number, page = surviving.pop(which % len(surviving))
            _ = model.undo(number) if what == "undo" else model.unlearn(PAGES[page], number)
        else:
            continue
        events += 1
    assert model.state_.events == events
    same(learned(model), expected(surviving, events, kappa))


def test_learn_a_page_without_clicks_undo_leaves_nothing() -> None:
    model = fresh(0.3)
    number = model.learn(PAGES[0])
    model.learn(NOTHING)
    model.undo(number)
    same(learned(model), expected([], 3, 0.3))
    ids = PAGES[0].results or []
    assert model.score(PAGES[0].query, ids) == pytest.approx(fresh(0.3).score(PAGES[0].query, ids), abs=1e-9)


def test_a_click_taken_back_leaves_the_others_at_their_age() -> None:
    page = Impression("query 1", ["d1", "d2", "d3", "d4"], ["d2", "d4"])
    one, two = fresh(0.8), fresh(0.8)
    number = one.learn(page)
    one.learn(PAGES[1])
    again = one.undo_click(page, "d4", number)
    for event in (replace(page, clicks=["d2"]), PAGES[1], NOTHING, NOTHING):
        two.learn(event)
    same(learned(one), learned(two))
    # The page as it now is can be taken out too.
    one.undo(again)
    three = fresh(0.8)
    for event in (NOTHING, PAGES[1], NOTHING, NOTHING, NOTHING):
        three.learn(event)
    same(learned(one), learned(three))


def test_undone_long_after_numbers_were_rescaled() -> None:
    model = fresh(0.001)
    number = model.learn(PAGES[0])
    for _ in range(80):
        model.learn(PAGES[1])
    model.undo(number)
    assert 1e-110 < model.state_.scale <= 1.0
    same(learned(model), expected([(n, 1) for n in range(2, 82)], 82, 0.001))


def test_the_log_of_a_graph_fades_like_its_pages_one_by_one() -> None:
    pages = [*random_pages(3, 20), NOTHING, *random_pages(4, 5)]
    pages = [replace(page, time=float(i)) for i, page in enumerate(pages)]
    settings = {"blend": "0.5,0.3,4", "dim": 5, "clusters": 3, "kappa": 0.9, "per_user": 0.5}
    batch: Any = build_model("online", settings).fit(ClickGraph.build(pages))
    model = Online.from_fitted(replace(batch.fitted, state=State.empty(batch.projection_)))
    for page in pages:
        model.learn(page)
    assert model.state_.events == batch.state_.events == 26
    same(learned(model), learned(batch))


def test_with_decay_the_table_does_not_grow_for_ever() -> None:
    model = fresh(0.1)
    sizes = []
    for i in range(600):
        model.learn(replace(PAGES[0], query=f"never again {i}"))
        sizes.append(np.count_nonzero(model.state_.keys))
    assert max(sizes) == max(sizes[:250])
    assert len(model.state_.keys) <= 2048
