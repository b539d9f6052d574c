"""`reproduce` on the command line: tables, JSON, files, refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
TINY = ("--quick", "--fraction", "0.003", "--dim", "20")


@pytest.fixture(autouse=True)
def without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLICKBRIDGE_DATA", raising=False)


def test_tables_and_files(call: Run, tmp_path: Path) -> None:
    found = call("reproduce", *TINY, "--table", "13-3", "--table", "11M-F3", "--out", tmp_path / "made")
    assert found.code == 0
    assert "PLS (word)" in found.out
    assert "0.6380" in found.out  # the paper's own
    assert "simulated half-year" in found.out
    assert "4 tables" in found.err  # and the tests of the first, and the claims
    made = tmp_path / "made"
    assert {p.name for p in made.iterdir()} == {
        "13-3.csv", "13-3-tests.csv", "11M-F3.csv", "11M-F3.svg", "claims.csv", "tables.md", "parts",
    }  # fmt: skip
    page = (made / "tables.md").read_text()
    assert page.index("## 13-3: Relevance") < page.index("## 11M-F3: ") < page.index("](11M-F3.svg)")
    assert "| 0.6380 | 0.6660 | 0.6770 |" in page
    assert "## claims: Claims of the papers" in page
    assert re.search(r"4 tables in \d+ s of processor time, on (1 core|\d+ cores),", page)
    assert re.search(r"Seconds by key: 13-3 \d+, 11M-F3 \d+\.", page)
    assert page.count("as printed") >= 4
    assert "p vs BM25" in page
    assert (made / "11M-F3.svg").read_text().startswith("<svg")


def test_a_second_run_in_the_folder_reads_what_is_there(call: Run, tmp_path: Path) -> None:
    command = ("reproduce", *TINY, "--table", "11R-1", "--out", tmp_path)
    first = call(*command)
    kept = tmp_path / "parts" / "11R-1.json"
    kept.write_text(kept.read_text().replace("Queries that mean", "Kept: queries that mean"))
    key, data = first.out.splitlines()[:2]
    assert key.startswith("11R-1  Queries that mean")
    assert data.startswith("the demo: real documents")
    again = call(*command)
    assert again.out == first.out.replace("Queries that mean", "Kept: queries that mean")
    assert "Kept: queries that mean" in (tmp_path / "tables.md").read_text()
    assert "Kept" not in call(*command, "--seed", "1").out  # another run


def test_json(call: Run) -> None:
    table, tests, claims = call("reproduce", *TINY, "--table", "12-3", "--clicks", "dbn", "--json").json
    assert [tests["table"], claims["table"]] == ["12-3-tests", "claims"]
    assert table["table"] == "12-3"
    assert "dbn clicks" in table["data"]
    by_label = {row["model"]: row["paper"] for row in table["rows"]}
    assert by_label["BM25, as printed"] == [0.441, 0.643, 0.663, 0.67]
    assert by_label["BM25, ours"] is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--table", "14-1"], "no table '14-1'"),
        (["--fraction", "0"], "--fraction must be"),
        (["--clicks", "ubm"], "clicks must be one of"),
    ],
)
def test_refusals(call: Run, words: list[str], says: str) -> None:
    refused = call("reproduce", *words)
    assert refused.code == 2
    assert says in refused.err
