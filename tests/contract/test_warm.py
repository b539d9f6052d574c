"""Ready when `load` returns: the first query finds nothing left to make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickbridge
from clickbridge import ClickGraph
from contract.specs import SPECS


def made(root: Any) -> dict[str, set[str]]:
    """The names that every object within a fitted value has, by where it is."""
    out: dict[str, set[str]] = {}
    waiting: list[tuple[str, Any]] = [("fitted", root)]
    seen = set()
    while waiting:
        path, value = waiting.pop()
        if id(value) in seen or isinstance(value, str | bytes | int | float | np.ndarray | type):
            continue
        seen.add(id(value))
        if isinstance(value, list | tuple) and len(value) < 50:
            waiting += [(f"{path}.{n}", item) for n, item in enumerate(value)]
        elif is_dataclass(value) or type(value).__module__.startswith("clickbridge"):
            own = vars(value) if hasattr(value, "__dict__") else {}
            out[path] = set(own)
            waiting += [(f"{path}.{name}", item) for name, item in own.items()]
    return out


@pytest.mark.parametrize("spec", SPECS)
def test_the_first_query_finds_nothing_left_to_make(
    spec: str, saved: Callable[[str], Path], large_graph: ClickGraph
) -> None:
    model = clickbridge.load(saved(spec))
    before = made(model.fitted)
    for query in ("old river", "never heard of things"):
        model.rerank(query, large_graph.doc_ids[:9])
    late = {path: names - before.get(path, set()) for path, names in made(model.fitted).items()}
    assert {path: names for path, names in late.items() if names} == {}
