"""Frames in and out: pandas, Polars, Arrow, and any other object that gives Arrow columns."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
import pytest

from clickbridge import (
    BM25,
    ClickGraph,
    Hit,
    Impression,
    InputError,
    Ranking,
    SettingError,
    read_docs,
    read_lists,
    read_log,
)
from clickbridge.frames import arrow_table, frame_of_rows, make_frame
from clickbridge.types import SimilarQueries
from conftest import skip_or_fail

COLUMNS = {"query": "search_term", "doc_id": "sku"}
LOG = {
    "search_term": ["NY pizza", "ny  pizza", "big apple", "slice"] * 5,
    "sku": [2, 2, 1, 2] * 5,
    "user": ["a", None, "b", "c"] * 5,
}
DOCS = {"sku": [1, 2], "title": ["New York City", "Pizza by the slice"], "price": [1.5, 2.5], "blurb": [None, "Hot"]}


class Capsule:
    """Nothing but the Arrow interface."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def library(name: str) -> Any:
    """pandas or Polars; neither is required of users, and both are of a full run of the tests."""
    if find_spec(name) is None:
        skip_or_fail(f"{name} is not installed: install the extra [test]")
    return import_module(name)


def pandas_frame(columns: dict[str, Any]) -> Any:
    return library("pandas").DataFrame(columns)


def polars_frame(columns: dict[str, Any]) -> Any:
    return library("polars").DataFrame(columns)


FRAMES = pytest.mark.parametrize("frame", [pa.table, Capsule, pandas_frame, polars_frame], ids=lambda f: f.__name__)
Make = Callable[[dict[str, Any]], Any]


@FRAMES
def test_a_graph_from_frames_is_the_graph_from_files(frame: Make) -> None:
    graph = ClickGraph.from_frame(frame(LOG), frame(DOCS), columns=COLUMNS)
    assert graph.n_queries == 3
    assert graph.doc_ids == ["1", "2"]
    assert graph.field("title") == DOCS["title"]
    assert graph.field("blurb") == ["", "Hot"]
    assert "price" not in graph.field_names
    assert int(graph.pairs.clicks.sum()) == 20
    assert BM25().fit(graph).rank("pizza", 2).titles == ["Pizza by the slice"]


@FRAMES
def test_times_and_pages(frame: Make) -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    log = {"query": ["a b", "c"], "results": [["d1", "d2"], ["d2"]], "clicks": [["d2"], []], "time": [when, None]}
    first, second = read_log(frame(log))
    assert first == Impression("a b", ["d1", "d2"], ["d2"], time=when.timestamp())
    assert second == Impression("c", ["d2"], [])


def test_ids_that_a_gap_made_floats_are_whole_numbers_again() -> None:
    pandas = library("pandas")
    log = pandas.DataFrame({"query": ["a"] * 200, "doc_id": [7.0] * 199 + [None]})
    source = read_log(log)
    assert {getattr(record, "doc_id", None) for record in source} == {"7", None}
    assert source.notes == ["1 record names no document: searches without a click"]
    bad = pandas.DataFrame({"query": ["a"], "doc_id": [7.5]})
    with pytest.raises(InputError, match="doc_id must be text, got a number"):
        list(read_log(bad))


def test_what_a_frame_lacks_is_said() -> None:
    with pytest.raises(InputError, match="needs columns query and doc_id; it has a: name them with columns="):
        ClickGraph.from_frame(pa.table({"a": [1]}))
    with pytest.raises(InputError, match="no column 'q' for query; it has a"):
        ClickGraph.from_frame(pa.table({"a": [1]}), columns={"query": "q"})
    with pytest.raises(SettingError, match="columns renames query"):
        ClickGraph.from_frame(pa.table({"a": [1]}), columns={"sku": "a"})
    with pytest.raises(InputError, match="the documents: a column doc_id is needed; there are a"):
        ClickGraph.from_frame(pa.table(LOG), pa.table({"a": [1]}), columns=COLUMNS)
    with pytest.raises(InputError, match="must be a pandas or Polars frame or an Arrow table; got list"):
        ClickGraph.from_frame([1, 2])


def test_a_column_of_mixed_values_is_refused_in_one_line() -> None:
    frame = pandas_frame({"query": ["a", "b"], "doc_id": ["x", 5]})
    with pytest.raises(InputError, match="mixed values") as refused:
        ClickGraph.from_frame(frame)
    assert "\n" not in str(refused.value)


def test_documents_with_names_of_their_own() -> None:
    docs = pa.table({"code": ["d1"], "name_en": ["Pizza"], "title": ["x"]})
    (document,) = read_docs(docs, columns={"doc_id": "code", "title": "name_en"})
    assert (document.doc_id, document.fields) == ("d1", {"title": "Pizza"})
    log = pa.table({"query": ["pizza"], "doc_id": ["d1"]})
    assert ClickGraph.from_frame(log, docs, doc_columns={"doc_id": "code"}).field("name_en") == ["Pizza"]


def test_an_index_of_rows_is_no_column() -> None:
    frame = pandas_frame({"query": ["a", "b", "c"], "doc_id": ["x", "y", "z"]})
    assert arrow_table(frame[frame["query"] > "a"]).column_names == ["query", "doc_id"]
    counted = frame.groupby(["query", "doc_id"]).size().to_frame("clicks")
    assert {record.doc_id for record in read_log(counted)} == {"x", "y", "z"}


