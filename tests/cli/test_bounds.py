"""`bounds` on the command line: the table, JSON and one line where it cannot work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.types import Impression

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    log = [Impression(f"t{i % 4} w{rng.integers(9)} q{i}", None, [f"d{i % 4}{rng.integers(5)}"]) for i in range(200)]
    out = tmp_path_factory.mktemp("bounds") / "model"
    build_model("pls", {"dim": 3, "views": "q.word,d.click"}).fit(ClickGraph.build(log)).save(out)
    return out


def test_table_and_json(call: Run, model: Path) -> None:
    shown = call("bounds", model)
    assert shown.code == 0
    assert "held-back alignment" in shown.out
    (found,) = call("bounds", model, "--delta", "0.01", "--json").json
    assert (found["dim"], found["B"], found["delta"]) == (3, 1.0, 0.01)
    assert found["bound"] > abs(found["gap"])
    assert ("says nothing" in shown.err) is found["says_nothing"]
    (seeded,) = json.loads(call("bounds", model, "--seed", "7", "--json").out)
    assert seeded["held_back"] != found["held_back"]


def test_refusals(call: Run, model: Path, built: Path) -> None:
    assert call("bounds", model, "--delta", "2").code == 2
    refused = call("bounds", built / "model")
    assert refused.code == 1
    assert "learns no linear maps" in refused.err
