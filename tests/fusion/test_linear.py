"""Sums of list scores, where a part is no S-function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge import BM25, ClickGraph, Given, Walk, build_model
from clickbridge.errors import NotSupported, SettingError
from clickbridge.fusion.linear import LinearSum
from clickbridge.models.candidates import Candidates
from clickbridge.numerics.ragged import Ragged
from clickbridge.types import Document, PairCount, ResultList
from oracles.latent import pair_log, random_clicks

FIELDS: dict[str, Any] = {"fields": "title:2,body", "language": "none"}


def fitted(weights: str = "1,2", seed: int = 31) -> Any:
    return LinearSum([BM25(**FIELDS), Walk()], weights=weights).fit(random_clicks(seed))


def standardised(scores: Any) -> Any:
    return Ragged.of_lengths([len(scores)]).standardised(scores)


def test_scores_are_the_weighted_sum() -> None:
    model = fitted()
    ids = [*model.doc_ids_, "nowhere"]
    for key in model.parts_[1].queries.keys[:6]:
        parts = [part.score(key, ids) for part in model.parts_]
        expected = standardised(parts[0]) + 2 * standardised(parts[1])
        found = model.score(key, ids)
        assert found[-1] == -np.inf
        known = np.isfinite(found)
        assert known.tolist() == (np.isfinite(parts[0]) | np.isfinite(parts[1])).tolist()
        np.testing.assert_allclose(found[known], expected[known])
    lists = [ResultList("1", model.parts_[1].queries.keys[0], ids), ResultList("2", "zzqqxx", ids)]
    np.testing.assert_array_equal(model.score_lists(lists)[0], model.score(lists[0].query, ids))
    for n in (2, 0):
        candidates = Candidates.of(lists[:n], model.fitted.catalogue, model.fitted.queries)
        assert [model.column(part, candidates).shape for part in model.parts_] == [(n * len(ids),)] * 2


def test_a_query_one_part_cannot_map_is_the_other_s() -> None:
    model = fitted()
    unseen = "river stone"
    assert not np.isfinite(model.parts_[1].score(unseen, model.doc_ids_)).any()
    assert model.rerank(unseen, model.doc_ids_).doc_ids == model.parts_[0].rerank(unseen, model.doc_ids_).doc_ids
    assert model.rank("zzqqxx").doc_ids == []


def test_search_pools_the_parts_best() -> None:
    model = fitted()
    for key in model.parts_[1].queries.keys[:6]:
        pool = sorted({d for part in model.parts_ for d in part.rank(key, 100).doc_ids}, key=model.doc_ids_.index)
        expected = model.rerank(key, pool)
        assert model.rank(key, 5) == type(expected)(expected.hits[:5])
    with pytest.raises(SettingError, match="k must be at least 1; got 0"):
        model.rank("river", 0)


def test_similar_queries_are_weighted() -> None:
    model = fitted()
    key = model.parts_[1].queries.keys[0]
    near = [dict(part.similar_queries(key, 50)) for part in model.parts_]
    totals: dict[str, float] = {}
    for weight, found in zip(model.weights_, near, strict=True):
        for name, s in found.items():
            totals[name] = totals.get(name, 0) + weight * s / max(found.values())
    assert dict(model.similar_queries(key, 100)) == pytest.approx(totals)


def test_the_given_order_can_be_a_part(small_graph: ClickGraph) -> None:
    model: Any = build_model("given+bm25", {"weights": "1,0.5"}).fit(small_graph)
    assert isinstance(model, LinearSum)
    ids = ["rome", "ny", "pizza"]
    expected = standardised(np.array([3.0, 2.0, 1.0])) + 0.5 * standardised(model.parts_[1].score("pizza", ids))
    np.testing.assert_allclose(model.score("pizza", ids), expected)
    assert model.rerank("unheardof", ids).doc_ids == ids


def test_a_sum_with_the_given_order_searches_through_its_other_parts(small_graph: ClickGraph) -> None:
    """Where nothing is given in any order, the given order has no say."""
    model: Any = build_model("given+bm25", {"weights": "5,1"}).fit(small_graph)
    bm25 = model.parts_[1]
    for query in ("pizza", "ny pizza", "eternal city"):
        assert model.rank(query).doc_ids == bm25.rank(query).doc_ids
    assert model.rank("unheardof").doc_ids == []
    assert [q for q, _ in model.similar_queries("pizza")] == [q for q, _ in bm25.similar_queries("pizza")]


def test_a_sum_of_parts_that_cannot_search_says_so(small_graph: ClickGraph) -> None:
    model = LinearSum([Given(), Given()], weights="1,1").fit(small_graph)
    with pytest.raises(NotSupported, match=r"given\+given re-ranks given lists; none of its parts can search"):
        model.rank("pizza")
    with pytest.raises(NotSupported, match=r"given\+given has no similarity of queries"):
        model.similar_queries("pizza")


def test_weights_with_a_part_that_cannot_search() -> None:
    """Without pages the held-back lists are pooled from the parts that can search."""
    log = [PairCount(f"river {i}", f"d{i % 7}", 2) for i in range(300)]
    model = LinearSum([Given(), Walk()]).fit(ClickGraph.build(log))
    assert model.weights_.shape == (2,)
    assert np.isfinite(model.weights_).all()


def test_learned_weights_prefer_the_part_that_is_right() -> None:
    """Every query clicks the document of its own number, which its words do not name."""
    docs = [Document(f"d{i}", {"title": f"word{(i + 1) % 5}"}) for i in range(120)]
    queries = [f"word{i % 5} q{i}" for i in range(120)]
    log = pair_log(*((q, f"d{i}", 9) for i, q in enumerate(queries)), *((q, "d0", 1) for q in queries))
    model = LinearSum([BM25(fields="title"), Walk()]).fit(ClickGraph.build(log, docs))
    assert any(note.startswith("weights bm25:") for note in model.notes_)
    assert model.weights_[1] > model.weights_[0]