@FRAMES
def test_lists_a_row_each_or_a_result_a_row(frame: Make) -> None:
    wide = {"query_id": [1, 2], "query": ["a", "b"], "results": [["x", "y"], ["z"]], "labels": [[0, 2], [1]]}
    long = {
        "query_id": [1, 2, 1],
        "search": ["a", "b", "a"],
        "sku": ["x", "z", "y"],
        "label": [0, 1, 2],
        "score": [None, None, None],
    }
    lists = read_lists(frame(wide))
    assert [(r.query_id, r.results, r.labels) for r in lists] == [("1", ["x", "y"], [0, 2]), ("2", ["z"], [1])]
    assert read_lists(frame(long), {"query": "search", "doc_id": "sku"}) == lists
    with pytest.raises(InputError, match="row 1: labels must be numbers of at least 0, got -1"):
        read_lists(frame({"query": ["a"], "doc_id": ["x"], "label": [-1]}))
    with pytest.raises(InputError, match="lists need columns query and results"):
        read_lists(frame({"query": ["a"]}))


def test_a_ranking_as_a_frame_and_as_text() -> None:
    ranking = Ranking((Hit("d2", 3.5), Hit("d1", float("-inf"))), {"d2": "<b>Pizza"}.get)
    assert ranking.to_frame("arrow").to_pylist() == [
        {"rank": 1, "doc_id": "d2", "score": 3.5, "title": "<b>Pizza"},
        {"rank": 2, "doc_id": "d1", "score": float("-inf"), "title": ""},
    ]
    frame = ranking.to_frame("pandas")
    assert list(frame.columns) == ["rank", "doc_id", "score", "title"]
    assert list(Ranking().to_frame("pandas").columns) == ["rank", "doc_id", "score", "title"]
    assert str(ranking).splitlines() == ["   1  d2      3.5000  <b>Pizza", "   2  d1        -inf"]
    assert "&lt;b&gt;Pizza" in ranking._repr_html_()


def test_results_as_polars_frames() -> None:
    polars = library("polars")
    frame = Ranking((Hit("d2", 3.5), Hit("d1", 1.0)), {"d2": "Pizza"}.get).to_frame("polars")
    assert isinstance(frame, polars.DataFrame)
    assert frame.to_dicts() == [
        {"rank": 1, "doc_id": "d2", "score": 3.5, "title": "Pizza"},
        {"rank": 2, "doc_id": "d1", "score": 1.0, "title": ""},
    ]
    assert frame_of_rows([{"a": 1}, {"b": "x"}], "polars").to_dicts() == [{"a": 1, "b": None}, {"a": None, "b": "x"}]


def test_a_copy_of_a_ranking_has_its_titles_and_no_more() -> None:
    titles = {f"d{i}": "long " * 100 for i in range(1000)}
    ranking = Ranking((Hit("d2", 3.5), Hit("d1", 1.0)), titles.get)
    packed = pickle.dumps(ranking)
    assert len(packed) < 5000
    for copied in (pickle.loads(packed), copy.deepcopy(ranking)):  # noqa: S301 - packed right above
        assert copied == ranking
        assert copied.titles == ranking.titles


def test_without_pandas_and_polars_an_arrow_table_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickbridge.frames.find_spec", lambda name: None)
    assert isinstance(make_frame({"a": [1]}), pa.Table)
    assert frame_of_rows([{"a": 1}, {"b": "x"}]).to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": "x"}]
    with pytest.raises(SettingError, match="pandas is not installed"):
        make_frame({"a": [1]}, "pandas")
    with pytest.raises(SettingError, match="a frame is one of pandas, polars, arrow; got 'spark'"):
        make_frame({"a": [1]}, "spark")


def test_a_graph_from_arrow_needs_no_pandas() -> None:
    code = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "polars"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import pyarrow as pa, clickbridge
log = pa.table({"query": ["a b", "c"], "doc_id": ["x", "y"]})
print(clickbridge.ClickGraph.from_frame(log).n_docs)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "2", done.stderr


def test_clicks_as_text_are_refused_where_they_are_made() -> None:
    with pytest.raises(InputError, match=r"clicks of a page must be a list of document ids, such as \['d1'\]"):
        Impression("q", ["d1"], "d1")  # type: ignore[arg-type]


def test_documents_need_no_log() -> None:
    graph = ClickGraph.from_frame(docs=pa.table(DOCS), doc_columns={"doc_id": "sku"})
    assert (graph.n_docs, graph.n_queries) == (2, 0)
    with pytest.raises(InputError, match="give a log, documents, or both"):
        ClickGraph.from_frame()


def test_frames_where_something_else_is_needed_are_named_and_not_printed() -> None:
    frame = pa.table(LOG)
    fitted = BM25().fit(ClickGraph.from_frame(frame, pa.table(DOCS), columns=COLUMNS, doc_columns={"doc_id": "sku"}))
    for call in (lambda: ClickGraph.build(frame), lambda: fitted.update(frame)):  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"^log must be records, not a Table: give read_log\(frame\); ClickGraph"):
            call()
    with pytest.raises(InputError, match=r"got a Table: ClickGraph.from_frame makes one of it$"):
        BM25().fit(frame)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"got \{'query': 'a'\}: make one of each, as PairCount\(\*\*row\)"):
        ClickGraph.build([{"query": "a"}])  # type: ignore[list-item]
    with pytest.raises(InputError, match="got ChunkedArray, which is one column"):
        read_log(frame.column("sku"))


def test_similar_queries_as_a_frame() -> None:
    found = SimilarQueries([("ny pizza", 0.5), ("big apple", 0.25)])
    assert found.to_frame("arrow").to_pydict() == {"query": ["ny pizza", "big apple"], "similarity": [0.5, 0.25]}  # type: ignore[attr-defined]
    assert SimilarQueries().to_frame("arrow").shape == (0, 2)
