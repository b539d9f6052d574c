"""Reciprocal-rank fusion against its formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge import BM25, ClickGraph, Walk, build_model
from clickbridge.errors import NotSupported, SettingError
from clickbridge.fusion.rrf import RRF, mean_ranks
from oracles.latent import random_clicks


def fitted(**settings: Any) -> RRF:
    return RRF([BM25(fields="title:2,body"), Walk()], **settings).fit(random_clicks(31))


def test_mean_ranks() -> None:
    assert mean_ranks(np.array([3.0, 1.0, 2.0])).tolist() == [1, 3, 2]
    assert mean_ranks(np.array([1.0, 5.0, 1.0])).tolist() == [2.5, 1, 2.5]
    assert mean_ranks(np.empty(0)).tolist() == []


def test_scores_are_summed_reciprocal_ranks() -> None:
    model = fitted(rrf_k=10)
    ids = [*model.doc_ids_, "nowhere"]
    key = model.parts_[1].queries.keys[0]
    parts = [part.score(key, ids) for part in model.parts_]
    for place, found in enumerate(model.score(key, ids)):
        expected = 0.0
        for scores in parts:
            if np.isfinite(scores[place]):
                above = sum(s > scores[place] for s in scores)
                tied = sum(s == scores[place] for s in scores)
                expected += 1 / (10 + above + (tied + 1) / 2)
        assert found == pytest.approx(expected or -np.inf)


def test_search_goes_over_what_the_parts_find() -> None:
    model = fitted()
    key = model.parts_[1].queries.keys[0]
    pool = sorted({d for part in model.parts_ for d in part.rank(key, 100).doc_ids}, key=model.doc_ids_.index)
    assert model.rank(key, 4).hits == model.rerank(key, pool).hits[:4]
    with pytest.raises(SettingError, match="k must be at least 1"):
        model.rank(key, 0)


def test_a_spec_names_it(small_graph: ClickGraph) -> None:
    model: Any = build_model("rrf:bm25+lmir", {"rrf_k": "20"}).fit(small_graph)
    assert (model.spec, model.rrf_k, len(model.parts)) == ("rrf:bm25+lmir", 20.0, 2)
    assert build_model("rrf:given+bm25").fit(small_graph).rank("pizza")
    with pytest.raises(NotSupported, match="none of its parts can search"):
        build_model("rrf:given").fit(small_graph).rank("pizza")
