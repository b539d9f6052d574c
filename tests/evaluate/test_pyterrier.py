"""Models in PyTerrier's pipelines."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pyterrier as pt

from clickbridge import ClickGraph, build_model
from clickbridge.evaluate.pyterrier import Reranker, Retriever
from clickbridge.types import Document, Impression

pytestmark = pytest.mark.filterwarnings("ignore")
TOPICS = pd.DataFrame([["1", "ny pizza"], ["2", "eternal city"], ["3", "zzz"]], columns=["qid", "query"])


def model(spec: str = "bm25") -> Any:
    docs = [
        Document("ny", {"title": "New York City", "body": "The big apple, city of pizza and bagels"}),
        Document("pizza", {"title": "Pizza", "body": "New York style pizza by the slice"}),
        Document("rome", {"title": "Rome", "body": "Pizza al taglio in the eternal city"}),
    ]
    return build_model(spec).fit(ClickGraph.build([Impression("ny pizza", ["pizza", "ny"], ["pizza"])], docs))


class TestRetriever(pt.testing.TransformerTestCase):  # type: ignore[misc]
    @staticmethod
    def get_transformer() -> Any:
        return Retriever(model(), k=10)


class TestReranker(pt.testing.TransformerTestCase):  # type: ignore[misc]
    @staticmethod
    def get_transformer() -> Any:
        return Reranker(model())


def test_a_retriever_gives_our_ranking() -> None:
    bm25 = model()
    found = Retriever(bm25, k=2)(TOPICS)
    assert {*found.columns} == {"qid", "query", "docno", "score", "rank"}
    for (qid, query), group in found.groupby(["qid", "query"]):
        assert group["docno"].tolist() == bm25.rank(query, 2).doc_ids, qid
        assert group["rank"].tolist() == [*range(len(group))]
    assert "3" not in {*found["qid"]}, "nothing is found for a query without a known word"
    assert len(Retriever(bm25)(TOPICS.head(0))) == 0


def test_a_reranker_keeps_every_document_and_column() -> None:
    bm25 = model()
    given = pd.DataFrame(
        [["1", "ny pizza", "rome", 3.0, 0, "a"], ["1", "ny pizza", "strange", 2.0, 1, "b"],
         ["1", "ny pizza", "pizza", 1.0, 2, "c"], ["2", "zzz", "ny", 1.0, 0, "d"]],
        columns=["qid", "query", "docno", "score", "rank", "note"],
    )  # fmt: skip
    found = Reranker(bm25)(given)
    first = found[found["qid"] == "1"]
    assert first["docno"].tolist() == bm25.rerank("ny pizza", ["rome", "strange", "pizza"]).doc_ids
    assert first["note"].tolist() == [{"rome": "a", "strange": "b", "pizza": "c"}[d] for d in first["docno"]]
    assert first["score"].is_monotonic_decreasing
    assert found[found["qid"] == "2"]["docno"].tolist() == ["ny"]


def test_an_experiment() -> None:
    bm25 = model()
    qrels = pd.DataFrame([["1", "pizza", 1], ["2", "rome", 1]], columns=["qid", "docno", "label"])
    pipelines = [Retriever(bm25, 10), Retriever(bm25, 10) >> Reranker(model("vsm"))]
    table = pt.Experiment(pipelines, TOPICS, qrels, eval_metrics=["map", "ndcg_cut_5"], names=["bm25", "two stages"])
    assert table["name"].tolist() == ["bm25", "two stages"]
    assert (table["map"] > 0.5).all()
