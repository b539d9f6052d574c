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
    """Events a second apart, as `search pizza` or `click p1`."""
    out = []
    for second, (kind, what) in enumerate(event.split() for event in events):
        key = "query" if kind == "search" else "doc_id"
        out.append({"event": kind, "session": f"s{number}", key: what, "time": 1e9 + 60 * number + second})
    return out


def test_a_log_with_the_newest_first_is_refused(tmp_path: Path) -> None:
    """Read backwards, a click would be one on the search before its own."""
    rows = [row for n in range(20) for row in session(n, "search pizza", "click p1", "search burger", "click b1")]
    assert len(list(read_log(events(tmp_path / "log.jsonl", *rows)))) == 40
    path = events(tmp_path / "backwards.jsonl", *reversed(rows))
    with pytest.raises(InputError, match=r"a search is earlier than what its session did before it in the log: sort"):
        list(read_log(path))


def test_more_clicks_before_searches_than_after_are_said(tmp_path: Path) -> None:
    rows = [{**row, "time": None} for n in range(20) for row in session(n, "search pizza", "click p1", "click p2")]
    log = read_log(events(tmp_path / "log.jsonl", {"event": "search", "query": "x", "session": "s", "results": ["1"]},
                          *reversed(rows)))  # fmt: skip
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
