"""Features of lists against dense arithmetic, and what a value promises: one list or many, threads, copies, files."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph
from clickbridge.engines.local import Local
from clickbridge.errors import ArtifactError
from clickbridge.fusion.features import GraphTexts, ListFeatures
from clickbridge.fusion.fixed_rows import FixedRows
from clickbridge.fusion.lists_at_once import LISTS_AT_ONCE
from clickbridge.fusion.numbers import NumberSignals
from clickbridge.io.artifact import ArtifactWriter, open_artifact
from clickbridge.io.values import read_value, write_value
from clickbridge.models.candidates import Candidates
from clickbridge.models.catalogue import Catalogue, KnownQueries
from clickbridge.types import Document, Impression, PairCount, ResultList
from oracles.list_features import Oracle

Array = np.ndarray[Any, Any]
N_DOCS, N_PAGES = 200, 400
KINDS = ("full", "no text", "no times", "no pages", "one field")
DAY = 86400.0


def random_graph(kind: str = "full") -> ClickGraph:
    """Words of random letters, some of them numbers; a page shows what shares a word, and more."""
    rng = np.random.default_rng(11)
    words = ["".join(rng.choice(list("abcdefghijklmnoprstuvwz"), rng.integers(3, 8))) for _ in range(120)]
    words += [str(n) for n in range(8)]
    fields = {"no text": [], "one field": ["body"]}.get(kind, ["body", "title", "url", "year"])

    def text(low: int, high: int) -> str:
        return " ".join(rng.choice(words, rng.integers(low, high)))

    docs = []
    for i in range(N_DOCS):
        made = {
            "body": text(0, 25),
            "title": text(1, 5),
            "url": f"http://{rng.choice(words)}.org/",
            "year": str(1990 + i % 30) if i % 9 else "",
        }
        docs.append(Document(f"d{i}", {name: made[name] for name in fields}))
    log: list[Impression | PairCount] = []
    queries = [text(1, 5) for _ in range(150)]
    for page in range(N_PAGES):
        query = queries[int(len(queries) * rng.random() ** 2)]
        query_id = f"id{page % 3}" if page % 50 == 0 else None
        time = None if kind == "no times" else float(page * DAY / 7)
        shown = [f"d{i}" for i in rng.choice(N_DOCS, 9, replace=False)]
        clicks = [d for d in shown if rng.random() < 0.25]
        if kind == "no pages":
            log += [PairCount(query, d, int(rng.integers(1, 4)), time=time) for d in clicks]
        else:
            log.append(Impression("" if query_id else query, shown, clicks, query_id=query_id, time=time))
    return ClickGraph.build(log, docs)


def some_lists(graph: ClickGraph) -> list[ResultList]:
    """Known and new queries; unknown documents, the same one twice, a list of one and an empty one."""
    rng, out = np.random.default_rng(5), []
    for number, key in enumerate([*graph.query_keys[:25], "zzqqxx", "", graph.query_keys[3] + " 7 zzqqxx", "7"]):
        docs = [f"d{i}" for i in rng.choice(N_DOCS, rng.integers(2, 14), replace=False)]
        docs += [["nowhere"], [docs[0]], [], [graph.doc_ids[graph.pairs.doc[number]]]][number % 4]
        out.append(ResultList("", key, docs))
    return [*out, ResultList("", graph.query_keys[2], ["d4"]), ResultList("", graph.query_keys[2], [])]


def scores_of(flat: Candidates) -> tuple[dict[str, Array], dict[str, Array]]:
    rng = np.random.default_rng(1)
    one, two = rng.normal(size=(2, flat.lists.n_rows)).round(1)
    one[rng.random(len(one)) < 0.2] = -np.inf
    return {"one": one, "two": two}, {"one over the query": one / 3}


def flattened(lists: list[ResultList], graph: ClickGraph) -> Candidates:
    return Candidates.of(lists, Catalogue.of(graph), KnownQueries.none())


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest) -> tuple[ClickGraph, ClickGraph, ListFeatures]:
    """A GRAPH, its rest after a hold-back, and features that know the texts of the one, the clicks of the other."""
    graph = random_graph(request.param)
    rest = graph.hold_back(0.3, by="query").graph
    return graph, rest, GraphTexts.of(graph).with_clicks(rest)


def test_every_column_is_that_of_dense_arithmetic(case: tuple[ClickGraph, ClickGraph, ListFeatures]) -> None:
    graph, rest, features = case
    flat = flattened(some_lists(graph), graph)
    own, whole = scores_of(flat)
    names, x = features.matrix(flat, own, whole)
    oracle = Oracle(rest, graph)
    for i, key in enumerate(flat.keys):
        rows = slice(flat.lists.indptr[i], flat.lists.indptr[i + 1])
        given = [{n: np.where(np.isfinite(c[rows]), c[rows], np.nan) for n, c in cs.items()} for cs in (own, whole)]
        expected = oracle.columns(key, flat.items[rows].tolist(), *given)
        assert names == list(expected)
        for name, column in zip(names, x[rows].T, strict=True):
            # A difference, or what is over a deviation, is as exact as the column it is of.
            of, _, place = name.partition(": ")
            slack = 1e-6 * np.abs(np.nan_to_num(expected[of])).max(initial=1.0) if place else 1e-9
            np.testing.assert_allclose(column, expected[name], rtol=1e-6, atol=slack, err_msg=f"{name} of {key}")


def test_the_columns_follow_from_what_the_graph_holds(case: tuple[ClickGraph, ClickGraph, ListFeatures]) -> None:
    graph, rest, features = case
    names = features.names({"bm25": np.empty(0)}, {})
    assert len(set(names)) == len(names)
    assert ("votes lately" in names) == rest.has_times
    assert ("number year" in names) == ("year" in graph.field_names)
    assert all(f"bm25 {name}" in names for name in (*graph.field_names, "all"))
    if rest.impressions is None:
        assert set(features.clicks.documents[:-1, -1]) == {1.0}


def test_many_lists_are_as_one_after_the_other() -> None:
    graph = random_graph()
    features, lists = ListFeatures.of(graph), some_lists(graph) * (2 * LISTS_AT_ONCE // 10)
    flat = flattened(lists, graph)
    own, whole = scores_of(flat)
    _, at_once = features.matrix(flat, own, whole)
    np.testing.assert_array_equal(features.matrix(flat, own, whole, Local(threads=1))[1], at_once)

    def single(i: int) -> Array:
        first, last = flat.lists.indptr[i], flat.lists.indptr[i + 1]
        parts = [{name: column[first:last] for name, column in columns.items()} for columns in (own, whole)]
        return features.matrix(flat.some(i, i + 1), *parts)[1]

    with ThreadPoolExecutor(4) as pool:
        one_by_one = list(pool.map(single, range(len(flat))))
    np.testing.assert_array_equal(np.concatenate(one_by_one), at_once)
    assert features.matrix(flat.some(0, 0), {}, {})[1].shape == (0, len(features.names({}, {})))


def test_saved_read_and_pickled(case: tuple[ClickGraph, ClickGraph, ListFeatures], tmp_path: Path) -> None:
    graph, _, features = case
    flat = flattened(some_lists(graph), graph)
    own, whole = scores_of(flat)
    with ArtifactWriter(tmp_path / "features", "features") as writer:
        writer.commit(features=write_value(writer, "features", features))
    artifact = open_artifact(tmp_path / "features", "features")
    read = read_value(artifact, artifact.manifest["features"])
    for again in (read, pickle.loads(pickle.dumps(features))):  # noqa: S301
        names, x = again.matrix(flat, own, whole)
        assert names == features.names(own, whole)
        np.testing.assert_array_equal(x, features.matrix(flat, own, whole)[1])
        assert not again.text.words.data.flags.writeable
        assert not again.clicks.shares.data.flags.writeable
    with pytest.raises(AttributeError):
        features.clicks.weights = np.empty(0)  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        features.clicks.weights[0] = 1


def test_damaged_values_are_refused() -> None:
    """Compiled loops look nothing up twice: a number out of range would read what is not theirs."""
    features = ListFeatures.of(random_graph("one field"))
    text, clicks = features.text, features.clicks

    def spoilt(rows: FixedRows) -> list[FixedRows]:
        far, low, ends = rows.indices.copy(), rows.indices.copy(), rows.indptr.copy()
        far[0], low[-1], ends[1] = 2**30, -5, ends[-1] + 1
        changed = [
            FixedRows(rows.indptr, far, rows.data),
            FixedRows(rows.indptr, low, rows.data),
            FixedRows(ends, *rows.arrays[1:]),
        ]
        return [*changed, FixedRows(rows.indptr[:-1], *rows.arrays[1:]), FixedRows(*rows.arrays[:2], rows.data[1:])]

    for value in (text, clicks):
        parts = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        changes = [(name, rows) for name, part in parts.items() if isinstance(part, FixedRows) for rows in spoilt(part)]
        changes += [(name, part[1:]) for name, part in parts.items() if isinstance(part, np.ndarray)]
        for name, part in changes:
            with pytest.raises(ArtifactError, match="damaged"):
                type(value)(**parts | {name: part})
    other = ListFeatures.of(random_graph("no text"))
    for parts in ((other.text, features.numbers, clicks), (text, NumberSignals((), np.empty((3, 0))), clicks)):
        with pytest.raises(ArtifactError, match="damaged"):
            ListFeatures(*parts)


def test_a_field_called_all() -> None:
    graph = ClickGraph.build([PairCount("river", "a", 1)], [Document("a", {"all": "river stone"})])
    names = ListFeatures.of(graph).names({}, {})
    assert len(set(names)) == len(names)
    assert "bm25 all fields" in names


def test_no_click_at_all() -> None:
    graph = ClickGraph.build([Impression("river", ["a", "b"], [])], [Document("a", {"title": "river"})])
    flat = flattened([ResultList("", "river", ["a", "b", "c"])], graph)
    names, x = ListFeatures.of(graph).matrix(flat, {"one": np.zeros(3)}, {})
    columns = dict(zip(names, x.T, strict=True))
    assert columns["votes by words"].tolist() == [0, 0, 0]
    assert columns["bm25 title"][0] > 0
    assert columns["bm25 title"][1:].tolist() == [0, 0]
