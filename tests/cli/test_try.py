"""`try` on logs of every kind: pages with times, clicks alone, ids alone, and too few."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
WORDS = ("apple", "pear", "plum", "fig", "kiwi", "lime", "date", "melon")


def write_pages(folder: Path, n: int = 600) -> None:
    ids = [f"d{i}" for i in range(8)]
    pages = []
    for i in range(n):
        wanted = i * 7 % 8
        pages.append({"query": f"{WORDS[wanted]} {('x', 'best', 'cheap')[i % 3]}", "user": f"u{i % 50}", "results": ids,
                      "clicks": [ids[wanted]], "time": 1_700_000_000 + 3600 * i})  # fmt: skip
    (folder / "log.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    docs = [{"doc_id": d, "title": f"{word} fruit"} for d, word in zip(ids, WORDS, strict=True)]
    (folder / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))


def test_from_pages_to_a_model_a_report_and_insights(command: Run, tmp_path: Path) -> None:
    write_pages(tmp_path)
    done = command("try", "log.jsonl", "--docs", "docs.jsonl", "--out", "out", "--budget", "5s", cwd=tmp_path)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert 7 <= len(lines) <= 11
    assert lines[0].startswith("the log: 600 clicks, 24 queries, 8 documents, 2023-11-14 to 2023-12-09")
    assert "the order that people were shown reaches nDCG@5" in done.out
    assert "the best model: " in done.out
    out = tmp_path / "out"
    for name in (
        "report.html",
        "model/manifest.json",
        "graph/manifest.json",
        "insights/insights.html",
        "insights/synonyms.txt",
    ):
        assert (out / name).is_file(), name
    found = command("search", "out/model", "apple", "--json", cwd=tmp_path)
    assert found.json["hits"][0]["doc_id"] == "d0"
    again = command(
        "try", "log.jsonl", "--docs", "docs.jsonl", "--out", "out", "--budget", "5s", "--json", cwd=tmp_path
    )
    assert again.code == 0, again.err
    assert again.json["model"] in {row["model"] for row in again.json["compared"]["models"]} | {again.json["model"]}


def test_an_order_that_cannot_be_improved_is_not_called_beaten(command: Run, tmp_path: Path) -> None:
    write_pages(tmp_path)
    pages = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    for page in pages:  # what people want is always shown first
        page["results"].sort(key=lambda d: d not in page["clicks"])
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    done = command("try", "log.jsonl", "--docs", "docs.jsonl", "--out", "out", "--budget", "5s", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "the order that people were shown reaches nDCG@5 1.000" in done.out
    assert "no model gains on it; the one learned: " in done.out
    assert "the best model" not in done.out


def test_clicks_without_pages_and_text_are_held_against_popularity(command: Run, tmp_path: Path) -> None:
    rows = [f"q{i * 7 % 30};p{i * 7 % 30 % 9}" for i in range(900)]
    (tmp_path / "clicks.csv").write_text("search_term;sku\n" + "\n".join(rows) + "\n")
    done = command("try", "clicks.csv", "--out", "out", "--budget", "5s", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "--columns query=search_term,doc_id=sku" in done.out
    assert "a fifth of the queries" in done.out or "too few searches" in done.out
    assert (tmp_path / "out/model/manifest.json").is_file()


@pytest.mark.parametrize("n", [12, 30])
def test_too_small_a_log_is_told_so(command: Run, tmp_path: Path, n: int) -> None:
    (tmp_path / "tiny.csv").write_text("query,doc_id\n" + "".join(f"word{i},d{i % 3}\n" for i in range(n)))
    done = command("try", "tiny.csv", "--out", "out", cwd=tmp_path)
    assert done.code == 1
    assert done.err.startswith(f"clickbridge: the log has {n} clicks; learning needs 50")
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_else_is_left_alone(command: Run, tmp_path: Path) -> None:
    write_pages(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("x")
    done = command("try", "log.jsonl", "--out", "mine", cwd=tmp_path)
    assert (done.code, done.err) == (
        1, "clickbridge: mine holds something else: choose another --out, or remove it\n")  # fmt: skip
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


def test_validate_and_insights_from_the_command_line(command: Run, tmp_path: Path) -> None:
    write_pages(tmp_path)
    good = command("validate", "log.jsonl", "--docs", "docs.jsonl", "--json", cwd=tmp_path)
    assert good.code == 0, good.err
    assert {check["verdict"] for check in good.json["checks"]} <= {"PASS", "WARN"}
    (tmp_path / "bad.jsonl").write_text("no\n" * 9 + (tmp_path / "log.jsonl").read_text().splitlines()[0] + "\n")
    bad = command("validate", "bad.jsonl", cwd=tmp_path)
    assert bad.code == 1
    assert "FAIL  readable lines" in bad.out
    command("ingest", "log.jsonl", "--docs", "docs.jsonl", "--out", "g", cwd=tmp_path)
    found = command("insights", "g", "--out", "told", "--json", cwd=tmp_path)
    assert found.code == 0, found.err
    assert found.json["same_need"] == 8
    nothing = command("insights", "nowhere", "--out", "told2", cwd=tmp_path)
    assert (nothing.code, nothing.err.count("\n")) == (1, 1)


def test_the_demo_says_how_to_start_its_page_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from clickbridge.cli.demo import _end_on_page

    for serve in (True, False):
        _end_on_page(tmp_path, serve)
        said = " ".join(capsys.readouterr().err.split())
        assert said.startswith("the search page: clickbridge serve online=")
        assert said.endswith("--min-users 1")


def test_a_page_that_cannot_be_served_is_refused_before_the_work(
    call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pages(tmp_path, 60)
    monkeypatch.delitem(sys.modules, "clickbridge.serve.run", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = call("try", tmp_path / "log.jsonl", "--out", tmp_path / "out", "--serve")
    assert (done.code, done.out) == (2, "")
    assert done.err == "clickbridge: this needs uvicorn: pip install 'clickbridge[serve]'\n"
    assert not (tmp_path / "out").exists()
