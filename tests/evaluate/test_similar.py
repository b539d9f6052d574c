"""Similar queries: judgments, pos/com/neg, the sign test, and similarity measures against their formulas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import jensenshannon

from clickbridge import ClickGraph, build_model
from clickbridge.errors import InputError
from clickbridge.evaluate.similar import (
    CLICK_KERNELS,
    DIGITS,
    Judgments,
    PairedPreference,
    answers_of,
    precision,
    prefer,
    read_judgments,
    sample_queries,
    similar_by_clicks,
    tail_of,
)
from clickbridge.models.sfunction import FittedSFunction
from oracles.skernel import pearson_over_union

INTENTS = {"ny": "1", "new york": "1", "big apple": "1", "rome": "2", "roma": "2", "alone": "3"}


def test_quality_is_the_mean_grade_of_the_first_three() -> None:
    judged = Judgments.of_groups(INTENTS)
    assert judged.quality("ny", ["new york", "rome", "big apple", "roma"]) == pytest.approx(2 / 3)
    assert judged.quality("ny", ["new york"]) == pytest.approx(1 / 3)  # a missing answer counts nothing
    assert judged.quality("unknown", ["ny"]) == 0
    assert "alone" not in judged.queries
    assert len(judged.queries) == 5


def test_pos_com_neg_by_hand() -> None:
    judged = Judgments.of_groups(INTENTS)
    ours = {"ny": ["new york", "big apple"], "rome": ["ny"], "roma": ["rome"]}
    theirs = {"ny": ["rome"], "rome": ["roma"], "roma": ["rome"]}
    found = prefer(("a", "b"), ours, theirs, judged)
    assert found == PairedPreference("a", "b", pos=1, com=1, neg=1, p_value=1.0)
    assert prefer(("a", "b"), ours, theirs, judged, ["ny"]).pos == 1
    assert prefer(("a", "a"), ours, ours, judged) == PairedPreference("a", "a", 0, 3, 0, 1.0)


def test_the_sign_test_is_the_binomial_one() -> None:
    """Nine wins and one loss: 2 * (1 + 10) / 2^10."""
    judged = Judgments({f"q{i}": {"good": 1.0} for i in range(10)})
    ours = {f"q{i}": ["good"] if i else [] for i in range(10)}
    theirs = {f"q{i}": [] if i else ["good"] for i in range(10)}
    assert prefer(("a", "b"), ours, theirs, judged).p_value == pytest.approx(22 / 1024)


def test_judgments_from_clicks() -> None:
    judged = Judgments.of_clicks([("ny", "d1"), ("new york", "d1"), ("rome", "d2"), ("ny", "d2"), ("ny", "d1")])
    assert judged.grades == {
        "ny": {"new york": 1.0, "rome": 1.0},
        "new york": {"ny": 1.0},
        "rome": {"ny": 1.0},
    }


def test_judgments_from_files(tmp_path: Path) -> None:
    path = tmp_path / "judged.jsonl"
    path.write_text(
        '{"query": "NY", "intent": 1}\n{"query": "new  york", "intent": 1}\n'
        '\n{"query": "ny", "similar": {"Big Apple": 2, "rome": 0}}\n'
    )
    judged = read_judgments(str(path))
    assert judged.grades["ny"] == {"new york": 1.0, "big apple": 2.0, "rome": 0.0}
    assert judged.grades["new york"] == {"ny": 1.0}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "holds no judgment"),
        ("{", "not JSON"),
        ('{"intent": 1}', "needs a query"),
        ('{"query": "a"}', "expected intent"),
        ('{"query": "a", "similar": {"b": -1}}', "at least 0"),
    ],
)
def test_bad_judgments(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "judged.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=says):
        read_judgments(str(path))


def test_sample_tail_and_answers(small_graph: ClickGraph) -> None:
    model = build_model("cos-click").fit(small_graph)
    assert isinstance(model.fitted, FittedSFunction)
    assert tail_of(model, ["ny pizza", "big apple"], below=2) == ["big apple"]
    assert tail_of(model, ["big apple", "never asked"], below=1) == ["never asked"]
    assert answers_of(model, ["ny pizza"])["ny pizza"][0] in {"big apple", "pizza by the slice"}
    queries = [str(i) for i in range(100)]
    assert sample_queries(queries, 10, 1) == sample_queries(queries, 10, 1) != sample_queries(queries, 10, 2)
    assert sample_queries(queries, 200) == queries


def full_pearson(a: np.ndarray, b: np.ndarray) -> float:  # type: ignore[type-arg]
    return float(np.corrcoef(a, b)[0, 1])


@given(st.integers(0, 10_000))
def test_the_order_of_similar_queries_is_that_of_other_libraries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clicks = rng.integers(1, 20, (6, 9)) * (rng.random((6, 9)) < 0.5)
    clicks[:, 0] += 1
    one, many, keys = clicks[0], clicks[1:], [*"abcdef"]
    others = {
        "Pearson": [full_pearson(one, other) for other in many],
        "Pearson (9)": [float(np.nan_to_num(pearson_over_union(one, other))) for other in many],
        "Jensen-Shannon": [1 - jensenshannon(one, other, 2) ** 2 for other in many],
        "Jaccard": [float(((one > 0) & (other > 0)).sum() / ((one > 0) | (other > 0)).sum()) for other in many],
        "cosine": [float(one @ other / np.linalg.norm(one) / np.linalg.norm(other)) for other in many],
    }
    assert {*others} == {*CLICK_KERNELS}
    for measure, values in others.items():
        order = np.argsort(-np.round(values, DIGITS - 2), kind="stable")
        found = similar_by_clicks(measure, sparse.csr_array(clicks), keys, ["a"], k=5)["a"]
        assert [values[keys.index(name) - 1] for name in found] == pytest.approx([values[i] for i in order], abs=1e-9)


def test_equation_9_knows_nothing_of_one_shared_url() -> None:
    """A query with one URL, one that has the same URL alone, and one that has another beside it."""
    clicks = sparse.csr_array(np.array([[3, 0], [5, 0], [5, 2]]))
    assert similar_by_clicks("Pearson (9)", clicks, ["a", "b", "c"], ["a"]) == {"a": ["c", "b"]}


def test_similar_by_clicks_looks_at_sharers_only() -> None:
    clicks = sparse.csr_array(np.array([[5, 1, 0, 0], [4, 1, 0, 0], [0, 1, 9, 0], [0, 0, 0, 7]]))
    keys = ["a", "b", "c", "d"]
    for measure in CLICK_KERNELS:
        found = similar_by_clicks(measure, clicks, keys, ["a", "d", "unknown"])
        assert found == {"a": ["b", "c"], "d": [], "unknown": []}
    judged = Judgments({"a": {"b": 1.0}, "d": {}})
    assert precision({"a": ["b", "c"], "d": []}, judged) == pytest.approx((1 / 3 + 0) / 2)
