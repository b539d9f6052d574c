"""A fit that was stopped goes on from its checkpoint, and gives the same model to the bit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph
from clickbridge.engines.emulation import Emulation
from clickbridge.engines.local import Local
from clickbridge.engines.on_card import OnCard
from clickbridge.errors import ArtifactError, EngineError
from clickbridge.io.checkpoint import Checkpoints
from clickbridge.models.specs import build_model
from oracles.latent import random_clicks

RMLS_SETTINGS = {"dim": 6, "iterations": 4, "tolerance": 0}
CASES: list[tuple[str, dict[str, Any]]] = [
    *[("rmls", {**RMLS_SETTINGS, "plan": plan}) for plan in ("w-sparse", "w-dense", "images", "factors")],
    ("pls", {"dim": 4}),
    ("mpls", {"dim": 3, "combine": "closed"}),
    ("lsi-dt", {"dim": 3}),
    ("lsi-qd", {"dim": 3}),
    ("bm25+rmls", RMLS_SETTINGS),
]


class Killed(Exception):
    pass


def steps_into(lines: list[str]) -> Callable[[str], None]:
    """A watcher that notes the steps of learning; other lines are about what comes before."""
    return lambda line: lines.append(line) if re.search("iteration|step", line) else None


def files(folder: Path) -> dict[str, str]:
    manifest = json.loads((folder / "manifest.json").read_text())
    parts = (folder / "parts").iterdir() if (folder / "parts").is_dir() else ()
    own = {name: entry["sha256"] for name, entry in manifest["files"].items()}
    return own | {f"{part.name}/{name}": digest for part in parts for name, digest in files(part).items()}


@pytest.mark.parametrize(("spec", "settings"), CASES, ids=[f"{s}-{v.get('plan', '')}" for s, v in CASES])
@pytest.mark.parametrize("steps", [1, 2, 99], ids=["after one", "after two", "after all"])
def test_stopped_and_gone_on_with(spec: str, settings: dict[str, Any], steps: int, tmp_path: Path) -> None:
    graph = random_clicks(3)
    lines: list[str] = []
    whole: list[str] = []
    build_model(spec, settings).fit(graph, progress=steps_into(whole)).save(tmp_path / "whole")

    def stop(line: str) -> None:
        steps_into(lines)(line)
        if len(lines) > steps:  # the step before this one is kept, whether steps are told before or after that
            raise Killed

    with nullcontext() if steps == 99 else pytest.raises(Killed):
        build_model(spec, settings).fit(graph, progress=stop, checkpoint=tmp_path / "kept")
    again: list[str] = []
    checkpoints = Checkpoints(tmp_path / "kept")
    model = build_model(spec, settings).fit(graph, progress=steps_into(again), checkpoint=checkpoints)
    model.save(tmp_path / "resumed")
    assert files(tmp_path / "resumed") == files(tmp_path / "whole")
    assert len(again) < len(whole), "all was done again"
    checkpoints.clear()
    assert not (tmp_path / "kept").exists()


def test_what_is_kept_serves_the_same_work_alone(tmp_path: Path) -> None:
    lines: list[str] = []
    settings = {"dim": 5, "iterations": 2, "tolerance": 0}

    def fit(seed: int, graph: ClickGraph) -> int:
        lines.clear()
        build_model("rmls", {**settings, "seed": seed}).fit(
            graph, progress=steps_into(lines), checkpoint=tmp_path / "kept"
        )
        return len(lines)

    graph = random_clicks(3)
    assert fit(0, graph) == 2
    assert fit(0, graph) == 1, "the last pass was kept"
    assert fit(1, graph) == 2, "another seed is other work"
    assert fit(0, random_clicks(4)) == 2, "another log is other work"
    assert fit(0, graph) == 1


@pytest.mark.parametrize("name", ["manifest.json", "state.1.1.npy"])
def test_one_that_is_damaged_says_what_to_do(name: str, tmp_path: Path) -> None:
    checkpoint = Checkpoints(tmp_path / "kept").of("work")
    checkpoint.write((1, np.arange(9)))
    (checkpoint.path / name).write_bytes(b"{")
    with pytest.raises(ArtifactError, match=r"^the checkpoint .* cannot be read: remove it, and learning starts"):
        checkpoint.read()


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "notes.txt").write_text("mine")
    checkpoints = Checkpoints(tmp_path / "kept")
    checkpoint = checkpoints.of(np.arange(3), "work")
    assert checkpoint.read() is None
    checkpoint.write((1, np.arange(4)))
    number, values = checkpoint.read()
    assert (number, values.tolist()) == (1, [0, 1, 2, 3])
    # What a killed writer leaves.
    (tmp_path / "kept" / f".{checkpoint.path.name}.new-{'0' * 16}").mkdir()
    checkpoints.clear()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["notes.txt"]


def test_a_fit_that_is_done_leaves_what_others_keep(tmp_path: Path) -> None:
    """A killed fit is to go on, and one that is running may have kept nothing yet."""
    graph = random_clicks(3)
    (mine, other, third) = (Checkpoints(tmp_path / "kept") for _ in range(3))
    build_model("pls", {"dim": 4}).fit(graph, checkpoint=other)
    build_model("rmls", RMLS_SETTINGS).fit(graph, checkpoint=mine)
    begun = third.of("work")
    mine.clear()
    lines: list[str] = []
    build_model("pls", {"dim": 4}).fit(graph, progress=steps_into(lines), checkpoint=other)
    assert not lines, "every step was kept"
    other.clear()
    assert not (tmp_path / "kept").exists()
    begun.write((1, np.arange(4)))
    assert begun.read()[0] == 1


def test_what_a_card_kept_serves_only_the_same_precision(tmp_path: Path) -> None:
    graph, lines = random_clicks(3), list[str]()

    def passes_with(store: str) -> int:
        lines.clear()
        engine = OnCard(card=Emulation(), store=store)
        model = build_model("rmls", {**RMLS_SETTINGS, "iterations": 2})
        model.fit(graph, engine=engine, progress=steps_into(lines), checkpoint=tmp_path / "kept")
        return len(lines)

    assert [passes_with(store) for store in ("float32", "bfloat16", "float32")] == [2, 2, 1]


# --- memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["pls", "mpls", "lsi-dt", "lsi-qd"])
def test_what_cannot_fit_is_refused_by_fit_and_plan(spec: str) -> None:
    graph = random_clicks(1)
    model, little = build_model(spec, {"dim": 3}), Local(memory=1000)
    for ask in (model.fit, model.plans):
        with pytest.raises(EngineError, match=r"needs .* GiB and may use .*: raise memory, lower dim"):
            ask(graph, engine=little)
    (plan,) = model.plans(graph)
    assert plan["memory"] > 1000
    # What the plan says is enough is enough.
    model.fit(graph, engine=Local(memory=int(plan["memory"]) + 1))
