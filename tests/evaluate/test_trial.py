"""The child process of a trial: it runs this very clickbridge, and nothing that lies in the current folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pytest

import clickbridge
from clickbridge import ClickGraph, Given
from clickbridge.engines.local import Local
from clickbridge.evaluate import trial
from clickbridge.evaluate.trial import perform
from clickbridge.io.lists import write_lists
from clickbridge.models.study import Study
from clickbridge.types import ResultList

LISTS = [ResultList("1", "ny pizza", ["rome", "pizza", "ny"], [0.0, 2.0, 1.0])]
HOSTILE = "open({marker!r}, 'a').write(__name__)\nraise SystemExit('a file of the current folder was run')\n"


@pytest.fixture
def data(small_graph: ClickGraph, tmp_path: Path) -> Path:
    small_graph.save(tmp_path / "graph")
    write_lists(tmp_path / "lists.jsonl", LISTS)
    return tmp_path


def test_no_file_of_the_current_folder_is_run(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library's name, a module of the standard library, and the package itself."""
    here, marker = data / "here", data / "was-run"
    here.mkdir()
    for name in ("orjson.py", "statistics.py", "numpy.py", "clickbridge.py", "sitecustomize.py"):
        (here / name).write_text(HOSTILE.format(marker=str(marker)))
    monkeypatch.chdir(here)
    found = clickbridge.compare(data / "graph", data / "lists.jsonl", "cos-click")
    assert [m.spec for m in found.models] == ["given", "cos-click"]
    assert not marker.exists()


@pytest.mark.parametrize("how", ["PYTHONPATH", "relative PYTHONPATH", "sys.path"])
def test_the_child_runs_the_clickbridge_of_its_parent(data: Path, how: str) -> None:
    """A checkout that is not installed, found by PYTHONPATH or by a program's own sys.path; another one may be."""
    checkout = data / "checkout"
    shutil.copytree(Path(clickbridge.__file__).parent, checkout / "clickbridge")
    trial = checkout / "clickbridge" / "evaluate" / "trial.py"
    trial.write_text(trial.read_text() + "\nprint(__file__, sys.argv[0], file=open('seen', 'a'))\n")
    program = "import clickbridge; clickbridge.compare('graph', 'lists.jsonl', 'cos-click')"
    path = {"PYTHONPATH": str(checkout), "relative PYTHONPATH": "checkout", "sys.path": ""}[how]
    if not path:
        program = f"import sys; sys.path.insert(0, {str(checkout)!r}); {program}"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | (
        {"PYTHONPATH": path} if path else {}
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=data, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (data / "seen").read_text().splitlines() == [f"{trial} -c"] * 3, "the parent and its two children"


def test_the_child_has_the_limits_of_the_engine(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[dict[str, Any]] = []
    run = subprocess.run

    def watched(line: list[str], *, input: bytes, **more: Any) -> Any:
        jobs.append(orjson.loads(input))
        return run(line, input=input, **more)

    monkeypatch.setattr("clickbridge.evaluate.trial.subprocess.run", watched)
    few = clickbridge.compare(data / "graph", data / "lists.jsonl", "pls", engine=Local(1, 1 << 30))
    assert [job["engine"] for job in jobs] == [{"name": "local", "threads": 1, "memory": 1 << 30}] * 2
    monkeypatch.undo()
    all_there_is = clickbridge.compare(data / "graph", data / "lists.jsonl", "pls")
    assert [scores.tobytes() for scores in few["pls"].trial.scores] == [
        scores.tobytes() for scores in all_there_is["pls"].trial.scores
    ]
    seen: list[Any] = []
    monkeypatch.setattr(Given, "fit", lambda self, graph, engine: seen.append(engine) or self.fit_on(Study(graph)))
    perform(jobs[0] | {"lists": str(data / "lists.jsonl"), "out": str(data / "out")})
    assert [(engine.threads, engine.memory) for engine in seen] == [(1, 1 << 30)]


def test_the_time_of_a_query_is_the_middle_one_in_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.25, 1.0, 1.5, 2.0, 3.0])
    monkeypatch.setattr(trial, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    lists = [ResultList(str(n), "q", ["a", "b"]) for n in range(3)]
    assert trial.query_milliseconds(SimpleNamespace(rerank_lists=list), lists) == 500.0  # type: ignore[arg-type]


def test_the_peak_is_in_megabytes() -> None:
    held = np.ones(8 << 20)  # 64 MB
    assert held.nbytes / 2**20 < trial.peak_mb() < 64_000
