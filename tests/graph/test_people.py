"""Who stands behind a query, what several people did, and what is left without one person or document: by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clickbridge import ClickGraph, example_graph
from clickbridge.errors import MissingPart
from clickbridge.graph.forget import Forgotten, forget_user
from clickbridge.graph.people import has_users, people_by_query, users_by_query
from clickbridge.graph.several import of_several
from clickbridge.graph.unmatched_ids import UnmatchedIds, unmatched_ids
from clickbridge.graph.without_documents import without_documents
from clickbridge.types import Document, Impression, PairCount


def pages_of(graph: ClickGraph) -> list[tuple[str, list[str], list[str]]]:
    """Query, shown and clicked documents of each page."""
    part = graph.impressions
    if part is None:
        return []
    out = []
    for page, query in enumerate(part.query.tolist()):
        rows = slice(part.indptr[page], part.indptr[page + 1])
        shown = [graph.doc_ids[doc] for doc in part.doc[rows]]
        clicked = [doc for doc, hit in zip(shown, part.clicked[rows], strict=True) if hit]
        out.append((graph.query_keys[query], shown, clicked))
    return out


def pairs_of(graph: ClickGraph) -> dict[tuple[str, str], int]:
    pairs = graph.pairs
    names = zip(pairs.query.tolist(), pairs.doc.tolist(), pairs.clicks.tolist(), strict=True)
    return {(graph.query_keys[query], graph.doc_ids[doc]): clicks for query, doc, clicks in names}


def by_query(graph: ClickGraph, counts: Any) -> dict[str, int]:
    return dict(zip(graph.query_keys, counts.tolist(), strict=True))


BOTH = [
    Impression("a", ["1", "2"], ["1"], user="u"),
    Impression("a", ["1"], [], user="v"),
    Impression("a", ["2"], ["2"], user="u"),
    Impression("b", ["1"], ["1"]),
    PairCount("c", "1", 3, user="u"),
    PairCount("c", "2", 1, user="w"),
    PairCount("a", "2", 1, user="w"),
]


# --- how many people ---------------------------------------------------------------------------------


def test_users_of_each_query_are_counted_once() -> None:
    graph = ClickGraph.build(BOTH)
    assert has_users(graph)
    assert by_query(graph, users_by_query(graph)) == {"a": 3, "b": 0, "c": 2}
    assert by_query(graph, people_by_query(graph)) == {"a": 3, "b": 0, "c": 2}


@pytest.mark.parametrize("only", [Impression, PairCount])
def test_users_of_pages_alone_and_of_clicks_alone(only: type) -> None:
    graph = ClickGraph.build([record for record in BOTH if isinstance(record, only)])
    expected = {"a": 2, "b": 0} if only is Impression else {"a": 1, "c": 2}
    assert by_query(graph, people_by_query(graph)) == expected


def test_without_users_pages_and_clicks_tell_how_often_a_query_was_asked() -> None:
    pages = [Impression("a", ["1"], []), Impression("a", ["1"], []), Impression("b", ["1", "2"], ["1", "2"])]
    graph = ClickGraph.build(pages)
    assert not has_users(graph)
    assert by_query(graph, users_by_query(graph)) == {"a": 0, "b": 0}
    assert by_query(graph, people_by_query(graph)) == {"a": 2, "b": 2}
    clicks = ClickGraph.build([PairCount("c", "1", 3)])
    assert by_query(clicks, people_by_query(clicks)) == {"c": 3}


# --- what several did --------------------------------------------------------------------------------


def test_what_one_person_clicked_is_taken_out() -> None:
    graph = ClickGraph.build(
        [
            Impression("a", ["1", "2", "3"], ["1", "2"], user="u", time=1.0),
            Impression("a", ["1", "2", "3"], ["1"], user="v", time=2.0),
            Impression("a", ["3", "1"], [], user="w", time=3.0),
            Impression("a", ["2", "3"], ["2"], user="u", time=4.0),
            Impression("alone", ["1"], ["1"], user="u", time=5.0),
            PairCount("c", "4", 2, user="u"),
            PairCount("c", "4", 1, user="v"),
            PairCount("c", "5", 9, user="u"),
        ]
    )
    several = of_several(graph, 2)
    assert pages_of(several) == [("a", ["1", "3"], ["1"]), ("a", ["1", "2", "3"], ["1"]), ("a", ["3", "1"], [])]
    assert several.impressions is not None
    assert several.impressions.time is not None
    assert several.impressions.time.tolist() == [1.0, 2.0, 3.0]
    assert pairs_of(several) == {("a", "1"): 2, ("c", "4"): 3}
    assert list(several.query_keys) == ["a", "c"]
    twice = of_several(several, 2)
    assert (pages_of(twice), pairs_of(twice)) == (pages_of(several), pairs_of(several))
    assert of_several(graph, 1) is graph
    with pytest.raises(MissingPart, match="min_users needs users"):
        of_several(ClickGraph.build([PairCount("c", "4", 2)]), 2)


# --- one person, one document ------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", [(Impression, PairCount), (Impression,), (PairCount,)])
def test_forgotten_counts_what_was_removed(tmp_path: Path, kinds: tuple[type, ...]) -> None:
    log = [record for record in [*BOTH, Impression("mine", ["1"], ["1"], user="u")] if isinstance(record, kinds)]
    whole = ClickGraph.build(log, out=tmp_path / "g")
    found = forget_user(tmp_path / "g", "u")
    left = ClickGraph.open(tmp_path / "g")
    expected = ClickGraph.build([record for record in log if record.user != "u"], secret=whole.secret)
    assert (pages_of(left), pairs_of(left)) == (pages_of(expected), pairs_of(expected))
    assert left.summary["clicks"] == expected.summary["clicks"]
    assert left.summary["impressions"] == expected.summary["impressions"]
    assert left.summary["queries"] == len(expected.query_keys) == left.n_queries
    assert left.summary["pairs"] == expected.summary["pairs"]
    pages, clicks = (3 if Impression in kinds else 0), (3 if Impression in kinds else 0) + 3 * (PairCount in kinds)
    assert (found.pages, found.clicks, found.queries, found.left) == (pages, clicks, int(Impression in kinds), 0)
    assert found.pairs == len(whole.pairs) - len(expected.pairs)


def test_who_is_not_there_leaves_the_graph_as_it_is(tmp_path: Path) -> None:
    ClickGraph.build(BOTH, out=tmp_path / "g")
    before = {path.name: path.read_bytes() for path in (tmp_path / "g").iterdir()}
    assert forget_user(tmp_path / "g", "nobody") == Forgotten()
    assert {path.name: path.read_bytes() for path in (tmp_path / "g").iterdir()} == before


@pytest.mark.parametrize("kinds", [(Impression, PairCount), (Impression,), (PairCount,)])
def test_a_document_taken_out_was_never_there(kinds: tuple[type, ...]) -> None:
    log = [record for record in BOTH if isinstance(record, kinds)]
    docs = [Document("1", {"title": "one"}), Document("2", {"title": "two"})]
    left = without_documents(ClickGraph.build(log, docs), {"1"})
    assert left.doc_ids == ["2"]
    assert left.field("title") == ["two"]
    assert pages_of(left) == ([("a", ["2"], []), ("a", ["2"], ["2"])] if Impression in kinds else [])
    expected = {("a", "2"): (Impression in kinds) + (PairCount in kinds)} | (
        {("c", "2"): 1} if PairCount in kinds else {}
    )
    assert pairs_of(left) == expected


def test_a_document_of_counts_alone() -> None:
    graph = ClickGraph.build([PairCount("a", "1", 3), PairCount("a", "2", 2), PairCount("b", "1", 1)])
    assert pairs_of(without_documents(graph, {"1"})) == {("a", "2"): 2}
    assert pairs_of(without_documents(graph, {"2", "unknown"})) == {("a", "1"): 3, ("b", "1"): 1}


# --- clicks without a document -----------------------------------------------------------------------


def test_clicked_ids_that_no_document_has() -> None:
    docs = [Document("A1", {"title": "x"}), Document("7", {"title": "y"}), Document("9", {})]
    log = [PairCount("q", "a1", 3), PairCount("q", "zz", 5), PairCount("q", "7", 2), PairCount("q", "9", 1)]
    found = unmatched_ids(ClickGraph.build(log, docs))
    assert found == UnmatchedIds(9, 11, 3, 4, "a1", "A1")
    assert str(found) == "9 of 11 clicks are on ids that no document has, such as 'a1'; the documents have 'A1'"
    found = unmatched_ids(ClickGraph.build(log[1:], docs))
    assert str(found) == "6 of 8 clicks are on ids that no document has, such as 'zz'"
    assert unmatched_ids(ClickGraph.build([PairCount("q", "07.0")], docs)) == UnmatchedIds(1, 1, 1, 1, "07.0", "7")
    assert unmatched_ids(ClickGraph.build([PairCount("q", "7")], docs)) == UnmatchedIds(0, 1, 0, 1)
    assert unmatched_ids(ClickGraph.build(log)) is None


def test_the_example_is_as_it_says() -> None:
    graph = example_graph()
    pages = pages_of(graph)
    assert len(pages) == 52
    assert all(len(shown) == 3 and len(clicked) == 1 for _, shown, clicked in pages)
    assert pairs_of(graph)["ny pizza", "slice"] == 5
    assert sum(pairs_of(graph).values()) == 52
    assert len(graph.doc_ids) == 6
    assert max(people_by_query(graph)) <= 20
    part = graph.impressions
    assert part is not None
    assert part.time is not None
    assert part.time.tolist() == [1_767_225_600.0 + 3600 * i for i in range(52)]
