"""Exports of search analytics, and what happens in an event log before and besides searches."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import csv

from clickbridge import ClickGraph, Impression, PairCount, read_log
from clickbridge.errors import InputError
from clickbridge.log.rejects import RejectLog

ADDRESS = "https://x.org/a"


def written(path: Path, *rows: str) -> str:
    path.write_text("\n".join([*rows, ""]))
    return str(path)


@pytest.mark.parametrize(
    "header",
    [
        "query,page,clicks,impressions,ctr,position",
        "Query,Landing Page,Clicks,Impressions,CTR,Position",
        "Top queries,Top pages,Clicks,Impressions,CTR,Position",
        "Suchanfrage,Seite,Klicks,Impressionen,CTR,Position",
        "Requête,Page,Clics,Impressions,CTR,Position",
        "Consulta,Página,Clics,Impresiones,CTR,Posición",
        "query,url,clicks,impressions,ctr,sum_position",
    ],
)
def test_clicks_of_queries_on_pages(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "log.csv", header, f'ny pizza,{ADDRESS},"1,204",12000,10%,3.2', "tv,/b,0,50,0%,9.0")
    assert list(read_log(path)) == [PairCount("ny pizza", ADDRESS, 1204, 12_000), PairCount("tv", "/b", 0, 50)]


def test_means_of_positions_make_no_pages_of_results(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "query,page,clicks,position", "a,/x,1,3.5", "a,/y,0,4.0")
    assert list(read_log(path)) == [PairCount("a", "/x", 1), PairCount("a", "/y", 0)]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("log.csv", ["Top queries,Clicks,Impressions,CTR,Position", "ny pizza,12,120,10%,3.2"]),
        ("log.csv", ["query,page,clicks", "ny pizza,1,12", "tv,2,7"]),  # a page's number is no document
        ("log.csv", ["query,Clicks", 'ny pizza,"1,204"']),
        ("log.jsonl", ['{"query": "ny pizza", "clicks": 12}']),
    ],
)
def test_clicks_of_queries_alone_are_refused(tmp_path: Path, name: str, rows: list[str]) -> None:
    path = written(tmp_path / name, *rows)
    with pytest.raises(
        InputError, match=r"no column says on which documents; it has .*[Cc]licks.*: name the documents with "
    ):
        list(read_log(path))


def test_clicks_of_queries_in_a_frame_are_refused() -> None:
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match=r'name the documents with columns=\{"doc_id": ...\}, or export'):
        ClickGraph.from_frame(pa.table({"query": ["a"], "clicks": [3]}))


def test_numbers_may_be_said_to_be_ids(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "query,clicks", "ny pizza,12")
    assert list(read_log(path, format="sessions")) == [Impression("ny pizza", None, ["12"])]


def test_a_page_of_an_event_is_no_document(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", '{"q": "tv", "results": ["a", "b"], "clicked": "b", "page": "/search"}')
    assert list(read_log(path)) == [Impression("tv", ["a", "b"], ["b"])]


EVENTS = [
    "event,session,query,doc_id,time",
    "page_view,s1,,,10", "click,s1,,home,11", "click,s1,,,12",  # before any search; two of them without a document
    "search,s1,ny pizza,,13",
    "search,s1,big apple,,14", "click,s1,,d1,15", "page_left,s1,,d1,16",
    "view_item,s2,,d7,17",
]  # fmt: skip


def test_what_is_no_search_is_counted_and_makes_no_query(tmp_path: Path) -> None:
    log = read_log(written(tmp_path / "log.csv", *EVENTS))
    assert [(page.query, page.clicks) for page in log] == [("ny pizza", []), ("big apple", ["d1"])]  # type: ignore[union-attr]
    assert log.notes == [
        "1 event of other kinds says nothing about a result: page_left 1",
        "2 events without a document say nothing about a result: page_view 1, click 1",
        "2 events before the first search of their session or user belong to no query: click 1, view_item 1",
        "2 searches and 1 clicked result were joined",
        "searches without results and clicks: 1",
    ]
    assert not log.rejects.count
    graph = ClickGraph.build(log)
    assert [*graph.query_keys] == ["big apple"]


def test_a_click_that_nothing_joins_is_left_out(tmp_path: Path) -> None:
    """Without a session or user, nothing can tell whose search it belongs to: too many of them refuse the log."""
    path = written(tmp_path / "log.csv", *EVENTS, "click,,,d1,18")
    with pytest.raises(
        InputError, match=r"log.csv line 10: an event without a query, and without a session or user who"
    ):
        list(read_log(path))


def test_a_log_whose_clicks_all_come_first_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", *EVENTS[:3], EVENTS[4])
    with pytest.raises(InputError, match="has neither a shown result nor a click"):
        ClickGraph.build(read_log(path))


def test_a_page_that_is_not_set_is_one_reject(tmp_path: Path) -> None:
    rows = [f"q{n},{ADDRESS},{n}" for n in range(1, 200)]
    log = read_log(written(tmp_path / "log.csv", "query,page,clicks", *rows, "q,(not set),3"))
    assert len(list(log)) == 199
    assert log.rejects.count == 1


def test_the_page_where_people_search_is_no_document(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "search_term,page_path,clicks", "ny,/search,3", "tv,/search,4")
    with pytest.raises(InputError, match="no column says on which documents"):
        list(read_log(path))


def test_rows_that_name_a_query_alone_are_searches_without_a_click(tmp_path: Path) -> None:
    rows = [f"query {i % 7},{f'd{i % 3}' if i % 2 else ''},{i}" for i in range(100)]
    path = written(tmp_path / "log.csv", "Search Query,Clicked SKU,Device", *rows)
    log = read_log(path)
    records = list(log)
    assert records[:2] == [Impression("query 0", None, []), PairCount("query 1", "d1")]
    assert (len(records), log.rejects.count) == (100, 0)
    assert log.notes == ["50 records name no document: searches without a click"]
    graph = ClickGraph.build(log)
    assert (graph.summary["clicks"], graph.summary["pair_rows"], graph.summary["impressions"]) == (50, 50, 0)
    table = csv.read_csv(path, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    frame = read_log(table)
    assert list(frame) == records
    assert frame.notes == log.notes


def test_clicks_without_a_document_are_no_search(tmp_path: Path) -> None:
    log = read_log(
        written(tmp_path / "log.csv", "query,doc_id,clicks", "a,1,2", "a,,3", "b,,0"), rejects=RejectLog(1.0)
    )
    assert list(log) == [PairCount("a", "1", 2), Impression("b", None, [])]
    assert log.rejects.first[0].reason == "doc_id '' is empty or has white space"


def test_shown_results_of_a_search_that_found_nothing(tmp_path: Path) -> None:
    header = "search_id,query,product_id,position,clicked"
    log = read_log(
        written(tmp_path / "log.csv", header, "1,a,d1,1,0", "1,a,d2,2,1", "2,b,,,0", "3,c,,,1"), rejects=RejectLog(1.0)
    )
    assert list(log) == [Impression("a", ["d1", "d2"], ["d2"])]
    assert "1 event without a document says nothing about a result: shown 1" in log.notes
    assert log.rejects.count == 1


def test_the_null_of_databases_is_no_value(tmp_path: Path) -> None:
    rows = ("a\td1\t\\N\t\\N", "b\t\\N\tu2\t2024-01-01", "c\td2\tu1\t2024-01-02")
    log = read_log(written(tmp_path / "log.tsv", "SEARCH_TEXT\tPRODUCT_CODE\tCUST_ID\tCREATED_AT", *rows))
    records = [*log]
    assert [getattr(record, "user", "") for record in records] == [None, "u2", "u1"]
    assert records[:2] == [PairCount("a", "d1"), Impression("b", None, [], user="u2", time=1704067200.0)]


@pytest.mark.parametrize("name", ["user_pseudo_id", "CUST_ID", "fullVisitorId", "distinct_id"])
def test_names_of_users_in_exports(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "log.csv", f"query,returned_skus,clicked_sku,{name}", "a,d1|d2,d2,u1", "b,d3|d4,,u2")
    assert list(read_log(path)) == [
        Impression("a", ["d1", "d2"], ["d2"], user="u1"),
        Impression("b", ["d3", "d4"], [], user="u2"),
    ]


def test_records_within_records_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text('[{"session_id": "s1", "searches": [{"query": "a", "clicks": ["d1"]}], "tags": ["x"]}]')
    with pytest.raises(InputError, match="; keys within the lists of searches cannot be named: write what they hold"):
        list(read_log(path))


@pytest.mark.parametrize(("yes", "no"), [("x", ""), ("1", ""), ("✓", "-"), ("Yes", ""), ("x", "-")])
def test_shown_results_that_are_marked_as_clicked(tmp_path: Path, yes: str, no: str) -> None:
    rows = [f"a,d{place},{place},{yes if place == 2 else no}" for place in (1, 2, 3)]
    path = written(tmp_path / "log.csv", "query,sku,rank,clicked", *rows)
    assert list(read_log(path)) == [Impression("a", ["d1", "d2", "d3"], ["d2"])]


@pytest.mark.parametrize("mark", ["good", "2024-01-01T10:00", "d1"])
def test_marks_that_are_unknown_are_refused_before_each_row_counts_as_a_click(tmp_path: Path, mark: str) -> None:
    path = written(tmp_path / "log.csv", "query,sku,clicked", f"a,d1,{mark}", "a,d2,")
    with pytest.raises(InputError, match=f"clicked may say what was clicked, but '{mark}' is no number, yes or no"):
        list(read_log(path))
    assert len(list(read_log(path, format="triples"))) == 2
    with pytest.raises(InputError, match=r'or give read_log\(frame, format="triples"\) if each row is a click'):
        ClickGraph.from_frame(csv.read_csv(path))


def test_headers_of_tables_written_one_below_the_other(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "query,doc_id", "a,1", "query,doc_id", "b,2")
    log = read_log(path)
    assert list(log) == [PairCount("a", "1"), PairCount("b", "2")]
    assert (log.rejects.lines, log.rejects.count) == (2, 0)


def test_a_column_of_users_that_is_empty_gives_way_to_one_that_is_not(tmp_path: Path) -> None:
    rows = ("Search,,a1,ny pizza,", "Click Result,,a1,,d2", "Search,,a2,tv,", "Click Result,,a2,,d1")
    path = written(tmp_path / "log.csv", "event_type,user_id,device_id,search_term,item_id", *rows)
    found = [(page.query, page.clicks, page.user) for page in read_log(path)]  # type: ignore[union-attr]
    assert found == [("ny pizza", ["d2"], "a1"), ("tv", ["d1"], "a2")]
    bare = read_log(written(tmp_path / "bare.csv", "query,doc_id,user_id", "a,1,"))
    assert len(list(bare)) == 1
    assert next(iter(bare.layouts.values())).columns["user"] == "user_id"
