"""What is held back and what is left are the whole, and the same for the same seed."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from clickbridge import BM25, ClickGraph
from clickbridge.errors import InputError, MissingPart, SettingError
from clickbridge.graph.hold_back import HoldBack, choose, query_hash
from clickbridge.graph.sums import sum_pairs
from clickbridge.types import Document, Impression, PairCount


def pages(n: int = 200, *, times: bool = True, repeats: int = 4) -> list[Any]:
    """Pages with one click inside, every fifth with one outside too."""
    out: list[Any] = []
    for i in range(n):
        clicks = [f"d{i % 11}"] + (["outside"] if i % 5 == 0 else [])
        results = [f"d{(i + j) % 11}" for j in (1, 0, 2)]
        out.append(
            Impression(f"query {i // repeats}", results, clicks, user=f"u{i % 6}", time=float(i) if times else None)
        )
    return out


def counts(n: int = 200, **more: Any) -> list[Any]:
    return [PairCount(f"query {i % 40}", f"d{i % 11}", 1 + i % 3, **more) for i in range(n)]


LOGS = {
    "pages": pages(),
    "pages without times": pages(times=False),
    "counts": counts(),
    "counts with users": [PairCount(f"q{i % 9}", f"d{i % 7}", 2, user=f"u{i}") for i in range(90)],
    "counts with times": [PairCount(f"q{i % 9}", f"d{i % 7}", 2, time=float(i)) for i in range(90)],
    "both": pages(100) + counts(100),
}


@cache
def graph_of(name: str) -> ClickGraph:
    return ClickGraph.build(LOGS[name])


def clicks_of(graph: ClickGraph, held: HoldBack) -> np.ndarray[Any, Any]:
    """The held-back clicks as a matrix, counted by hand."""
    out = np.zeros((graph.n_queries, graph.n_docs))
    if (shown := held.shown) is not None:
        for i in range(len(shown)):
            for place in range(shown.indptr[i], shown.indptr[i + 1]):
                out[shown.query[i], shown.doc[place]] += shown.clicked[place]
    if held.clicked is not None:
        np.add.at(out, (held.clicked.query, held.clicked.doc), held.clicked.clicks)
    return out


@pytest.mark.parametrize("by", ["time", "query", "click"])
@pytest.mark.parametrize("name", LOGS)
def test_held_and_rest_are_the_whole(name: str, by: str) -> None:
    graph = graph_of(name)
    if by == "time" and not graph.has_times:
        with pytest.raises(MissingPart, match="hold_back by time needs times in the log"):
            graph.hold_back(by=by)
        return
    held = graph.hold_back(0.3, by=by, seed=3)
    assert held.by == by
    rest = held.graph.matrix(rows="queries").toarray()
    taken = clicks_of(graph, held)
    assert (rest + taken == graph.matrix(rows="queries").toarray()).all()
    assert 0.1 < taken.sum() / graph.pairs.clicks.sum() < 0.6
    assert held.graph.query_keys is graph.query_keys
    assert held.graph.docs is graph.docs
    pages_left = 0 if held.graph.impressions is None else len(held.graph.impressions)
    pages_held = 0 if held.shown is None else len(held.shown)
    assert pages_left + pages_held == (0 if graph.impressions is None else len(graph.impressions))


@pytest.mark.parametrize("by", ["query", "click"])
@pytest.mark.parametrize("name", LOGS)
def test_the_seed_decides(name: str, by: str) -> None:
    graph = graph_of(name)
    one, two, other = (clicks_of(graph, graph.hold_back(0.3, by=by, seed=seed)) for seed in (1, 1, 2))
    assert (one == two).all()
    assert (one != other).any()


def test_by_time_takes_the_last_part() -> None:
    held = graph_of("pages").hold_back(0.1, by="time")
    assert held.shown is not None
    assert held.shown.time is not None
    assert held.shown.time.tolist() == [float(i) for i in range(180, 200)]
    assert held.graph.impressions is not None
    assert held.graph.impressions.time is not None
    assert held.graph.impressions.time.max() == 179.0
    assert held.graph.pairs.last is not None
    assert np.nanmax(held.graph.pairs.last) == 179.0


def test_by_time_with_whole_days_takes_the_last_day() -> None:
    """A day that holds more than the fraction is held back whole, not not at all."""
    log = [Impression(f"q{i}", ["a", "b"], ["a"], time=86400.0 * (i // 25)) for i in range(100)]
    held = ClickGraph.build(log).hold_back(0.1, by="time")
    assert held.shown is not None
    assert len(held.shown) == 25
    assert held.graph.impressions is not None
    assert len(held.graph.impressions) == 75


def test_events_without_a_time_stay() -> None:
    log = pages(50) + [Impression("timeless", ["a", "b"], ["a"])] * 10
    held = ClickGraph.build(log).hold_back(0.5, by="time")
    assert held.shown is not None
    assert np.isfinite(held.shown.time).all()  # type: ignore[arg-type]


def test_by_query_takes_whole_queries() -> None:
    graph = graph_of("both")
    held = graph.hold_back(0.4, by="query", seed=1)
    taken = clicks_of(graph, held).sum(axis=1) > 0
    assert not (held.graph.matrix(rows="queries").sum(axis=1)[taken] > 0).any()
    # The given share of the queries that are there, those of the smallest hashes: a rest can be held back again.
    hashes = query_hash(graph, 1)
    assert (taken == (hashes < np.quantile(hashes, 0.4))).all()
    again = held.graph.hold_back(0.5, by="query", seed=1)
    twice = clicks_of(held.graph, again).sum(axis=1) > 0
    assert not (twice & taken).any()
    assert twice.sum() == pytest.approx((~taken).sum() / 2, abs=1)


@pytest.mark.parametrize("name", ["pages without times", "counts", "counts with users", "both"])
def test_by_click_holds_back_whole_queries_too(name: str) -> None:
    """Half of what is held back are queries that the rest does not know; `new_queries` says how much."""
    graph = graph_of(name)

    def new(share: float) -> tuple[int, float]:
        held = graph.hold_back(0.4, by="click", seed=2, new_queries=share)
        taken, left = clicks_of(graph, held), held.graph.matrix(rows="queries").toarray()
        return int(((taken.sum(axis=1) > 0) & (left.sum(axis=1) == 0)).sum()), taken.sum() / (taken + left).sum()

    whole, some = new(1.0), new(0.5)
    assert whole[0] > some[0] > 0
    assert new(0.0)[0] < some[0]
    assert all(0.2 < new(share)[1] < 0.6 for share in (0.0, 0.5, 1.0))
    default = clicks_of(graph, graph.hold_back(0.4, by="click", seed=2))
    assert (default == clicks_of(graph, graph.hold_back(0.4, by="click", seed=2, new_queries=0.5))).all()


def test_a_log_of_two_queries_is_not_halved() -> None:
    graph = ClickGraph.build([PairCount("q", "a", 500), PairCount("r", "b", 500)])
    assert clicks_of(graph, graph.hold_back(0.1, by="click")).sum() < 150


def test_tuning_sees_new_queries_where_queries_repeat() -> None:
    """A part that only remembers answers every known query: judged by those alone, one that reads words would get
    no weight."""
    words = [f"w{i}" for i in range(400)]
    docs = [Document(f"d{i}", {"title": f"{word} {words[i - 1]}"}) for i, word in enumerate(words)]
    log = [Impression(w, [f"d{i - 1}" if i else "d399", f"d{i}"], [f"d{i}"]) for i, w in enumerate(words)] * 8
    graph = ClickGraph.build(log, docs)
    assert choose(graph) == "click"
    shares = {}
    for share in (0.0, 0.5):
        held = graph.hold_back(new_queries=share)
        known = {graph.query_keys[q] for q in held.graph.pairs.query}
        shares[share] = np.mean([r.query not in known for r in held.lists()])
    assert shares[0.0] < 0.05
    assert 0.3 < shares[0.5] < 0.7


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_of_new_queries_outside_is_refused(share: float) -> None:
    with pytest.raises(SettingError, match="new_queries must be from 0 to 1; got"):
        graph_of("pages").hold_back(new_queries=share)


def test_the_hash_is_of_the_text_alone() -> None:
    one, two = ClickGraph.build(pages(40)), ClickGraph.build(pages(40) + counts(40))
    by_text = dict(zip(two.query_keys, query_hash(two, 7), strict=True))
    assert all(by_text[key] == value for key, value in zip(one.query_keys, query_hash(one, 7), strict=True))
    assert ((query_hash(two, 7) >= 0) & (query_hash(two, 7) < 1)).all()


def test_auto_chooses() -> None:
    assert choose(graph_of("pages")) == "time"
    assert choose(graph_of("counts with times")) == "time"
    assert choose(ClickGraph.build(pages(60, times=False, repeats=1))) == "query"
    assert choose(graph_of("pages without times")) == "click"
    assert choose(graph_of("counts")) == "query", "one search may click several documents"
    assert choose(ClickGraph.build([PairCount(f"q{i}", "a", 5) for i in range(9)])) == "click"
    assert choose(ClickGraph.build([PairCount(f"q{i}", "a") for i in range(9)])) == "query"
    same_time = [Impression("q", ["a", "b"], ["a"], time=5.0)] * 9
    assert choose(ClickGraph.build(same_time)) == "click"
    assert graph_of("pages").hold_back().by == "time"


def test_holding_back_from_a_rest_works() -> None:
    """Cross-fitting holds back again and again; the rest may have lost all its times, users or pages."""
    log = [Impression("q", ["a", "b"], ["a"], time=float(i)) for i in range(9)] + [
        Impression("r", ["a", "b"], ["b"])
    ] * 9
    rest = ClickGraph.build(log).hold_back(0.999, by="time").graph
    for by in ("auto", "query", "click"):
        rest.hold_back(0.5, by=by)
    empty = rest.with_events(rest.impressions.take(np.zeros(len(rest.impressions), dtype=bool)), None)  # type: ignore[union-attr, arg-type]
    for by in ("auto", "click"):
        assert empty.hold_back(0.5, by=by).lists() == []
    with pytest.raises(InputError, match="at least one query"):
        empty.hold_back(0.5, by="query")


def test_lists_are_pages_as_they_were_shown() -> None:
    held = graph_of("pages").hold_back(0.1)
    lists = held.lists()
    assert len(lists) == 20
    assert len({lst.query_id for lst in lists}) == 20
    for i, lst in zip(range(180, 200), lists, strict=True):
        assert lst.query == f"query {i // 4}"
        assert lst.results == [f"d{(i + j) % 11}" for j in (1, 0, 2)]
        assert lst.labels == [0.0, 1.0, 0.0]


def test_pages_without_a_difference_make_no_list() -> None:
    log = [Impression("none", ["a", "b"], [], time=1.0), Impression("all", ["a"], ["a"], time=2.0)] * 5
    early = [Impression("early", ["a", "b"], ["a"], time=0.0)] * 5
    held = ClickGraph.build(early + log).hold_back(0.5, by="time")
    assert held.shown is not None
    assert len(held.shown) > 0
    assert held.lists() == []


def test_pooled_lists() -> None:
    graph = ClickGraph.build([PairCount("q", "a", 40), PairCount("q", "b", 20), PairCount("r", "c", 30)],
                             [Document("x", {"t": "y"})])  # fmt: skip
    held = graph.hold_back(0.5, by="click")
    assert held.shown is None
    asked: list[tuple[list[str], int]] = []

    def ranker(queries: list[str], k: int) -> list[list[str]]:
        asked.append((queries, k))
        return [["x", "a"][:k] for _ in queries]

    lists = {lst.query: lst for lst in held.lists([ranker], pool=2)}
    assert asked == [(["q", "r"], 2)], "all queries at once"
    assert held.clicked is not None
    taken = dict(zip(held.clicked.doc.tolist(), held.clicked.clicks.tolist(), strict=True))
    most = max(taken[0], taken[1])
    assert lists["q"].results == ["a", "b", "x"]
    assert lists["q"].labels == pytest.approx([taken[0] / most, taken[1] / most, 0.0])
    assert lists["r"].results == ["a", "c", "x"]
    assert lists["r"].labels == [0.0, 1.0, 0.0]
    with pytest.raises(InputError, match=r"no result pages: give models .* such as lists\(\[BM25\(\).fit"):
        held.lists()  # nothing to tell the clicked documents from
    model = BM25().fit(held.graph)
    assert held.lists([model]) == held.lists([lambda queries, k: [r.doc_ids for r in model.rank_many(queries, k)]])
    with pytest.raises(ValueError, match="one list for each of 2 queries; got 1"):
        held.lists([lambda queries, k: [["x"]]])


@pytest.mark.parametrize("name", ["pages", "counts", "both"])
@pytest.mark.parametrize("pages", [True, False])
def test_lists_are_what_a_loop_over_pages_gives(name: str, pages: bool) -> None:
    """Against the obvious way, one page or one query at a time."""
    held = graph_of(name).hold_back(0.4, by="query", seed=1)
    keys, ids = held.graph.query_keys, held.graph.doc_ids

    def found(query: str, k: int) -> list[str]:
        return [f"d{(len(query) + 3 * i) % 11}" for i in range(k)]

    wanted = []
    if held.shown is not None and pages:
        for page, query in enumerate(held.shown.query):
            rows = range(held.shown.indptr[page], held.shown.indptr[page + 1])
            labels = [float(held.shown.clicked[row]) for row in rows]
            if 0 < sum(labels) < len(labels):
                wanted.append((str(page), keys[query], [ids[held.shown.doc[row]] for row in rows], labels))
    else:
        clicked = held.clicked if held.shown is None else sum_pairs(held.shown, None)
        assert clicked is not None
        for query in np.unique(clicked.query):
            rows = np.flatnonzero(clicked.query == query)
            grades = {ids[clicked.doc[row]]: clicked.clicks[row] / clicked.clicks[rows].max() for row in rows}
            results = sorted({*grades, *found(keys[query], 4)})
            wanted.append((str(rows[0]), keys[query], results, [grades.get(d, 0.0) for d in results]))
    lists = held.lists([lambda queries, k: [found(query, k) for query in queries]], 4, pages=pages)
    assert [(r.query_id, r.query, r.results, r.labels) for r in lists] == wanted
    assert all(type(label) is float for r in lists for label in r.labels or [])


def test_so_many_lists_are_drawn_before_anything_is_searched() -> None:
    asked: list[str] = []

    def ranker(queries: list[str], k: int) -> list[list[str]]:
        asked.extend(queries)
        return [["x", "y"] for _ in queries]

    for name, pages in (("pages", True), ("pages", False), ("counts", True)):
        held = graph_of(name).hold_back(0.5, by="query")
        every = held.lists([ranker], pages=pages)
        asked.clear()
        some = held.lists([ranker], pages=pages, at_most=7)
        assert len(some) == 7
        assert [r.query_id for r in some] == [r.query_id for r in every if r in some], "as they came"
        assert len(asked) == (0 if name == "pages" and pages else 7)
        assert some == held.lists([ranker], pages=pages, at_most=7)
        assert some != held.lists([ranker], pages=pages, at_most=7, seed=1)
        assert held.lists([ranker], pages=pages, at_most=10_000) == every


def test_nothing_held_is_no_list() -> None:
    graph = ClickGraph.build([PairCount("q", "a", 1)])
    for by in ("query", "click"):
        for seed in range(5):
            graph.hold_back(0.001, by=by, seed=seed).lists([lambda queries, k: [["b"] for _ in queries]])
    assert graph.hold_back(0.001, by="click").lists() == []


def test_held_back_rows_without_a_click_make_no_list() -> None:
    log = [PairCount("q", "a", 1, 5, time=1.0), PairCount("r", "a", 0, 5, time=2.0), PairCount("r", "b", 1, time=0.0)]
    held = ClickGraph.build(log).hold_back(0.3, by="time")
    assert held.clicked is not None
    assert held.clicked.clicks.tolist() == [0]
    assert held.lists([lambda queries, k: [["b"] for _ in queries]]) == []


def test_nobody_is_asked_about_nothing() -> None:
    held = graph_of("counts").hold_back(1e-9, by="click", new_queries=0)
    assert held.lists([lambda queries, k: pytest.fail("asked")]) == []


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, float("nan")])
def test_a_fraction_outside_is_refused(fraction: float) -> None:
    with pytest.raises(SettingError, match="fraction must be between 0 and 1; got"):
        graph_of("pages").hold_back(fraction)


def test_another_way_is_refused() -> None:
    with pytest.raises(SettingError, match="by must be auto, time, query or click; got 'user'"):
        graph_of("pages").hold_back(by="user")


def test_the_rest_is_the_graph_of_the_rest_of_the_log() -> None:
    rest = graph_of("pages").hold_back(0.2).graph
    early = ClickGraph.build(pages()[:160])
    for name in ("clicks", "impressions", "users", "first", "last"):
        assert getattr(rest.pairs, name).tolist() == getattr(early.pairs, name).tolist()
    assert [rest.query_keys[q] for q in rest.pairs.query] == [early.query_keys[q] for q in early.pairs.query]
    assert [rest.doc_ids[d] for d in rest.pairs.doc] == [early.doc_ids[d] for d in early.pairs.doc]


def test_a_list_of_one_kind_of_document_says_nothing() -> None:
    """Without a clicked document, or with nothing else, no order of it is better than another."""
    graph = ClickGraph.build([PairCount("q", "a", 3), PairCount("r", "b", 1)])
    held = HoldBack(graph, "click", None, graph.pairs)
    others = held.lists([lambda keys, k: [["x", "y"] for _ in keys]], missed=False)
    assert others == []
    assert held.lists([lambda keys, k: [["a"], ["b"]]]) == []
    found = held.lists([lambda keys, k: [["a", "x"], ["x", "y"]]], missed=False)
    assert [(result.query, result.results, result.labels) for result in found] == [("q", ["a", "x"], [1.0, 0.0])]


def test_how_often_a_list_was_asked_for() -> None:
    """A page once; of clicks all; of counts, where one search may have clicked many, the most on one document."""
    clicked = ["a", "a", "a", "b", "b"]
    clicks = [Impression("q", None, [doc], time=1.0) for doc in clicked] + [Impression("r", None, ["b"], time=2.0)]
    asked = {}
    for name, log in {
        "pages": [Impression("q", ["a", "b"], ["a"])] * 3,
        "clicks": clicks,
        "counts": [PairCount("q", "a", 3), PairCount("q", "b", 2), PairCount("r", "b", 1)],
    }.items():
        graph = ClickGraph.build(log)
        held = HoldBack(graph, "click", graph.impressions, None if graph.impressions is not None else graph.pairs)
        asked[name] = held.times_asked(held.searches()).tolist()
    assert asked == {"pages": [1.0], "clicks": [5.0, 1.0], "counts": [3.0, 1.0]}


@pytest.mark.parametrize("new_queries", [0.0, 0.5, 1.0])
def test_the_fraction_holds_whatever_part_of_it_is_whole_queries(new_queries: float) -> None:
    graph = ClickGraph.build([PairCount(f"q{i}", f"d{i % 7}", 40) for i in range(500)])
    held = graph.hold_back(0.2, by="click", new_queries=new_queries)
    share = clicks_of(graph, held).sum() / graph.pairs.clicks.sum()
    assert share == pytest.approx(0.2, abs=0.02)
    whole = np.count_nonzero(clicks_of(graph, held) == 40) / 500
    assert whole == pytest.approx(0.2 * new_queries, abs=0.01)
