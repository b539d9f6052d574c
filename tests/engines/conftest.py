"""The engines that must pass the contract: one line each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from clickbridge.engines.base import Engine
from clickbridge.engines.emulation import Emulation
from clickbridge.engines.gpu import Card, Gpu
from clickbridge.engines.local import Local
from clickbridge.engines.ray import Ray
from clickbridge.errors import EngineError
from oracles.strict_card import StrictCard


class SmallCard(Card):
    """The card of this machine, of which arrays may use little: data goes through it by tiles."""

    def __init__(self, memory: int) -> None:
        super().__init__()
        self.memory = memory


ENGINES: dict[str, Callable[..., Any]] = {
    "local": Local,
    "ray": Ray,
    "gpu": Gpu,
    "gpu, too small": lambda **limits: Gpu(**limits, card=SmallCard(200_000)),
    "gpu, emulated": lambda **limits: Gpu(**limits, card=Emulation()),
    "gpu, emulated, too small": lambda **limits: Gpu(**limits, card=Emulation(20_000)),
    "gpu, strict": lambda **limits: Gpu(**limits, card=StrictCard(1 << 30, bounded=True)),
    "gpu, strict, too small": lambda **limits: Gpu(**limits, card=StrictCard(200_000)),
}
Make = Callable[..., Engine]


@pytest.fixture(scope="session")
def ray_here() -> Iterator[None]:
    """One Ray of two workers on this machine for all tests: to start it takes seconds."""
    if os.environ.get("REQUIRE_ALL") != "1":
        pytest.importorskip("ray")
    with Ray(threads=2, memory=1 << 29) as engine:
        assert engine.workers == 2
        yield


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.ray if name == "ray" else ()) for name in ENGINES])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """`make(threads=..., memory=...)` is an engine, closed after the test."""
    if request.param == "ray":
        request.getfixturevalue("ray_here")
    if request.param in ("gpu", "gpu, too small"):
        try:
            Card()
        except EngineError as error:
            pytest.skip(str(error))  # by hand, on a machine that has a card
    with ExitStack() as stack:

        def made(**limits: int) -> Engine:
            return stack.enter_context(ENGINES[request.param](**limits))

        yield made


@pytest.fixture
def engine(make: Make) -> Engine:
    return make(threads=2)
