"""The page of the library is what the docstrings say, and every public name has one."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import clickbridge

ROOT = Path(__file__).resolve().parents[2]


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_api", ROOT / "docs" / "make_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_docstrings_say() -> None:
    make = maker()
    assert make.PAGE.read_text(encoding="utf8") == make.render(), "run python docs/make_api.py"


def test_every_public_name_is_on_the_page() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf8")
    missing = [n for n in clickbridge.__all__ if f"### {n}\n" not in page and f"| `{n}` |" not in page]
    assert missing == ["__version__"]


@pytest.mark.parametrize("name", [name for name in clickbridge.__all__ if name != "__version__"])
def test_every_public_name_says_what_it_is(name: str) -> None:
    found = getattr(clickbridge, name)
    text = vars(found).get("__doc__") if inspect.isclass(found) else found.__doc__
    assert text
    assert not text.startswith(f"{name}("), "what a dataclass writes by itself teaches nothing"
