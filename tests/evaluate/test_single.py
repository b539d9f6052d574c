"""One model measured in this process, and models of the caller's in a comparison."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
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
    with pytest.raises(SettingError, match=r"evaluate takes a fitted model, or .* that scores documents; got str"):
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
    with pytest.raises(SettingError, match=r"a model is a spec, a model, or .* that scores documents; got int"):
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
    assert frame["documents known"] == 5.0
    assert frame["queries by clicks <=10"] == sum(found["queries_by_clicks"].values())
    assert "<table>" in found._repr_html_()


def test_statistics_print_in_plain_words_and_in_the_papers_symbols_on_request(small_graph: ClickGraph) -> None:
    plain, paper = clickbridge.stats(small_graph), clickbridge.stats(small_graph, paper=True)
    assert dict(plain) == dict(paper), "the numbers and their names are the same"
    symbols = ("d_x", "c_x", "N_x", "W_x", "n~y", "w_counted")
    for shown in (str(plain), repr(plain), plain._repr_html_()):
        assert "clicked documents per query" in shown
        assert not any(symbol in shown for symbol in symbols)
    assert all(symbol in str(paper) for symbol in symbols[:-1])


# --- models from outside ---------------------------------------------------------------------------


class Shortest:
    """Prefers documents with short ids."""

    def score(self, query: str, doc_ids: Sequence[str]) -> list[float]:
        return [-float(len(doc_id)) for doc_id in doc_ids]


class Named(Shortest):
    name = "mine"


def as_letters(query: str, doc_ids: Sequence[str]) -> np.ndarray:
    """How many letters of the query a document's id has."""
    return np.array([len(set(query) & set(doc_id)) for doc_id in doc_ids])


def test_an_object_that_scores_and_a_function_are_models(small_graph: ClickGraph) -> None:
    found = clickbridge.compare(small_graph, LISTS, [Shortest(), Named(), as_letters], measures="nDCG@1,AP")
    assert [m.spec for m in found.models] == ["given", "Shortest", "mine", "as_letters"]
    for name, model in (("Shortest", Shortest()), ("as_letters", as_letters)):
        single = clickbridge.evaluate(model, LISTS, "nDCG@1,AP")
        assert single.model == name
        assert single.values == found[name].values
    order = {r.query_id: sorted(r.results, key=len) for r in LISTS}
    assert found["mine"].values == evaluate_run(order, GRADES, parse_measures("nDCG@1,AP"))
    alone = clickbridge.compare(small_graph, LISTS, as_letters, measures="nDCG@1")  # type: ignore[arg-type]
    assert [m.spec for m in alone.models] == ["given", "as_letters"]


def test_a_model_from_outside_may_have_no_score(small_graph: ClickGraph) -> None:
    for nothing in (float("nan"), -float("inf")):
        found = clickbridge.evaluate(lambda query, doc_ids, n=nothing: [n] * len(doc_ids), LISTS, "nDCG@1")
        assert found.answered == 0


def test_a_model_from_outside_that_scores_wrongly_is_refused_in_one_line() -> None:
    wanted = "one number for each of the 3 documents for 'ny pizza'"
    for wrong in ([1.0], None, ["a", "b", "c"], [[1.0], [2.0], [3.0]]):
        with pytest.raises(InputError, match=f"<lambda> must give {wanted}; got "):
            clickbridge.evaluate(lambda query, doc_ids, wrong=wrong: wrong, LISTS)


def test_a_class_is_not_a_model_yet(small_graph: ClickGraph) -> None:
    with pytest.raises(SettingError, match=r"got the class BM25: make one of it, as BM25\(\)"):
        clickbridge.evaluate(BM25, LISTS)
    with pytest.raises(SettingError, match=r"got the class Shortest: make one of it, as Shortest\(\)"):
        clickbridge.compare(small_graph, LISTS, [Shortest])


def test_a_model_without_learn_says_what_it_lacks(small_graph: ClickGraph) -> None:
    class Unfinished(clickbridge.Model):
        """Only a name."""

        name, about = "unfinished", "nothing yet"

    with pytest.raises(NotImplementedError, match=r"^Unfinished has no learn\(study, choices\) that gives a Fitted"):
        Unfinished().fit(small_graph)


def test_one_judged_query_is_said_in_the_singular(small_graph: ClickGraph) -> None:
    one = [ResultList("1", "pizza", ["ny", "pizza"], [0, 1])]
    assert str(clickbridge.evaluate(as_letters, one)).startswith("as_letters: answers 1 of 1 judged query\n")
    assert str(clickbridge.compare(small_graph, one, [as_letters])).startswith("1 judged query; ")


def test_an_interval_of_one_query_is_not_known(small_graph: ClickGraph) -> None:
    found = clickbridge.evaluate(VSM().fit(small_graph), LISTS[:1], "nDCG@1")
    assert "inf" not in str(found) + found._repr_html_()
