"""The verb `update` on a saved model, and outputs that must not fall on inputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clickbridge import load
from clickbridge.models.model_folder import save

COMMAND = [sys.executable, "-m", "clickbridge"]
LOG = "".join(
    json.dumps({"query": q, "results": ["a", "b", "c"], "clicks": [c]}) + "\n"
    for q, c in (("red river", "a"), ("blue lake", "b"), ("red river", "c"), ("green hill", "c"))
)
DOCS = "".join(
    json.dumps({"doc_id": d, "title": t}) + "\n"
    for d, t in (("a", "river red"), ("b", "lake of blue"), ("c", "a hill in green"))
)


def run(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "log.jsonl").write_text(LOG)
    (tmp_path / "docs.jsonl").write_text(DOCS)
    run("ingest", tmp_path / "log.jsonl", "--docs", tmp_path / "docs.jsonl", "--out", tmp_path / "graph")
    return tmp_path


@pytest.mark.parametrize("spec", ["pls", "bm25+pls", "bm25+walk", "robust:bm25", "bm25+ssi", "bltm"])
def test_update_takes_in_a_log_once(folder: Path, spec: str) -> None:
    model, today = folder / "model", folder / "today.jsonl"
    run("fit", folder / "graph", "--model", spec, "--out", model)
    today.write_text('{"query":"red river","results":["a","b"],"clicks":["b"]}\n')  # a query it knows already
    run("update", model, today)
    assert "was already added to" in run("update", model, today, code=1).stderr
    run("update", model, today, "--again")
    new = folder / "new.jsonl"
    new.write_text('{"doc_id":"d","title":"yellow river"}\n{"doc_id":"a","title":"crimson stream"}\n')
    (folder / "gone.txt").write_text("b\nnobody\n")
    assert "1 id " in run("update", model, "--docs", new, "--remove-docs", folder / "gone.txt").stderr
    found = [
        json.loads(run("search", model, asked, "--json").stdout)["hits"] for asked in ("red river", "crimson stream")
    ]
    titles = {hit["doc_id"]: hit["title"] for hits in found for hit in hits}
    assert "b" not in titles
    assert titles["a"] == "crimson stream"


def test_update_refuses_what_it_cannot_do(folder: Path) -> None:
    model = folder / "model"
    run("fit", folder / "graph", "--model", "rrf:bm25+lmir", "--out", model)
    save(load(model).fitted._with(log=None), model)  # as versions before this one saved it
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    refused = run("update", model, folder / "log.jsonl", code=1)
    assert refused.stderr == "clickbridge: rrf:bm25+lmir cannot be updated: fit it again\n"
    assert {path: path.read_bytes() for path in model.rglob("*") if path.is_file()} == before
    assert "needs a log" in run("update", model, code=2).stderr
    assert "no file" in run("update", model, folder / "nowhere.jsonl", code=1).stderr
    assert "standard input" in run("update", model, "-", code=2).stderr


def test_outputs_do_not_fall_on_inputs(folder: Path) -> None:
    log = folder / "log.jsonl"
    run("split", log, "--at", "50%", "--by", "query", "--train", log, "--lists", folder / "l.jsonl", code=2)
    run("split", log, "--at", "50%", "--by", "query", "--train", folder / "t", "--lists", folder / "t", code=2)
    run("ingest", log, "--out", folder / "other", "--rejects", log, code=2)
    graph = folder / "graph"
    inside = run("ingest", log, "--out", graph, "--rejects", graph / "rejects.jsonl", code=2)
    assert "lies inside" in inside.stderr
    assert log.read_text() == LOG


def test_rejected_documents_are_written_down(folder: Path) -> None:
    docs = folder / "bad.jsonl"
    docs.write_text(DOCS * 50 + '{"title":"no id"}\n')
    done = run("ingest", folder / "log.jsonl", "--docs", docs, "--out", folder / "graph2")
    assert "1 of 151 documents left out" in done.stderr
    assert "doc_id" in (folder / "graph2" / "rejects.jsonl").read_text()
