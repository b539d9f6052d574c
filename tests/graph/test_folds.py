"""Folds for cross-fitting: what each holds back, and what its rest may know."""

from __future__ import annotations

import numpy as np
import pytest

from clickbridge import ClickGraph
from clickbridge.errors import MissingPart, SettingError
from clickbridge.graph.hold_back import folds
from clickbridge.types import Document, Impression, PairCount
from oracles.latent import random_clicks


def log_of(n: int, repeat: int = 1, times: bool = False) -> ClickGraph:
    docs = [Document(f"d{i}", {"title": f"t{i}"}) for i in range(8)]
    pages = [
        Impression(f"q{i // repeat}", ["d1", "d2", f"d{3 + i % 4}"], ["d2"], time=float(i) if times else None)
        for i in range(n)
    ]
    return ClickGraph.build(pages, docs)


def test_by_query_every_query_is_held_back_once() -> None:
    graph = log_of(53)
    held = list(folds(graph, 5))
    assert {fold.by for fold in held} == {"query"}
    queries = [set(fold.shown.query.tolist()) for fold in held if fold.shown is not None]
    assert sum(map(len, queries)) == len(set().union(*queries)) == 53
    assert {len(fold) for fold in queries} == {10, 11}
    for fold, own in zip(held, queries, strict=True):
        assert not own & set(fold.graph.pairs.query.tolist())
        assert len(set(fold.graph.pairs.query.tolist())) == 53 - len(own)
    assert [set(f.shown.query.tolist()) for f in folds(graph, 5) if f.shown is not None] == queries
    assert [set(f.shown.query.tolist()) for f in folds(graph, 5, seed=1) if f.shown is not None] != queries


def test_by_click_every_page_is_held_back_once() -> None:
    graph = log_of(60, repeat=6)
    held = list(folds(graph, 4))
    assert {fold.by for fold in held} == {"click"}
    assert sum(len(fold.shown) for fold in held if fold.shown is not None) == 60
    for fold in held:
        assert fold.shown is not None
        assert fold.graph.impressions is not None
        assert len(fold.shown) + len(fold.graph.impressions) == 60


def test_pairs_alone_are_thinned_click_by_click() -> None:
    graph = random_clicks(3)
    total = np.zeros(len(graph.pairs))
    keys = graph.pairs.query.astype(np.int64) * graph.n_docs + graph.pairs.doc
    for fold in folds(graph, 3, by="click"):
        assert fold.clicked is not None
        for pairs, sign in ((fold.clicked, 1), (fold.graph.pairs, 0)):
            place = np.searchsorted(keys, pairs.query.astype(np.int64) * graph.n_docs + pairs.doc)
            total[place] += sign * pairs.clicks
        assert fold.clicked.clicks.sum() + fold.graph.pairs.clicks.sum() == graph.pairs.clicks.sum()
    assert total.tolist() == graph.pairs.clicks.tolist()


def test_by_time_nothing_learns_from_its_future() -> None:
    graph = log_of(100, times=True)
    held = list(folds(graph, 5))
    assert {fold.by for fold in held} == {"time"}
    assert len(held) == 5
    ends = []
    for fold in held:
        assert fold.shown is not None
        assert fold.graph.impressions is not None
        assert fold.graph.impressions.time is not None
        assert fold.shown.time is not None
        assert fold.graph.impressions.time.max() < fold.shown.time.min()
        ends.append((len(fold.graph.impressions), len(fold.shown)))
    assert ends == [(25, 15), (40, 15), (55, 15), (70, 15), (85, 15)]


def test_what_has_no_time_teaches_every_fold() -> None:
    timed = [Impression(f"q{i}", ["a", "b"], ["b"], time=float(i)) for i in range(40)]
    graph = ClickGraph.build([Impression("at no time", ["a", "b"], ["a"]), *timed])
    held = list(folds(graph, 4, by="time"))
    assert len(held) == 4
    number = graph.query_keys.index("at no time")
    for fold in held:
        assert fold.graph.impressions is not None
        assert fold.shown is not None
        assert number in fold.graph.impressions.query
        assert number not in fold.shown.query


def test_coarse_times_give_fewer_folds() -> None:
    docs = [Document("a", {"title": "x"}), Document("b", {"title": "y"})]
    log = [PairCount(f"q{i}", "ab"[i % 2], 1, time=float(i // 10)) for i in range(20)]
    held = list(folds(ClickGraph.build(log, docs), 5))
    assert len(held) == 1
    assert held[0].clicked is not None
    assert len(held[0].clicked) == 10


def test_refusals() -> None:
    with pytest.raises(SettingError, match="folds must be at least 2; got 1"):
        list(folds(log_of(9), 1))
    with pytest.raises(SettingError, match="by must be auto, time, query or click; got 'day'"):
        list(folds(log_of(9), by="day"))
    with pytest.raises(MissingPart, match="needs times"):
        list(folds(log_of(9), by="time"))
