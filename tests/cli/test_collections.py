"""A test collection without a log: documents, topics, judgments."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
DOCS = {"d1": "new york city", "d2": "pizza by the slice", "d3": "apple pie"}
TOPICS = "1\tpizza slice\n2\tapple\n3\tzzz\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    lines = (json.dumps({"doc_id": doc_id, "title": title}) for doc_id, title in DOCS.items())
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    (tmp_path / "topics.tsv").write_text(TOPICS)
    (tmp_path / "qrels").write_text("1 0 d2 1\n2 0 d3 1\n3 0 d1 1\n")
    return tmp_path


def test_documents_topics_run_and_comparison(call: Run, home: Path) -> None:
    graph, model, run = home / "g", home / "m", home / "bm25.run"
    ingested = call("ingest", "--docs", home / "docs.jsonl", "--out", graph, "--json")
    assert (ingested.code, ingested.json["docs"], ingested.json["clicks"]) == (0, 3, 0)
    assert call("fit", graph, "--model", "bm25", "--out", model).code == 0
    found = call("search", model, "--queries", home / "topics.tsv", "--out", run, "--json")
    assert found.json == {"run": str(run), "model": "bm25", "topics": 3, "answered": 2}
    assert found.err == "bm25 answers 2 of 3 topics\n"
    assert [line.split()[:4] for line in run.read_text().splitlines()] == [
        ["1", "Q0", "d2", "1"],
        ["2", "Q0", "d3", "1"],
    ]
    judged = call("evaluate", run, "--qrels", home / "qrels", "--measures", "MAP,MRR,ndcg_cut_10")
    assert "bm25 answers 2 of 3 queries; the others count 0" in judged.err
    assert judged.out.splitlines()[1].split() == ["bm25", "3", "2", "0.6667", "0.6667", "0.6667"]
    (home / "given.run").write_text("1 Q0 d1 1 3 x\n1 Q0 d2 2 2 x\n1 Q0 d9 3 1 x\n2 Q0 d1 1 2 x\n2 Q0 d3 2 1 x\n")
    line = ("--lists", home / "given.run", "--queries", home / "topics.tsv")
    ranked = call("rank", model, *line, "--out", home / "again.run")
    assert "1 of 5 results is not in the model: no score, so last" in ranked.err
    compared = call("compare", graph, *line, "--qrels", home / "qrels", "--models", "bm25", "--json")
    values = {row["model"]: row["AP"] for row in compared.json["models"]}
    assert values == {"given": 0.5, "bm25": 1.0}
    assert "1 of 3 judged queries has no list: not counted" in compared.err


@pytest.mark.parametrize(
    "words", [[], ["pizza", "--queries", "t"], ["--queries", "t"], ["pizza", "--out", "r"]], ids=str
)
def test_search_needs_a_query_or_topics(call: Run, home: Path, words: list[str]) -> None:
    result = call("search", home / "m", *words)
    assert result.code == 2
    assert result.err == "clickbridge: search needs a query, or --queries TOPICS with --out RUN\n"


def test_nothing_to_ingest(call: Run, home: Path) -> None:
    result = call("ingest", "--out", home / "g")
    assert (result.code, result.err) == (2, "clickbridge: ingest needs a log, --docs, or both\n")


def test_a_model_of_clicks_needs_clicks(call: Run, home: Path) -> None:
    call("ingest", "--docs", home / "docs.jsonl", "--out", home / "g")
    result = call("fit", home / "g", "--model", "pls", "--out", home / "m")
    assert result.code == 1
    assert "no click is left to learn from" in result.err
