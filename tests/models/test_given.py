"""The incoming order as a model."""

from __future__ import annotations

import numpy as np
import pytest

from clickbridge import ClickGraph, Given
from clickbridge.errors import InputError, NotSupported
from clickbridge.types import Document, ResultList


@pytest.fixture(scope="module")
def model(small_graph: ClickGraph) -> Given:
    return Given().fit(small_graph)


def test_the_order_stays(model: Given) -> None:
    assert model.rerank("anything", ["c", "a", "b"]).doc_ids == ["c", "a", "b"]
    scores = model.score("anything", ["c", "a", "b"])
    assert (np.diff(scores) < 0).all()


def test_the_list_s_own_scores_count(model: Given) -> None:
    assert model.rerank("q", ["a", "b", "c", "d"], scores=[0.5, 2, -1, 2]).doc_ids == ["b", "d", "a", "c"]
    lists = [ResultList("1", "q", ["a", "b"], None, [1.0, 3.0]), ResultList("2", "q", ["a", "b"])]
    assert [r.doc_ids for r in model.rerank_lists(lists)] == [["b", "a"], ["a", "b"]]


@pytest.mark.parametrize("scores", [[], [1.0], [1.0, 2.0, 3.0]])
def test_as_many_scores_as_results(model: Given, scores: list[float]) -> None:
    with pytest.raises(InputError, match=f"one score for each result; got {len(scores)} for 2"):
        model.rerank("q", ["a", "b"], scores=scores)


def test_it_cannot_search(model: Given) -> None:
    with pytest.raises(NotSupported, match="given re-ranks given lists"):
        model.rank("q")


def test_an_update_brings_documents(small_graph: ClickGraph) -> None:
    """So that it can be part of a model that is updated."""
    model = Given().fit(small_graph).update(docs=[Document("new", {"title": "Naples"})], remove=["rome"])
    assert model.title("new") == "Naples"
    assert "rome" not in model.doc_ids_
    assert model.rerank("q", ["new", "ny"]).doc_ids == ["new", "ny"]
