"""From any small log to a GRAPH, against plain counting in dicts; batches, files and merging change nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from clickbridge import ClickGraph
from clickbridge.errors import ArtifactError, MissingPart
from clickbridge.graph.parts import Clicks, Impressions
from clickbridge.io.secret import Secret
from clickbridge.types import Document, Impression, PairCount
from oracles.counting import Raw, described, hashed, oracle, records

QUERIES = ["ny", "NY ", "new  york", "pizza", "ΠΊΤΑ", "", "~"]
DOCS = ["1", "01", "001", "a", "A", "é", "z\u0301", "￿", "𝄞"]

SECRET = Secret.new()


def few(examples: int) -> settings:
    """A build takes tens of milliseconds: few examples, of many records each; a failure is not made smaller."""
    return settings(max_examples=examples, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))


def _raw(users: bool, times: bool) -> st.SearchStrategy[Raw]:
    who = st.sampled_from([None, "u", "v", "w"]) if users else st.none()
    when = st.sampled_from([None, 0, 1.5, 7, 100]) if times else st.none()
    docs = st.sampled_from(DOCS)
    query = {
        "query": st.sampled_from(QUERIES),
        "query_id": st.sampled_from(["q1", "q2", "ny"]),
        "user": who,
        "time": when,
    }
    page = st.fixed_dictionaries(
        query | {"results": st.none() | st.lists(docs, max_size=5), "clicks": st.lists(docs, max_size=3)}
    )
    count = st.fixed_dictionaries(
        query | {"doc_id": docs, "clicks": st.integers(0, 4), "impressions": st.sampled_from([None, 0, 3])}
    )
    return page | count


@st.composite
def logs(draw: st.DrawFn) -> list[Raw]:
    raws = draw(st.lists(_raw(draw(st.booleans()), draw(st.booleans())), max_size=25))
    kinds = draw(st.sampled_from(["all", "pages", "counts"]))
    raws = [r for r in raws if kinds == "all" or ("doc_id" in r) == (kinds == "counts")]
    # Never nothing: one click at least.
    sure = {
        "query": "ny",
        "query_id": None,
        "user": None,
        "time": None,
        "clicks": 1,
        "doc_id": "1",
        "impressions": None,
    }
    return (
        [*raws, sure] if kinds != "pages" else [*raws, sure | {"results": ["1", "2"], "clicks": ["1"], "doc_id": None}]
    )


def test_records_made_by_hand_are_normalised() -> None:
    log = [Impression("NY  Pizza", ["a", "b"], ["a"]), PairCount("ny pizza ", "a"), PairCount("", "b", query_id="Q7")]
    graph = ClickGraph.build(log)
    assert graph.query_names == ["Q7", "ny pizza"]
    assert graph.query_texts == ["", "ny pizza"]
    assert graph.pairs.clicks.tolist() == [1, 2]
    assert graph.query_idx("NY pizza") == 1
    assert log[0].query == "NY  Pizza", "what was handed in stays as it is"


@given(logs())
@few(20)
def test_a_graph_is_what_counting_gives(raws: list[Raw]) -> None:
    graph = ClickGraph.build(records(raws))
    assert described(graph) == hashed(oracle(raws), graph.secret)
    assert graph.summary["queries"] == graph.n_queries
    assert graph.summary["docs"] == graph.n_docs
    assert graph.summary["clicks"] == graph.pairs.clicks.sum()
    assert graph.summary["impressions"] == (0 if graph.impressions is None else len(graph.impressions))
    assert graph.summary["pairs"] == (graph.pairs.clicks > 0).sum()


@given(logs(), st.integers(1, 4), st.integers(1, 6))
@few(6)
def test_batches_change_nothing(raws: list[Raw], n_records: int, n_shown: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clickbridge.log.batches.BATCH_RECORDS", n_records)
        patch.setattr("clickbridge.log.batches.BATCH_SHOWN", n_shown)
        graph = ClickGraph.build(records(raws))
    assert described(graph) == hashed(oracle(raws), graph.secret)


@given(logs())
@few(6)
def test_events_alone_give_the_same_pairs(raws: list[Raw]) -> None:
    """What hold_back and merge rely on: where there are events, they account for every pair."""
    graph = ClickGraph.build(records(raws))
    if graph.impressions is None and graph.clicks is None:
        return
    again = graph.with_events(graph.impressions, graph.clicks)
    assert described(again) == described(graph)


@given(logs())
@few(5)
def test_saved_and_opened_it_is_the_same(raws: list[Raw]) -> None:
    docs = [Document("01", {"title": "leading", "body": "zero"}), Document("unseen", {"title": "x"})]
    graph = ClickGraph.build(records(raws), docs, defaults={"response": "log"})
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "graph"
        graph.save(place)
        opened = ClickGraph.open(place)
        assert described(opened) == described(graph)
        assert opened.docs == graph.docs
        assert (opened.defaults, opened.summary) == (graph.defaults, graph.summary)
        assert opened.parts == graph.parts
        assert orjson.loads((place / "manifest.json").read_bytes())["parts_present"] == graph.parts
        for name in ("time", "user", "clicks", "query", "doc"):
            if graph.clicks is not None and getattr(graph.clicks, name) is not None:
                assert getattr(opened.clicks, name).tolist() == pytest.approx(
                    getattr(graph.clicks, name).tolist(), nan_ok=True
                )


@given(logs(), logs())
@few(12)
def test_merged_it_is_the_graph_of_both_logs(one: list[Raw], two: list[Raw]) -> None:
    docs_one, docs_two = [Document("a", {"title": "one"})], [Document("b", {"title": "two", "body": "more"})]
    parts = [ClickGraph.build(records(raws), docs, secret=SECRET) for raws, docs in ((one, docs_one), (two, docs_two))]
    merged = parts[0].merge(parts[1])
    whole = ClickGraph.build(records(one + two), docs_one + docs_two, secret=SECRET)
    assert described(merged) == described(whole)
    assert merged.docs.to_pylist() == whole.docs.to_pylist()
    assert merged.parts == whole.parts


@given(logs(), logs(), logs())
@few(3)
def test_merging_again_loses_nothing(one: list[Raw], two: list[Raw], three: list[Raw]) -> None:
    a, b, c = (ClickGraph.build(records(raws), secret=SECRET) for raws in (one, two, three))
    assert described(a.merge(b).merge(c)) == described(a.merge(b.merge(c))) == hashed(oracle(one + two + three), SECRET)


@given(logs())
@few(4)
def test_rows_are_what_they_are_called(raws: list[Raw]) -> None:
    graph = ClickGraph.build(records(raws))
    wanted = {pair: row[0] for pair, row in oracle(raws)["pairs"].items() if row[0]}
    by_query, by_doc = graph.matrix(rows="queries"), graph.matrix(rows="documents")
    assert by_query.shape == (graph.n_queries, graph.n_docs)
    assert by_doc.shape == (graph.n_docs, graph.n_queries)
    coo = by_query.tocoo()
    entries = zip(coo.row, coo.col, coo.data, strict=True)
    assert {(graph.query_keys[q], graph.doc_ids[d]): n for q, d, n in entries} == wanted
    assert (by_doc != by_query.T).nnz == 0
    doubled = graph.matrix(rows="queries", values=2 * graph.pairs.clicks)
    assert (doubled != 2 * by_query).nnz == 0


@pytest.mark.parametrize("rows", ["query", "docs", "", None])
def test_no_other_orientation(small_graph: ClickGraph, rows: Any) -> None:
    with pytest.raises(ValueError, match="rows must be 'queries' or 'documents', got"):
        small_graph.matrix(rows=rows)
    with pytest.raises(TypeError):
        small_graph.matrix()  # type: ignore[call-arg]


def test_ids_come_back_as_they_were() -> None:
    ids = ["007", "07", "7", "7.0", "1e3", "NaN", "null", "'", "a'b\"c", "é", "e\u0301", "a\x00b"]
    graph = ClickGraph.build([Impression("", ids, ids[:1], query_id="007")])
    assert sorted(graph.doc_ids) == sorted(ids)
    assert [graph.doc_ids[graph.doc_idx(doc_id)] for doc_id in ids] == ids  # type: ignore[index]
    assert graph.query_idx("", "007") == 0
    assert graph.query_idx("007") == 0
    assert graph.query_idx("07") is None
    assert graph.query_texts == [""]
    assert graph.doc_idx("0007") is None


def test_an_id_is_never_folded() -> None:
    """A query's text is normalised first; where no query has that text, the id counts exactly as given."""
    ids = ["Q7", "q7", "ﬁ", "FI", "both"]
    log = [PairCount("", f"d{i}", query_id=query_id) for i, query_id in enumerate(ids)] + [PairCount("Both", "text")]
    graph = ClickGraph.build(log)
    for query_id in ids[:4]:
        number = graph.query_idx(query_id)
        assert number == graph.query_idx("", query_id) == graph.query_idx(f" {query_id}\n")
        assert graph.query_names[number or 0] == query_id
    assert graph.query_texts[graph.query_idx("BOTH") or 0] == "both", "a text comes before an id"
    assert graph.query_idx("", "both") != graph.query_idx("both")
    assert graph.query_idx("Fi") is None
    assert [graph.query_idx(key) for key in graph.query_keys] == list(range(graph.n_queries))


