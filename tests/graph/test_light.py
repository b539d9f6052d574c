"""A GRAPH as a value: cheap to import, whole when it is copied or sent elsewhere."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from clickbridge import ClickGraph
from clickbridge.graph.parts import columns
from clickbridge.types import Document, Impression, PairCount
from oracles.counting import described

LOG = [
    Impression("red river", ["a", "b"], ["a"], user="u", time=1.0),
    Impression("stone", ["b", "a", "c"], ["c", "z"], user="v", time=2.0),
    PairCount("", "c", 3, query_id="Q7"),
]
DOCS = [Document(d, {"title": f"title {d}"}) for d in "abc"]


@pytest.mark.parametrize(
    "modules",
    [
        "clickbridge.graph.clickgraph, clickbridge.graph.hold_back",
        "clickbridge.graph.responses, clickbridge.graph.parts, clickbridge.graph.dense, clickbridge.graph.stats",
        "clickbridge.log.clean, clickbridge.log.readers, clickbridge.log.documents, clickbridge.io.lists",
    ],
)
def test_what_models_import_leaves_the_big_libraries_out(modules: str) -> None:
    code = f"import sys, {modules}; print([m for m in ('duckdb', 'pyarrow', 'numba') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def same(one: ClickGraph, two: ClickGraph) -> None:
    assert described(one) == described(two)
    assert one.docs == two.docs
    assert (one.parts, one.defaults, one.summary) == (two.parts, two.defaults, two.summary)
    for name in ("pairs", "impressions", "clicks"):
        for column, values in columns(getattr(one, name)).items():
            np.testing.assert_array_equal(values, columns(getattr(two, name))[column])
    for name, sides in one.vectors.items():
        for side, values in sides.items():
            np.testing.assert_array_equal(values, two.vectors[name][side])


@pytest.mark.parametrize("place", ["in memory", "in a folder"])
def test_a_graph_pickles_and_copies(place: str, tmp_path: Path) -> None:
    out = tmp_path / "graph" if place == "in a folder" else None
    graph = ClickGraph.build(LOG, DOCS, out, defaults={"response": "log"}).encoded(
        {"m": lambda texts: [[len(t)] for t in texts]}
    )
    graph.query_idx("stone"), graph.doc_idx("a"), graph.query_texts  # what was worked out stays behind
    packed = pickle.dumps(graph)
    assert len(packed) < 20_000
    copies = [pickle.loads(packed), copy.copy(graph), copy.deepcopy(graph)]  # noqa: S301 - our own bytes
    for other in copies:
        same(graph, other)
        assert "_query_numbers" not in other.__dict__
        assert other.query_idx("Q7") == graph.query_idx("Q7")
        assert other.hold_back(0.5, by="query").graph.n_docs == graph.n_docs


def test_another_process_can_open_a_pickled_graph(tmp_path: Path) -> None:
    (tmp_path / "graph.pickle").write_bytes(pickle.dumps(ClickGraph.build(LOG, DOCS)))
    code = f"import pickle; print(pickle.load(open({str(tmp_path / 'graph.pickle')!r}, 'rb')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "ClickGraph(3 queries, 4 documents, 4 pairs)"


def test_a_graph_in_memory_leaves_no_folder_and_outlives_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    graph = ClickGraph.build(LOG, DOCS)
    assert list(tmp_path.iterdir()) == []
    wanted = described(graph)
    rest = graph.with_events(graph.impressions, graph.clicks)
    del graph
    gc.collect()
    assert described(rest) == wanted
    assert rest.field("title") == ["title a", "title b", "title c", ""]


def test_many_threads_may_ask_at_once() -> None:
    log = [PairCount(f"q{i}", f"d{i % 50}", query_id=None) for i in range(2000)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            graph = ClickGraph.build(log)
            found = list(pool.map(lambda i, g=graph: (g.query_idx(f"q{i}"), g.doc_idx(f"d{i % 50}")), range(2000)))
            keys, ids = list(graph.query_keys), graph.doc_ids
            assert all(keys[q] == f"q{i}" and ids[d] == f"d{i % 50}" for i, (q, d) in enumerate(found))
