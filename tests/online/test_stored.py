"""What is read from a file is checked: compiled loops do not look where they read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.online.fitted_online import FittedOnline
from clickbridge.online.projection import Projection
from clickbridge.online.state import State
from clickbridge.types import Impression
from oracles.pages import random_pages


@pytest.fixture(scope="module")
def fitted() -> FittedOnline:
    settings = {"blend": "0.5,0.3,4", "dim": 5, "clusters": 2, "per_user": 0.5}
    model: Any = build_model("online", settings).fit(ClickGraph.build(random_pages(0, 40)))
    model.learn(Impression("query 2", ["d4", "new-1", "d5", "new-2"], ["new-1"], user="u9"))
    model.learn(Impression("query 2", ["new-3"], []))
    found: FittedOnline = model.fitted
    return found


def test_a_projection_and_a_state_come_back(fitted: FittedOnline) -> None:
    projection = Projection.from_stored(fitted.projection.to_stored())
    state = State.from_stored(fitted.state.to_stored())
    assert projection.id == fitted.projection.id
    assert state.digest() == fitted.state.digest()
    assert state.later.ids == ("new-1", "new-2", "new-3")
    assert state.later.component.tolist() == [0, 0, -1]
    again = replace(fitted, projection=projection, state=state)
    ids = ["d4", "new-1", "new-2", "new-3", "d5", "nobody"]
    assert again.score("query 2", ids).tolist() == fitted.score("query 2", ids).tolist()
    assert again.rerank_for("u9", "query 2", ids) == fitted.rerank_for("u9", "query 2", ids)


def put(place: int, value: float) -> Callable[[Any], Any]:
    def change(values: Any) -> Any:
        out = np.array(values)
        out[place] = value
        return out

    return change


def shorter(values: Any) -> Any:
    return values[:-1]


@pytest.mark.parametrize(
    ("name", "change"),
    [("component", put(0, 2**30)), ("start", put(0, 2**40)), ("start", put(0, -5)), ("dims", put(0, 6)),
     ("dims", put(0, -1)), ("n_clusters", put(0, 99)), ("n_clusters", put(0, 0)), ("weight_start", put(0, 8)),
     ("slot_start", put(0, -1)), ("centre_start", put(0, 3)), ("centres", shorter), ("z", shorter), ("beta", shorter),
     ("start", shorter)],
)  # fmt: skip
def test_a_projection_that_points_elsewhere_is_refused(
    name: str, change: Callable[[Any], Any], fitted: FittedOnline
) -> None:
    value = fitted.projection.to_stored()
    value["layout"][name] = change(value["layout"][name])
    with pytest.raises(ValueError, match="arrays do not fit together"):
        Projection.from_stored(value)


@pytest.mark.parametrize("change", [put(0, 2**30), put(0, -2), shorter])
def test_documents_that_point_elsewhere_are_refused(change: Callable[[Any], Any], fitted: FittedOnline) -> None:
    with pytest.raises(ValueError, match="documents that do not fit"):
        replace(fitted, pages=change(fitted.pages))


@pytest.mark.parametrize(
    ("name", "change"),
    [("weights", shorter), ("evidence", shorter), ("later.component", put(0, 7)), ("later.start", put(0, 2**40)),
     ("later.start", put(0, -3)), ("later.z", shorter), ("later.component", shorter), ("user.components", put(0, 3)),
     ("clock", put(0, np.nan)), ("clock", put(0, 2.0))],
)  # fmt: skip
def test_a_state_that_points_elsewhere_is_refused(
    name: str, change: Callable[[Any], Any], fitted: FittedOnline
) -> None:
    value = fitted.state.to_stored()
    value["arrays"][name] = change(value["arrays"][name])
    with pytest.raises(ValueError, match="does not fit its projection"):
        replace(fitted, state=State.from_stored(value))
