"""Numbers chosen on held-back lists: field weights and coordinate ascent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge import BM25, LMIR, VSM, ClickGraph
from clickbridge.models.ascent import FIELD_GRID, coordinate_ascent
from clickbridge.models.candidates import Labelled
from clickbridge.models.catalogue import Catalogue, KnownQueries
from clickbridge.types import Document, Impression, ResultList
from oracles.graphs import noisy_field_graph


@pytest.mark.parametrize("pages", [True, False], ids=["pages", "pairs"])
@pytest.mark.parametrize("model", [VSM(), BM25(), LMIR()], ids=lambda m: m.name)
def test_the_weight_of_a_field_of_noise_falls(model: Any, pages: bool) -> None:
    graph = noisy_field_graph(400, pages=pages)
    model.fit(graph)
    weights = model.report_["fields"]
    assert weights["noise"] < weights["good"] / 2
    (note,) = model.notes_
    assert note.startswith(f"{model.name}: field weights ")
    assert "held-back lists" in note
    ids = graph.doc_ids
    right = sum(model.rerank(f"w{i}x", ids).doc_ids[0] == f"d{i}" for i in range(50))
    assert right >= 45


def test_learning_is_the_same_for_a_seed() -> None:
    graph = noisy_field_graph(300, pages=False)
    one, two = (BM25(seed=3).fit(graph) for _ in range(2))
    assert one.field_weights_ == two.field_weights_


def test_given_weights_are_kept() -> None:
    model = BM25(fields="good:0.5,noise:2").fit(noisy_field_graph(300))
    assert model.report_["fields"] == {"good": 0.5, "noise": 2.0}
    assert model.notes_ == ()


def test_too_few_lists_give_defaults_and_a_note(small_graph: ClickGraph) -> None:
    model = BM25().fit(small_graph)
    assert model.report_["fields"] == {"title": 3.0, "body": 1.0}
    (note,) = model.notes_
    assert (
        "can be held back, 50 are needed to learn field weights; title, name and heading count 3, other fields 1"
        in note
    )
    assert model.report_["notes"] == [note]


def test_one_field_needs_no_learning() -> None:
    docs = [Document("a", {"body": "river"}), Document("b", {"body": "stone"})]
    model = BM25().fit(ClickGraph.build([Impression("river", ["a", "b"], ["a"])], docs))
    assert model.report_["fields"] == {"body": 1.0}
    assert model.notes_ == ("bm25: one field, body",)


@pytest.mark.parametrize("model", [VSM(), BM25(), LMIR()], ids=lambda m: m.name)
def test_queries_that_share_no_word_with_any_document(model: Any) -> None:
    """Nothing to learn from, and nothing to break on."""
    docs = [Document(f"d{i}", {"title": "river", "body": f"stone{i}"}) for i in range(3)]
    log = [Impression(f"unheard{i}", ["d0", "d1", "d2"], ["d1"], time=float(i)) for i in range(400)]
    model.fit(ClickGraph.build(log, docs))
    weights = list(model.field_weights_.values())
    assert np.isfinite(weights).all()
    assert any(weights)
    assert model.rank("river").doc_ids[:1] == ["d0"]


def labelled(lists: list[ResultList], most: int = 1000) -> Labelled:
    ids = sorted({doc_id for result in lists for doc_id in result.results})
    return Labelled(lists, Catalogue(ids, ids), KnownQueries.none(), most)


def test_of_many_lists_the_same_are_drawn() -> None:
    lists = [ResultList(str(i), f"q{i}", ["a", "b"], [1.0, 0.0] if i % 2 else [0.0, 0.0]) for i in range(40)]
    drawn = [r.query_id for r in labelled(lists, 5).lists]
    assert len(set(drawn)) == 5
    assert all(int(i) % 2 for i in drawn)
    assert drawn == [r.query_id for r in labelled(lists, 5).lists]
    assert len(labelled(lists[:10], 5)) == 5


def test_labelled_lists_keep_only_what_can_be_judged() -> None:
    lists = labelled(
        [
            ResultList("1", "q", ["a", "b"], [1.0, 0.0]),
            ResultList("2", "q", ["a", "b"], [0.0, 0.0]),
            ResultList("3", "q", ["a"], None),
            ResultList("4", "q", ["a", "b", "c"], [0.0, 0.0, 1.0]),
        ]
    )
    assert len(lists) == 2
    assert lists.candidates.lists.indptr.tolist() == [0, 2, 5]
    # The order of a page means nothing afterwards, but labels stay with their documents.
    marks = [dict(zip(r.results, r.labels or [], strict=True)) for r in lists.lists]
    assert marks == [{"a": 1, "b": 0}, {"a": 0, "b": 0, "c": 1}]
    assert lists.labels.tolist() == [label for r in lists.lists for label in r.labels or []]
    assert lists.ndcg(lists.labels) == pytest.approx(1.0)
    places = [(r.labels or []).index(1.0) for r in lists.lists]
    assert lists.ndcg(np.zeros(5)) == pytest.approx(np.mean([1 / np.log2(2 + place) for place in places]))


def test_coordinate_ascent_finds_a_peak_and_never_all_zeros() -> None:
    seen: list[list[float]] = []

    def value(w: np.ndarray[Any, Any]) -> float:
        seen.append(w.tolist())
        return -float(np.abs(w - [3.0, 0.0, 0.6]).sum())

    best, found = coordinate_ascent(np.ones(3), FIELD_GRID, value)
    assert best.tolist() == [3.0, 0.0, 0.6]
    assert found == 0
    assert [0.0, 0.0, 0.0] not in seen


def test_coordinate_ascent_stays_where_nothing_gains() -> None:
    best, found = coordinate_ascent(np.array([1.0, 3.0]), FIELD_GRID, lambda w: 0.5)
    assert best.tolist() == [1.0, 3.0]
    assert found == 0.5
