"""Documents in: which fields there are and what their text is."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickbridge import ClickGraph, read_docs
from clickbridge.errors import InputError
from clickbridge.log.documents import DocumentReader
from clickbridge.log.plain_text import field_text
from clickbridge.log.rejects import RejectLog
from clickbridge.types import Document, Impression


def written(path: Path, *records: Any) -> str:
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return str(path)


def lenient(path: str) -> DocumentReader:
    return read_docs(path, rejects=RejectLog(1.0))


def test_fields_of_a_document(tmp_path: Path) -> None:
    record = {
        "doc_id": "007", "Title": "Big APPLE", "tags": ["a b", "c"], "year": 1999, "body": "", "none": None,
        "empty": [], "rating": 4.5, "price": 7, "nested": {"a": "b"}, "mixed": ["a", 1], "flag": True, "YEAR2": 1,
    }  # fmt: skip
    docs = read_docs(written(tmp_path / "docs.jsonl", record))
    assert list(docs) == [Document("007", {"title": "Big APPLE", "tags": "a b\nc", "year": "1999"})]
    assert docs.ignored == {"rating", "price", "nested", "mixed", "flag", "YEAR2"}


def test_names_that_differ_in_case_are_one_field(tmp_path: Path) -> None:
    docs = read_docs(written(tmp_path / "docs.jsonl", {"doc_id": 1, "Title": "a", "title": "b", "TITLE": ["c", "d"]}))
    assert list(docs) == [Document("1", {"title": "a\nb\nc\nd"})]


@pytest.mark.parametrize("name", ["", "DOC_ID", "Doc_Id"])
def test_names_that_cannot_be_columns_are_ignored_and_named(tmp_path: Path, name: str) -> None:
    docs = read_docs(written(tmp_path / "docs.jsonl", {"doc_id": "1", name: "2", "title": "x"}))
    (document,) = docs
    assert document == Document("1", {"title": "x"})
    assert len(docs.ignored) == 1
    graph = ClickGraph.build([Impression("q", ["1"], ["1"])], [document])
    assert graph.docs.to_pylist() == [{"doc_id": "1", "title": "x"}]


def test_a_csv_with_an_index_column(tmp_path: Path) -> None:
    """As pandas writes it: the first column has no name."""
    path = tmp_path / "docs.csv"
    path.write_text(',doc_id,Title,year\n0,01,"a, ""b""\nc",1999\n1,02,,\n')
    docs = read_docs(str(path))
    assert list(docs) == [Document("01", {"title": 'a, "b"\nc', "year": "1999"}), Document("02", {})]


def test_tsv_and_compressed_documents(tmp_path: Path) -> None:
    (tmp_path / "docs.tsv").write_text('doc_id\ttitle\n01\tsay "a"\n')
    assert list(read_docs(str(tmp_path / "docs.tsv"))) == [Document("01", {"title": 'say "a"'})]
    (tmp_path / "docs.jsonl.gz").write_bytes(gzip.compress(b'{"doc_id":"1","t":"x"}\n\n{"doc_id":"2"}\n'))
    assert [d.doc_id for d in read_docs(str(tmp_path / "docs.jsonl.gz"))] == ["1", "2"]


@pytest.mark.parametrize("name", ["docs.parquet", "docs"])
def test_parquet_documents(tmp_path: Path, name: str) -> None:
    table = pa.table(
        {
            "doc_id": ["01", "02"],
            "Title": ["a", None],
            "tags": pa.array([["x", "y z"], []], pa.list_(pa.string())),
            "year": pa.array([1999, None], pa.int16()),
            "price": [1.5, 2.5],
            "more": [{"a": 1}, {"a": 2}],
        }
    )
    pq.write_table(table, tmp_path / name)
    docs = read_docs(str(tmp_path / name))
    assert list(docs) == [Document("01", {"title": "a", "tags": "x\ny z", "year": "1999"}), Document("02", {})]
    assert docs.ignored == {"price", "more"}


def test_long_text_in_a_csv_cell(tmp_path: Path) -> None:
    path = tmp_path / "docs.csv"
    path.write_text("doc_id,body\n1," + "word " * 100_000 + "\n")
    (document,) = read_docs(str(path))
    assert len(document.fields["body"]) == 500_000


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[]", "a line must be a JSON object"),
        (b"{", "not JSON"),
        (b'{"title":"x"}', "doc_id must be text, got null"),
        (b'{"doc_id":""}', "is empty or has white space"),
        (b'{"doc_id":"a b"}', "is empty or has white space"),
        (b'{"doc_id":1.5}', "doc_id must be text"),
        (b'{"doc_id":"1","t":"\xff\x81"}', "not JSON"),
        (b"[" * 10_000, "not JSON"),
    ],
)
def test_rejects(tmp_path: Path, line: bytes, reason: str) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_bytes(line + b"\n" + b'{"doc_id":"1"}\n')
    docs = lenient(str(path))
    assert list(docs) == [Document("1", {})]
    assert reason in docs.rejects.first[0].reason
    with pytest.raises(InputError, match="1 of 2 lines is unusable"):
        list(read_docs(str(path)))


def test_a_table_needs_doc_id(tmp_path: Path) -> None:
    (tmp_path / "docs.csv").write_text("price,title\n1,x\n")
    with pytest.raises(InputError, match="a column doc_id is needed; there are price, title"):
        list(read_docs(str(tmp_path / "docs.csv")))
    pq.write_table(pa.table({"price": ["1"]}), tmp_path / "docs.parquet")
    with pytest.raises(InputError, match="a column doc_id is needed; there are price"):
        list(read_docs(str(tmp_path / "docs.parquet")))


def test_damaged_files_stop(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl.gz").write_bytes(gzip.compress(b'{"doc_id":"1"}\n' * 1000)[:-12])
    (tmp_path / "docs.parquet").write_bytes(b"PAR1 and nothing else")
    for name in ("docs.jsonl.gz", "docs.parquet", "nothing.jsonl"):
        with pytest.raises(InputError):
            list(lenient(str(tmp_path / name)))


def test_of_documents_with_one_id_the_first_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "docs.jsonl", {"doc_id": "1", "t": "one"}, {"doc_id": "1", "t": "two", "u": "more"})
    graph = ClickGraph.build([Impression("q", ["1", "2"], ["1"])], read_docs(path))
    assert graph.docs.to_pylist() == [{"doc_id": "1", "t": "one", "u": None}, {"doc_id": "2", "t": None, "u": None}]
    assert graph.summary["documents"] == 2
    assert graph.summary["repeated_documents"] == 1


def test_no_file_is_no_documents() -> None:
    documents = read_docs()
    assert documents.with_html == 0
    assert list(documents) == []


@given(st.lists(st.text()))
def test_a_list_is_its_items_one_a_line(items: list[str]) -> None:
    assert field_text("tags", items) == "\n".join(items)
