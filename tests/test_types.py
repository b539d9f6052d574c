"""Records made by hand: whole numbers are taken as ids, texts are not taken as lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clickbridge import (
    BM25,
    ClickGraph,
    Document,
    Hit,
    Impression,
    PairCount,
    Ranking,
    ResultList,
    compare,
    evaluate,
    read_docs,
    read_log,
)
from clickbridge.errors import InputError, SettingError


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


def test_ids_of_numpy_are_ids() -> None:
    one, both = np.int64(1), np.array([1, 2])
    page, row = Impression("pizza", both, [np.int64(2)]), PairCount("halo", one)  # type: ignore[arg-type, list-item]
    assert (page.results, page.clicks, row.doc_id) == (["1", "2"], ["2"], "1")
    docs = [Document(one, {"title": "Halo"}), Document("2", {"title": "Pizza"})]  # type: ignore[arg-type]
    model = BM25().fit(ClickGraph.build([page, row], docs))
    assert model.explain("halo", one).doc_id == "1"  # type: ignore[arg-type]
    assert model.title(1) == model.title(one) == "Halo"  # type: ignore[arg-type]
    judged = ResultList(one, "pizza", both, labels=np.array([0, 1]))  # type: ignore[arg-type]
    assert (judged.query_id, judged.results, judged.labels) == ("1", ["1", "2"], [0.0, 1.0])
    assert evaluate(model, [judged], "MRR")["MRR"] == 1.0
    for wrong in (1.5, True, b"1"):
        with pytest.raises(InputError, match="an id is text, or a whole number; got"):
            PairCount("halo", wrong)  # type: ignore[arg-type]


def test_text_is_no_list() -> None:
    with pytest.raises(InputError, match="clicks of a page must be a list of document ids, such as \\['d1'\\]"):
        Impression("pizza", ["d1"], "d1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="results of a list must be a list of document ids, such as \\['d1'\\]"):
        ResultList("1", "pizza", "d1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="fields of document 'd1' must be text by name"):
        Document("d1", "Pizza")  # type: ignore[arg-type]


def test_what_is_no_record_or_no_query_is_refused(tmp_path: Path) -> None:
    docs = [Document("1", {"title": "Halo"}), Document("2", {"title": "Pizza"})]
    model = BM25().fit(ClickGraph.build([PairCount("halo", "1")], docs))
    for refused in (
        lambda: ClickGraph.build("log.jsonl"),  # type: ignore[arg-type]
        lambda: model.update(tmp_path / "log.jsonl"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match=r"log must be records, not a path: give read_log\('.*log.jsonl'\)"):
            refused()
    for refused in (
        lambda: ClickGraph.build([("halo", "1")]),  # type: ignore[list-item]
        lambda: model.update([("halo", "1")]),  # type: ignore[list-item]
    ):
        with pytest.raises(InputError, match=r"a log holds Impression, PairCount and Document objects; got \('halo'"):
            refused()
    pairs = PairCount("halo", "1")
    for given in (5, pairs, {"1": "halo"}):
        with pytest.raises(InputError, match="log must be a list of records; got"):
            model.update(given)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="docs must be a list of records; got"):
            ClickGraph.build([pairs], given)  # type: ignore[arg-type]
    for refused in (
        lambda: ClickGraph.build([pairs], [{"doc_id": "1"}]),  # type: ignore[list-item]
        lambda: model.update(docs=[{"doc_id": "1"}]),  # type: ignore[list-item]
    ):
        with pytest.raises(InputError, match=r"docs are Document objects; got .* as Document\(doc_id, fields\)"):
            refused()
    for k in ("3", 2.5, None):
        with pytest.raises(SettingError, match="k must be a whole number; got"):
            model.rank("halo", k=k)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a query must be text; got 7"):
        model.rank(7)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="queries must be a list of texts, such as \\['halo'\\]; got the text 'halo'"):
        model.rank_many("halo")
    with pytest.raises(InputError, match="remove must be a list of document ids, such as \\['2'\\]; got the text '2'"):
        model.update(remove="2")
    assert model.update(remove=[2]).doc_ids_ == ["1"]  # type: ignore[list-item]


def test_measures_may_be_a_list_of_names() -> None:
    docs = [Document("1", {"title": "Halo"}), Document("2", {"title": "x"})]
    graph = ClickGraph.build([PairCount("halo", "1")], docs)
    lists = [ResultList("7", "halo", ["2", "1"], [0, 1])]
    model = BM25().fit(graph)
    assert evaluate(model, lists, ["nDCG@5", "MRR"]).means == evaluate(model, lists, "nDCG@5, MRR").means
    assert compare(graph, lists, {"mine": model}, measures=["MRR"]).measures == ["RR"]


def test_a_ranking_without_documents_says_so() -> None:
    assert (str(Ranking()), Ranking()._repr_html_()) == ("no documents", "<p>no documents</p>")


def test_fields_by_any_case_and_as_a_mapping() -> None:
    graph = ClickGraph.build([PairCount("a", "1")], [Document("1", {"product_name": "Pizza", "body": "x"})])
    by_text = BM25(fields="Product_Name:3").fit(graph).score("pizza", ["1"])
    assert by_text == BM25(fields={"product_name": 3}).fit(graph).score("pizza", ["1"])


def test_a_ranking_as_a_frame() -> None:
    pd = pytest.importorskip("pandas")
    ranking = Ranking((Hit("d2", 3.5), Hit("d1", 1.25)), {"d2": "Pizza"}.get)
    assert ranking.to_frame("pandas").to_dict("list") == {
        "rank": [1, 2], "doc_id": ["d2", "d1"], "score": [3.5, 1.25], "title": ["Pizza", ""]
    }  # fmt: skip
    assert pd.DataFrame(ranking).to_dict("list") == {"doc_id": ["d2", "d1"], "score": [3.5, 1.25]}


@pytest.mark.parametrize("read", [read_log, read_docs])
def test_a_list_of_files_is_refused_with_what_to_write(read: Callable[..., object]) -> None:
    with pytest.raises(InputError, match=r"files are given by their paths, one by one, .*: write \(\*files\)"):
        read(["a.csv", "b.csv"])
    with pytest.raises(InputError, match="files are given by their paths, one by one, or as one data frame; got None"):
        read(None)
