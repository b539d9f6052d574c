"""`clickbridge compare`: the table, the files it writes, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_table_files_and_a_second_call(command: Run, tiny: Path) -> None:
    line = ("compare", "graph", "--lists", "lists.jsonl", "--models", "cos-click", "--save-dir", "kept")
    files = ("--report", "r.html", "--csv", "q.csv")
    first = command(*line, *files, "--min-clicks", "1", cwd=tiny)
    assert first.code == 0
    print(first.out)
    head, given, cos, *second_table = (line for line in first.out.splitlines() if line.strip())
    assert head.split()[:5] == ["model", "nDCG@1", "nDCG@3", "nDCG@5", "AP"]
    assert (given.split()[0], cos.split()[0]) == ("given", "cos-click")
    assert any("1/2/0" in line for line in second_table)
    assert first.err.splitlines() == [
        "3 judged queries; against given: ▲ better, ▼ worse, by the paired t-test at .05 (doubled at .01); "
        "all p-values are Holm-corrected",
        "report: r.html",
    ]
    page = (tiny / "r.html").read_text()
    assert page.count("<svg") >= 3
    assert "clickbridge compare graph --lists lists.jsonl --models cos-click" in page
    assert (tiny / "q.csv").read_text().startswith("query_id,query,clicks,words,model,no_score,nDCG@1")
    second = command(*line, "--json", "--threads", "1", "--memory", "1GiB", cwd=tiny)
    assert (second.code, second.err) == (0, "")
    assert second.json["reused"] == ["given", "cos-click"]
    assert [row["no_score"] for row in second.json["models"]] == [0, 2]
    assert second.json["models"][1]["marks"] == {"nDCG@1": "", "nDCG@3": "", "nDCG@5": "", "AP": ""}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--models", "foo"], "no model 'foo'; there are auto, given,"),
        (["--models", "bm25", "--dims", "many"], "--dims takes whole numbers, such as 100,300,600; got 'many'"),
        (["--models", "pls", "--dims", "0"], "dim must be a whole number, 1 to 100,000; got 0"),
        (["--models", "bm25", "--memory", "much"], "--memory is a size, such as 12GiB or 800MiB; got 'much'"),
        (["--models", "bm25", "--dim", "3"], "none of given, bm25 has the setting 'dim'"),
        (["--models", "bm25", "--baseline", "foo"], "no model 'foo'; there are auto, given,"),
        (["--models", "bm25", "--report", "none/r.html"], "cannot write none/r.html: its folder does not exist"),
        (["--models", "bm25", "--report", "lists.jsonl"], "{tiny}/lists.jsonl would be read and written"),
        (["--models", "bm25,vsm,bm25+vsm", "--set", "k1=x"], "k1 must be a number, 0 to 1,000; got 'x'"),
    ],
)
def test_wrong_usage(call: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], line: str) -> None:
    monkeypatch.chdir(tiny)
    result = call("compare", "graph", "--lists", "lists.jsonl", *words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("clickbridge: " + line.format(tiny=tiny.resolve()))
    assert result.err.count("\n") == 1


def test_lists_without_labels_are_refused(call: Run, tiny: Path) -> None:
    (tiny / "bare.jsonl").write_text('{"query_id":"1","query":"a","results":["ny"]}\n')
    result = call("compare", tiny / "graph", "--lists", tiny / "bare.jsonl", "--models", "bm25")
    assert result.code == 1
    assert result.err == "clickbridge: no list has a label above 0: compare needs judged lists, with `labels`\n"
