"""The page of the library is what the docstrings say, and every public name has one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import clickbridge

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_docstrings_say(program: Callable[[str], ModuleType]) -> None:
    make = program("make_api")
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
