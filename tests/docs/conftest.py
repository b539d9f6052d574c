"""The programs in `docs` as modules: what writes the pages also checks them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="session")
def program() -> Callable[[str], ModuleType]:
    """`program("make_site")` is docs/make_site.py."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
