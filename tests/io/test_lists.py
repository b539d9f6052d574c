"""LISTS files: what is written is read, and every fault names its line."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge.errors import InputError
from clickbridge.io.lists import read_lists, write_lists
from clickbridge.types import ResultList

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(lambda s: s.split() == [s])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def result_lists(draw: st.DrawFn) -> list[ResultList]:
    out = []
    for query_id in draw(st.lists(IDS, min_size=1, max_size=4, unique=True)):
        results = draw(st.lists(IDS, max_size=5, unique=True))
        columns = [
            draw(st.none() | st.lists(numbers, min_size=len(results), max_size=len(results)))
            for numbers in (st.floats(0, 1e9), NUMBERS)
        ]
        out.append(ResultList(query_id, draw(TEXTS), results, *columns))
    return out


@settings(max_examples=80, deadline=None)
@given(lists=result_lists(), packed=st.booleans())
def test_round_trip(lists: list[ResultList], packed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("lists.jsonl.gz" if packed else "lists.jsonl")
        write_lists(path, lists)
        assert read_lists(str(path)) == lists
        assert [p.name for p in Path(folder).iterdir()] == [path.name]
        assert path.read_bytes().startswith(b"\x1f\x8b") == packed


def read(tmp_path: Path, *records: Any) -> list[ResultList]:
    path = tmp_path / "lists.jsonl"
    path.write_bytes(b"".join((r if type(r) is bytes else orjson.dumps(r)) + b"\n" for r in records))
    return read_lists(str(path))


def test_what_may_be_left_out(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {"query_id": 7, "query": None, "results": [1, "02"]},
        b"",
        {"query": " New  York ", "results": [], "labels": [], "scores": None, "vectors": {"a": [1]}},
        {"query_id": "x", "results": ["a"], "labels": [0.25], "scores": [-3]},
    )
    assert found == [
        ResultList("7", "", ["1", "02"]),
        ResultList("New_York", " New  York ", [], [], None, {"a": [1.0]}),
        ResultList("x", "", ["a"], [0.25], [-3.0]),
    ]


def test_byte_order_mark_and_carriage_returns(tmp_path: Path) -> None:
    path = tmp_path / "lists.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"query_id":"1","results":["a"]}\r\n\r\n{"query_id":"2","results":["b"]}\r\n')
    assert [r.query_id for r in read_lists(str(path))] == ["1", "2"]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"{", "not JSON: "),
        (b"q1 Q0 d1 1 2.5 bm25", "not JSON but a line of a TREC run: give queries TOPICS as well"),
        (b"\xff\xfe", "not JSON: "),
        (b'{"query_id":"1","results":["a"],"labels":[NaN]}', "not JSON: "),
        ([], "a line must be a JSON object"),
        ({"query": "a"}, "results must be a list, got None"),
        ({"query": "a", "results": "b"}, "results must be a list, got 'b'"),
        ({"query": 5, "results": []}, "query must be text, got 5"),
        ({"query": 0, "query_id": "1", "results": []}, "query must be text, got 0"),
        ({"query": ["a"], "results": []}, "query must be text, got ['a']"),
        ({"results": []}, "an id must be text without white space, got None"),
        ({"query": "  ", "results": []}, "an id must be text without white space, got ''"),
        ({"query_id": "a b", "results": []}, "an id must be text without white space, got 'a b'"),
        ({"query_id": "", "results": []}, "an id must be text without white space, got ''"),
        ({"query_id": "1", "results": ["a", "b c"]}, "an id must be text without white space, got 'b c'"),
        ({"query_id": "1", "results": ["a", 1.5]}, "an id must be text without white space, got 1.5"),
        ({"query_id": "1", "results": ["a", None]}, "an id must be text without white space, got None"),
        ({"query_id": "1", "results": ["a", True]}, "an id must be text without white space, got True"),
        ({"query_id": "1", "results": ["a"], "labels": [1, 0]}, "2 labels for 1 result"),
        ({"query_id": "1", "results": ["a"], "scores": []}, "0 scores for 1 result"),
        ({"query_id": "1", "results": ["a"], "labels": 1}, "labels must be a list, got 1"),
        ({"query_id": "1", "results": ["a"], "labels": [-1]}, "labels must be numbers of at least 0, got -1"),
        ({"query_id": "1", "results": ["a"], "labels": ["1"]}, "labels must be numbers of at least 0, got '1'"),
        ({"query_id": "1", "results": ["a"], "labels": [True]}, "labels must be numbers of at least 0, got True"),
        ({"query_id": "1", "results": ["a"], "scores": [None]}, "scores must be numbers, got None"),
        ({"query_id": "ok", "results": ["a"]}, "query_id 'ok' occurs twice; give each once"),
    ],
    ids=str,
)
def test_refusals_name_the_line(tmp_path: Path, record: Any, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, {"query_id": "ok", "results": ["a"]}, b"", record)
    assert str(caught.value).startswith(f"{tmp_path}/lists.jsonl, line 3: {reason}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"\n\n"])
def test_no_list_at_all(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "lists.jsonl").write_bytes(text)
    with pytest.raises(InputError, match="holds no list: one JSON object per line with query_id, query and results"):
        read_lists(str(tmp_path / "lists.jsonl"))


def test_nothing_is_left_of_a_failed_write(tmp_path: Path) -> None:
    (tmp_path / "lists.jsonl").write_text("the old one")

    def fails() -> Any:
        yield ResultList("1", "a", ["x"])
        raise KeyError("fault")

    with pytest.raises(KeyError, match="fault"):
        write_lists(tmp_path / "lists.jsonl", fails())
    assert [p.name for p in tmp_path.iterdir()] == ["lists.jsonl"]
    assert (tmp_path / "lists.jsonl").read_text() == "the old one"


@pytest.mark.parametrize("name", ["", "nowhere/lists.jsonl"])
def test_cannot_write_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"cannot write .*: it is a folder, or its folder does not exist"):
        write_lists(tmp_path / name, [])


def test_gzip_output_does_not_depend_on_the_clock(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        write_lists(tmp_path / name, [ResultList("1", "a", ["x"])])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b'{"query_id":"1","query":"a","results":["x"]}\n'


@pytest.mark.parametrize("vectors", [[1.0], {"a": 1}, {"a": ["x"]}, {"a": [float("inf")]}])
def test_vectors_that_are_none(tmp_path: Path, vectors: object) -> None:
    with pytest.raises(InputError, match="line 1"):
        read(tmp_path, orjson.dumps({"query": "q", "results": ["a"], "vectors": vectors}).replace(b"null", b"1e999"))


def test_a_result_that_a_page_shows_twice_counts_once(tmp_path: Path) -> None:
    """In its first place, with its best grade."""
    record = {"query_id": "1", "results": ["b", 1, "b", "1"], "labels": [1, 2, 3, 4], "scores": [4, 3, 2, 1]}
    (tmp_path / "lists.jsonl").write_text(orjson.dumps(record).decode())
    (found,) = read_lists(str(tmp_path / "lists.jsonl"))
    assert (found.results, found.labels, found.scores) == (["b", "1"], [3.0, 4.0], [4.0, 3.0])
