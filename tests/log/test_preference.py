"""Preferences of whole logs: counted, opposed, by rule, and against judgments."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickbridge import ClickGraph
from clickbridge.errors import MissingPart, SettingError
from clickbridge.log import preference
from clickbridge.log.preference import contradicted, order_effect, preferences
from clickbridge.types import Impression, PairCount
from oracles.skernel import pairs_by_rule


def graph_of(pages: list[tuple[str, str, str]]) -> ClickGraph:
    return ClickGraph.build(Impression(query, list(shown), list(clicks)) for query, shown, clicks in pages)


def named(graph: ClickGraph, found: Any) -> dict[tuple[str, str, str], int]:
    ids, keys = graph.doc_ids, graph.query_keys
    rows = zip(found.query, found.better, found.worse, found.count, strict=True)
    return {(keys[q], ids[b], ids[w]): int(n) for q, b, w, n in rows}


def test_skip_above_is_joachims() -> None:
    graph = graph_of([("q", "abcde", "ac")])
    found = preferences(graph.impressions, rule="skip-above")
    assert named(graph, found) == {("q", "c", "b"): 1}
    assert named(graph, preferences(graph.impressions, rule="skip-next")) == {("q", "a", "b"): 1, ("q", "c", "d"): 1}


def test_equal_pairs_are_counted_and_opposite_ones_cancel() -> None:
    pages = [("q", "ab", "b")] * 3 + [("q", "ba", "a")] + [("p", "ab", "b"), ("p", "ba", "a")]
    graph = graph_of(pages)
    found = preferences(graph.impressions, rule="skip-above")
    assert named(graph, found) == {("q", "b", "a"): 2}
    assert found.opposed == 4
    assert len(found.at_least(2)) == 1
    assert len(found.at_least(3)) == 0


def test_counts_need_no_pages() -> None:
    log = [PairCount("q", "a", 5), PairCount("q", "b", 2), PairCount("q", "c", 2), PairCount("p", "a", 1)]
    graph = ClickGraph.build(log)
    found = preferences(graph.impressions, graph.pairs)
    assert found.rule == "counts"
    assert named(graph, found) == {("q", "a", "b"): 3, ("q", "a", "c"): 3}
    others = SimpleNamespace(query=np.array([1, 1, 3, 3]), doc=np.array([0, 1, 0, 1]), clicks=np.array([2, 1, 0, 4]))
    found = preferences(None, others)
    assert list(zip(found.query, found.better, found.worse, strict=True)) == [(1, 0, 1), (3, 1, 0)]
    with pytest.raises(MissingPart, match=r"preference clicked needs result pages.*use counts"):
        preferences(graph.impressions, graph.pairs, "clicked")
    with pytest.raises(SettingError, match="preference must be one of auto, skip-above"):
        preferences(graph.impressions, graph.pairs, "skip")


@given(
    st.lists(
        st.tuples(st.sampled_from("pq"), st.permutations("abcd"), st.sets(st.sampled_from("abcd"))),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(list(preference.PAGE_RULES)),
    st.integers(1, 5),
)
def test_any_log_in_any_blocks(pages: list[tuple[str, list[str], set[str]]], rule: str, block: int) -> None:
    seen: Counter[tuple[int, int, int]] = Counter()
    arrays = Pages(pages)
    for q, page in zip(arrays.query.tolist(), np.split(np.arange(len(arrays.doc)), arrays.indptr[1:-1]), strict=True):
        for i, j in pairs_by_rule(rule, arrays.clicked[page].tolist()):
            seen[q, int(arrays.doc[page[i]]), int(arrays.doc[page[j]])] += 1
    wanted = {(q, a, b): n - seen[q, b, a] for (q, a, b), n in list(seen.items()) if n > seen[q, b, a]}
    whole, preference.BLOCK_PAGES = preference.BLOCK_PAGES, block
    try:
        found = preferences(arrays, rule=rule)
    finally:
        preference.BLOCK_PAGES = whole
    rows = zip(found.query.tolist(), found.better.tolist(), found.worse.tolist(), found.count.tolist(), strict=True)
    assert {(q, a, b): n for q, a, b, n in rows} == wanted
    assert found.opposed == sum(seen.values()) - sum(wanted.values())
    assert (np.diff(found.query) >= 0).all()


class Pages:
    """Pages as arrays."""

    def __init__(self, pages: list[tuple[str, list[str], set[str]]]) -> None:
        self.query = np.array(["pq".index(q) for q, _, _ in pages])
        self.indptr = np.cumsum([0, *(len(shown) for _, shown, _ in pages)])
        self.doc = np.array(["abcd".index(d) for _, shown, _ in pages for d in shown])
        self.clicked = np.array([d in clicks for _, shown, clicks in pages for d in shown], dtype=np.uint8)


def test_shuffled_pages_are_seen_as_such() -> None:
    rng = np.random.default_rng(0)
    pages = []
    for _ in range(400):
        shown = rng.permutation(10)
        pages.append(("p", [str(d) for d in shown], {str(rng.integers(0, 10))}))
    top = [("p", list("abcd"), {"a"} if rng.random() < 0.8 else {"d"}) for _ in range(400)]
    assert 0.7 < order_effect(Pages9(pages)) < 1.4
    assert preferences(Pages9(pages)).rule == "clicked"
    assert order_effect(Pages(top)) > 2
    assert preferences(Pages(top)).rule == "skip-above"


class Pages9(Pages):
    def __init__(self, pages: list[tuple[str, list[str], set[str]]]) -> None:
        self.query = np.zeros(len(pages), dtype=int)
        self.indptr = np.cumsum([0, *(len(shown) for _, shown, _ in pages)])
        self.doc = np.array([int(d) for _, shown, _ in pages for d in shown])
        self.clicked = np.array([d in clicks for _, shown, clicks in pages for d in shown], dtype=np.uint8)


def test_against_judgments() -> None:
    graph = graph_of([("q", "abc", "c"), ("q", "ad", "d")])
    found = preferences(graph.impressions, rule="skip-above")  # c > a, c > b, d > a
    ids = {d: i for i, d in enumerate(graph.doc_ids)}
    grades = {(0, ids["a"]): 2.0, (0, ids["b"]): 0.0, (0, ids["c"]): 1.0}
    share = contradicted(found, grades)
    assert share == {"judged": 2, "agree": 1, "tie": 0, "contradict": 1, "share": 0.5}
    share = contradicted(found, {**grades, (0, ids["d"]): 2.0})
    assert share == {"judged": 3, "agree": 1, "tie": 1, "contradict": 1, "share": 0.5}
    assert np.isnan(contradicted(found, {})["share"])
