"""Judgments know documents that are in no list. They count as missed, whoever measures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import clickbridge
from clickbridge import BM25, ClickGraph, InputError, ResultList
from clickbridge.measures import evaluate_run, parse_measures

LISTS = [
    ResultList("1", "ny pizza", ["rome", "pizza", "ny"], [1.0, 0.0, 0.0]),
    ResultList("2", "eternal city", ["ny", "pizza"]),
    ResultList("3", "boiled bagel", ["ny", "bagel"]),
    ResultList("4", "zzz", ["ny"]),
]
GRADES = {"1": {"pizza": 2.0, "bagel": 1.0}, "2": {"rome": 1.0}, "3": {"ny": 0.0}, "5": {"ny": 1.0}}
SAID = [
    "left out: 1 list without judgments",
    "1 of 4 judged queries has no list: not counted",
    "2 of 3 relevant documents are not in the list and counted as missed; 1 query has none in theirs",
]


@pytest.fixture(scope="module")
def model(small_graph: ClickGraph) -> BM25:
    return BM25(fields="equal").fit(small_graph)


def test_compare_and_evaluate_measure_as_runs_are_measured(
    model: BM25, small_graph: ClickGraph, tmp_path: Path
) -> None:
    before = [replace(result) for result in LISTS]
    run = {r.query_id: model.rerank(r.query, r.results).doc_ids for r in LISTS}
    grades = {query_id: own for query_id, own in GRADES.items() if query_id in run}
    expected = evaluate_run(run, grades, parse_measures("nDCG@3,AP"))
    assert set(expected["AP"]) == {"1", "2"}
    own = clickbridge.evaluate(model, LISTS, "nDCG@3,AP", qrels=GRADES)
    assert own.values == expected
    (tmp_path / "qrels").write_text(
        "".join(f"{q} 0 {d} {int(g)}\n" for q, own in GRADES.items() for d, g in own.items())
    )
    found = clickbridge.compare(small_graph, LISTS, {"words": model}, measures="nDCG@3,AP", qrels=tmp_path / "qrels")
    assert found["words"].values == expected
    assert list(own.notes) == SAID
    assert found.notes[:3] == SAID
    assert before == LISTS, "the caller's lists keep their labels"


def test_judgments_of_other_queries_are_refused(model: BM25) -> None:
    with pytest.raises(InputError, match="no list is judged: query ids of the lists are like '1'"):
        clickbridge.evaluate(model, LISTS, qrels={"q1": {"ny": 1.0}})
    with pytest.raises(InputError, match="no list has a relevant document for nDCG@1"):
        clickbridge.evaluate(model, LISTS, qrels={"1": {"ny": 0.0}})


def test_ids_of_judgments_may_be_whole_numbers_and_other_things_are_refused(model: BM25) -> None:
    pages = [ResultList("1", "ny pizza", ["2", "3"])]
    found = clickbridge.evaluate(model, pages, "RR", qrels={1: {3: 1.0}})  # type: ignore[dict-item]
    assert found["RR"] == 0.5
    for wrong in (["q1"], {"q1": ["d2"]}):
        with pytest.raises(InputError, match="qrels are a file, or grades such as"):
            clickbridge.evaluate(model, pages, qrels=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="lists are ResultList objects, a LISTS file or a frame; got 5"):
        clickbridge.evaluate(model, 5)  # type: ignore[arg-type]
