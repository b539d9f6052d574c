"""The page of the library is what the docstrings say, and every public name has one."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import clickbridge
from clickbridge.evaluate import single

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


SHOWN_ELSEWHERE = {"read_run", "Evaluation", "Comparison", "Client", "ServedRanking"}
"""Shown in another's example; or in docs/service.md, since they need a running service."""


@pytest.mark.parametrize("name", [name for name in clickbridge.__all__ if name != "__version__"])
def test_every_public_name_has_an_example_that_runs(name: str) -> None:
    """They run in test_doc_examples."""
    found = getattr(clickbridge, name)
    if name not in SHOWN_ELSEWHERE and not (inspect.isclass(found) and issubclass(found, Exception)):
        assert ">>> " in (inspect.getdoc(found) or "")


def test_help_of_evaluate_teaches_though_it_is_a_package() -> None:
    shown = pydoc.render_doc(clickbridge.evaluate, renderer=pydoc.plaintext)
    head = shown.partition("PACKAGE CONTENTS")[0]
    assert "Re-ranks judged lists with a fitted model" in head
    assert all(word in head for word in ("Parameters", "measures : str or sequence of str", "Returns", ">>> found["))
    signature = inspect.signature(clickbridge.evaluate)
    assert signature.parameters["measures"].annotation == "str | Sequence[str]"
    called = ", ".join(str(p.replace(annotation=p.empty)) for p in signature.parameters.values())
    assert f"evaluate({called}) -> {signature.return_annotation}".replace("'", '"') in head
    assert signature == inspect.signature(single.evaluate), "the package and the function behind it take the same"


@pytest.mark.parametrize("kind", [clickbridge.Model, clickbridge.Fitted])
def test_what_users_call_has_types(kind: type) -> None:
    """`Any` in a signature tells nothing. Where a value may have any type, `object` says so."""
    for name, member in vars(kind).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            assert "Any" not in str(inspect.signature(member)), f"{kind.__name__}.{name}"
