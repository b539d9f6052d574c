"""Lists end to end: who is known, lists in the middle of others, and labelled lists that choices are made on."""

from __future__ import annotations

import numpy as np
import pytest

from clickbridge.errors import InputError
from clickbridge.models.candidates import Candidates, Labelled, Query, asked, at_most, shuffled, without_gaps
from clickbridge.models.catalogue import Catalogue, KnownQueries
from clickbridge.types import OPAQUE, ResultList

CATALOGUE = Catalogue(["a", "b"], ["A", "B"])
NONE = KnownQueries.none()


def flattened(*lists: ResultList, known: KnownQueries = NONE) -> Candidates:
    return Candidates.of(lists, CATALOGUE, known)


LISTS = [ResultList("1", "New  York", ["b", "nowhere", "a"]), ResultList("2", "", []), ResultList("3", "q", ["b"])]


def test_documents_by_number_and_queries_by_key() -> None:
    flat = flattened(*LISTS)
    assert flat.keys == ["new york", OPAQUE + "2", "q"]
    assert flat.texts == ["new york", "", "q"]
    assert flat.items.tolist() == [1, -1, 0, 1]
    assert flat.lists.lengths.tolist() == [3, 0, 1]
    assert flat.incoming == []
    assert len(flat) == 3


def test_lists_in_the_middle_of_others() -> None:
    flat = flattened(*LISTS)
    some = flat.some(1, 3)
    assert (some.texts, some.items.tolist(), some.lists.indptr.tolist()) == (["", "q"], [1], [0, 0, 1])
    assert len(flat.some(3, 3)) == 0
    assert flat.some(0, 3) is flat
    for start in range(4):
        for stop in range(start, 4):
            expected, found = flattened(*LISTS[start:stop]), flat.some(start, stop)
            assert found.queries == expected.queries
            assert found.items.tolist() == expected.items.tolist()
            assert found.lists.indptr.tolist() == expected.lists.indptr.tolist()


def test_one_list_after_the_other() -> None:
    flat = flattened(*LISTS)
    assert [(q.key, items.tolist()) for q, items in flat.each()] == [
        ("new york", [1, -1, 0]), (OPAQUE + "2", []), ("q", [1]),
    ]  # fmt: skip
    assert [part.tolist() for part in flat.split(np.arange(4))] == [[0, 1, 2], [], [3]]
    none = flattened()
    assert (len(none), list(none.each()), none.split(np.empty(0)), none.items.dtype) == (0, [], [], np.int64)
    alone = Candidates.one(Query("q"), np.array([1]), [0.5])
    assert (alone.keys, alone.items.tolist(), alone.lists.indptr.tolist(), alone.incoming) == (
        ["q"],
        [1],
        [0, 1],
        [[0.5]],
    )


def test_scores_that_lists_came_with() -> None:
    """As soon as one list has scores there is a place for each; those of a part go along with it."""
    flat = flattened(ResultList("1", "q", ["a"]), ResultList("2", "r", ["a", "b"], scores=[2.0, 1.0]))
    assert flat.incoming == [None, [2.0, 1.0]]
    assert flat.some(1, 2).incoming == [[2.0, 1.0]]
    with pytest.raises(InputError, match="one score for each result; got 1 for 2"):
        flattened(ResultList("1", "q", ["a", "b"], scores=[1.0]))


def test_a_query_is_known_by_its_text_or_else_its_id() -> None:
    known = KnownQueries(["river", OPAQUE + "Q7"], np.array([1.0, 2.0]))
    assert asked(ResultList("Q7", "River ", []), known).key == "river"
    assert asked(ResultList("Q7", "", []), known).key == OPAQUE + "Q7"
    assert asked(ResultList("1", "Q7", []), known).key == OPAQUE + "Q7", "the id of a query without text"
    assert asked(ResultList("1", "q7", []), known).key == "q7", "ids are compared as they are"
    vectors = {"m": [1.0]}
    assert asked(ResultList("1", "river", [], vectors=vectors), known).vectors == vectors
    assert not asked(ResultList("1", "river", []), known).vectors


# --- labelled lists ----------------------------------------------------------------------------------


def test_lists_without_a_positive_label_are_left_out() -> None:
    lists = [
        ResultList("1", "q", ["a", "b"], [0.0, 0.0]),
        ResultList("2", "r", ["a", "b"], [0.0, 1.0]),
        ResultList("3", "s", ["a"]),
        ResultList("4", "t", []),
    ]
    labelled = Labelled(lists, CATALOGUE, NONE)
    assert [result.query_id for result in labelled.lists] == ["2"]
    assert (len(labelled), labelled.n_rows) == (1, 2)
    assert len(Labelled([], CATALOGUE, NONE)) == 0


def test_ndcg_goes_by_scores_and_never_by_the_order_that_came() -> None:
    """Clicks stand on top of every page; equal scores must not look good for that."""
    catalogue = Catalogue([f"d{i}" for i in range(40)], [""] * 40)
    lists = [ResultList(str(n), f"q{n}", catalogue.doc_ids[:10], [1.0] + [0.0] * 9) for n in range(200)]
    labelled = Labelled(lists, catalogue, NONE)
    assert labelled.ndcg(np.zeros(labelled.n_rows)) < 0.5
    assert labelled.ndcg(labelled.labels) == 1.0
    assert labelled.ndcg((labelled.candidates.items == 0).astype(float)) == 1.0
    np.testing.assert_array_equal(labelled.labels, (labelled.candidates.items == 0).astype(float))


def test_an_order_of_no_meaning_is_always_the_same() -> None:
    result = ResultList("1", "q", ["a", "b", "c", "d"], [1.0, 2.0, 3.0, 4.0])
    one = shuffled(result)
    assert sorted(zip(one.results, one.labels or [], strict=True)) == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    # What the order was stays as scores: what stood first has the highest.
    assert one.scores is not None
    assert [d for _, d in sorted(zip(one.scores, one.results, strict=True), reverse=True)] == ["a", "b", "c", "d"]
    turned = ResultList("1", "q", result.results[::-1], [4.0, 3.0, 2.0, 1.0])
    assert shuffled(turned).results == one.results
    scored = shuffled(ResultList("1", "q", ["a", "b"], [0.0, 1.0], [7.0, 9.0]))
    assert dict(zip(scored.results, scored.scores or [], strict=True)) == {"a": 7.0, "b": 9.0}


def test_of_many_lists_some_are_drawn_always_the_same() -> None:
    lists = [ResultList(str(n), "q", ["a"], [1.0]) for n in range(50)]
    assert at_most(50, lists, seed=0) is lists
    drawn = at_most(10, lists, seed=0)
    numbers = [int(result.query_id) for result in drawn]
    assert len(drawn) == len(set(numbers)) == 10
    assert numbers == sorted(numbers)
    assert at_most(10, lists, seed=0) == drawn
    assert at_most(10, lists, seed=1) != drawn
    assert len(Labelled(lists, CATALOGUE, NONE, most=7)) == 7


def test_gaps_are_filled() -> None:
    values = np.array([1.0, -np.inf, np.nan, np.inf])
    assert without_gaps(values).tolist() == [1, 0, 0, 0]
    assert without_gaps(values, -1.0).tolist() == [1, -1, -1, -1]
