"""The order of event logs, and events that are searches though their names do not say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clickbridge import Impression, read_log
from clickbridge.errors import InputError
from clickbridge.insight.validation import validate


def events(path: Path, *rows: dict[str, object]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def session(number: int, *events: str) -> list[dict[str, object]]:
    """Events a second apart, as `search pizza`, `impression pizza p1` (a query and a document) or `click p1`."""
    out = []
    for second, event in enumerate(events):
        kind, *words = event.split()
        names = ("query", "doc_id") if kind == "impression" else ("query",) if kind == "search" else ("doc_id",)
        found: dict[str, object] = dict(zip(names, words, strict=True))
        out.append({"event": kind, "session": f"s{number}", "time": 1e9 + 60 * number + second} | found)
    return out


FORWARD = [
    ("search pizza", "click p1", "search burger", "click b1"),
    ("impression pizza p1", "click p1", "impression burger b1", "click b1"),
    ("search pizza", "click p1", "search burger"),
]


@pytest.mark.parametrize("events_of_one", FORWARD)
def test_a_log_with_the_newest_first_is_refused(tmp_path: Path, events_of_one: tuple[str, ...]) -> None:
    """Read backwards, a click would be one on the search before its own."""
    rows = [row for n in range(20) for row in session(n, *events_of_one)]
    pages = list(read_log(events(tmp_path / "log.jsonl", *rows)))
    assert {(page.query, *page.clicks) for page in pages} <= {("pizza", "p1"), ("burger", "b1"), ("burger",)}  # type: ignore[union-attr]
    path = events(tmp_path / "backwards.jsonl", *reversed(rows))
    with pytest.raises(InputError, match=r"backwards.jsonl is not in the order of time: .* sort it, oldest first"):
        list(read_log(path))


def test_clocks_that_differ_by_seconds_are_no_reason_to_refuse(tmp_path: Path) -> None:
    rows = []
    for n in range(100):
        one = session(n, "view home", "search pizza", "click p1")
        if n % 20 == 0:
            one[0]["time"] = one[1]["time"] + 2.5  # type: ignore[operator]
        rows += one
    log = read_log(events(tmp_path / "log.jsonl", *rows))
    assert [(page.query, page.clicks) for page in log] == [("pizza", ["p1"])] * 100  # type: ignore[union-attr]
    assert not log.rejects.count


def test_order_does_not_matter_where_events_name_their_search(tmp_path: Path) -> None:
    rows = [row | {"search_id": f"{n}"} for n in range(20) for row in session(n, "search pizza", "click p1")]
    log = read_log(events(tmp_path / "log.jsonl", *reversed(rows)))
    assert [page.clicks for page in log] == [["p1"]] * 20  # type: ignore[union-attr]


def test_more_clicks_before_searches_than_after_are_said(tmp_path: Path) -> None:
    rows = [{**row, "time": None} for n in range(20) for row in session(n, "search pizza", "click p1", "click p2")]
    first = {"event": "search", "query": "x", "session": "s", "results": ["1"]}
    log = read_log(events(tmp_path / "log.jsonl", first, *reversed(rows)))
    list(log)
    said = (
        "40 clicks come before the first search of their session or user, 0 after it: is the log in the order of time?"
    )
    assert said in log.notes
    (check,) = [check for check in validate(log) if check.name == "joined events"]
    assert check.verdict == "WARN"
    assert said in check.found


def test_shown_results_with_a_query_are_a_search(tmp_path: Path) -> None:
    shown = [{"event": "impression", "query": "ny", "session": "s", "doc_id": doc_id} for doc_id in ("1", "2")]
    path = events(tmp_path / "log.jsonl", *shown, {"event": "click", "session": "s", "doc_id": "2"}, *shown)
    pages = [Impression("ny", ["1", "2"], clicks, user="s") for clicks in (["2"], [])]
    assert list(read_log(path)) == pages


def test_what_is_shown_after_a_search_does_not_take_its_clicks(tmp_path: Path) -> None:
    """Results for a related query, and a click on an earlier one."""
    rows: list[dict[str, object]] = [
        {"event": "search", "query": "ny", "results": ["1", "2"]},
        {"event": "impression", "query": "related", "doc_id": "9"},
        {"event": "click", "doc_id": "2"},
    ]
    found = list(read_log(events(tmp_path / "log.jsonl", *({**row, "session": "s"} for row in rows))))
    assert [(page.query, page.clicks) for page in found] == [("ny", ["2"]), ("related", [])]  # type: ignore[union-attr]


def test_a_view_of_search_results_without_an_item_is_a_search(tmp_path: Path) -> None:
    """As web analytics tells of it: the results are events of their own."""
    rows = [
        {"event_name": "view_search_results", "search_term": "ny", "session": "s"},
        {"event_name": "view_item_list", "item_id": "1", "session": "s"},
        {"event_name": "view_item_list", "item_id": "2", "session": "s"},
        {"event_name": "select_item", "item_id": "2", "session": "s"},
    ]
    (page,) = read_log(events(tmp_path / "log.jsonl", *rows))
    assert (page.query, page.results, page.clicks) == ("ny", ["1", "2"], ["2"])  # type: ignore[union-attr]


@pytest.mark.parametrize("named", [{}, {"search_id": "1"}])
def test_a_view_of_the_results_of_a_search_is_no_other_search(tmp_path: Path, named: dict[str, str]) -> None:
    rows: list[dict[str, object]] = [
        {"event": "search", "query": "ny", "results": ["1", "2"]},
        {"event": "search_results_viewed", "query": "ny"},
        {"event": "click", "doc_id": "2"},
    ]
    (page,) = read_log(events(tmp_path / "log.jsonl", *({**row, **named, "session": "s"} for row in rows)))
    assert (page.query, page.results, page.clicks) == ("ny", ["1", "2"], ["2"])  # type: ignore[union-attr]
