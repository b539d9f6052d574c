"""Graphs made by hand: merging, odd names, logs that say nothing, sums beyond 32 bits."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from clickbridge import ClickGraph
from clickbridge.errors import InputError
from clickbridge.graph.storage import write_log
from clickbridge.io.artifact import ArtifactWriter
from clickbridge.log.aggregate import LogAggregator
from clickbridge.log.blocks import in_blocks
from clickbridge.types import Document, Impression, PairCount
from oracles.counting import described, records


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
    first = ClickGraph.build(pages[:1])
    with pytest.raises(InputError, match="by different secrets: build the second with"):
        first.merge(ClickGraph.build(pages[1:]))
    merged = first.merge(ClickGraph.build(pages[1:], secret=first.secret))
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
    names = {'with "quotes"': "1", "with 'quotes'": "2", "new\nline": "3", "ünïcode": "4", "place": "5", "f0": "6"}
    names |= {"clickbridge from log": "7", "nul\0": "8"}
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
        log = records([{"query": "a", "query_id": None, "clicks": ["x", "y"], "results": ["x", "z"]}])
        for block in in_blocks(log):
            aggregator.add(block)
        aggregator.finish()
        parts = write_log(writer, aggregator)
        writer.commit()
    assert aggregator.summary.as_dict() == {
        "impressions": 1, "pair_rows": 0, "clicks": 2, "clicks_outside_results": 1, "documents": 0,
        "repeated_documents": 0, "queries": 1, "docs": 3, "pairs": 2, "has_times": False, "has_users": False,
        "has_impressions": True,
    }  # fmt: skip
    assert parts == ["pairs", "impressions", "clicks"]


def most_memory(n_lines: int, kind: str) -> int:
    """The most that Python and NumPy held at once while a log of so many lines about one pair became a GRAPH."""
    if kind == "pages":
        log = (Impression("q", ["a", "b"], ["a"], user="u", time=float(i)) for i in range(n_lines))
    else:
        log = (PairCount("q", "a", user="u", time=float(i)) for i in range(n_lines))
    usual = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # Python 3.13 waits for 2,000 objects, and what waits to be collected counts, too
    tracemalloc.start()
    try:
        graph = ClickGraph.build(log)
        assert graph.pairs.clicks.tolist() == [n_lines]
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.set_threshold(*usual)


@pytest.mark.parametrize("kind", ["pages", "triples"])
def test_memory_does_not_grow_with_the_log(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickbridge.log.batches.BATCH_RECORDS", 500)
    most_memory(500, kind)  # what is loaded or remembered once
    # A line kept anywhere would be some 30 bytes: more than half a megabyte.
    assert most_memory(20_000, kind) < most_memory(1000, kind) + 200_000


def test_progress_is_reported() -> None:
    lines: list[str] = []
    log = [Impression("q", ["a"], ["a"])] * 20_000
    docs = (Document(f"d{i}", {}) for i in range(10_000))
    ClickGraph.build(log, docs, progress=lines.append)
    assert lines == ["documents 10,000", "log lines 20,000", "merging"]
