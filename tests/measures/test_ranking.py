"""Every measure against ir-measures, and by hand where ir-measures cannot go."""

from __future__ import annotations

import math

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge.errors import SettingError
from clickbridge.measures import MEASURES, evaluate_run, main_measure, parse_measures
from clickbridge.measures.ranking import parse_measure

Grades = dict[str, dict[str, float]]
GAINS = {0: 0, 1: 1, 2: 3, 3: 7, 4: 15}
NDCG = ir_measures.nDCG(gains=GAINS)
PEERS = {
    **{f"nDCG@{k}": NDCG @ k for k in (1, 3, 5, 10)},
    "nDCG": NDCG,
    "AP": ir_measures.AP,
    "AP@3": ir_measures.AP @ 3,
    "AP(rel=2)": ir_measures.AP(rel=2),
    "AP(rel=3)@5": ir_measures.AP(rel=3) @ 5,
    "RR": ir_measures.RR,
    "RR(rel=2)": ir_measures.RR(rel=2),
    "RR@3": ir_measures.RR @ 3,
    "P@1": ir_measures.P @ 1,
    "P@5": ir_measures.P @ 5,
    "P(rel=2)@5": ir_measures.P(rel=2) @ 5,
    "R@1": ir_measures.R @ 1,
    "R@5": ir_measures.R @ 5,
    "R(rel=3)@5": ir_measures.R(rel=3) @ 5,
}


def by_ir_measures(run: dict[str, list[str]], grades: Grades) -> dict[str, dict[str, float]]:
    # ir-measures ignores ranks and breaks ties by id: strictly falling scores.
    scored = {q: {d: float(len(ids) - i) for i, d in enumerate(ids)} for q, ids in run.items()}
    whole = {q: {d: int(g) for d, g in judged.items()} for q, judged in grades.items()}
    out: dict[str, dict[str, float]] = {name: {} for name in PEERS}
    names = {peer: name for name, peer in PEERS.items()}
    for metric in ir_measures.iter_calc(list(PEERS.values()), whole, scored):
        out[names[metric.measure]][metric.query_id] = metric.value
    return out


def compare(run: dict[str, list[str]], grades: Grades) -> None:
    ours = evaluate_run(run, grades, parse_measures(",".join(PEERS)))
    peers = by_ir_measures(run, grades)
    assert list(ours) == list(PEERS)
    for name, values in ours.items():
        level = PEERS[name].params.get("rel", 1)
        counted = {q for q, judged in grades.items() if any(g >= level for g in judged.values())}
        assert set(values) == counted, name
        for query_id, value in values.items():
            assert value == pytest.approx(peers[name].get(query_id, 0.0), abs=1e-9), (name, query_id)


DOCS = [f"d{i}" for i in range(12)]


@st.composite
def judged_runs(draw: st.DrawFn) -> tuple[dict[str, list[str]], Grades]:
    run, grades = {}, {}
    for number in range(draw(st.integers(1, 4))):
        grades[f"q{number}"] = {
            d: float(g) for d, g in draw(st.dictionaries(st.sampled_from(DOCS), st.integers(0, 4), min_size=1)).items()
        }
        ranked = draw(st.lists(st.sampled_from([*DOCS, "unjudged1", "unjudged2"]), unique=True))
        if ranked:
            run[f"q{number}"] = ranked
    run.setdefault("unjudged query", ["d1"])
    return run, grades


@settings(max_examples=100, deadline=None)
@given(case=judged_runs())
def test_small_runs_against_ir_measures(case: tuple[dict[str, list[str]], Grades]) -> None:
    compare(*case)


def test_long_runs_against_ir_measures() -> None:
    rng = np.random.default_rng(7)
    docs = np.array([f"doc-{i}" for i in range(300)])
    grades: Grades = {}
    run: dict[str, list[str]] = {}
    for q in range(40):
        judged = rng.choice(docs, rng.integers(1, 200), replace=False)
        grades[f"q{q}"] = {str(d): float(g) for d, g in zip(judged, rng.integers(0, 5, len(judged)), strict=True)}
        if q % 10:
            run[f"q{q}"] = [str(d) for d in rng.permutation(docs)[: rng.integers(1, 300)]]
    compare(run, grades)


