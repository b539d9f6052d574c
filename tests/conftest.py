"""Fixtures for all tests. What is not there skips with a reason; with REQUIRE_ALL=1 it fails instead."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from clickbridge import ClickGraph
from clickbridge.types import Document, Impression

# The first example of a test may compile a loop: no deadline.
settings.register_profile("clickbridge", deadline=None)
settings.load_profile("clickbridge")

DATA = Path(os.environ.get("CLICKBRIDGE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def skip_or_fail(reason: str) -> None:
    if os.environ.get("REQUIRE_ALL") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """`real_data("msrd")` is the folder of a real data set."""

    def folder(name: str) -> Path:
        if not (DATA / name).is_dir():
            skip_or_fail(f"no data set {name} under {DATA}: set CLICKBRIDGE_DATA")
        return DATA / name

    return folder


@pytest.fixture(scope="session")
def small_graph() -> ClickGraph:
    """Five documents and a few pages: small enough to check by hand."""
    docs = [
        Document("ny", {"title": "New York City", "body": "The big apple, city of pizza and bagels"}),
        Document("pizza", {"title": "Pizza", "body": "New York style pizza by the slice"}),
        Document("rome", {"title": "Rome", "body": "Pizza al taglio in the eternal city"}),
        Document("bagel", {"title": "Bagels", "body": "Boiled, then baked"}),
        Document("blank", {}),
    ]
    pages = [
        Impression("ny pizza", ["pizza", "rome", "ny"], ["pizza"], user="a", time=1.0),
        Impression("ny pizza", ["rome", "pizza", "ny"], ["pizza", "ny"], user="b", time=2.0),
        Impression("big apple", ["ny", "bagel"], ["ny"], user="a", time=3.0),
        Impression("pizza by the slice", ["pizza", "rome"], ["pizza"], user="c", time=4.0),
        Impression("eternal city", ["rome", "ny", "bagel"], ["rome"], user="d", time=5.0),
        Impression("bagels", ["bagel", "ny"], [], user="d", time=6.0),
    ]
    return ClickGraph.build(pages, docs)
