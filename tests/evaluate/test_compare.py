"""Models learned, run and measured for real, on a GRAPH small enough to check by hand."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.errors import InputError, MissingPart, SettingError
from clickbridge.evaluate.results import Comparison
from clickbridge.evaluate.trial import graph_digest, lists_digest, settings_for, trial_key
from clickbridge.io.lists import write_lists
from clickbridge.measures import evaluate_run, parse_measures
from clickbridge.types import ResultList

LISTS = [
    ResultList("1", "ny pizza", ["rome", "pizza", "ny"], [0.0, 2.0, 1.0]),
    ResultList("2", "eternal city", ["ny", "rome"], [0.0, 1.0]),
    ResultList("3", "boiled bagel", ["ny", "rome", "bagel"], [0.0, 0.0, 1.0]),
    ResultList("4", "zzz", ["ny", "rome"], [1.0, 0.0]),
    ResultList("5", "pizza", ["ny", "rome"], [0.0, 0.0]),
]
SPECS = "vsm,cos-click"
COMPARE = Callable[..., Comparison]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def found(small_graph: ClickGraph, home: Path) -> Comparison:
    return clickbridge.compare(small_graph, LISTS, SPECS, save_dir=home)


def test_values_are_those_of_the_models_themselves(found: Comparison, small_graph: ClickGraph) -> None:
    grades = {r.query_id: dict(zip(r.results, r.labels or (), strict=True)) for r in LISTS}
    measures = parse_measures("nDCG@1,nDCG@3,nDCG@5,AP")
    assert [m.spec for m in found.models] == ["given", "vsm", "cos-click"]
    for m in found.models:
        model = build_model(m.spec).fit(small_graph)
        run = {r.query_id: model.rerank(r.query, r.results).doc_ids for r in LISTS}
        assert m.values == evaluate_run(run, grades, measures)
    assert found.counted == ["1", "2", "3", "4"]


def test_no_score_is_counted_and_not_hidden(found: Comparison) -> None:
    assert {m.spec: set(m.no_score) for m in found.models} == {
        "given": set(), "vsm": {"4"}, "cos-click": {"3", "4"},
    }  # fmt: skip
    assert found.slices["seen"]["unseen"]["cos-click"].mean is None
    assert found.slices["seen"]["unseen"]["cos-click"].n == 2
    assert found.slices["seen"]["seen"]["cos-click"].mean == 1.0


def test_cost_is_measured_in_a_process_of_its_own(found: Comparison) -> None:
    for m in found.models:
        assert m.trial.seconds >= 0
        assert m.trial.query_ms > 0
        assert 20 < m.trial.peak_mb < 2000
    assert found["given"].trial.peak_mb < found["vsm"].trial.peak_mb


def test_a_second_call_reuses_and_says_so(found: Comparison, small_graph: ClickGraph, home: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in home.rglob("*")}
    assert not any(m.trial.reused for m in found.models)
    # Labels and measures do not change a ranking: new judgments cost nothing.
    relabelled = [replace(r, labels=[1.0] * len(r.results)) for r in LISTS]
    again = clickbridge.compare(small_graph, relabelled, SPECS, measures="P@1", save_dir=home)
    assert all(m.trial.reused for m in again.models)
    assert {p: p.stat().st_mtime_ns for p in home.rglob("*")} == before
    assert [list(r) for r in again["vsm"].trial.ranked] == [list(r) for r in found["vsm"].trial.ranked]
    assert again["vsm"].mean("P@1") == 1.0


def test_what_is_kept_holds_no_text(found: Comparison, home: Path) -> None:
    for path in home.rglob("*"):
        if path.is_file():
            assert not any(word in path.read_bytes() for word in (b"eternal", b"zzz", b"rome"))


def test_the_key_covers_all_that_a_ranking_depends_on(small_graph: ClickGraph, tmp_path: Path) -> None:
    small_graph.save(tmp_path / "a")
    small_graph.save(tmp_path / "b")
    small_graph.with_events(None, None).save(tmp_path / "c")
    assert graph_digest(tmp_path / "a") == graph_digest(tmp_path / "b") != graph_digest(tmp_path / "c")
    shown = [replace(r, labels=None) for r in LISTS]
    assert lists_digest(shown) == lists_digest(LISTS) != lists_digest(LISTS[:-1])
    keys = {
        trial_key("g", "l", "bm25", {}), trial_key("h", "l", "bm25", {}), trial_key("g", "m", "bm25", {}),
        trial_key("g", "l", "vsm", {}), trial_key("g", "l", "bm25", {"k1": 2}), trial_key("g", "l", "bm25+pls", {}),
        trial_key("g", "l", "bm25+pls", {"pls.dim": 3}), trial_key("g", "l", "bm25+pls", {"dim": 4}),
    }  # fmt: skip
    assert len(keys) == 8
    assert trial_key("g", "l", "bm25", {"k1": "2"}) == trial_key("g", "l", "bm25", {"k1": 2.0})
    assert trial_key("g", "l", "bm25", {"k1": 1.2}) == trial_key("g", "l", "bm25", {})


def test_settings_reach_the_specs_that_have_them() -> None:
    wanted = {"dim": 3, "k1": 2, "pls.seed": 1, "min_clicks": 2}
    assert settings_for("bm25", wanted) == {"k1": 2}
    assert settings_for("pls", wanted) == {"dim": 3, "pls.seed": 1, "min_clicks": 2}
    assert settings_for("bm25+pls", wanted) == wanted
    assert settings_for("given", wanted) == {}


def test_a_killed_call_loses_only_the_model_that_was_running(small_graph: ClickGraph, tmp_path: Path) -> None:
    small_graph.save(tmp_path / "graph")
    write_lists(tmp_path / "lists.jsonl", LISTS)
    job = f"import clickbridge; clickbridge.compare({str(tmp_path / 'graph')!r}, {str(tmp_path / 'lists.jsonl')!r}, "
    job += f"'vsm,bm25', save_dir={str(tmp_path / 'kept')!r})"
    process = subprocess.Popen([sys.executable, "-c", job])
    deadline = time.monotonic() + 600
    while not list((tmp_path / "kept").glob("given-*")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not list((tmp_path / "kept").glob("bm25-*"))
    found = clickbridge.compare(tmp_path / "graph", LISTS, "cos-click", save_dir=tmp_path / "kept")
    assert {m.spec: m.trial.reused for m in found.models} == {"given": True, "cos-click": False}


def test_a_model_that_cannot_learn_here_is_left_out(tmp_path: Path, small_graph: ClickGraph, home: Path) -> None:
    textless = ClickGraph(
        small_graph.query_keys, small_graph.docs.select(["doc_id"]), small_graph.pairs, small_graph.impressions
    )
    found = clickbridge.compare(textless, LISTS, "bm25,cos-click", save_dir=home)
    assert [m.spec for m in found.models] == ["given", "cos-click"]
    assert found.refused == {"bm25": "bm25 needs document text: ingest documents with docs"}
    with pytest.raises(MissingPart, match="bm25 needs document text"):
        clickbridge.compare(textless, LISTS, "bm25", save_dir=home)


def test_csv_has_every_query_and_model(found: Comparison, tmp_path: Path) -> None:
    found.write_csv(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * 3
    row = next(r for r in rows if (r["query_id"], r["model"]) == ("1", "cos-click"))
    assert (row["query"], row["clicks"], row["words"], row["no_score"]) == ("ny pizza", "3", "2", "0")
    assert float(row["nDCG@5"]) == found["cos-click"].values["nDCG@5"]["1"]
    assert {r["nDCG@5"] for r in rows if r["query_id"] == "5"} == {""}


def test_json_is_complete(found: Comparison) -> None:
    told = orjson.loads(orjson.dumps(found.as_dict()))
    assert (told["main"], told["baseline"], told["reused"]) == ("nDCG@5", "given", [])
    assert told["models"][2]["no_score"] == 2
    assert told["models"][2]["gain"] == pytest.approx(
        np.mean([found["cos-click"].values["nDCG@5"][q] - found["given"].values["nDCG@5"][q] for q in "1234"])
    )
    assert told["slices"]["seen"]["seen"]["vsm"]["n"] == 2
    assert len(told["pairs"]) == 3


@pytest.mark.parametrize(
    ("words", "error", "line"),
    [
        ({"models": "bm52"}, SettingError, "no model 'bm52'"),
        ({"models": "given"}, SettingError, "compare needs a model besides the baseline given; got given"),
        ({"models": "vsm", "measures": "nope"}, SettingError, "no measure 'nope'"),
        ({"models": "vsm", "settings": {"dim": 3}}, SettingError, "none of given, vsm has the setting 'dim'"),
        ({"models": "bm25", "settings": {"k1": -1}}, SettingError, "k1 must be a number, 0 to 1,000; got -1"),
        ({"models": "bm25", "settings": {"min_clicks": 9}}, InputError, "min_clicks 9 keeps 0 of"),
        ({"models": "vsm", "lists": LISTS[4:]}, InputError, "no list has a label above 0"),
        ({"models": "vsm", "lists": [ResultList("1", "a", ["ny"])]}, InputError, "no list has a label above 0"),
    ],
)
def test_refusals_come_before_anything_is_learned(
    small_graph: ClickGraph, tmp_path: Path, words: dict[str, object], error: type[Exception], line: str
) -> None:
    arguments = {"lists": LISTS, **words}
    with pytest.raises(error) as caught:
        clickbridge.compare(small_graph, save_dir=tmp_path / "kept", **arguments)  # type: ignore[arg-type]
    assert str(caught.value).startswith(line)
    assert not list((tmp_path / "kept").glob("*"))
