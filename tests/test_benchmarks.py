"""Benchmarks are not run here, but what they import must be there, and they must call each other with what is taken."""

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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_they_call_each_other_with_what_is_taken(path: Path) -> None:
    tree = ast.parse(path.read_text())
    taken = {
        alias.asname or alias.name: found
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (path.with_name(f"{node.module}.py")).is_file()
        for alias in node.names
        for found in ast.parse(path.with_name(f"{node.module}.py").read_text()).body
        if isinstance(found, ast.FunctionDef) and found.name == alias.name
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in taken:
            assert _fits(call, taken[call.func.id].args), f"line {call.lineno}: {ast.unparse(call)}"


def _fits(call: ast.Call, takes: ast.arguments) -> bool:
    """Whether a call gives every argument without a default, and no unknown one. What is unpacked counts as enough."""
    unpacked = any(isinstance(one, ast.Starred) for one in call.args) or any(k.arg is None for k in call.keywords)
    places = [one.arg for one in takes.args]
    named = {one.arg for one in takes.kwonlyargs}
    given = {*places[: len(call.args)], *(k.arg for k in call.keywords if k.arg)}
    needed = {*places[: len(places) - len(takes.defaults)]}
    needed |= {one.arg for one, default in zip(takes.kwonlyargs, takes.kw_defaults, strict=True) if default is None}
    too_many = len(call.args) > len(places) and takes.vararg is None
    unknown = given - {*places, *named} and takes.kwarg is None
    return unpacked or not (too_many or unknown or needed - given)
