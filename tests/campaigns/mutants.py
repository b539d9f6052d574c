"""Mutation testing: small changes to a source file, one at a time, that some test must notice.

    python -m campaigns.mutants src/clickbridge/measures/ranking.py tests/measures [--count 40] [--seed 0]

The tests run with compilation off against a copy of the sources with one change. What survives is printed: a test is
missing, or the change means the same.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt,
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


def places(tree: ast.Module) -> list[tuple[ast.AST, str]]:
    """Nodes that can be changed; not in annotations, docstrings or raised messages."""
    out: list[tuple[ast.AST, str]] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
            out.append((node, "op"))
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            out.append((node, "ops"))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            out.append((node, "value"))
        if isinstance(node, ast.Return) and node.value is not None:
            out.append((node, "return"))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            out.append((node, "unary"))
        skipped = {"annotation", "returns", "decorator_list"}
        for name, value in ast.iter_fields(node):
            if name not in skipped:
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        visit(child)

    visit(tree)
    return out


def mutant(tree: ast.Module, number: int) -> tuple[ast.Module, str]:
    changed = copy.deepcopy(tree)
    node, how = places(changed)[number]
    before = ast.unparse(node)
    if how == "op":
        node.op = SWAPS[type(node.op)]()  # type: ignore[attr-defined]
    elif how == "ops":
        node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[attr-defined]
    elif how == "value":
        value = node.value  # type: ignore[attr-defined]
        node.value = (not value) if isinstance(value, bool) else value + 1  # type: ignore[attr-defined]
    elif how == "return":
        node.value = ast.Constant(None)  # type: ignore[attr-defined]
    else:
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()  # type: ignore[attr-defined]
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)  # type: ignore[attr-defined]
    line = getattr(node, "lineno", 0)
    return ast.fix_missing_locations(changed), f"line {line}: {before[:90]} -> {ast.unparse(node)[:90]}"


def survives(home: Path, root: Path, file: Path, tree: ast.Module, tests: list[str]) -> bool:
    target = home / "src" / file.relative_to(root / "src")
    sound = target.read_text()
    target.write_text(ast.unparse(tree))
    paths = os.pathsep.join([str(home / "src"), str(root / "tests")])
    env = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    line = [sys.executable, "-P", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    try:
        done = subprocess.run(line, env=env, cwd=root, capture_output=True, timeout=300, check=False)
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        target.write_text(sound)


def main() -> None:
    parser = argparse.ArgumentParser(prog="campaigns.mutants", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    root = Path.cwd()
    tree = ast.parse((root / given.file).read_text())
    numbers = list(range(len(places(tree))))
    Random(given.seed).shuffle(numbers)
    killed = 0
    with tempfile.TemporaryDirectory(prefix="campaign-") as place:
        shutil.copytree(root / "src", Path(place) / "src")
        for tried, number in enumerate(numbers[: given.count], 1):
            changed, what = mutant(tree, number)
            if survives(Path(place), root, root / given.file, changed, given.tests):
                print(f"survived: {what}", flush=True)
            else:
                killed += 1
            print(f"{given.file}: {killed} of {tried} noticed ({len(numbers)} places)", flush=True)


if __name__ == "__main__":
    main()
