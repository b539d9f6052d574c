"""What verbs say in plain words: what was added and is not known yet, what order says nothing, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickbridge import Document, build_model
from clickbridge.models.known_words import unknown_words

Run = Callable[..., Any]


@pytest.mark.parametrize("spec", ["bm25", "pls", "bm25+pls"])
def test_words_that_wait_for_the_next_fit(tiny: Path, spec: str) -> None:
    from clickbridge import ClickGraph

    model = build_model(spec).fit(ClickGraph.open(tiny / "graph"))
    new = [Document("new", {"title": "Zorbulating pizzas, Zorbulating bagels"})]
    assert unknown_words(model.fitted, new) == {"zorbulating"}
    assert unknown_words(build_model("cos-click").fit(ClickGraph.open(tiny / "graph")).fitted, new) == set()


def test_update_says_what_it_added(call: Run, tiny: Path) -> None:
    lines = [{"doc_id": "new", "title": "zorbulating flarp pizza"}, {"doc_id": "ny", "title": "New York"}]
    (tiny / "new.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = call("update", tiny / "model", "--docs", tiny / "new.jsonl", "--json")
    assert result.err == "1 document added, 1 changed; 2 words in them are unknown until the next fit\n"
    assert (result.json["added"], result.json["unknown_words"], result.json["documents"]) == (1, 2, 6)


def test_simulate_does_not_write_into_a_graph(call: Run, tiny: Path) -> None:
    before = sorted((tiny / "graph").iterdir())
    result = call("simulate", "--out", tiny / "graph")
    assert (result.code, "is a GRAPH or a MODEL: choose another --out" in result.err) == (1, True)
    assert sorted((tiny / "graph").iterdir()) == before


def test_simulate_does_not_write_into_a_file(call: Run, tiny: Path) -> None:
    result = call("simulate", "--out", tiny / "log.jsonl")
    assert result.code == 1
    assert "log.jsonl is a file: --out is the folder to write the simulated log to" in result.err


@pytest.mark.parametrize("spec", ["rmls", "bltm"])
def test_fit_prints_no_long_lists(call: Run, tiny: Path, spec: str) -> None:
    result = call("fit", tiny / "graph", "--model", spec, "--out", tiny / "new", "--dim", "2", "--set", "iterations=3")
    assert result.code == 0
    assert not any(line.startswith(("trace", "bounds")) for line in result.out.splitlines())
    assert max(map(len, result.out.splitlines())) < 100


def test_similar_to_nothing_names_the_query(call: Run, tiny: Path) -> None:
    result = call("similar", tiny / "model", "--query", "")
    assert "None" not in result.err


def test_lists_without_shown_results_have_no_order(call: Run, tmp_path: Path) -> None:
    rows = "".join(f"q{i % 4},d{i % 3},2024-01-{i + 1:02d}\n" for i in range(20))
    (tmp_path / "log.csv").write_text("query,doc_id,time\n" + rows)
    line = ("--at", "60%", "--train", tmp_path / "t.csv", "--lists", tmp_path / "l.jsonl")
    result = call("split", tmp_path / "log.csv", *line)
    assert "lists are in the order of ids, which says nothing; compare with bm25, not given" in result.err
