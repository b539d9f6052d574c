"""The engines that must pass the contract: one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from clickbridge.engines.base import Engine
from clickbridge.engines.local import Local

ENGINES: dict[str, Callable[..., Any]] = {"local": Local}
Make = Callable[..., Engine]


@pytest.fixture(params=ENGINES)
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """`make(threads=..., memory=...)` is an engine, closed after the test."""
    with ExitStack() as stack:

        def made(**limits: int) -> Engine:
            return stack.enter_context(ENGINES[request.param](**limits))

        yield made


@pytest.fixture
def engine(make: Make) -> Engine:
    return make(threads=2)