def test_fractions_by_hand() -> None:
    """Grades 2.5, 0.5 and 0: gains 2^2.5 - 1 = 4.656854, 2^0.5 - 1 = 0.414214."""
    grades = {"q": {"a": 0.5, "b": 2.5, "c": 0.0}}
    high, low, second = 2**2.5 - 1, 2**0.5 - 1, math.log2(3)
    found = evaluate_run(
        {"q": ["a", "b", "c"]}, grades, parse_measures("nDCG@1,nDCG@2,nDCG,AP,AP(rel=2),RR(rel=2),P@2")
    )
    assert found == {
        "nDCG@1": {"q": pytest.approx(low / high)},
        "nDCG@2": {"q": pytest.approx((low + high / second) / (high + low / second))},
        "nDCG": {"q": pytest.approx((low + high / second) / (high + low / second))},
        "AP": {"q": 1.0},  # any positive grade is relevant
        "AP(rel=2)": {"q": 0.5},
        "RR(rel=2)": {"q": 0.5},
        "P@2": {"q": 1.0},
    }
    assert low / high == pytest.approx(0.0889472, abs=1e-6)


def test_the_least_grade_is_relevant() -> None:
    """Where no level is named; with one, what has just that grade."""
    found = evaluate_run({"q": ["b", "a"]}, {"q": {"a": 1e-300, "b": 0.0}}, parse_measures("AP,RR,P@2,R@1,AP(rel=1)"))
    assert found == {"AP": {"q": 0.5}, "RR": {"q": 0.5}, "P@2": {"q": 0.5}, "R@1": {"q": 0.0}, "AP(rel=1)": {}}
    assert evaluate_run({"q": ["a"]}, {"q": {"a": 1.5}}, parse_measures("AP(rel=1.5)")) == {"AP(rel=1.5)": {"q": 1.0}}


def test_large_grades_stay_finite() -> None:
    """Click counts as labels: 2^5000 is no float, the ratio is."""
    found = evaluate_run({"q": ["b", "a"]}, {"q": {"a": 5000.0, "b": 4999.0}}, parse_measures("nDCG@1,nDCG@2"))
    third = 1 / math.log2(3)
    assert found["nDCG@1"]["q"] == pytest.approx(0.5)
    assert found["nDCG@2"]["q"] == pytest.approx((0.5 + third) / (1 + 0.5 * third))
    assert evaluate_run({"q": ["a"]}, {"q": {"a": 1e300}}, parse_measures("nDCG@1")) == {"nDCG@1": {"q": 1.0}}
    found = evaluate_run({"q": ["b", "a"]}, {"q": {"a": 501.0, "b": 0.0}}, parse_measures("nDCG@1"))
    assert found == {"nDCG@1": {"q": 0.0}}, "grade 0 gains nothing"


def test_perfect_and_absent_rankings() -> None:
    grades = {"q": {"a": 3.0, "b": 1.0}, "unanswered": {"a": 1.0}, "hopeless": {"a": 0.0}}
    found = evaluate_run({"q": ["a", "b"]}, grades, parse_measures("nDCG,AP,RR,R@5"))
    assert all(values == {"q": 1.0, "unanswered": 0.0} for values in found.values())


def test_no_relevant_document_is_no_value() -> None:
    assert math.isnan(parse_measure("AP")([0.0], [0.0]))
    assert math.isnan(parse_measure("AP(rel=3)")([2.0], [2.0]))
    assert math.isnan(parse_measure("nDCG@5")([], []))


