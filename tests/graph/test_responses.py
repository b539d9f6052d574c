"""What a pair's clicks are worth: thresholds, robots, recency, against the formulas."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph
from clickbridge.errors import InputError, MissingPart
from clickbridge.graph.parts import Impressions
from clickbridge.graph.responses import responses, weighed_clicks, without_robots
from clickbridge.log.bias import position_based
from clickbridge.types import Impression, PairCount
from clickbridge.wording import count_of

DAY = 86400.0


def entries(graph: ClickGraph, **settings: Any) -> dict[tuple[str, str], float]:
    coo = responses(graph, **settings).matrix.tocoo()
    assert coo.shape == (graph.n_queries, graph.n_docs)
    return {
        (graph.query_keys[q], graph.doc_ids[d]): float(v) for q, d, v in zip(coo.row, coo.col, coo.data, strict=True)
    }


@cache
def plain() -> ClickGraph:
    return ClickGraph.build(
        [PairCount("q", "a", 1), PairCount("q", "b", 3), PairCount("r", "a", 5), PairCount("r", "c", 0, 9)]
    )


def test_clicks_as_they_are() -> None:
    assert entries(plain()) == {("q", "a"): 1.0, ("q", "b"): 3.0, ("r", "a"): 5.0}
    assert responses(plain()).notes == []


def test_log_of_one_more() -> None:
    assert entries(plain(), response="log") == pytest.approx(
        {("q", "a"): np.log(2), ("q", "b"): np.log(4), ("r", "a"): np.log(6)}
    )


@pytest.mark.parametrize(("least", "left"), [(2, 2), (3, 2), (4, 1), (5, 1)])
def test_min_clicks(least: int, left: int) -> None:
    assert len(entries(plain(), min_clicks=least)) == left


def test_a_threshold_that_drops_over_half_the_clicks_says_so() -> None:
    graph = ClickGraph.build([PairCount("q", f"d{i}", 1) for i in range(1500)] + [PairCount("q", "x", 9)])
    (note,) = responses(graph, min_clicks=2).notes
    assert note == "min_clicks 2 drops 1,500 of 1,509 clicks"
    for single, said in ((6, ["min_clicks 2 drops 6 of 10 clicks"]), (4, [])):
        clicks = [PairCount("a", "x", 4), *(PairCount(f"q{i}", "y", 1) for i in range(single))]
        assert responses(ClickGraph.build(clicks), min_clicks=2).notes == said
    half = ClickGraph.build([PairCount("q", "a", 1), PairCount("r", "a", 1), PairCount("q", "b", 2)])
    assert responses(half, min_clicks=2).notes == []


def test_a_threshold_that_keeps_nothing_is_refused() -> None:
    graph = ClickGraph.build([PairCount("q", f"d{i}", 3) for i in range(1234)] + [PairCount("q", "x", 0)])
    with pytest.raises(InputError) as refusal:
        responses(graph, min_clicks=4)
    assert str(refusal.value) == "min_clicks 4 keeps 0 of 1,234 pairs; try min_clicks 1"
    users = ClickGraph.build([PairCount("q", "a", 3, user="u")])
    with pytest.raises(InputError) as refusal:
        responses(users, min_clicks=2, min_users=2)
    assert str(refusal.value) == (
        "min_clicks 2 and min_users 2 keeps 0 of 1 pair; try min_clicks 1 min_users 1"
    )  # fmt: skip


def test_no_click_at_all_is_refused_without_a_false_remedy() -> None:
    graph = ClickGraph.build([Impression("q", ["a"], [])])
    with pytest.raises(InputError, match="no click is left to learn from"):
        responses(graph)


def test_min_users() -> None:
    log = [Impression("q", ["a", "b"], ["a", "b"][: 1 + i % 2], user=f"u{i % 3}") for i in range(6)]
    log += [PairCount("q", "c", 99, user="u0"), PairCount("q", "c", 99)]
    graph = ClickGraph.build(log)
    assert entries(graph, min_users=3) == {("q", "a"): 6.0, ("q", "b"): 3.0}
    assert entries(graph, min_users=1)[("q", "c")] == 198.0
    with pytest.raises(MissingPart, match=r"min_users needs users in the log.*min_users 1"):
        responses(plain(), min_users=2)
    assert plain().pairs.users is None
    assert len(entries(plain(), min_users=1)) == 3


def some_log(times: bool = True, users: bool = True) -> list[Any]:
    rng = np.random.default_rng(2)
    log: list[Any] = []
    for _ in range(120):
        query, doc = f"q{rng.integers(5)}", f"d{rng.integers(6)}"
        user = f"u{int(rng.geometric(0.3))}" if users and rng.random() < 0.9 else None
        time = float(rng.uniform(0, 30 * DAY)) if times and rng.random() < 0.9 else None
        if rng.random() < 0.5:
            log.append(PairCount(query, doc, int(rng.integers(0, 4)), user=user, time=time))
        else:
            log.append(
                Impression(query, [f"d{d}" for d in range(6)], [doc, "out"][: rng.integers(0, 3)], user=user, time=time)
            )
    return log


def events(log: list[Any]) -> list[tuple[str, str, int, str | None, float | None]]:
    out = []
    for record in log:
        clicked = [(record.doc_id, record.clicks)] if isinstance(record, PairCount) else [(d, 1) for d in record.clicks]
        out += [(record.query, doc, n, record.user, record.time) for doc, n in clicked if n]
    return out


@pytest.mark.parametrize("half_life", [0.5, 7.0, 365.0])
def test_half_life_against_the_formula(half_life: float) -> None:
    log = some_log()
    newest = max(time for *_, time in events(log) if time is not None)
    wanted: dict[tuple[str, str], float] = defaultdict(float)
    for query, doc, n, _, time in events(log):
        age = 0.0 if time is None else (newest - time) / DAY
        wanted[query, doc] += n * 2.0 ** (-age / half_life)
    graph = ClickGraph.build(log)
    assert entries(graph, half_life=half_life) == pytest.approx(dict(wanted))
    logged = {pair: np.log1p(value) for pair, value in wanted.items()}
    assert entries(graph, half_life=half_life, response="log") == pytest.approx(logged)


def test_half_life_leaves_thresholds_to_the_counts() -> None:
    log = [PairCount("q", "a", 4, time=0.0), PairCount("q", "b", 1, time=DAY)]
    assert entries(ClickGraph.build(log), half_life=1.0, min_clicks=2) == {("q", "a"): 2.0}


def test_half_life_needs_times() -> None:
    for graph in (plain(), ClickGraph.build(some_log(times=False))):
        with pytest.raises(MissingPart, match="half_life needs times in the log"):
            responses(graph, half_life=3.0)


@pytest.mark.parametrize("order", [1, -1])
def test_half_life_of_a_merged_graph_with_times_on_one_side(order: int) -> None:
    """Clicks of unknown time count in full, whichever part of the GRAPH they are in."""
    sides = [
        ClickGraph.build([Impression("q", ["a"], ["a"])]),
        ClickGraph.build([PairCount("q", "b", 4, time=0.0), PairCount("q", "c", 1, time=DAY)]),
    ][::order]
    graph = sides[0].merge(sides[1])
    assert entries(graph, half_life=1.0) == {("q", "a"): 1.0, ("q", "b"): 2.0, ("q", "c"): 1.0}


def test_half_life_where_every_time_is_unknown() -> None:
    graph = ClickGraph.build([Impression("q", ["a"], ["a"], time=1.0), Impression("r", ["a"], ["a"])])
    shown = graph.impressions
    assert shown is not None
    rest = graph.with_events(shown.take(np.isnan(shown.time)), None)  # type: ignore[arg-type]
    assert weighed_clicks(rest, 3.0).tolist() == [1.0]


@pytest.mark.parametrize("response", ["coec", "pbm", "ips"])
def test_clicks_count_more_further_down(response: str) -> None:
    first, third = (Impression("q", ["a", "b", "c"], [doc], time=t * DAY) for doc, t in (("a", 0), ("c", 1)))
    graph = ClickGraph.build([first] * 6 + [third] * 2)
    found = entries(graph, response=response)
    assert sum(found.values()) == pytest.approx(8)
    assert found["q", "c"] / 2 > 1.5 * found["q", "a"] / 6
    if response == "ips":
        faded = entries(graph, response=response, half_life=1.0)
        assert faded == pytest.approx({("q", "a"): found["q", "a"] / 2, ("q", "c"): found["q", "c"]})


def test_debiased_is_pbm() -> None:
    graph = ClickGraph.build([Impression("q", ["a", "b"], ["a"]), Impression("q", ["b", "a"], ["b"])])
    assert entries(graph, response="debiased") == entries(graph, response="pbm")


@pytest.mark.parametrize("response", ["coec", "pbm", "ips", "debiased"])
def test_without_pages_it_says_that_it_cannot(response: str) -> None:
    found = responses(plain(), response=response)
    assert (found.matrix != responses(plain()).matrix).nnz == 0
    assert "needs result pages, and the log has none: plain clicks are used" in found.notes[0]


@pytest.mark.parametrize("response", ["coec", "pbm", "ips"])
def test_the_curve_is_said(response: str) -> None:
    graph = ClickGraph.build([Impression("q", ["a", "b"], ["a"])] * 3)
    assert (
        "chance that ranks 1 to 2 are looked at, relative to rank 1: 1.00 0.00"
        in responses(graph, response=response).notes[-1]
    )


@pytest.mark.parametrize(("n_pages", "most"), [(1_000, 0.12), (10_000, 0.05), (60_000, 0.03)])
def test_known_propensities_are_recovered(n_pages: int, most: float) -> None:
    """Pages of ten in random order, clicked by the position-based model: the curve comes back, the better the larger
    the log."""
    rng = np.random.default_rng(1)
    truth = 1.0 / np.arange(1, 11)
    attract = rng.uniform(0.05, 0.9, size=(50, 10))
    query = rng.integers(50, size=n_pages)
    order = np.argsort(rng.random((n_pages, 10)), axis=1)
    clicked = rng.random((n_pages, 10)) < truth * attract[query[:, None], order]
    found = position_based(
        np.arange(0, 10 * n_pages + 1, 10), clicked.ravel(), (query[:, None] * 10 + order).ravel(), 10
    ).examined
    assert np.abs(found - truth).max() < most


@pytest.mark.parametrize("most", [1, 5, 12, 10_000])
def test_robots_against_counting(most: int) -> None:
    log = some_log()
    per_user: dict[str, int] = defaultdict(int)
    for _, _, n, user, _ in events(log):
        if user is not None:
            per_user[user] += n
    robots = {user for user, n in per_user.items() if n > most}
    wanted: dict[tuple[str, str], float] = defaultdict(float)
    for query, doc, n, user, _ in events(log):
        wanted[query, doc] += n if user not in robots else 0
    graph = ClickGraph.build(log)
    found = responses(graph, max_clicks_per_user=most)
    assert entries(graph, max_clicks_per_user=most) == {pair: n for pair, n in wanted.items() if n}
    assert (
        found.notes[0]
        == f"left out as robots: {count_of(len(robots), 'user')} with more than {count_of(most, 'click')}"
    )


def test_robots_keep_their_pages() -> None:
    log = [Impression("q", ["a", "b"], ["a"], user="robot")] * 5 + [Impression("q", ["a", "b"], ["b"], user="u")]
    graph, _ = without_robots(ClickGraph.build(log), 3)
    assert graph.impressions is not None
    assert len(graph.impressions) == 6
    assert graph.matrix(rows="queries").toarray().tolist() == [[0.0, 1.0]]


def test_robots_need_users() -> None:
    for graph in (plain(), ClickGraph.build(some_log(users=False))):
        with pytest.raises(MissingPart, match="max_clicks_per_user needs users in the log"):
            responses(graph, max_clicks_per_user=5)


def test_robots_alone_leave_nothing() -> None:
    graph = ClickGraph.build([Impression("q", ["a"], ["a"], user="robot")] * 5)
    with pytest.raises(InputError, match=r"no click is left.*max_clicks_per_user"):
        responses(graph, max_clicks_per_user=2)


@pytest.mark.parametrize("lengths", [[0, 2, 1], [2, 0, 1], [1, 2, 0], [0, 0, 3], [3, 0, 0]])
def test_pages_that_showed_nothing_have_no_clicks(lengths: list[int]) -> None:
    graph = ClickGraph.build([Impression("q", ["a", "b", "c"], ["a"], user="u")])
    users = np.array([11, 22, 33], dtype=np.uint64)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    ones = np.ones(3, dtype=np.uint8)
    pages = Impressions(np.zeros(3, dtype=np.int32), indptr, np.arange(3, dtype=np.int32), ones, None, users)
    kept, note = without_robots(graph.with_events(pages, None), 1)
    assert note == f"left out as robots: {count_of(sum(n > 1 for n in lengths), 'user')} with more than 1 click"
    assert kept.pairs.clicks.sum() == sum(n for n in lengths if n <= 1)


def test_no_pages_left() -> None:
    graph = ClickGraph.build([Impression("q", ["a"], ["a"], user="u")])
    assert graph.impressions is not None
    none = graph.with_events(graph.impressions.take(np.array([False])), None)
    assert without_robots(none, 3)[1] == "left out as robots: 0 users with more than 3 clicks"
