"""Small changes to a source file: another operator, a number one larger, `not` in or out, nothing returned."""

from __future__ import annotations

import ast
import copy

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
        if isinstance(node, ast.Return) and not (node.value is None or ast.unparse(node.value) == "None"):
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
