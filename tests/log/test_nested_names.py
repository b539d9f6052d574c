"""Which of several columns a field is: ids and names of other things are not those of the document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clickbridge import ClickGraph, Impression, read_docs, read_log
from clickbridge.errors import InputError

TWICE = ("d2", "d2", "d1")


def written(path: Path, *records: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


@pytest.mark.parametrize(
    ("record", "columns"),
    [
        (
            {"search": {"query": "tv", "id": "s#"}, "click": {"document": {"id": "@"}}},
            {"query": "search.query", "doc_id": "click.document.id"},
        ),
        ({"id": "e#", "query": "tv", "clicked_doc": "@"}, {"query": "query", "doc_id": "clicked_doc"}),
        ({"id": "e#", "query": "tv", "opened_product_code": "@"}, {"query": "query", "doc_id": "opened_product_code"}),
        ({"q": "tv", "clickedDocument": {"id": "@"}}, {"query": "q", "doc_id": "clickedDocument.id"}),
        ({"q": "tv", "brand": {"id": "b"}, "product": {"id": "@"}}, {"query": "q", "doc_id": "product.id"}),
        ({"q": "tv", "parent": {"sku": "p"}, "item": {"sku": "@"}}, {"query": "q", "doc_id": "item.sku"}),
        ({"q": "tv", "event": {"id": "e", "product_id": "@"}}, {"query": "q", "doc_id": "event.product_id"}),
        ({"q": "tv", "search": {"url": "x"}, "page": {"url": "@"}}, {"query": "q", "doc_id": "page.url"}),
        ({"q": "tv", "id": "@"}, {"query": "q", "doc_id": "id"}),  # it comes back, so it is no record's own
    ],
)
def test_the_id_of_the_document(tmp_path: Path, record: dict[str, Any], columns: dict[str, str]) -> None:
    text = json.dumps(record)
    records = [json.loads(text.replace("#", str(i)).replace("@", doc)) for i, doc in enumerate(TWICE)]
    path = written(tmp_path / "log.jsonl", *records)
    log = read_log(path)
    assert [row.doc_id for row in log] == list(TWICE)  # type: ignore[union-attr]
    found = log.layouts[path].columns
    assert {ours: found[ours] for ours in columns} == columns


@pytest.mark.parametrize("parent", ["search", "session", "user", "event", "brand", "author", "category"])
def test_the_id_of_another_thing_is_not_taken(tmp_path: Path, parent: str) -> None:
    path = written(tmp_path / "log.jsonl", *({"q": "tv", parent: {"id": doc}} for doc in TWICE))
    with pytest.raises(InputError, match=rf"it has q, {parent}, {parent}\.id: name them with"):
        list(read_log(path))


def test_the_id_of_a_record_is_not_taken(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", *({"id": f"e{i}", "query": "tv", "what": "d1"} for i in range(3)))
    with pytest.raises(InputError, match=r"needs keys query and doc_id; .*; id differs in every record, so it may be "):
        list(read_log(path))
    assert [row.doc_id for row in read_log(path, columns={"doc_id": "id"})] == ["e0", "e1", "e2"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("record", "columns"),
    [
        ({"id": "1", "product_title": "TV", "brand": {"name": "Acme"}}, "id product_title"),
        ({"id": "1", "headline": "TV", "author": {"name": "Jo"}}, "id headline"),
        ({"id": "1", "attributes": {"name": "Name"}, "product_title": "TV"}, "id product_title"),
        ({"id": "1", "attributes": {"name": "TV"}, "brand": {"name": "Acme"}}, "id attributes.name"),
        ({"brand": {"id": "b", "name": "Acme"}, "product": {"id": "1", "name": "TV"}}, "product.id product.name"),
        ({"brand": {"name": "Acme"}, "thing": {"sku": "1", "name": "TV"}}, "thing.sku thing.name"),
        ({"id": "1", "meta": {"title": "TV"}, "brand": {"title": "Acme"}}, "id meta.title"),
        ({"id": "1", "variant": {"sku": "9"}, "title": "TV"}, "id title"),
        ({"id": "1", "brand": {"name": "Acme", "id": "b"}}, "id"),
    ],
)
def test_the_id_and_the_title_of_a_document(tmp_path: Path, record: dict[str, Any], columns: str) -> None:
    docs = read_docs(path := written(tmp_path / "docs.jsonl", record, {**record}))
    assert [document.doc_id for document in docs] == ["1", "1"]
    assert sorted(docs.layouts[path].columns.values()) == sorted(columns.split())
    titles = {document.fields.get("title") for document in docs}
    assert titles == ({"TV"} if " " in columns else {None})


@pytest.mark.parametrize(
    "record",
    [
        {"query": "tv", "user": {"id": "u1"}, "product": {"id": "d2"}},
        {"query": "tv", "session": {"id": "u1"}, "clicked": {"id": "d2"}},
        {"query": {"text": "tv"}, "user": "u1", "doc_id": "d2"},
        {"query": {"text": "tv", "lang": "en"}, "ctx": {"user": {"id": "u1"}}, "sku": "d2"},
    ],
)
def test_an_object_with_our_name_has_the_value_inside(tmp_path: Path, record: dict[str, Any]) -> None:
    rows = list(read_log(written(tmp_path / "log.jsonl", record, record)))
    assert [(row.query, row.doc_id, row.user) for row in rows] == [("tv", "d2", "u1")] * 2  # type: ignore[union-attr]


def test_an_object_without_the_value_is_refused(tmp_path: Path) -> None:
    record = {"query": "tv", "user": {"country": "de"}, "product": {"id": "d2"}}
    with pytest.raises(InputError, match="user must be text, got an object"):
        list(read_log(written(tmp_path / "log.jsonl", record)))


PAGE = Impression("tv", ["d1", "d2"], ["d2"])
TWO = [{"product_id": "d1"}, {"product_id": "d2"}]


@pytest.mark.parametrize(
    "record",
    [
        {"q": "tv", "results": TWO, "clicks": [{"product_id": "d2"}]},
        {"q": "tv", "results": ["d1", "d2"], "clicks": [{"product_id": "d2", "position": 2}]},
        {"q": "tv", "results": TWO, "clicks": {"product_id": "d2"}},
        {"q": "tv", "results": TWO, "clicked": {"id": "d2"}},
        {"q": "tv", "results": TWO, "clicks": ["d2"]},
        {"q": "tv", "hits": ["d1", "d2"], "clicked": "d2"},
        {"q": "tv", "hits": [{"product": {"id": "d1"}, "clicked": 0}, {"product": {"id": "d2"}, "clicked": 1}]},
        {"q": "tv", "hits": [{"id": "d2", "rank": 2, "parent_sku": "p"}, {"id": "d1", "rank": 1}], "clicked": "d2"},
        {"user_query": "tv", "clicked_products": [{"product_id": "d2"}], "shown_products": TWO},
    ],
)
def test_results_and_clicks_in_any_shape(tmp_path: Path, record: dict[str, Any]) -> None:
    assert list(read_log(written(tmp_path / "log.jsonl", record, record))) == [PAGE] * 2


def test_one_clicked_id_in_a_cell(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("query,shown,clicked\ntv,d1 d2,d2\ntv,d1 d2,\n")
    assert list(read_log(str(path))) == [PAGE, Impression("tv", ["d1", "d2"], [])]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"q": "tv", "results": ["1", "2"], "clicks": 2}, "clicks must be a list of ids, got a number"),
        ({"q": "tv", "results": ["1", "2"], "clicks": "2"}, "clicks must be a list of ids, got text"),
        ({"q": "tv", "results": TWO, "clicks": "d2"}, "clicks must be a list of ids, got text"),
        ({"q": "tv", "results": ["1", "2"], "clicks": "3"}, "clicks must be a list of ids, got text"),
        ({"q": "tv", "results": ["1", "2"], "clicks": True}, "clicks must be a list of ids, got true/false"),
        ({"q": "tv", "results": TWO, "clicks": [{"position": 2}]}, "clicks have no doc_id: they have position"),
        ({"q": "tv", "results": [{"rank": 1}], "clicks": ["1"]}, "results have no doc_id: they have rank"),
    ],
)
def test_what_may_be_a_position_or_a_count_is_no_click(tmp_path: Path, record: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        list(read_log(written(tmp_path / "log.jsonl", record, record)))


def test_a_log_without_a_click_is_refused_with_its_keys(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", *({"query_id": "a", "user_query": "x", "chosen": ["d1"]} for _ in range(3)))
    with pytest.raises(InputError) as found:
        ClickGraph.build(read_log(path))
    assert str(found.value) == (
        f"the log has neither a shown result nor a click: {path} was read as ubi; 3 of 3 records are empty, "
        "0 left out; it has query_id, user_query, chosen: name others with columns query=...,"
        "clicks=...,results=..., or give format"
    )
    (page, *_) = read_log(path, columns={"query": "user_query", "clicks": "chosen"})
    assert page == Impression("x", None, ["d1"], query_id="a")


def test_a_log_without_a_click_says_how_it_was_read(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", {"q": "x", "clicked": [], "chosen": ["d1"]})
    with pytest.raises(
        InputError, match=r"as sessions \(query is q, clicks is clicked\); .* it has q, clicked, chosen:"
    ):
        ClickGraph.build(read_log(path))
