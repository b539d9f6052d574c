"""Dense vectors that come with the data: into the GRAPH, back, and to the models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickbridge import MPLS, PLS, ClickGraph, load
from clickbridge.errors import InputError
from clickbridge.types import Document, Impression, PairCount, ResultList

DOCS = [Document(d, {"title": f"title {d}"}) for d in ("a", "b", "c")]
LOG = [PairCount("red river", "a", 2), PairCount("stone", "b", 1), PairCount("", "c", 1, query_id="7")]
ROWS = [
    ("query", " red  RIVER ", [1.0, 2.0]),
    ("query", "7", [0.0, 1.0]),
    ("query", "nobody asked", [5.0, 5.0]),
    ("doc", "a", [1.0, 0.0]),
    ("doc", "c", [0.5, 0.5]),
    ("doc", "nowhere", [9.0, 9.0]),
    ("doc", "b", None),
]


def vector_file(path: Path, rows: list[Any] = ROWS) -> str:
    side, ids, vectors = (list(column) for column in zip(*rows, strict=True))
    pq.write_table(pa.table({"side": side, "id": ids, "vector": vectors}), path)
    return str(path)


def graph_with_vectors(folder: Path) -> ClickGraph:
    return ClickGraph.build(LOG, DOCS, folder / "graph", vectors={"m": vector_file(folder / "m.parquet")})


def test_vectors_stand_beside_their_items(tmp_path: Path) -> None:
    graph = graph_with_vectors(tmp_path)
    assert set(graph.vectors) == {"m"}
    queries, docs = graph.vectors["m"]["query"], graph.vectors["m"]["doc"]
    assert queries[graph.query_idx("red river")].tolist() == [1, 2]
    assert queries[graph.query_idx("", "7")].tolist() == [0, 1]
    assert np.isnan(queries[graph.query_idx("stone")]).all()
    assert docs[graph.doc_idx("a")].tolist() == [1, 0]
    assert docs[graph.doc_idx("c")].tolist() == [0.5, 0.5]
    assert np.isnan(docs[graph.doc_idx("b")]).all()


def test_vectors_survive_saving_and_splitting(tmp_path: Path) -> None:
    graph = graph_with_vectors(tmp_path)
    graph.save(tmp_path / "copy")
    for other in (ClickGraph.open(tmp_path / "graph"), ClickGraph.open(tmp_path / "copy"), graph.hold_back(0.3).graph):
        for side in ("query", "doc"):
            np.testing.assert_array_equal(other.vectors["m"][side], graph.vectors["m"][side])
    some = graph.vectors_of("query", np.array([1]))
    np.testing.assert_array_equal(some["m"], graph.vectors["m"]["query"][[1]])
    assert ClickGraph.build(LOG, DOCS).vectors == {}


def vectors_by_query(graph: ClickGraph, rankers: list[Any]) -> dict[str, Any]:
    """Of all queries: each is held back under one seed or another."""
    helds = [graph.hold_back(0.999, by="query", seed=seed) for seed in range(8)]
    return {result.query: result.vectors for held in helds for result in held.lists(rankers)}


def test_held_back_lists_carry_them(tmp_path: Path) -> None:
    """The rest has no click of a held-back query, so its list is all that models learn its vector from."""
    graph = graph_with_vectors(tmp_path)
    found = vectors_by_query(graph, [lambda query, k: ["a", "b", "c"]])
    assert found == {"red river": {"m": [1.0, 2.0]}, "stone": None, "\x1f7": {"m": [0.0, 1.0]}}
    shown = [Impression("red river", ["b", "a"], ["a"]), Impression("stone", ["a", "b"], ["b"])]
    pages = ClickGraph.build(shown, DOCS, tmp_path / "pages", vectors={"m": str(tmp_path / "m.parquet")})
    assert vectors_by_query(pages, []) == {"red river": {"m": [1.0, 2.0]}, "stone": None}


def test_views_of_vectors_are_tuned(tmp_path: Path) -> None:
    """Without their vectors, held-back queries would leave such a view as it was: with weight 1 in 2."""
    rng = np.random.default_rng(0)
    docs = [Document(f"d{i}", {"title": "same words"}) for i in range(12)]
    places = rng.standard_normal((12, 4))
    log, rows = [], [("doc", f"d{i}", place.tolist()) for i, place in enumerate(places)]
    for i in range(800):
        near = i % 12
        log.append(Impression(f"same words {i}", [f"d{(near + j) % 12}" for j in range(6)], [f"d{near}"]))
        rows.append(("query", f"same words {i}", (places[near] + 0.05 * rng.standard_normal(4)).tolist()))
    path = vector_file(tmp_path / "m.parquet", rows)
    graph = ClickGraph.build(log, docs, tmp_path / "graph", vectors={"m": path})
    model = MPLS(views="word,dense:m", dim=4).fit(graph)
    tuned = next(note for note in model.notes_ if "tuned to nDCG@5" in note)
    assert float(tuned.split("nDCG@5 ")[1].split()[0]) > 0.9


def test_a_model_uses_them(tmp_path: Path) -> None:
    graph = graph_with_vectors(tmp_path)
    model = PLS(views="dense:m", dim=2).fit(graph)
    assert np.isfinite(model.score("red river", ["a", "b", "c"])).tolist() == [True, False, True]
    assert (model.score("stone", ["a", "c"]) == -np.inf).all()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    lists = [ResultList("1", "brand new", ["a", "c"], vectors={"m": [1.0, 2.0]})]
    np.testing.assert_allclose(again.score_lists(lists)[0], model.score("red river", ["a", "c"]), atol=1e-6)


def test_vectors_of_unlike_length(tmp_path: Path) -> None:
    path = vector_file(tmp_path / "m.parquet", [("doc", "a", [1.0]), ("doc", "b", [1.0, 2.0])])
    with pytest.raises(InputError, match=r"vectors must all have one length, got \[1, 2\]"):
        ClickGraph.build(LOG, DOCS, vectors={"m": path})


def test_files_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file .*nowhere\.parquet: check --vectors m=FILE"):
        ClickGraph.build(LOG, DOCS, vectors={"m": str(tmp_path / "nowhere.parquet")})
    (tmp_path / "text").write_text("hello")
    pq.write_table(pa.table({"side": ["doc"], "id": ["a"]}), tmp_path / "columns.parquet")
    for name in ("text", "columns.parquet"):
        with pytest.raises(InputError, match="must be Parquet with columns side, id, vector: check --vectors m"):
            ClickGraph.build(LOG, DOCS, vectors={"m": str(tmp_path / name)})
    assert not (tmp_path / "graph").exists()


# --- two GRAPHs into one -----------------------------------------------------------------------------


def test_merging_keeps_vectors(tmp_path: Path) -> None:
    one = graph_with_vectors(tmp_path)
    rows = [("doc", "a", [7.0, 7.0]), ("doc", "z", [3.0, 4.0]), ("query", "new one", [1.0, 1.0])]
    log = [PairCount("new one", "z", 1), PairCount("stone", "a", 1)]
    docs = [Document("z", {"title": "z"}), Document("b", {"title": "b again"})]
    two = ClickGraph.build(log, docs, vectors={"m": vector_file(tmp_path / "two.parquet", rows)})
    for both in (one.merge(two), one.merge(two).merge(ClickGraph.build(LOG, DOCS))):
        queries, found = both.vectors["m"]["query"], both.vectors["m"]["doc"]
        assert found.shape == (both.n_docs, 2)
        assert found[both.doc_idx("a")].tolist() == [7, 7], "of a document in both, the second counts"
        assert found[both.doc_idx("c")].tolist() == [0.5, 0.5]
        assert found[both.doc_idx("z")].tolist() == [3, 4]
        assert np.isnan(found[both.doc_idx("b")]).all()
        assert queries[both.query_idx("red river")].tolist() == [1, 2]
        assert queries[both.query_idx("new one")].tolist() == [1, 1]
        assert np.isnan(queries[both.query_idx("stone")]).all()
    assert ClickGraph.build(LOG, DOCS).merge(one).vectors["m"]["doc"].shape == (3, 2)


def test_merging_vectors_of_unlike_length(tmp_path: Path) -> None:
    one = graph_with_vectors(tmp_path)
    two = ClickGraph.build(
        LOG, DOCS, vectors={"m": vector_file(tmp_path / "3.parquet", [("doc", "a", [1.0, 2.0, 3.0])])}
    )
    with pytest.raises(InputError, match="vectors 'm' have 2 and 3 numbers"):
        one.merge(two)
