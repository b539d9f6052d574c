"""Examples in docstrings run."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import clickbridge
from clickbridge.models.registry import TABLES

ROOT = Path(clickbridge.__file__).parent
WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(ROOT.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf8")
]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """A model that an example registers is gone after it."""
    before = {kind: set(table) for kind, table in TABLES.items()}
    yield
    for kind, table in TABLES.items():
        for name in set(table) - before[kind]:
            del table[name]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", clickbridge.__all__)
def test_examples_run_as_they_are_pasted(name: str) -> None:
    """What they name they import."""
    for examples in doctest.DocTestFinder().find(getattr(clickbridge, name), name, globs={}):
        assert doctest.DocTestRunner(verbose=False).run(examples).failed == 0, examples.name
