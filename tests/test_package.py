"""The package as a whole: what importing it costs, and who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import clickbridge

ROOT = Path(clickbridge.__file__).parent
LEVELS = [
    {"errors", "types", "settings"},
    {"numerics", "engines", "io", "measures"},
    {"log", "graph", "views", "simulate"},
    {"search"},
    {"models"},
    {"skernel", "online", "fusion"},
    {"evaluate"},
    {"serve", "cli"},
]
NAMED_EXCEPTIONS = {("graph", "log"), ("types", "errors"), ("settings", "errors")}
ONLY_IN = {"numba": {"numerics"}, "ray": {"engines"}, "cupy": {"engines"}, "typer": {"cli"}, "fastapi": {"serve"}}


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def level_of(package: str) -> int:
    return next(i for i, level in enumerate(LEVELS) if package in level)


SOURCES = sorted(p for p in ROOT.rglob("*.py") if p.parent != ROOT or p.stem in LEVELS[0])


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_keep_their_direction(path: Path) -> None:
    here = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for module in imports_of(path):
        parts = module.split(".")
        if parts[0] in ONLY_IN:
            assert here in ONLY_IN[parts[0]], f"{module} may only be imported in {ONLY_IN[parts[0]]}"
        if parts[0] != "clickbridge" or len(parts) == 1 or parts[1] == here:
            continue
        allowed = level_of(parts[1]) < level_of(here) or (here, parts[1]) in NAMED_EXCEPTIONS
        assert allowed, f"{here} must not import {module}"


def test_import_is_light() -> None:
    code = "import sys, clickbridge; print([m for m in ('numba', 'duckdb', 'scipy', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_every_exported_name_exists() -> None:
    for name in clickbridge.__all__:
        assert getattr(clickbridge, name) is not None
    with pytest.raises(AttributeError):
        clickbridge.no_such_name  # noqa: B018


def test_source_files_stay_readable() -> None:
    long = {str(p): n for p in ROOT.rglob("*.py") if (n := len(p.read_text().splitlines())) > 450}
    assert not long
