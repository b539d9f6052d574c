"""What campaigns have found, kept: artifacts that were changed by one who made every checksum anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from campaigns.data import graph_of, pages, save_model
from clickbridge import ClickGraph, load
from clickbridge.errors import ArtifactError
from clickbridge.io.artifact import open_artifact
from forgery import replaced

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("spec", "name", "change"),
    [
        ("robust:bm25", "training.worse", lambda values: values[::-1]),  # points of other queries
        ("online:bm25", "state.0.2", lambda values: values.astype(np.float64)),  # keys of a hash table
    ],
)
def test_a_forged_model_is_refused(spec: str, name: str, change: Callable[[Array], Array], tmp_path: Path) -> None:
    settings = {"blend": "0.5,0.3,4"} if spec.startswith("online") else {}
    save_model(spec, graph_of(pages()), tmp_path / "m", **settings)
    values = np.array(open_artifact(tmp_path / "m", "model").array(name))
    replaced(tmp_path / "m", name, values)
    load(tmp_path / "m")
    replaced(tmp_path / "m", name, change(values))
    with pytest.raises(ArtifactError, match="does not hold what its manifest says"):
        load(tmp_path / "m")


def test_a_forged_graph_is_refused(tmp_path: Path) -> None:
    graph = graph_of(pages(), tmp_path / "g")
    replaced(tmp_path / "g", "pairs.clicks", graph.pairs.clicks.astype("U3"))
    with pytest.raises(ArtifactError, match="pairs has clicks of the wrong type: ingest again"):
        ClickGraph.open(tmp_path / "g")
