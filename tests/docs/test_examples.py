"""Every example in the documentation runs, and prints what the page says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
KINDS = re.compile(
    r"(python|sh) (run|no-run)|(json|csv|text|python) file=[\w.-]+|pycon|text( out)?|json|csv|ini|dockerfile|"
    r"|python opensearch"  # run by test_service_page.py, against a server
)
Program = Callable[[str], ModuleType]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_block_is_run_or_says_that_it_is_not(page: Path, program: Program) -> None:
    for block in program("run_examples").blocks(page):
        assert KINDS.fullmatch(block.info), f"{page.relative_to(ROOT)} has a block marked {block.info!r}"


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if re.search(r"```(pycon|\w+ run)\n", p.read_text(encoding="utf8")) and p.name != "api.md"],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_examples_run_and_print_what_the_page_says(page: Path, program: Program, tmp_path: Path) -> None:
    """The examples of api.md are docstrings, which have a test of their own."""
    examples = program("run_examples")
    for ran in examples.run(page, tmp_path):
        if ran.promised is not None:
            assert examples.in_outline(ran.printed) == examples.in_outline(ran.promised), (
                f"run python docs/run_examples.py {page.relative_to(ROOT)}"
            )


def test_what_does_not_run_is_found(program: Program, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    examples = program("run_examples")
    page.write_text("```python run\nprint('b 2')\n```\n```text out\na 1\n```\n", encoding="utf8")
    (ran,) = examples.run(page, tmp_path)
    assert examples.in_outline(ran.printed) != examples.in_outline(ran.promised)
    for wrong in ("```sh run\nrm -rf x\n```\n", "```python run\n1 / 0\n```\n", "```pycon\n>>> 1\n2\n```\n"):
        page.write_text(wrong, encoding="utf8")
        with pytest.raises((ValueError, ZeroDivisionError, AssertionError)):
            list(examples.run(page, tmp_path))
