"""Clicks and looks by rank."""

from __future__ import annotations

import numpy as np
import pytest

from clickbridge import ClickGraph, Impression
from clickbridge.graph import rank_effect as module
from clickbridge.graph.rank_effect import rank_effect

LOOKS = (1.0, 0.6, 0.3)


def log(pages: int) -> list[Impression]:
    """Users of the position-based model on ten queries, three documents each in random order."""
    rng = np.random.default_rng(1)
    drawn = rng.uniform(0.2, 0.9, (10, 3))
    out = []
    for _ in range(pages):
        query, order = int(rng.integers(10)), rng.permutation(3)
        clicks = [f"{query}-{d}" for rank, d in enumerate(order) if rng.random() < LOOKS[rank] * drawn[query, d]]
        out.append(Impression(f"query {query}", [f"{query}-{d}" for d in order], clicks))
    return out


def test_looks_are_recovered_and_clicks_counted() -> None:
    pages = log(6000)
    found = rank_effect(ClickGraph.build(pages).impressions)
    assert found is not None
    assert found.examined == pytest.approx(LOOKS, abs=0.06)
    assert found.clicked[0] == pytest.approx(sum((p.results or [])[0] in p.clicks for p in pages) / len(pages))
    assert found.pages == 6000


def test_of_a_long_log_the_newest_pages_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGES", 50)
    pages = [Impression("a", ["x", "y"], ["x"])] * 100 + [Impression("a", ["x", "y"], ["y"])] * 50
    found = rank_effect(ClickGraph.build(pages).impressions)
    assert found is not None
    assert found.clicked == [0.0, 1.0]
    assert found.pages == 50


def test_nothing_to_tell_without_pages_or_clicks() -> None:
    assert rank_effect(ClickGraph.build([Impression("a", None, ["x"])]).impressions) is None
    assert rank_effect(ClickGraph.build([Impression("a", ["x", "y"], [])]).impressions) is None