def test_queries_are_found_by_any_form_of_their_text(small_graph: ClickGraph) -> None:
    number = small_graph.query_idx("  NY\tPizza ")
    assert number is not None
    assert small_graph.query_texts[number] == "ny pizza"
    assert small_graph.query_idx("never asked") is None


def test_fields(small_graph: ClickGraph) -> None:
    assert small_graph.field_names == ["body", "title"]
    assert small_graph.field("title")[small_graph.doc_idx("blank") or 0] == ""
    with pytest.raises(MissingPart, match="no field 'abstract'; they have body, title"):
        small_graph.field("abstract")
    with pytest.raises(MissingPart, match="they have none: ingest with docs"):
        ClickGraph.build([Impression("q", ["a"], [])]).field("title")
    assert repr(small_graph) == "ClickGraph(5 queries, 5 documents, 5 pairs)"


def test_opening_what_is_no_graph(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no graph at"):
        ClickGraph.open(tmp_path / "nothing")
    with pytest.raises(ArtifactError, match="is not a graph"):
        ClickGraph.open(tmp_path)


def test_parts_take_rows() -> None:
    import numpy as np

    shown = Impressions(np.array([0, 1]), np.array([0, 0, 2]), np.array([3, 4]), np.array([1, 0], dtype=np.uint8))
    assert shown.take(np.array([True, False])).indptr.tolist() == [0, 0]
    assert shown.take(np.array([False, True])).doc.tolist() == [3, 4]
    assert shown.without_clicks(np.array([False, True])).clicked.tolist() == [0, 0]
    clicks = Clicks(np.array([0, 1]), np.array([3, 4]), np.array([1, 2]), None, None, np.array([5, 6]))
    kept = clicks.take(np.array([False, True]))
    assert (kept.clicks.tolist(), kept.time, kept.impressions.tolist()) == ([2], None, [6])  # type: ignore[union-attr]
