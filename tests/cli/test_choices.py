"""What `fit` chooses through hold_back: it is printed, saved, and what later verbs go by."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickbridge.models import grid, rmls
from clickbridge.models.model_folder import load
from clickbridge.models.rmls import RMLSChoices
from contract.conftest import townhall_graph
from forgery import changed
from oracles.graphs import noisy_field_graph

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("noisy") / "graph"
    noisy_field_graph(700).save(out)
    return out


def test_fit_prints_the_choices(call: Run, tmp_path: Path) -> None:
    graph = tmp_path / "graph"
    townhall_graph().save(graph)
    fitted = call("fit", graph, "--model", "bm25+pls", "--dim", "8", "--out", tmp_path / "m")
    assert fitted.code == 0
    lines = fitted.err.splitlines()
    for start in ("bm25: field weights ", "pls: field weights ", "pls: views word", "weights bm25:"):
        assert sum(line.startswith(start) for line in lines) == 1, (start, lines)
    assert len(set(lines)) == len(lines)
    report = json.loads((tmp_path / "m" / "manifest.json").read_text())["report"]
    assert report["notes"] == lines
    told = call("fit", graph, "--model", "bm25+pls", "--dim", "8", "--out", tmp_path / "m", "--json")
    assert told.json["notes"] == told.err.splitlines() == lines
    weights = dict(zip(("bm25", "pls"), load(tmp_path / "m").weights_.tolist(), strict=True))
    assert told.json["weights"] == weights
    assert len({*weights.values()}) == 2, "learned, not the defaults"


@pytest.mark.parametrize("steps", ["2", "6"])
def test_bounds_go_by_the_early_stop_that_was_chosen(
    call: Run, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: str
) -> None:
    line = ("fit", graph, "--model", "rmls", "--dim", "8", "--set", "early_stop=true", "--set", f"iterations={steps}")
    fitted = call(*line, "--set", "views=word", "--out", tmp_path / "m")
    assert fitted.code == 0
    (said,) = re.findall(rf"^rmls: stops after (\d+) of {steps} iterations", fitted.err, re.MULTILINE)
    choices = load(tmp_path / "m").fitted.choices
    assert isinstance(choices, RMLSChoices)
    assert choices.iterations == int(said)
    # As if another number had been chosen: bounds must go by it, and not by the setting.
    changed(tmp_path / "m", lambda m: m["values"]["choices"]["value"].update(iterations={"plain": 3}))
    learned: list[int] = []
    passes = rmls.passes

    def watched(features: Any, q: Any, d: Any, dim: int, s: Any, n: int, *more: Any) -> Any:
        learned.append(n)
        return passes(features, q, d, dim, s, n, *more)

    monkeypatch.setattr(rmls, "passes", watched)
    assert call("bounds", tmp_path / "m", "--json").code == 0
    assert learned == [3]


def test_tune_says_what_it_takes(call: Run, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(grid.GRIDS, "bm25", {"b": (0.0, 0.75)})
    line = ("fit", graph, "--model", "bm25", "--fields", "noise:1,good:0.5", "--out", tmp_path / "m", "--tune")
    tuned = call(*line, "--threads", "1")
    assert tuned.code == 0, tuned.err
    (taken,) = re.findall(r"^tune bm25: takes (.+)$", tuned.err, re.MULTILINE)
    assert taken in ("bm25.b=0.0", "the defaults")
    b = json.loads((tmp_path / "m" / "manifest.json").read_text())["params"]["b"]
    assert b == (0.0 if taken == "bm25.b=0.0" else 0.75)
