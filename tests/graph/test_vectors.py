"""Dense vectors that come with the data: into the GRAPH, back, and to the models."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickbridge import MPLS, PLS, ClickGraph, load
from clickbridge.errors import InputError
from clickbridge.graph.dense import write_vectors
from clickbridge.io.artifact import ArtifactWriter
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
    found = vectors_by_query(graph, [lambda queries, k: [["a", "b", "c"] for _ in queries]])
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


def test_an_id_with_capitals_has_its_vector(tmp_path: Path) -> None:
    log = [PairCount("", "a", query_id="Q7"), PairCount("", "b", query_id="both"), PairCount("Both", "c")]
    rows = [("query", " Q7", [1.0]), ("query", "BOTH", [2.0]), ("query", "both", [3.0]), ("query", "q7", [4.0])]
    graph = ClickGraph.build(log, vectors={"m": vector_file(tmp_path / "m.parquet", rows)})
    queries = graph.vectors["m"]["query"][:, 0]
    assert queries[graph.query_idx("Q7")] == 1
    assert queries[graph.query_idx("", "both")] == 3
    assert queries[graph.query_idx("BOTH")] == 3, "of two rows for one text the last counts"


KINDS = [
    pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float16(), 2), pa.list_(pa.float32(), 2),
    pa.list_(pa.int8()),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_lists_of_every_kind_are_read(tmp_path: Path, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickbridge.graph.dense.READ_AT_ONCE", 2)
    vectors = pa.array([[1, 2], None, [3, 4], None, None, [5, 6]], kind)
    ids = pa.array(["a", "b", "c", "a", "b", "nowhere"]).dictionary_encode()
    table = pa.table({"side": ["doc"] * 6, "id": ids, "vector": vectors, "more": range(6)})
    pq.write_table(table, tmp_path / "m.parquet", row_group_size=3)
    graph = ClickGraph.build(LOG, DOCS, vectors={"m": str(tmp_path / "m.parquet")})
    assert set(graph.vectors["m"]) == {"doc"}
    docs = graph.vectors["m"]["doc"]
    assert docs.dtype == np.float32
    np.testing.assert_array_equal(docs, [[1, 2], [np.nan, np.nan], [3, 4]])


def test_numbers_never_become_python_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As objects they take eight times the room: 12 GB for a million vectors of 384."""
    n, width = 4000, 64
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(n * width, dtype=np.float64)), width)
    pq.write_table(pa.table({"side": ["doc"] * n, "id": [f"d{i}" for i in range(n)], "vector": vectors}),
                   tmp_path / "m.parquet")  # fmt: skip
    monkeypatch.setattr("clickbridge.graph.dense.READ_AT_ONCE", 500)
    with ArtifactWriter(tmp_path / "graph", "graph") as writer:
        writer.table("queries", pa.table({"key": ["q"]}))
        writer.table("docs", pa.table({"doc_id": [f"d{i}" for i in range(n)]}))
        tracemalloc.start()
        write_vectors(writer, "m", str(tmp_path / "m.parquet"))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        written = np.load(writer.written("vectors.m.doc.npy"))
    np.testing.assert_array_equal(written, np.arange(n * width, dtype=np.float32).reshape(n, width))
    result, batch = 4 * n * width, 8 * 500 * width
    assert most < 1.3 * result + 3 * batch


@pytest.mark.parametrize("vector", [[1.0], ["1 2"], [["1", "2"]], [{"x": 1.0}], [None], [[None]]], ids=str)
def test_what_is_no_list_of_numbers_is_refused(tmp_path: Path, vector: list[Any]) -> None:
    pq.write_table(pa.table({"side": ["doc"], "id": ["a"], "vector": vector}), tmp_path / "m.parquet")
    with pytest.raises(InputError, match=r"a vector must be a list of numbers, got .*: check vectors m") as refusal:
        ClickGraph.build(LOG, DOCS, vectors={"m": str(tmp_path / "m.parquet")})
    assert "\n" not in str(refusal.value)


def test_a_file_without_vectors_is_refused(tmp_path: Path) -> None:
    for n, rows in enumerate(([("document", "a", [1.0])], [("doc", "a", None), ("doc", "b", None)])):
        table = pa.table({name: pa.array(column, kind) for name, column, kind in zip(
            ("side", "id", "vector"), zip(*rows, strict=True), ("string", "string", pa.list_(pa.float32())),
            strict=True)})  # fmt: skip
        pq.write_table(table, tmp_path / f"{n}.parquet")
        with pytest.raises(InputError, match="has no vector whose side is query or doc: check vectors m"):
            ClickGraph.build(LOG, DOCS, vectors={"m": str(tmp_path / f"{n}.parquet")})


def test_files_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file .*nowhere\.parquet: check vectors m=FILE"):
        ClickGraph.build(LOG, DOCS, vectors={"m": str(tmp_path / "nowhere.parquet")})
    (tmp_path / "text").write_text("hello")
    pq.write_table(pa.table({"side": ["doc"], "id": ["a"]}), tmp_path / "columns.parquet")
    for name in ("text", "columns.parquet"):
        with pytest.raises(InputError, match="must be Parquet with columns side, id, vector: check vectors m"):
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
