"""Loops that compile on their first call."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from clickbridge.numerics import threads as module
from clickbridge.numerics.threads import Kernel, kernel, unsigned

IMPORTS = """
import importlib, pkgutil, sys
import clickbridge.numerics, clickbridge.engines
for package in (clickbridge.numerics, clickbridge.engines):
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
print("numba" in sys.modules)
"""


def test_importing_loads_no_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def inner(x):  # type: ignore[no-untyped-def]
    return x + 1


def outer(x):  # type: ignore[no-untyped-def]
    return 2 * inner(x)


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Loops of this module, one of which calls the other, as they stand before a first call."""
    names = globals()
    made = kernel(names["inner"]), kernel(names["outer"])
    monkeypatch.setitem(names, "inner", made[0])
    monkeypatch.setitem(names, "outer", made[1])
    return made


def test_loops_call_each_other(pair: tuple[Any, Any]) -> None:
    assert outer(3) == 8
    assert inner(3) == 4


def test_after_the_first_call_names_are_the_compiler_s_own(pair: tuple[Any, Any]) -> None:
    assert isinstance(outer, Kernel)
    assert isinstance(inner, Kernel)
    held = outer
    held(1)
    assert not isinstance(outer, Kernel)
    assert not isinstance(inner, Kernel)
    assert held(1) == outer(1) == 4  # what was imported elsewhere before goes on to work


def test_first_calls_at_once(pair: tuple[Any, Any]) -> None:
    together = Barrier(8)

    def call(x: int) -> Any:
        together.wait()
        return pair[1](x)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(call, range(8))) == [2 * (x + 1) for x in range(8)]


def test_a_kernel_keeps_its_name_and_words(pair: tuple[Any, Any]) -> None:
    assert pair[0].__name__ == "inner"
    assert module.kernel.__doc__


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint32])
def test_unsigned_copies_nothing(dtype: Any) -> None:
    numbers = np.arange(5, dtype=dtype)
    found = unsigned(numbers)
    assert found.dtype.kind == "u"
    assert np.shares_memory(found, numbers)
    assert found.tolist() == numbers.tolist()
