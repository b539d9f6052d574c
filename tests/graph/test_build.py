"""From any small log to a GRAPH, against plain counting in dicts; batches, files and merging change nothing."""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from clickbridge import ClickGraph
from clickbridge.errors import ArtifactError, InputError, MissingPart
from clickbridge.graph.clickgraph import sum_pairs
from clickbridge.graph.parts import Clicks, Impressions
from clickbridge.io.artifact import ArtifactWriter
from clickbridge.log.aggregate import LogAggregator, user_hash
from clickbridge.log.clean import clean_session, clean_triple
from clickbridge.types import Document, Impression, PairCount

Raw = dict[str, Any]

QUERIES = ["ny", "NY ", "new  york", "pizza", "ΠΊΤΑ", "", "~"]
DOCS = ["1", "01", "001", "a", "A", "é", "z\u0301", "￿", "𝄞"]


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


def records(raws: list[Raw]) -> list[Impression | PairCount]:
    return [clean_triple(raw) if raw.get("doc_id") else clean_session(raw) for raw in raws]


def key_of(raw: Raw) -> str:
    return " ".join(raw["query"].casefold().split()) or "\x1f" + raw["query_id"]


def oracle(raws: list[Raw]) -> dict[str, Any]:
    """The GRAPH by counting, one thing at a time."""
    clicks: dict[Any, int] = defaultdict(int)
    shown: dict[Any, int] = defaultdict(int)
    users: dict[Any, set[str]] = defaultdict(set)
    times: dict[Any, list[float]] = defaultdict(list)
    stated, queries, docs, pages = set(), set(), set(), []
    has_users = has_times = False
    for raw in raws:
        key = key_of(raw)
        if raw.get("doc_id"):
            results, events = [], [(raw["doc_id"], raw["clicks"])]
            stated.add((key, raw["doc_id"]))
            shown[key, raw["doc_id"]] += raw["impressions"] or 0
        else:
            results = list(dict.fromkeys(raw["results"] or []))
            events = [(doc, 1) for doc in dict.fromkeys(raw["clicks"])]
            if results:
                clicked = [int(doc in raw["clicks"]) for doc in results]
                pages.append((key, results, clicked, raw["time"], raw["user"]))
        if not results and not events:
            continue
        has_users |= raw["user"] is not None
        has_times |= raw["time"] is not None
        queries.add(key)
        docs.update(results)
        for doc in results:
            shown[key, doc] += 1
        for doc, count in events:
            docs.add(doc)
            clicks[key, doc] += count
            if count and raw["user"] is not None:
                users[key, doc].add(raw["user"])
            if count and raw["time"] is not None:
                times[key, doc].append(raw["time"])
    pairs = {}
    for pair in {p for p, n in clicks.items() if n} | stated:
        first, last = (min(times[pair]), max(times[pair])) if times[pair] else (None, None)
        pairs[pair] = (clicks[pair], shown[pair], len(users[pair]) if has_users else None, first, last)
    return {
        "pairs": pairs,
        "pages": pages,
        "queries": sorted(queries, key=str.encode),
        "docs": sorted(docs, key=str.encode),
        "has": (has_users, has_times),
    }


def described(graph: ClickGraph) -> dict[str, Any]:
    """The GRAPH in the oracle's words."""

    def time(value: float) -> float | None:
        return None if math.isnan(value) else float(value)

    p, keys, ids = graph.pairs, graph.query_keys, graph.doc_ids
    pairs = {}
    order = []
    for i in range(len(p)):
        order.append((int(p.query[i]), int(p.doc[i])))
        pairs[keys[p.query[i]], ids[p.doc[i]]] = (
            int(p.clicks[i]),
            int(p.impressions[i]),
            None if p.users is None else int(p.users[i]),
            None if p.first is None else time(p.first[i]),
            None if p.last is None else time(p.last[i]),
        )
    assert order == sorted(set(order)), "pairs are by query, then document, each once"
    pages = []
    if (shown := graph.impressions) is not None:
        for i in range(len(shown)):
            here = slice(shown.indptr[i], shown.indptr[i + 1])
            pages.append(
                (
                    keys[shown.query[i]],
                    [ids[doc] for doc in shown.doc[here]],
                    shown.clicked[here].tolist(),
                    None if shown.time is None else time(shown.time[i]),
                    0 if shown.user is None else int(shown.user[i]),
                )
            )
    return {
        "pairs": pairs,
        "pages": pages,
        "queries": list(keys),
        "docs": ids,
        "has": (p.users is not None, p.first is not None),
    }


def hashed(wanted: dict[str, Any]) -> dict[str, Any]:
    pages = [(*page[:4], 0 if page[4] is None else user_hash(page[4])) for page in wanted["pages"]]
    return wanted | {"pages": pages}


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
    assert described(graph) == hashed(oracle(raws))
    assert graph.summary["queries"] == graph.n_queries
    assert graph.summary["docs"] == graph.n_docs
    assert graph.summary["clicks"] == graph.pairs.clicks.sum()
    assert graph.summary["impressions"] == (0 if graph.impressions is None else len(graph.impressions))
    assert graph.summary["pairs"] == (graph.pairs.clicks > 0).sum()


