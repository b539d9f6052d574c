"""`ingest --memory`: a GRAPH does not depend on it, and what is too little is said in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickbridge.log import aggregate, batches
from clickbridge.simulate.scale import write_log

Run = Callable[..., Any]


@pytest.mark.parametrize("impressions", [None, 4000], ids=["triples", "sessions"])
def test_little_memory_and_small_batches_give_the_same_graph(
    impressions: int | None, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log("one-week", tmp_path / "data", fraction=0.05, impressions=impressions)
    (log,) = (tmp_path / "data").glob("log.*")
    line = ("ingest", log, "--docs", tmp_path / "data/docs.jsonl.gz", "--json", "--out")
    plenty = call(*line, tmp_path / "plenty")
    for module, name in ((batches, "BATCH_RECORDS"), (batches, "BATCH_SHOWN"), (aggregate, "BATCH_DOCUMENTS")):
        monkeypatch.setattr(module, name, 300)
    little = call(*line, tmp_path / "little", "--memory", "64MB")
    assert (plenty.code, little.code) == (0, 0), plenty.err + little.err
    assert little.json == plenty.json
    # Users are hashed by a secret of each GRAPH.
    assert arrays(tmp_path / "little") == arrays(tmp_path / "plenty")


def arrays(graph: Path) -> dict[str, str]:
    files = json.loads((graph / "manifest.json").read_text())["files"]
    return {name: entry["sha256"] for name, entry in files.items() if name.endswith(".npy") and ".user." not in name}


def test_too_little_is_refused(call: Run, tmp_path: Path) -> None:
    refused = call("ingest", tmp_path / "log.jsonl", "--out", tmp_path / "graph", "--memory", "1MB")
    assert (refused.code, refused.err) == (2, "clickbridge: --memory of ingest is 64MB at least; got 1MB\n")
