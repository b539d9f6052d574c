"""A list of hundreds of documents is a collection: trees order what a search would find, the rest follows."""

from __future__ import annotations

import numpy as np

from clickbridge import ClickGraph, build_model
from clickbridge.fusion.pool import ranked_high
from clickbridge.models.candidates import behind
from clickbridge.numerics.ragged import Ragged
from clickbridge.types import Document, PairCount


def test_what_stands_behind_keeps_its_own_order() -> None:
    near = np.array([True, False, True, False, False])
    scores = behind(near, np.array([3.0, -2.0]), np.array([9.0, 5.0, 1.0, 7.0, -np.inf]))
    assert np.argsort(-scores, kind="stable").tolist() == [0, 2, 3, 1, 4]
    assert scores[4] == -np.inf


def test_short_lists_are_taken_whole_and_long_ones_by_their_best() -> None:
    lists = Ragged(np.array([0, 3, 303]))
    column = np.concatenate([[0.0, 0.0, 1.0], np.arange(300.0)])
    near = ranked_high(lists, {"one": column})
    assert near[:3].all()
    assert np.flatnonzero(near[3:]).tolist() == list(range(200, 300))
    nothing = ranked_high(lists, {"one": np.zeros(303)})
    assert not nothing[3:].any(), "what matches nothing is not found"


def test_a_search_and_a_list_of_everything_begin_alike() -> None:
    rng = np.random.default_rng(0)
    docs = [Document(f"d{i:03d}", {"title": f"thing{i} part{i % 9}"}) for i in range(300)]
    clicks = []
    for t in range(900):
        i = int(rng.integers(300)) if t % 3 else int(rng.integers(20))
        clicks.append(PairCount(f"thing{i} x{t % 5}", f"d{i:03d}", 1, time=1.7e9 + 3600.0 * t))
    graph = ClickGraph.build(clicks, docs)
    model = build_model("mart:bm25+lmir", trees=20, folds=2).fit(graph)
    assert model.fitted.grown
    assert model.choices_.popular == 20
    assert len(model.fitted.always) == 20
    for query in ("thing7 x1", "thing150 x0", "thing299"):
        listed = model.rerank(query, graph.doc_ids).doc_ids
        assert len(listed) == 300
        assert listed[0] == model.rank(query, 10).doc_ids[0] == f"d{int(query.split()[0][5:]):03d}"
