"""Checks of a log: each passes on a good log, and tells what is wrong with a bad one."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from clickbridge.insight.log_counts import language_of
from clickbridge.insight.validation import FAIL, PASS, WARN, Check, validate, worst
from clickbridge.log.documents import read_docs
from clickbridge.log.readers import read_log
from clickbridge.log.rejects import RejectLog

GOOD = [
    {"query": f"word{i % 40} thing", "user": f"u{i % 90}", "results": ["1", "2", "3"], "clicks": [str(1 + i % 3)],
     "time": 1_700_000_000 + 100 * i}
    for i in range(1200)
]  # fmt: skip


def checks(
    tmp_path: Path, pages: list[dict[str, Any]], docs: list[str] | None = None, more: str = ""
) -> dict[str, Check]:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(page) + "\n" for page in pages) + more)
    named = []
    if docs is not None:
        named = [str(tmp_path / "docs.jsonl")]
        Path(named[0]).write_text("".join(json.dumps({"doc_id": d, "title": "word"}) + "\n" for d in docs))
    log = read_log(str(path), rejects=RejectLog("100%"))
    found = validate(log, read_docs(*named, rejects=RejectLog("100%")) if named else None)
    return {check.name: check for check in found}


def test_a_good_log_passes_every_check(tmp_path: Path) -> None:
    found = checks(tmp_path, GOOD, ["1", "2", "3"])
    assert {name: check.verdict for name, check in found.items() if check.verdict != PASS} == {}
    assert worst(list(found.values())) == PASS
    assert found["clicks"].count == 1200
    assert found["positions"].found.startswith("clicks by position: 1: 33%, 2: 33%, 3: 33%")


def test_each_trouble_is_told_with_count_and_example(tmp_path: Path) -> None:
    soon = time.time() + 10 * 86_400
    pages = [dict(page) for page in GOOD]
    for page in pages[:30]:
        page["time"] = soon
    pages[100]["clicks"] = ["9"]
    for page in pages[200:250]:
        page["clicks"] = ["outside"]
    pages += [{"query": "mail jo@example.org", "user": "x", "results": ["1", "2"], "clicks": ["1"], "time": 1}]
    found = checks(tmp_path, pages, ["1"], more="not json\n" * 40)
    assert (found["readable lines"].verdict, found["readable lines"].count) == (FAIL, 40)
    assert (found["times in the past"].verdict, found["times in the past"].count) == (FAIL, 30)
    assert (found["clicks inside results"].verdict, found["clicks inside results"].count) == (WARN, 51)
    assert "outside" in found["clicks inside results"].examples
    assert found["document ids"].verdict == FAIL
    assert found["personal data"].examples == ("mail [e-mail]",)
    assert found["times in order"].verdict == WARN
    assert all(check.costs for check in found.values() if check.verdict != PASS)


def test_a_robot_is_told(tmp_path: Path) -> None:
    robot = [
        {"query": f"q{i}", "user": "bot", "results": ["1", "2"], "clicks": ["1"], "time": 1_700_000_000 + i}
        for i in range(200)
    ]
    found = checks(tmp_path, [*GOOD, *robot])["robots"]
    assert (found.verdict, found.count) == (WARN, 1)
    assert found.examples == ("60 searches in one minute",)


def test_pages_of_one_document_and_single_queries(tmp_path: Path) -> None:
    pages = [{"query": f"query {i}", "results": ["1"], "clicks": ["1"]} for i in range(100)]
    found = checks(tmp_path, pages)
    assert found["pages of one document"].verdict == FAIL
    assert (found["queries seen again"].verdict, found["queries seen again"].count) == (WARN, 100)
    assert found["times"].verdict == WARN
    assert found["robots"].found.startswith("no users")


def test_ubi_traps_are_told(tmp_path: Path) -> None:
    queries = [
        {"query_id": f"q{i}", "user_query": "shoes", "client_id": "c", "timestamp": "2026-01-01T10:00:00Z",
         "query_response_hit_ids": ["17", "18"]} for i in range(30)
    ]  # fmt: skip
    events = [
        {"action_name": "click", "query_id": f"q{i}", "client_id": "c", "timestamp": "2026-01-01T10:00:05Z",
         "event_attributes": {"object": {"object_id": f"sku{i % 3}"}, "position": {"ordinal": i % 2}}}
        for i in range(30)
    ]  # fmt: skip
    found = checks(tmp_path, [*queries, *events])
    assert found["UBI document ids"].verdict == WARN
    assert "object_id_field" in found["UBI document ids"].found
    assert "counted from 0" in found["UBI ordinals"].found


@pytest.mark.parametrize(
    ("text", "language"),
    [("the king of the road", "english"), ("der die das und", "german"), ("кино", "cyrillic"), ("123", "no letters")],
)
def test_language_by_small_words_and_script(text: str, language: str) -> None:
    assert language_of(text) == language