@given(logs(), st.integers(1, 4), st.integers(1, 6))
@few(6)
def test_batches_change_nothing(raws: list[Raw], n_records: int, n_shown: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clickbridge.log.aggregate.BATCH_RECORDS", n_records)
        patch.setattr("clickbridge.log.aggregate.BATCH_SHOWN", n_shown)
        graph = ClickGraph.build(records(raws))
    assert described(graph) == hashed(oracle(raws))


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
    merged = ClickGraph.build(records(one), docs_one).merge(ClickGraph.build(records(two), docs_two))
    whole = ClickGraph.build(records(one + two), docs_one + docs_two)
    assert described(merged) == described(whole)
    assert merged.docs.to_pylist() == whole.docs.to_pylist()
    assert merged.parts == whole.parts


@given(logs(), logs(), logs())
@few(3)
def test_merging_again_loses_nothing(one: list[Raw], two: list[Raw], three: list[Raw]) -> None:
    a, b, c = (ClickGraph.build(records(raws)) for raws in (one, two, three))
    assert described(a.merge(b).merge(c)) == described(a.merge(b.merge(c))) == hashed(oracle(one + two + three))


# --- by hand -------------------------------------------------------------------------------------


def test_plain_triples_stay_plain_when_merged() -> None:
    one = ClickGraph.build([PairCount("q", "a", 2, 5)])
    both = one.merge(ClickGraph.build([PairCount("q", "a", 1), PairCount("q", "b", 0, 7)]))
    assert both.parts == ["pairs"]
    assert described(both)["pairs"] == {("q", "a"): (3, 5, None, None, None), ("q", "b"): (0, 7, None, None, None)}


def test_merging_with_users_and_times_on_one_side_only() -> None:
    plain = ClickGraph.build([PairCount("q", "a", 2)])
    rich = ClickGraph.build([Impression("q", ["a", "b"], ["a"], user="u", time=3.0)])
    for merged in (plain.merge(rich), rich.merge(plain)):
        assert described(merged)["pairs"] == {("q", "a"): (3, 1, 1, 3.0, 3.0)}
        assert merged.hold_back(by="click").graph.n_docs == 2


def test_a_user_in_both_logs_counts_once() -> None:
    pages = [Impression("q", ["a"], ["a"], user="u", time=float(t)) for t in range(2)]
    merged = ClickGraph.build(pages[:1]).merge(ClickGraph.build(pages[1:]))
    assert described(merged)["pairs"] == {("q", "a"): (2, 2, 1, 0.0, 1.0)}


def test_merged_text_is_the_second_ones() -> None:
    log = [Impression("q", ["a", "b"], ["a"])]
    one = ClickGraph.build(log, [Document("a", {"title": "old"}), Document("b", {"title": "kept"})], defaults={"x": 1})
    two = ClickGraph.build(log, [Document("a", {"title": "new", "url": "u"})], defaults={"y": 2})
    merged = one.merge(two)
    assert merged.field("title") == ["new", "kept"]
    assert merged.field("url") == ["u", ""]
    assert merged.defaults == {"x": 1, "y": 2}


def test_documents_are_the_union_of_file_and_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickbridge.log.aggregate.BATCH_DOCUMENTS", 2)
    docs = [Document(f"d{i}", {f"field{i % 2}": f"text {i}"}) for i in range(5)] + [Document("d0", {"field1": "again"})]
    graph = ClickGraph.build([Impression("q", ["d1", "log"], ["log"])], docs)
    assert graph.docs.to_pylist() == [
        *({"doc_id": f"d{i}", "field0": f"text {i}" if i % 2 == 0 else None, "field1": f"text {i}" if i % 2 else None}
          for i in range(5)),
        {"doc_id": "log", "field0": None, "field1": None},
    ]  # fmt: skip
    assert graph.field("field0") == ["text 0", "", "text 2", "", "text 4", ""]
    assert graph.summary["repeated_documents"] == 1


def test_odd_field_names_survive_and_impossible_ones_are_refused() -> None:
    log = [Impression("q", ["a"], ["a"])]
    names = {'with "quotes"': "1", "with 'quotes'": "2", "new\nline": "3", "ünïcode": "4"}
    graph = ClickGraph.build(log, [Document("a", names)])
    assert graph.docs.to_pylist() == [{"doc_id": "a", **names}]
    for bad in ({"": "x"}, {"doc_id": "x"}, {"Title": "x", "title": "y"}):
        with pytest.raises(InputError, match="field names must differ"):
            ClickGraph.build(log, [Document("a", bad)])


def test_a_log_without_users_or_times_has_no_such_columns() -> None:
    graph = ClickGraph.build([Impression("q", ["a"], ["a"])])
    assert (graph.pairs.users, graph.pairs.first, graph.pairs.last) == (None, None, None)
    assert graph.impressions is not None
    assert (graph.impressions.time, graph.impressions.user) == (None, None)
    assert not graph.has_times


def test_pages_without_a_click_have_no_pairs() -> None:
    graph = ClickGraph.build([Impression("q", ["a", "b"], [])])
    assert len(graph.pairs) == 0
    assert (graph.n_queries, graph.n_docs) == (1, 2)
    assert graph.matrix(rows="queries").shape == (1, 2)


def test_a_page_of_nothing_says_nothing_but_its_clicks_count() -> None:
    graph = ClickGraph.build([Impression("q", [], []), Impression("q", [], ["a"], time=2.0), Impression("r", None, [])])
    assert graph.impressions is None
    assert list(graph.query_keys) == ["q"]
    assert described(graph)["pairs"] == {("q", "a"): (1, 0, None, 2.0, 2.0)}
    assert graph.parts == ["pairs", "clicks", "times"]


def test_sums_beyond_32_bits() -> None:
    graph = ClickGraph.build([PairCount("q", "a", 2**31 - 1, 2**31 - 1)] * 3)
    assert described(graph)["pairs"]["q", "a"][:2] == (3 * (2**31 - 1), 3 * (2**31 - 1))
    assert described(graph.merge(graph))["pairs"]["q", "a"][0] == 6 * (2**31 - 1)


@pytest.mark.parametrize(
    "log", [[], [Impression("q", None, [])], [PairCount("q", "a", 0)], [Document("a", {"t": "x"})]]
)
def test_a_log_that_says_nothing_is_refused_and_nothing_written(tmp_path: Path, log: list[Any]) -> None:
    with pytest.raises(InputError, match="the log has neither a shown result nor a click"):
        ClickGraph.build(log, out=tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []


def test_a_refused_log_leaves_the_old_graph_and_does_not_stand_in_the_way(tmp_path: Path) -> None:
    log = [Impression("q", ["a"], ["a"])]
    ClickGraph.build(log, out=tmp_path / "graph")

    def broken() -> Any:
        yield from log
        raise InputError("cut short")

    for _ in range(2):
        with pytest.raises(InputError, match="cut short"):
            ClickGraph.build(broken(), out=tmp_path / "graph")
        assert list(ClickGraph.open(tmp_path / "graph").query_keys) == ["q"]
    with pytest.raises(InputError) as kept:
        ClickGraph.build(broken(), out=tmp_path / "graph")
    ClickGraph.build([Impression("new", ["b"], ["b"])], out=tmp_path / "graph")  # with the old error still alive
    assert list(ClickGraph.open(tmp_path / "graph").query_keys) == ["new"]
    assert kept.value is not None


def test_folders_with_odd_names(tmp_path: Path) -> None:
    place = tmp_path / "o'brien [1]*" / 'g"raph'
    place.parent.mkdir()
    graph = ClickGraph.build([Impression("q", ["a"], ["a"])], [Document("a", {"t": "x"})], place)
    assert graph.field("t") == ["x"]


def test_the_aggregator_alone(tmp_path: Path) -> None:
    with ArtifactWriter(tmp_path / "graph", "graph") as writer:
        aggregator = LogAggregator(writer.scratch(), memory_mb=256, threads=1)
        for record in records([{"query": "a", "query_id": None, "clicks": ["x", "y"], "results": ["x", "z"]}]):
            aggregator.add(record)
        summary = aggregator.finish(writer)
        writer.commit()
    assert summary.as_dict() == {
        "impressions": 1, "pair_rows": 0, "clicks": 2, "clicks_outside_results": 1, "documents": 0,
        "repeated_documents": 0, "queries": 1, "docs": 3, "pairs": 2, "has_times": False, "has_users": False,
        "has_impressions": True,
    }  # fmt: skip
    assert aggregator.parts == ["pairs", "impressions", "clicks"]


def test_progress_is_reported() -> None:
    said: list[tuple[str, int]] = []
    log = [Impression("q", ["a"], ["a"])] * 20_000
    docs = (Document(f"d{i}", {}) for i in range(10_000))
    ClickGraph.build(log, docs, progress=lambda what, count: said.append((what, count)))
    assert said == [("documents", 10_000), ("log lines", 20_000), ("merging", 0)]


def test_no_events_no_pairs() -> None:
    assert len(sum_pairs(None, None)) == 0
    assert sum_pairs(None, None).users is None


# --- orientation and names -----------------------------------------------------------------------


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
    assert graph.query_idx("007") is None
    assert graph.query_texts == [""]
    assert graph.doc_idx("0007") is None


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
    with pytest.raises(MissingPart, match="they have none: ingest with --docs"):
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
