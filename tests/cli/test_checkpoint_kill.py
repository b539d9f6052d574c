"""`fit --checkpoint`: killed in the middle, run again, the same model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from clickbridge import build_model
from oracles.latent import random_clicks

COMMAND = str(Path(sys.executable).with_name("clickbridge"))


def files(folder: Path) -> dict[str, str]:
    entries = json.loads((folder / "manifest.json").read_text())["files"]
    return {name: entry["sha256"] for name, entry in entries.items()}


@pytest.mark.parametrize("spec", ["rmls", "pls"])
def test_a_process_killed_in_the_middle(spec: str, tmp_path: Path) -> None:
    graph = tmp_path / "graph"
    random_clicks(5).save(graph)
    kept, out = tmp_path / "kept", tmp_path / "model"
    more = ["--set", "iterations=400", "--set", "tolerance=0"] if spec == "rmls" else []
    line = [COMMAND, "fit", str(graph), "--model", spec, "--dim", "4", "--seed", "1", *more]
    with_checkpoint = [*line, "--out", str(out), "--checkpoint", str(kept)]
    process = subprocess.Popen(with_checkpoint, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(kept.glob("*/manifest.json")):
        assert process.poll() is None, "ended before it could be killed"
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not out.exists()
    for command in (with_checkpoint, [*line, "--out", str(tmp_path / "whole")]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stderr.count("Traceback")) == (0, 0)
    assert files(out) == files(tmp_path / "whole")
    assert not kept.exists(), "removed when the model is there"


def test_another_fit_in_the_same_folder_removes_only_its_own(tmp_path: Path, call: Any) -> None:
    graph, kept = random_clicks(5), tmp_path / "kept"
    graph.save(tmp_path / "graph")
    build_model("pls", {"dim": 4}).fit(graph, checkpoint=kept)
    before = sorted(path.name for path in kept.iterdir())
    done = call(
        "fit", tmp_path / "graph", "--model", "rmls", "--dim", 4, "--out", tmp_path / "model", "--checkpoint", kept
    )
    assert done.code == 0
    assert sorted(path.name for path in kept.iterdir()) == before


def test_the_folder_is_refused_in_one_line(tmp_path: Path, call: Any) -> None:
    random_clicks(5).save(tmp_path / "graph")
    (tmp_path / "file").write_text("x")
    fit = ("fit", tmp_path / "graph", "--model", "pls", "--out", tmp_path / "model", "--checkpoint")
    below = f"needs a folder that can be written; got {tmp_path}/file/kept/here, and {tmp_path}/file is a file: choose"
    for wrong, said in (
        ("file", "is a folder"),
        ("graph", "of its own"),
        ("model", "of its own"),
        ("file/kept/here", below),
        ("/proc/kept", "cannot be written ("),  # not by root either
    ):
        refused = call(*fit, tmp_path / wrong)
        assert refused.code == 2
        assert said in refused.err
        assert refused.err.count("\n") == 1, "refused before anything else is said"
