"""`kill -9` in the middle of ingest and of fit: the old artifact is as it was, and the next run succeeds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickbridge import ClickGraph
from clickbridge.io.artifact import open_artifact
from clickbridge.models.model_folder import load

Run = Callable[..., Any]
COMMAND = str(Path(sys.executable).with_name("clickbridge"))
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def referenced(path: Path) -> dict[str, bytes]:
    """The manifest and the files it names: what the artifact is."""
    files = json.loads((path / "manifest.json").read_text())["files"].values()
    return {name: (path / name).read_bytes() for name in ["manifest.json", *(f["file"] for f in files)]}


def until(condition: Callable[[], Any], process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "ended before it could be killed"
        assert time.monotonic() < end
        time.sleep(0.001)


def kill(process: subprocess.Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("old", [True, False], ids=["over an old graph", "new"])
def test_ingest_killed_in_the_middle_of_its_log(call: Run, tiny: Path, old: bool) -> None:
    graph = tiny / ("graph" if old else "fresh")
    before = referenced(graph) if old else {}
    line = [COMMAND, "ingest", "-", "--docs", str(tiny / "docs.jsonl"), "--out", str(graph)]
    process = subprocess.Popen(line, stdin=subprocess.PIPE, **QUIET)  # type: ignore[call-overload]
    assert process.stdin is not None
    process.stdin.write((tiny / "log.jsonl").read_bytes())
    process.stdin.flush()
    until(lambda: list(tiny.glob("graph/.scratch" if old else ".fresh.new-*/.scratch")), process)
    refused = call("ingest", tiny / "log.jsonl", "--out", graph)
    assert refused.code == 1
    assert refused.err == f"clickbridge: another process is writing {graph}: wait for it, or write elsewhere\n"
    kill(process)
    process.stdin.close()
    assert graph.exists() == old
    if old:
        assert referenced(graph) == before
        assert ClickGraph.open(graph).n_queries == 4
    again = call("ingest", tiny / "log.jsonl", "--out", graph, "--json")
    assert (again.code, again.json["queries"]) == (0, 4)
    assert not [p.name for p in tiny.iterdir() if p.name.startswith(".")]
    assert not (graph / ".scratch").exists()
    assert {p.name for p in graph.iterdir()} == set(referenced(graph))


def test_ingest_killed_while_it_writes(call: Run, tiny: Path) -> None:
    """As soon as files of the next generation appear."""
    graph = tiny / "graph"
    for pattern in ("queries.2.parquet", "impressions.*.2.npy"):
        before = referenced(graph)
        line = [COMMAND, "ingest", str(tiny / "log.jsonl"), "--out", str(graph)]
        process = subprocess.Popen(line, **QUIET)  # type: ignore[call-overload]
        until(lambda p=pattern: list(graph.glob(p)), process)
        process.kill()
        process.wait()
        if json.loads((graph / "manifest.json").read_text())["generation"] == 1:
            assert referenced(graph) == before
        assert ClickGraph.open(graph).n_queries == 4
    assert call("ingest", tiny / "log.jsonl", "--out", graph).code == 0
    assert {p.name for p in graph.iterdir()} == set(referenced(graph))


@pytest.mark.parametrize("delay", [0.4, 0.8, 1.2, "at the first file", "at a later file"])
def test_fit_killed(call: Run, tiny: Path, delay: float | str) -> None:
    model = tiny / "model"
    before = load(model).rank("pizza")
    line = [COMMAND, "fit", str(tiny / "graph"), "--model", "bm25", "--set", "k1=3", "--out", str(model)]
    process = subprocess.Popen(line, **QUIET)  # type: ignore[call-overload]
    if isinstance(delay, float):
        time.sleep(delay)
    else:
        pattern = "queries.clicks.2.npy" if delay == "at the first file" else "images.*.2.npy"
        until(lambda: list(model.glob(pattern)), process)
    process.kill()
    process.wait()
    manifest = open_artifact(model, "model").manifest
    found = load(model).rank("pizza")
    assert found.doc_ids[0] == "pizza"
    if manifest["generation"] == 1:
        assert manifest["params"]["k1"] == 1.2
        assert found == before
    else:
        assert manifest["params"]["k1"] == 3.0
    assert call("fit", tiny / "graph", "--model", "bm25", "--out", model).code == 0
    assert load(model).rank("pizza") == before
    assert {p.name for p in model.iterdir()} == set(referenced(model))
    assert not [p.name for p in tiny.iterdir() if p.name.startswith(".")]


def test_interrupt_leaves_nothing(tiny: Path) -> None:
    """Control-C is gentler: everything half-written is removed at once."""
    # A shell that runs the tests in the background has them ignore the signal.
    heed = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    line = [sys.executable, "-c", heed, COMMAND, "ingest", "-", "--out", str(tiny / "fresh")]
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.write((tiny / "log.jsonl").read_bytes())
    process.stdin.flush()
    until(lambda: list(tiny.glob(".fresh.new-*/.scratch/*")), process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err == b"clickbridge: interrupted; nothing was left half-written\n"
    assert not [p.name for p in tiny.iterdir() if "fresh" in p.name]
