"""Queries known by their id alone: found by it, and named by it."""

from __future__ import annotations

import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.types import Impression

PAGES = [
    Impression("", ["a", "b", "c"], [c], query_id=q)
    for q, c in (("7", "a"), ("8", "a"), ("7", "b"), ("9", "c"), ("8", "b"))
]


@pytest.mark.parametrize("spec", ["cos-click", "walk", "lsi-qd", "pls"])
def test_original_ids_come_back(spec: str) -> None:
    model = build_model(spec).fit(ClickGraph.build(PAGES))
    assert model.rank("7", 2).doc_ids
    assert [name for name, _ in model.similar_queries("7", 1)] == ["8"]
