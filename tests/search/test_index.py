"""The index of document images, through what models expose."""

from __future__ import annotations

import numpy as np
import pytest

from clickbridge import BM25
from clickbridge.errors import SettingError
from clickbridge.search.index import kth_largest
from oracles.arrays import dense
from oracles.graphs import WORDS, graph_of, random_docs


def test_search_and_score_agree_with_dense_arithmetic() -> None:
    docs = random_docs(11, 40)
    model = BM25(fields="title:2,body", language="none").fit(graph_of(docs))
    queries = model.map_queries(["apple river", "salt", "unheardof", " ".join(WORDS)])
    expected = dense(queries) @ dense(model.images_).T
    found = model.index_.search_many(queries, 7)
    for row, (items, scores) in enumerate(found):
        np.testing.assert_allclose(scores, expected[row, items], rtol=1e-6)
        np.testing.assert_allclose(scores, np.sort(expected[row])[::-1][: len(items)], rtol=1e-6)
    assert [len(items) for items, _ in found] == [7, 7, 0, 7]


def test_an_unknown_item_has_no_score() -> None:
    model = BM25(fields="body", language="none").fit(graph_of(random_docs(11, 10)))
    expected = dense(model.map_queries(["apple river"])) @ dense(model.images_).T
    scores = model.score("apple river", ["d3", "nowhere", "d5"])
    assert np.isfinite(scores).tolist() == [True, False, True]
    np.testing.assert_allclose(scores[[0, 2]], expected[0, [3, 5]], rtol=1e-6)


def test_ties_keep_the_order_of_the_collection() -> None:
    model = BM25(fields="body").fit(graph_of({f"d{i}": {"body": "river"} for i in range(20)}))
    assert model.rank("river", 5).doc_ids == [f"d{i}" for i in range(5)]


def test_many_queries_at_once_equal_one_by_one() -> None:
    model = BM25(fields="body", language="none").fit(graph_of(random_docs(5, 30)))
    queries = [*WORDS, "unheardof"] * 20
    assert model.rank_many(queries, 4) == [model.rank(query, 4) for query in queries]
    assert model.rank_many([], 4) == []


def test_more_asked_than_there_is() -> None:
    model = BM25(fields="body").fit(graph_of({"a": {"body": "river"}, "b": {"body": "stone"}}))
    assert model.rank("river", 1000).doc_ids == ["a"]
    with pytest.raises(SettingError, match="k must be at least 1; got 0"):
        model.rank("river", 0)


@pytest.mark.parametrize("n", [1, 70, 5_000, 30_000])
@pytest.mark.parametrize("kinds", [1, 2, 5, 10**9])
@pytest.mark.parametrize("share", [0.001, 0.1, 1.0])
def test_the_kth_largest(n: int, kinds: int, share: float) -> None:
    """Of values that are all different, and of values most of which are equal, in any order."""
    rng = np.random.default_rng(n + kinds)
    values = np.minimum(rng.integers(kinds, size=n), rng.integers(kinds, size=n)).astype(np.float32)
    k = max(int(share * n), 1)
    for order in (values, np.sort(values), np.sort(values)[::-1]):
        assert kth_largest(order, k) == np.sort(values)[n - k]
