"""Exports of search analytics, and what happens in an event log before and besides searches."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickbridge import ClickGraph, Impression, PairCount, read_log
from clickbridge.errors import InputError

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
