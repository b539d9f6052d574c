"""The site: strict, every page in it, and pictures that show what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from sdist import IN_SDIST, WITHOUT_PICTURES

Program = Callable[[str], ModuleType]
ROOT = Path(__file__).resolve().parents[2]


def words(svg: str) -> list[str]:
    return re.findall(r">([^<>\n]+)<", svg)


def test_pictures_say_what_the_code_says(program: Program, tmp_path: Path) -> None:
    program("make_pictures").main(tmp_path)
    for drawn in sorted(tmp_path.iterdir()):
        kept = ROOT / "docs" / "pictures" / drawn.name
        assert words(kept.read_text("utf8")) == words(drawn.read_text("utf8")), "run python docs/make_pictures.py"
    assert {p.name for p in tmp_path.iterdir()} == {p.name for p in (ROOT / "docs" / "pictures").iterdir()}


def test_links_and_fences_change_for_the_site(program: Program) -> None:
    site = program("make_site")
    where = site.places()
    page = ROOT / "docs" / "models" / "pls.md"
    text = "[a](../hold_back.md#x) [b](../../README.md) [c](https://x.y)\n```json file=log.jsonl\n[d](e)\n```\n"
    assert site.for_the_site(text, page, where) == (
        '[a](../hold_back.md#x) [b](../index.md) [c](https://x.y)\n```json title="log.jsonl"\n[d](e)\n```\n'
    )
    with pytest.raises(SystemExit, match="no page of the site"):
        site.for_the_site("[a](../../src/clickbridge/types.py)", page, where)


def test_every_page_is_in_the_navigation_once(program: Program) -> None:
    site = program("make_site")
    pages = {place.as_posix() for path, place in site.places().items() if path.suffix == ".md"}
    listed = list(site.pages_of(site.navigation(pages)))
    assert sorted(listed) == sorted(pages)


def test_pages_are_where_the_readme_has_them(program: Program) -> None:
    site = program("make_site")
    nav = site.navigation({place.as_posix() for path, place in site.places().items() if path.suffix == ".md"})
    readme = (ROOT / "README.md").read_text("utf8").partition("## Read on")[2]
    lists = re.findall(r"^- \*\*(.+?)\*\*:(.*?)(?=^- |\Z|^#)", readme, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in lists] == [name for name in nav if name != "Home"]
    for name, links in lists[:-1]:
        for page in re.findall(r"\]\(docs/([^)#]+)", links):
            assert page in set(site.pages_of({name: nav[name]})), f"{page} is under {name} in the README"


@pytest.mark.skipif(IN_SDIST, reason=WITHOUT_PICTURES)
def test_the_site_is_built_strictly(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "make_site.py", tmp_path / "site"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "models" / "pls" / "index.html").is_file()
    listed = (tmp_path / "site" / "llms.txt").read_text("utf8")
    for target in re.findall(r"\]\(([^)]+)\)", listed):
        assert (tmp_path / "site" / target).is_file(), f"llms.txt names {target}"
    assert "# pls" in (tmp_path / "site" / "llms-full.txt").read_text("utf8")
