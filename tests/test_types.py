"""Records made by hand: whole numbers are taken as ids, texts are not taken as lists."""

from __future__ import annotations

import pytest

from clickbridge import BM25, ClickGraph, Document, Impression, PairCount, ResultList, compare, evaluate
from clickbridge.errors import InputError


def test_whole_numbers_are_ids() -> None:
    pages = [Impression("pizza", [1, 2], [2]), PairCount("halo", 1, query_id=5)]  # type: ignore[list-item, arg-type]
    docs = [Document(1, {"title": "Halo"}), Document(2, {"title": "Pizza"})]  # type: ignore[arg-type]
    graph = ClickGraph.build(pages, docs)
    assert graph.doc_ids == ["1", "2"]
    model = BM25().fit(graph)
    assert model.score("halo", [1, 2])[0] > 0  # type: ignore[list-item]
    assert model.rerank("pizza", [1, 2]).doc_ids == ["2", "1"]  # type: ignore[list-item]
    assert model.explain("pizza", 2).doc_id == model.explain("pizza", "2").doc_id  # type: ignore[arg-type]
    assert model.similar_documents(1) == model.similar_documents("1")  # type: ignore[arg-type]
    lists = [ResultList(7, "pizza", [1, 2], [0, 1])]  # type: ignore[arg-type, list-item]
    assert lists[0].query_id == "7"
    assert evaluate(model, lists, "MRR")["MRR"] == 1.0
    assert compare(graph, lists, {"mine": model}, measures="MRR")["mine"].mean("RR") == 1.0


def test_text_is_no_list() -> None:
    with pytest.raises(InputError, match="clicks of a page are a list of document ids, as \\['d1'\\]"):
        Impression("pizza", ["d1"], "d1")  # type: ignore[arg-type]


def test_fields_by_any_case_and_as_a_mapping() -> None:
    graph = ClickGraph.build([PairCount("a", "1")], [Document("1", {"product_name": "Pizza", "body": "x"})])
    by_text = BM25(fields="Product_Name:3").fit(graph).score("pizza", ["1"])
    assert by_text == BM25(fields={"product_name": 3}).fit(graph).score("pizza", ["1"])
