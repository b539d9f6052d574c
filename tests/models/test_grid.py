"""`--tune`: it finds what is better, resumes, and refuses what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clickbridge import ClickGraph
from clickbridge.errors import InputError, SettingError
from clickbridge.models import grid
from clickbridge.models.grid import GRIDS, grid_of, tune
from clickbridge.models.registry import MODELS, WRAPPERS, model_class
from oracles.graphs import noisy_field_graph

DOCS = Path(__file__).resolve().parents[2] / "docs" / "tuning.md"


@pytest.fixture(scope="module")
def graph() -> ClickGraph:
    return noisy_field_graph(700)


@pytest.mark.parametrize("name", GRIDS)
def test_grids_are_of_real_settings_and_documented(name: str) -> None:
    text = DOCS.read_text(encoding="utf8")
    assert name in {*MODELS, *WRAPPERS}
    declared = model_class(name).declared()
    for setting, values in GRIDS[name].items():
        assert [declared[setting].check(value) for value in values] == list(values)
        assert declared[setting].default in values
        assert f"| `{name}` | `{setting}` | {', '.join(f'{v:g}' for v in values)} |" in text


def test_a_grid_is_of_all_components_but_not_of_what_was_given() -> None:
    assert set(grid_of("bm25+lmir", {})) == {"bm25.k1", "bm25.b", "lmir.mu"}
    assert set(grid_of("rrf:bm25+lmir", {"k1": 2, "lmir.mu": 9})) == {"bm25.b", "rrf.rrf_k"}
    assert grid_of("vsm", {}) == {}


def test_the_best_value_stays_and_a_stopped_search_goes_on(
    graph: ClickGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GRIDS, "bm25", {"b": (0.0, 0.75), "k1": (0.0, 1.2)})
    given = {"fields": "noise:1,good:0.5"}
    told: list[str] = []
    best, trials = tune("bm25", given, graph, tmp_path / "trace", progress=told.append)
    values = {str(trial["settings"]): trial["value"] for trial in trials}
    assert len(set(values.values())) > 1, "the grid must matter"
    assert values[str(best)] == max(values.values()) == trials[-1]["value"]
    assert len(told) == len(trials) >= 5
    assert told[0].startswith("tune bm25, 1 of 6: fields=noise:1,good:0.5: nDCG@5 ")
    lines = (tmp_path / "trace").read_bytes().splitlines(keepends=True)

    fitted: list[Any] = []
    build = grid.build_model
    monkeypatch.setattr(grid, "build_model", lambda *a: fitted.append(a) or build(*a))
    assert tune("bm25", given, graph, tmp_path / "trace")[0] == best
    assert not fitted, "all trials were known"
    (tmp_path / "trace").write_bytes(b"".join(lines[:2]))
    assert tune("bm25", given, graph, tmp_path / "trace") == (best, trials)
    assert len(fitted) == len(lines) - 2
    assert (tmp_path / "trace").read_bytes() == b"".join(lines)


def test_without_pages_a_search_that_goes_on_is_judged_on_the_same_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lists are then what a model finds, and the first model after a stop is not the first of all."""
    monkeypatch.setitem(GRIDS, "bm25", {"b": (0.0, 1.0), "k1": (0.0, 5.0)})
    graph, given = noisy_field_graph(700, pages=False), {"fields": "noise:1,good:0.05"}
    best, trials = tune("bm25", given, graph, tmp_path / "trace")
    lines = (tmp_path / "trace").read_bytes().splitlines(keepends=True)
    assert len({trial["value"] for trial in trials}) > 1, "the grid must matter"
    for known in range(1, len(lines)):
        (tmp_path / "trace").write_bytes(b"".join(lines[:known]))
        assert tune("bm25", given, graph, tmp_path / "trace") == (best, trials)


def test_refusals(graph: ClickGraph, small_graph: ClickGraph, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="tune has no grid for vsm"):
        tune("vsm", {}, graph, tmp_path / "a")
    with pytest.raises(InputError, match="tune needs 50 held-back lists with a click; this GRAPH gives"):
        tune("bm25", {"fields": "title"}, small_graph, tmp_path / "b")
    (tmp_path / "c").write_text("not json\n")
    with pytest.raises(InputError, match="is not a trace of tune"):
        tune("bm25", {}, graph, tmp_path / "c")
    (tmp_path / "d").write_text('{"spec":"pls","seed":0,"graph":"x"}\n')
    with pytest.raises(InputError, match="is the trace of another search"):
        tune("bm25", {}, graph, tmp_path / "d")
