"""docs/notebook.md in a real notebook kernel, which is not the interpreter that other examples run in.

DuckDB, for one, looks whether it runs in a notebook, and then wants a library of its own for progress bars.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from jupyter_client.manager import KernelManager

import clickbridge

PAGE = Path(__file__).resolve().parents[2] / "docs" / "notebook.md"
HOME = str(Path(clickbridge.__file__).parents[1])
LONG = 600
"""Seconds that a cell may take: a busy machine is slow, not wrong."""


def outputs_of(cells: list[str], folder: Path) -> list[dict[str, Any]]:
    """What each cell shows, by its type; an error in a cell fails the test."""
    kernel = KernelManager(connection_file=str(folder / "kernel.json"))  # of this Python, where nothing else is said
    paths = os.pathsep.join([HOME, *filter(None, [os.environ.get("PYTHONPATH")])])
    kernel.start_kernel(cwd=str(folder), env={**os.environ, "PYTHONPATH": paths})
    client = kernel.client()
    client.start_channels()
    shown: list[dict[str, Any]] = []

    def keep(message: dict[str, Any]) -> None:
        shown[-1].update(message["content"].get("data", {}))

    try:
        client.wait_for_ready(timeout=LONG)
        for cell in cells:
            shown.append({})
            reply = client.execute_interactive(cell, timeout=LONG, output_hook=keep)["content"]
            assert reply["status"] == "ok", "\n".join([cell, *reply.get("traceback", [])])
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    return shown


def test_the_page_runs_in_a_kernel_and_shows_tables(program: Callable[[str], ModuleType], tmp_path: Path) -> None:
    cells = [block.body for block in program("run_examples").blocks(PAGE) if block.info == "python run"]
    shown = dict(zip((cell.strip().splitlines()[-1] for cell in cells), outputs_of(cells, tmp_path), strict=True))
    for begins in ("model.rank(", "model.explain(", "model.similar_queries(", "evaluate(", "compare("):
        outputs = [own for line, own in shown.items() if line.startswith(begins)]
        assert outputs, begins
        for output in outputs:
            assert "<table" in output["text/html"]
            assert "object at 0x" not in output["text/plain"]
            assert max(map(len, output["text/plain"].splitlines())) <= 120
    assert shown["graph"]["text/plain"] == "ClickGraph(4 queries, 4 documents, 6 pairs)"
