"""TREC runs and judgments: order survives the trip through any tool that compares scores as float32."""

from __future__ import annotations

import gzip
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clickbridge.errors import InputError
from clickbridge.io.trec import falling, read_qrels, read_run, write_run
from clickbridge.types import Hit, Ranking

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(lambda s: s.split() == [s])
SCORES = st.one_of(
    st.floats(allow_nan=False),
    st.floats(width=32, allow_nan=False),
    st.sampled_from([-math.inf, 0.0, -0.0, 1.0, 1e-300, 5e-324, 1e38, 3.5e38, 1.7e308, -1.7e308, 1e-7, 1 + 1e-9]),
)


def strictly_falling(values: list[float]) -> bool:
    as_float32 = np.array(values, dtype=np.float32)
    return bool(np.isfinite(as_float32).all() and (np.diff(as_float32) < 0).all())


@settings(max_examples=300, deadline=None)
@given(scores=st.lists(SCORES, max_size=40))
@example(scores=[1.0] * 2000)
@example(scores=[0.0] * 2000)
@example(scores=[1e308] * 500 + [-1e308] * 500 + [-math.inf] * 500)
@example(scores=[-1e308] * 2000)
def test_scores_fall_strictly_as_float32(scores: list[float]) -> None:
    scores = sorted(scores, reverse=True)
    out = falling(scores)
    assert len(out) == len(scores)
    assert strictly_falling([float(f"{s:.9g}") for s in out])


def test_distinct_scores_are_left_alone() -> None:
    scores = [1e6, 20.5, 3.25, 3.0, 0.0, -7.5, -1e6]
    assert falling(scores) == scores


def test_unscored_go_on_below_the_rest() -> None:
    out = falling([2.0, 1.0, -math.inf, -math.inf])
    assert out[:2] == [2.0, 1.0]
    assert out[1] > out[2] > out[3] > 0.9
    assert falling([-math.inf, -math.inf])[0] == 0.0


@st.composite
def runs(draw: st.DrawFn) -> dict[str, list[tuple[str, float]]]:
    return {
        query_id: sorted(draw(st.dictionaries(IDS, SCORES, min_size=1, max_size=6)).items(), key=lambda x: -x[1])
        for query_id in draw(st.lists(IDS, min_size=1, max_size=4, unique=True))
    }


@settings(max_examples=80, deadline=None)
@given(run=runs(), packed=st.booleans())
def test_run_round_trip(run: dict[str, list[tuple[str, float]]], packed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("run.txt.gz" if packed else "run.txt")
        write_run(path, ((q, Ranking(tuple(Hit(d, s) for d, s in hits))) for q, hits in run.items()), "bm25+lmir")
        assert read_run(path) == {q: [d for d, _ in hits] for q, hits in run.items()}
        data = path.read_bytes()
        text = (gzip.decompress(data) if packed else data).decode()
        cells = [line.split() for line in text.split("\n")[:-1]]
    assert all(len(row) == 6 and row[1] == "Q0" and row[5] == "bm25+lmir" for row in cells)
    assert [int(row[3]) for row in cells] == [i for hits in run.values() for i in range(1, len(hits) + 1)]
    for query_id in run:
        assert strictly_falling([float(row[4]) for row in cells if row[0] == query_id])


def test_an_empty_ranking_writes_no_line(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [("1", Ranking()), ("2", Ranking((Hit("a", 1.5),)))], "vsm")
    assert (tmp_path / "run").read_text() == "2 Q0 a 1 1.5 vsm\n"


def test_run_is_read_by_score_then_rank(tmp_path: Path) -> None:
    (tmp_path / "run").write_text(
        "q Q0 low 1 -2.5e0 x\n\nq\tQ0\tz 3 7 x\nq Q0 a 4 7 x\nq Q0 top 9 inf x\n"
        "other Q0 a 1 1 y\r\nq Q0 last 0 -inf x\n"
    )
    assert read_run(tmp_path / "run") == {"q": ["top", "z", "a", "low", "last"], "other": ["a"]}


def refusal(read: Callable[[Path], object], path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(InputError) as caught:
        read(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("q Q0 a 1 2", "5 columns, expected 6: query_id Q0 doc_id rank score name"),
        ("q Q0 a 1 2 name more", "7 columns, expected 6: query_id Q0 doc_id rank score name"),
        ("q Q0 a one 2 name", "rank and score must be numbers, got one 2"),
        ("q Q0 a 1 two name", "rank and score must be numbers, got 1 two"),
        ("q Q0 a 1 nan name", "rank and score must be numbers, got 1 nan"),
        ("ok Q0 a 7 0.5 name", "document a occurs twice for query ok"),
    ],
)
def test_run_refusals(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "run"
    assert refusal(read_run, path, "ok Q0 a 1 2.5 name", line) == f"{path}, line 2: {reason}"


def test_qrels(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 0 a 2\n1 0 b -2\n\n1\t0\tc\t0.5\n2 0 a 0\n1 0 a 3\n")
    assert read_qrels(tmp_path / "qrels") == {"1": {"a": 3.0, "b": 0.0, "c": 0.5}, "2": {"a": 0.0}}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 0 a", "3 columns, expected 4: query_id 0 doc_id grade"),
        ("1 0 a good", "the grade must be a number, got good"),
        ("1 0 a nan", "the grade must be a number, got nan"),
        ("1 0 a inf", "the grade must be a number, got inf"),
    ],
)
def test_qrels_refusals(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "qrels"
    assert refusal(read_qrels, path, "1 0 x 1", line) == f"{path}, line 2: {reason}"


def test_empty_files(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(InputError, match="is empty; expected lines of query_id Q0 doc_id rank score name"):
        read_run(tmp_path / "empty")
    with pytest.raises(InputError, match="is empty; expected lines of query_id 0 doc_id grade"):
        read_qrels(tmp_path / "empty")


def test_rankings_by_query_are_written_like_pairs(tmp_path: Path) -> None:
    rankings = {"1": Ranking((Hit("a", 1.5), Hit("b", 1.0))), "2": Ranking((Hit("b", 2.0),))}
    write_run(tmp_path / "run", rankings, "vsm")
    assert read_run(tmp_path / "run") == {"1": ["a", "b"], "2": ["b"]}
