"""One model measured in this process, and models of the caller's in a comparison."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import clickbridge
from clickbridge import BM25, PLS, VSM, ClickGraph, CosClick, InputError, NotFitted, ResultList, SettingError
from clickbridge.evaluate.tables import text_table
from clickbridge.io.lists import write_lists
from clickbridge.measures import evaluate_run, parse_measures

LISTS = [
    ResultList("1", "ny pizza", ["rome", "pizza", "ny"], [0.0, 2.0, 1.0]),
    ResultList("2", "eternal city", ["ny", "rome"], [0.0, 1.0]),
    ResultList("3", "boiled bagel", ["ny", "rome", "bagel"], [0.0, 0.0, 1.0]),
    ResultList("4", "zzz", ["ny", "rome"], [1.0, 0.0]),
    ResultList("5", "pizza", ["ny", "rome"], [0.0, 0.0]),
]
GRADES = {r.query_id: dict(zip(r.results, r.labels or (), strict=True)) for r in LISTS}


@pytest.fixture(scope="module")
def model(small_graph: ClickGraph) -> BM25:
    return BM25(fields={"title": 3, "body": 1}).fit(small_graph)


def test_values_are_those_of_the_rankings(model: BM25) -> None:
    found = clickbridge.evaluate(model, LISTS, measures="nDCG@1,nDCG@5,MAP")
    run = {r.query_id: model.rerank(r.query, r.results).doc_ids for r in LISTS}
    assert found.values == evaluate_run(run, GRADES, parse_measures("nDCG@1,nDCG@5,AP"))
    assert found.measures == ["nDCG@1", "nDCG@5", "AP"]
    assert found["map"] == found.means["AP"] == pytest.approx(sum(found.values["AP"].values()) / 4)
    assert (found.counted, found.answered, found.coverage) == (4, 3, "answers 3 of 4")
    assert clickbridge.evaluate(model.fitted, LISTS, "nDCG@1,nDCG@5,MAP").values == found.values


def test_lists_come_from_files_and_frames_too(model: BM25, tmp_path: Path) -> None:
    found = clickbridge.evaluate(model, LISTS)
    write_lists(tmp_path / "lists.jsonl", LISTS)
    assert clickbridge.evaluate(model, tmp_path / "lists.jsonl") == found
    rows = [
        {"query_id": r.query_id, "query": r.query, "doc_id": d, "label": g}
        for r in LISTS
        for d, g in zip(r.results, r.labels or (), strict=True)
    ]
    assert clickbridge.evaluate(model, pa.Table.from_pylist(rows)) == found


def test_it_prints_within_eighty_columns_and_gives_frames(model: BM25) -> None:
    found = clickbridge.evaluate(model, [*LISTS, ResultList("6", "pizza", ["ny"])], "nDCG@1,RR")
    text = str(found)
    assert text.splitlines()[0] == "bm25: answers 3 of 4 judged queries"
    assert text.splitlines()[-1] == "left out: 1 list without labels"
    assert max(map(len, text.splitlines())) <= 80
    assert "<td>nDCG@1</td>" in found._repr_html_()
    rows = found.to_frame("arrow").to_pylist()
    assert [row["query_id"] for row in rows] == ["1", "2", "3", "4"]
    assert [row["answered"] for row in rows] == [True, True, True, False]
    assert {"query", "nDCG@1", "RR"} < set(rows[0])


def test_what_cannot_be_measured_is_said_in_one_line(model: BM25) -> None:
    with pytest.raises(NotFitted, match="fit it first"):
        clickbridge.evaluate(BM25(), LISTS)
    with pytest.raises(SettingError, match="takes a fitted model; got str"):
        clickbridge.evaluate("bm25", LISTS)
    with pytest.raises(InputError, match="evaluate needs judged lists"):
        clickbridge.evaluate(model, [ResultList("1", "a", ["x"])])
    with pytest.raises(InputError, match="nothing to measure"):
        clickbridge.evaluate(model, LISTS, "AP(rel=3)")
    with pytest.raises(InputError, match="one is a dict"):
        clickbridge.evaluate(model, [{"query": "a"}])


def test_the_function_and_its_package_live_together() -> None:
    code = """
import clickbridge.evaluate.compare as module
import clickbridge
from clickbridge import evaluate
from clickbridge.evaluate.results import Comparison
assert callable(clickbridge.evaluate) and callable(evaluate) and clickbridge.evaluate.compare is module
print(clickbridge.compare.__name__)
"""
    for first in ("", "import clickbridge; clickbridge.evaluate\n"):
        done = subprocess.run([sys.executable, "-c", first + code], capture_output=True, text=True)
        assert done.stdout.strip() == "compare", done.stderr


# --- comparison ------------------------------------------------------------------------------------


def test_models_of_the_callers_run_beside_specs(model: BM25, small_graph: ClickGraph) -> None:
    fresh = PLS(dim=2)
    everyone = ["vsm", fresh, model, CosClick().fit(small_graph).fitted]
    found = clickbridge.compare(small_graph, LISTS, everyone, measures="MRR,ndcg_cut_5")
    names = [m.spec for m in found.models]
    assert names == ["given", "vsm", "pls(dim=2)", "bm25(fields={'title': 3, 'body': 1})", "cos-click"]
    assert found.measures == ["RR", "nDCG(gain=linear)@5"]
    for name, own in ((names[2], PLS(dim=2).fit(small_graph)), (names[3], model)):
        run = {r.query_id: own.rerank(r.query, r.results).doc_ids for r in LISTS}
        assert found[name].values == evaluate_run(run, GRADES, parse_measures("MRR,ndcg_cut_5"))
    assert not hasattr(fresh, "fitted_")
    text = str(found)
    assert max(map(len, text.splitlines())) <= 80
    assert "cos-click" in text
    assert found.to_frame("arrow").column("model").to_pylist() == names
    assert "<table>" in found._repr_html_()
    assert found["pls(dim=2)"].trial.settings == {"dim": 2}


def test_models_by_name(small_graph: ClickGraph) -> None:
    models = {"a": VSM().fit(small_graph), "b": VSM(language="none")}
    found = clickbridge.compare(small_graph, LISTS, models, baseline="a")
    assert [m.spec for m in found.models] == ["a", "b"]
    with pytest.raises(SettingError, match="two models are called vsm: give them names"):
        clickbridge.compare(small_graph, LISTS, [VSM(), VSM()])
    with pytest.raises(SettingError, match="a model is a spec, a model or a fitted one; got int"):
        clickbridge.compare(small_graph, LISTS, [5])  # type: ignore[list-item]


def test_a_wide_table_goes_on_below() -> None:
    rows = [{"model": "m" * 60, **{f"measure {i}": 0.5 for i in range(12)}, "n": 1234567}]
    lines = text_table(rows).splitlines()
    assert max(map(len, lines)) <= 80
    assert "1,234,567" in lines[-1]
    assert sum("model" in line for line in lines) > 1


def test_statistics_of_a_graph_as_text_and_frame(small_graph: ClickGraph) -> None:
    found = clickbridge.stats(small_graph)
    assert found["documents"] == 5
    assert max(map(len, str(found).splitlines())) <= 80
    frame = {row["statistic"]: row["value"] for row in found.to_frame("arrow").to_pylist()}
    assert frame["documents"] == 5.0
    assert frame["queries_by_clicks <=10"] == sum(found["queries_by_clicks"].values())
    assert "<table>" in found._repr_html_()
