"""Many queries, or many lists, at once: on every engine what a model gives by itself."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from clickbridge import ResultList, build_model, example_graph
from clickbridge.engines import shards
from clickbridge.engines.base import Engine
from clickbridge.engines.local import Local
from clickbridge.engines.ray import Ray
from clickbridge.models.model import Model
from clickbridge.models.sfunction import ONE_BY_ONE

GRAPH = example_graph()
QUERIES = [*GRAPH.query_keys, "nyc sleeping rooms", "zzz"] * 4
LISTS = [ResultList(str(i), text, GRAPH.doc_ids[i % 3 :]) for i, text in enumerate(QUERIES)]
SPECS = ["walk", "bm25", "pls", "rmls", "ssi", "bm25+pls", "rrf:bm25+walk"]


@cache
def fitted(spec: str) -> Model:
    return build_model(spec).fit(GRAPH)


def same(one: list[Any], two: list[Any], rounding: float) -> None:
    """`rounding` is relative to the best score of a list: a small score is a sum of numbers that cancel."""
    assert [ranking.doc_ids for ranking in one] == [ranking.doc_ids for ranking in two]
    for a, b in zip(one, two, strict=True):
        scores = np.array([hit.score for hit in a]), np.array([hit.score for hit in b])
        best = np.abs(scores[1][np.isfinite(scores[1])]).max(initial=0)
        np.testing.assert_allclose(*scores, rtol=0, atol=rounding * best)


@pytest.mark.parametrize("spec", SPECS)
def test_searches(engine: Engine, spec: str) -> None:
    assert len(QUERIES) > ONE_BY_ONE
    model = fitted(spec)
    alone = [model.rank(query, 3) for query in QUERIES]
    assert any(alone)
    # Dot products of dense images are taken many at a time, where the last bit of a sum depends on its order.
    same(model.rank_many(QUERIES, 3, engine=engine), alone, 1e-6 if spec in ("pls", "rmls") else 0)
    assert model.rank_many([], 3, engine=engine) == []


@pytest.mark.parametrize("spec", SPECS)
def test_lists(engine: Engine, spec: str) -> None:
    model = fitted(spec)
    same(model.rerank_lists(LISTS, engine=engine), model.rerank_lists(LISTS), 0)
    assert model.rerank_lists([], engine=engine) == []


@pytest.mark.ray
@pytest.mark.usefixtures("ray_here")
@pytest.mark.parametrize("n_queries", [100, 300], ids=["one piece of work", "two"])
def test_scores_on_ray_are_those_of_this_machine_to_the_bit(n_queries: int) -> None:
    """Whatever the number of threads here, also where BLAS would use its own for a single piece of work."""
    rng = np.random.default_rng(0)
    queries, images = (rng.standard_normal((n, 200), dtype=np.float32) for n in (n_queries, 30_011))
    with Ray(threads=2) as engine:
        there = [part.tobytes() for part in engine.top_k(queries, images, 9)]
    for threads in (1, 2, 3):
        with Local(threads) as here:
            assert [part.tobytes() for part in here.top_k(queries, images, 9)] == there


class Counting(Ray):
    """Notes every task."""

    def __init__(self, **limits: int) -> None:
        super().__init__(**limits)
        self.ran: list[Any] = []

    def _run(self, work: Any, place: int, *given: Any, returns: int = 1) -> Any:
        self.ran.append(work)
        return super()._run(work, place, *given, returns=returns)


@pytest.mark.ray
@pytest.mark.parametrize(
    ("spec", "work"), [("walk", shards.rows_done), ("bm25", shards.rows_done), ("pls", shards.top_k)]
)
def test_every_worker_of_a_cluster_has_a_share(ray_here: None, spec: str, work: Any) -> None:
    with Counting(threads=2) as engine:
        model = fitted(spec)
        for _ in range(2):
            model.rank_many(QUERIES, 3, engine=engine)
        # One tile holds all of the few images here.
        assert engine.ran == [work] * (2 * (1 if work is shards.top_k else 2))
        sent = [key for key in engine._shards if key[0] == id(model.fitted)]
        assert len(sent) == (spec == "walk"), "the model goes to the workers once"
