"""Which group a query is in, and what is measured over a group."""

from __future__ import annotations

import math

import pytest

from clickbridge import ClickGraph
from clickbridge.evaluate.slices import GROUPINGS, Cell, QueryFacts, cell, describe, group
from clickbridge.types import ResultList

BY = {grouping.name: grouping for grouping in GROUPINGS}


@pytest.mark.parametrize(
    ("clicks", "bin_", "seen", "tail"),
    [
        (0, "unseen", "unseen", "tail"),
        (1, "≤10", "seen", "tail"),
        (9, "≤10", "seen", "tail"),
        (10, "≤10", "seen", "head"),
        (11, "≤100", "seen", "head"),
        (100, "≤100", "seen", "head"),
        (101, "≤1,000", "seen", "head"),
        (1000, "≤1,000", "seen", "head"),
        (1001, ">1,000", "seen", "head"),
    ],
)
def test_clicks(clicks: int, bin_: str, seen: str, tail: str) -> None:
    query = QueryFacts("q", "a", clicks, 1)
    assert [BY[name].of(query) for name in ("clicks", "seen", "tail")] == [bin_, seen, tail]


@pytest.mark.parametrize(("words", "name"), [(0, "no text"), (1, "1"), (4, "4"), (5, "5+"), (30, "5+")])
def test_length(words: int, name: str) -> None:
    assert BY["words"].of(QueryFacts("q", "", 0, words)) == name


def test_groups_come_in_their_order_and_hold_every_query_once(small_graph: ClickGraph) -> None:
    queries = [QueryFacts(f"q{i}", "", clicks, 0) for i, clicks in enumerate([2000, 0, 5, 0, 50])]
    assert group(BY["clicks"], queries) == {"unseen": ["q1", "q3"], "≤10": ["q2"], "≤100": ["q4"], ">1,000": ["q0"]}


def test_clicks_are_those_of_the_graph(small_graph: ClickGraph) -> None:
    lists = [
        ResultList("1", "NY  Pizza", ["ny"]),  # two pages, three clicks
        ResultList("2", "bagels", ["ny"]),  # shown, never clicked
        ResultList("3", "never typed", ["ny"]),
        ResultList("4", "", ["ny"]),
    ]
    found = describe(small_graph, lists)
    assert [(q.clicks, q.words) for q in found.values()] == [(3, 2), (0, 1), (0, 2), (0, 0)]
    assert list(found) == ["1", "2", "3", "4"]


def test_a_cell_is_a_mean_with_its_interval() -> None:
    found = cell({"a": 0.2, "b": 0.4, "c": 1.0}, ["a", "b"])
    assert (found.n, found.mean) == (2, pytest.approx(0.3))
    reach = 12.7062047 * math.sqrt(0.02 / 2)
    assert (found.low, found.high) == pytest.approx((0.3 - reach, 0.3 + reach))


def test_no_score_only_where_no_query_of_the_group_has_one() -> None:
    values = {"a": 0.2, "b": 0.4}
    assert cell(values, ["a", "b"], frozenset("ab")).mean is None
    assert cell(values, ["a", "b"], frozenset("a")).mean == pytest.approx(0.3)
    assert cell(values, ["b"], frozenset("a")) == Cell(1, 0.4, -math.inf, math.inf)
