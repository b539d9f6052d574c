"""The rules of `rank`: every id once; ties and the unscored keep their order, the unscored last."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest

from clickbridge.models.model_folder import load

Run = Callable[..., Any]


@pytest.fixture
def ranked(call: Run, tiny: Path) -> Callable[..., dict[str, list[str]]]:
    def run(model: str, *lists: dict[str, Any]) -> dict[str, list[str]]:
        numbered = [{"query_id": str(i), **record} for i, record in enumerate(lists)]
        (tiny / "in.jsonl").write_text("".join(json.dumps(r) + "\n" for r in numbered))
        result = call("rank", tiny / model, "--lists", tiny / "in.jsonl", "--out", tiny / "out.run")
        assert result.code == 0, result.err
        out: dict[str, list[str]] = {}
        scores: dict[str, list[float]] = {}
        for line in (tiny / "out.run").read_text().splitlines():
            query_id, q0, doc_id, rank, score, name = line.split()
            out.setdefault(query_id, []).append(doc_id)
            scores.setdefault(query_id, []).append(float(score))
            assert (q0, int(rank), name) == ("Q0", len(out[query_id]), model if model == "given" else "bm25")
        for values in scores.values():
            assert (np.diff(np.array(values, dtype=np.float32)) < 0).all()
        for record in numbered:
            assert sorted(out.get(record["query_id"], [])) == sorted(record["results"])
        # Another tool, which sees only the scores, finds the same order.
        by_score: dict[str, list[tuple[float, str]]] = {}
        for item in ir_measures.read_trec_run(str(tiny / "out.run")):
            by_score.setdefault(item.query_id, []).append((-np.float32(item.score), item.doc_id))
        assert {q: [d for _, d in sorted(rows)] for q, rows in by_score.items()} == out
        return out

    return run


def test_unknown_documents_come_last_in_incoming_order(ranked: Run) -> None:
    found = ranked("model", {"query": "pizza", "results": ["x9", "bagel", "x1", "rome", "x5", "pizza"]})
    assert found["0"] == ["pizza", "rome", "bagel", "x9", "x1", "x5"]


def test_documents_without_text_are_unknown(ranked: Run, call: Run, tiny: Path) -> None:
    (tiny / "more.jsonl").write_text('{"query":"q","clicks":["silent"]}\n')
    line = ("ingest", tiny / "log.jsonl", tiny / "more.jsonl", "--docs", tiny / "docs.jsonl", "--out", tiny / "graph")
    assert call(*line).code == 0
    assert call("fit", tiny / "graph", "--model", "bm25", "--out", tiny / "model").code == 0
    found = ranked("model", {"query": "pizza", "results": ["silent", "bagel", "pizza"]})
    assert found["0"] == ["pizza", "bagel", "silent"]


def test_ties_keep_incoming_order(ranked: Run) -> None:
    one, two = ["bagel", "rome", "ny", "[bold]"], ["[bold]", "ny", "rome", "bagel"]
    found = ranked(
        "model", {"query": "slice", "results": [*one, "pizza"]}, {"query": "slice", "results": [*two, "pizza"]}
    )
    assert found == {"0": ["pizza", *one], "1": ["pizza", *two]}


@pytest.mark.parametrize("query", ["zzz", "", "?!", "\u0000"])
def test_query_that_cannot_be_mapped_keeps_the_whole_order(ranked: Run, query: str) -> None:
    results = ["rome", "x1", "pizza", "ny"]
    assert ranked("model", {"query": query, "results": results})["0"] == results


def test_empty_and_many_lists(ranked: Run) -> None:
    found = ranked("model", {"query": "pizza", "results": []}, *({"query": "pizza", "results": ["ny", "pizza"]},) * 50)
    assert "0" not in found
    assert set(map(tuple, found.values())) == {("pizza", "ny")}


def test_given(ranked: Run) -> None:
    results = ["c", "a", "d", "b"]
    found = ranked(
        "given",
        {"query": "any", "results": results},
        {"query": "any", "results": results, "scores": [1, 5, 1, -2.5]},
        {"query": "any", "results": results, "scores": [0, 0, 0, 0]},
    )
    assert found == {"0": results, "1": ["a", "c", "d", "b"], "2": results}


def test_rank_says_what_has_no_score(call: Run, tiny: Path) -> None:
    (tiny / "in.jsonl").write_text('{"query":"zzz","results":["ny"]}\n{"query":"pizza","results":["pizza"]}\n')
    result = call("rank", tiny / "model", "--lists", tiny / "in.jsonl", "--out", tiny / "out.run")
    assert result.err == "bm25 has no score for 1 of 2 lists: these keep their order\n"


def test_command_and_library_agree(ranked: Run, tiny: Path) -> None:
    results = ["rome", "pizza", "x", "ny", "bagel"]
    found = ranked("model", {"query": "city pizza", "results": results})
    assert found["0"] == load(tiny / "model").rerank("city pizza", results).doc_ids