@pytest.mark.parametrize(
    ("text", "name"),
    [("ndcg@5", "nDCG@5"), (" AP ", "AP"), ("p(rel=2)@05", "P(rel=2)@5"), ("ap(rel=1.5)", "AP(rel=1.5)"), ("rr", "RR")],
)
def test_names(text: str, name: str) -> None:
    assert parse_measure(text).name == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no measure ''; there are nDCG, AP (or MAP), RR (or MRR), P and R, such as nDCG@5, nDCG(gain=linear)@10"),
        ("GMAP", "no measure 'GMAP'; there are"),
        ("nDCG@", "no measure 'nDCG@'; there are"),
        ("nDCG@-1", "no measure 'nDCG@-1'; there are"),
        ("nDCG5", "no measure 'nDCG5'; there are"),
        ("AP(rel=2.)", "no measure 'AP(rel=2.)'; there are"),
        ("AP(rel=1.2.3)", "no measure 'AP(rel=1.2.3)'; there are"),
        ("AP(rel=.)", "no measure 'AP(rel=.)'; there are"),
        ("P", "P needs a cut-off, such as P@5"),
        ("R(rel=2)", "R needs a cut-off, such as R@5"),
        ("nDCG@0", "'nDCG@0': the cut-off must be at least 1 and rel above 0"),
        ("AP(rel=0)", "'AP(rel=0)': the cut-off must be at least 1 and rel above 0"),
        ("nDCG(rel=2)@5", "'nDCG(rel=2)@5': nDCG counts every grade and takes no rel; write nDCG@5"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_measures(f"AP,{text}")
    assert str(caught.value).startswith(message)


def test_one_clicked_document_makes_average_precision_the_reciprocal_rank() -> None:
    """MAP@5 as competitions on clicks define it."""
    grades = {f"q{i}": {"clicked": 1.0} for i in range(7)}
    run = {f"q{i}": [f"d{j}" for j in range(i)] + ["clicked"] for i in range(7)}
    found = evaluate_run(run, grades, parse_measures("AP@5,RR@5"))
    assert found["AP@5"] == found["RR@5"] == {f"q{i}": 1 / (i + 1) if i < 5 else 0.0 for i in range(7)}


@pytest.mark.parametrize(
    ("names", "main"),
    [
        ("nDCG@1,nDCG@5,AP", "nDCG@5"), ("nDCG@1,AP", "AP"), ("ndcg@5", "nDCG@5"), ("nDCG@10,P@1", "P@1"),
        ("AP", "AP"), ("P@1,AP,RR", "RR"),
    ],
)  # fmt: skip
def test_comparisons_go_by_ndcg_at_5_or_else_the_last(names: str, main: str) -> None:
    assert main_measure(parse_measures(names)).name == main


def test_every_family_is_described() -> None:
    for family, about in MEASURES.items():
        assert parse_measure(f"{family}@5").name == f"{family}@5"
        assert about


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        ("MAP", "AP"), ("map_cut_5", "AP@5"), ("MAP@5", "AP@5"), ("MRR", "RR"), ("MRR@10", "RR@10"),
        ("recip_rank", "RR"), ("P_5", "P@5"), ("Precision@5", "P@5"), ("recall_10", "R@10"), ("Recall@10", "R@10"),
        ("ndcg_cut_10", "nDCG(gain=linear)@10"), ("ndcg(gain=linear)@3", "nDCG(gain=linear)@3"),
        ("nDCG(gain=exponential)@3", "nDCG@3"), ("NDCG@5", "nDCG@5"),
    ],
)  # fmt: skip
def test_measures_as_people_write_them(written: str, ours: str) -> None:
    assert parse_measure(written).name == ours


def test_trec_evals_names_give_trec_evals_numbers() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    ranked, judged = [0, 3, 1, 0, 2], [3, 2, 1, 1, 0, 0]
    documents = {f"d{i}": grade for i, grade in enumerate([*ranked, 1])}
    run = {"q": {f"d{i}": float(-i) for i in range(5)}}
    names = ["ndcg_cut_3", "map", "recip_rank", "P_5", "recall_5"]
    asked = {"ndcg_cut.3", "map", "recip_rank", "P.5", "recall.5"}
    theirs = pytrec_eval.RelevanceEvaluator({"q": documents}, asked).evaluate(run)["q"]
    for name in names:
        assert parse_measure(name)(ranked, judged) == pytest.approx(theirs[name])


@pytest.mark.parametrize("text", ["AP(gain=linear)", "nDCG(gain=cubic)@5", "nDCG(rel=2)@5"])
def test_a_gain_is_for_ndcg_alone(text: str) -> None:
    with pytest.raises(SettingError, match="nDCG"):
        parse_measure(text)
