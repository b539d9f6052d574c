"""Benchmarks are not run here, but what they import of clickbridge must be there."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).resolve().parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_imports_are_there(path: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    missing = [
        f"{node.module}.{alias.name}"
        for node in imports
        if node.module and node.module.split(".")[0] == "clickbridge"
        for alias in node.names
        if not hasattr(import_module(node.module), alias.name)
        and not (Path(str(import_module(node.module).__file__)).parent / f"{alias.name}.py").exists()
    ]
    assert missing == []
