"""One owner of what is learned: many threads bring events and rank, one writes, and values never change."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.errors import ArtifactError, InputError, NotFitted, NotSupported
from clickbridge.online import store
from clickbridge.online.journal import Journal
from clickbridge.online.learner import Learner
from clickbridge.online.online import Online
from clickbridge.online.projection import Projection
from clickbridge.types import Document, Impression, PairCount
from oracles.pages import random_pages

GRAPH = ClickGraph.build(random_pages(0, 40))
EVENTS = random_pages(1, 200)
IDS = ["d2", "d3", "d4", "d5", "d6"]


def fitted(**how: Any) -> Online:
    model = build_model("online", {"blend": "0.5,0.3,4", "dim": 5, "clusters": 2, **how}).fit(GRAPH)
    assert isinstance(model, Online)
    return model


def in_threads(n: int, work: Callable[[int], Any], items: int) -> list[Any]:
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(work, range(items)))


# --- values ------------------------------------------------------------------------------------------


def test_what_was_given_out_never_changes() -> None:
    model = fitted()
    before = model.fitted
    scores, digest = before.score("query 1", IDS), before.state.digest()
    for page in EVENTS[:20]:
        model.learn(page)
    model.learn(Impression("query 1", ["d2", "new", "d3"], ["new"]))
    middle = model.fitted
    assert middle is model.fitted, "nothing learned in between: the same value"
    assert middle.doc_ids[-1] == "new"
    for _ in range(50):
        model.learn(Impression("query 1", IDS, ["d6"]))
    model.learn(Impression("query 1", ["d2", "newer"], ["newer"]))
    assert before.score("query 1", IDS).tolist() == scores.tolist()
    assert before.state.digest() == digest
    assert "new" not in before.doc_ids
    assert "newer" not in middle.doc_ids
    assert model.rerank("query 1", IDS).doc_ids[0] == "d6"
    with pytest.raises(ValueError, match="read-only"):
        before.state.weights[0] = 1.0


def test_copies_have_what_was_learned() -> None:
    model = fitted()
    model.learn(Impression("query 1", ["d2", "new", "d3"], ["new"]))
    ids = ["d2", "d3", "new"]
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301
        assert other.score("query 1", ids).tolist() == model.score("query 1", ids).tolist()
        other.learn(Impression("query 1", IDS, ["d6"]))
        assert other.state_.events == model.state_.events + 1
    learner = pickle.loads(pickle.dumps(model.learner))  # noqa: S301
    assert learner.fitted.state.digest() == model.state_.digest()
    unfitted = clone(model)
    with pytest.raises(NotFitted, match="online:given has learned nothing yet"):
        unfitted.learn(EVENTS[0])
    assert not hasattr(unfitted, "fitted_")


def test_a_second_fit_starts_anew() -> None:
    model = fitted()
    learner = model.learner
    for page in EVENTS[:5]:
        model.learn(page)
    model.fit(GRAPH)
    assert model.state_.digest() == fitted().state_.digest()
    assert model.learner is learner
    assert model.learn(EVENTS[0]) == 41
    with pytest.raises(InputError, match="event 42 cannot be undone"):
        model.undo(42)


def test_forgotten_clicks_are_gone_and_numbers_go_on() -> None:
    model = fitted(per_user=0.5)
    number = model.learn(Impression("query 1", ["d2", "new", "d3"], ["new"], user="ann"))
    assert model.forget_clicks() == number + 1
    state = model.state_
    assert not any(values.any() for values in (state.weights, state.evidence, state.keys))
    assert not state.users
    assert model.rerank("query 1", IDS).doc_ids == IDS
    with pytest.raises(InputError, match=f"event {number} cannot be undone"):
        model.undo(number)
    assert model.learn(EVENTS[0]) == number + 2


def test_the_last_events_can_be_undone_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "REMEMBERED", 3)
    model = fitted()
    before = model.state_.arrays()
    first, *_, last = [model.learn(page) for page in EVENTS[:4]]
    for number in (first, 0, 40, 99, True, "41", None):
        with pytest.raises(InputError, match=f"event {number} cannot be undone"):
            model.undo(number)  # type: ignore[arg-type]
    model.undo(last)
    for undone in (last, last + 1):
        with pytest.raises(InputError, match="cannot be undone"):
            model.undo(undone)
    with pytest.raises(InputError, match=f"event {last} cannot be undone"):
        model.unlearn(EVENTS[3], last)
    with pytest.raises(InputError, match="there is no event 99"):
        model.unlearn(EVENTS[3], 99)
    for page, number in zip(EVENTS[:3], range(first, last), strict=True):
        model.unlearn(page, number)
    np.testing.assert_allclose(model.state_.weights, before["weights"], atol=1e-9)


def test_several_pages_all_or_none() -> None:
    model = fitted()
    assert model.learn_many(EVENTS[:3]) == [41, 42, 43]
    broken = replace(EVENTS[4])
    broken.clicks = "d1"  # type: ignore[assignment]
    with pytest.raises(InputError, match="a page cannot be learned"):
        model.learn_many([EVENTS[3], broken])
    assert model.state_.events == 43
    assert model.learn_many([]) == []


@pytest.mark.parametrize("query", ["Apple Pie", "apple pie"])
def test_queries_in_any_case_are_one_query(query: str) -> None:
    model = fitted(blend="0,1,1")
    for _ in range(50):
        model.learn(Impression("Apple Pie", IDS, ["d6"]))
    assert model.rerank(query, IDS).doc_ids[0] == "d6"


def test_ids_with_capitals_stay_as_they_are() -> None:
    log = [PairCount("", d, 1, query_id="Q7") for d in IDS]
    model: Any = build_model("online", {"blend": "0,1,1"}).fit(ClickGraph.build(log))
    for _ in range(50):
        model.learn(Impression("", IDS, ["d6"], query_id="Q7"))
    assert model.rerank("Q7", IDS).doc_ids[0] == "d6"
    assert model.rerank("q7", IDS).doc_ids == IDS
    model.learn_many([Impression("Q7", IDS, ["d5"])] * 200)
    assert model.rerank("Q7", IDS).doc_ids[0] == "d5"


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), -1.0])
def test_no_amount_spoils_the_scores(amount: float) -> None:
    model = fitted()
    with pytest.raises(InputError, match="an amount is a number above 0"):
        model.learn(EVENTS[0], amount)
    assert np.isfinite(model.score(EVENTS[0].query, IDS)).all()
    assert model.state_.events == 40


def test_the_table_grows_with_what_is_new_alone() -> None:
    model = fitted()
    for page in EVENTS[:10]:
        model.learn(page)
    size = len(model.state_.keys)
    model.learn_many(EVENTS[:10] * 300)
    assert len(model.state_.keys) == size == 1024


# --- documents ---------------------------------------------------------------------------------------

DOCS = [Document(f"d{i}", {"title": f"river {'stone ' * i}"}) for i in range(5)]


def searching(**how: Any) -> Any:
    log = [PairCount("river", "d3", 2), PairCount("stone", "d1", 1)]
    return build_model("online:bm25", {"blend": "0,2,1", **how}).fit(ClickGraph.build(log, DOCS))


def test_documents_that_only_pages_showed(tmp_path: Path) -> None:
    """They are re-ranked where the inner model goes by the order alone, and no one takes them for another document."""
    model = fitted(blend="0,1,1")
    listed = ["d2", "d3", "new-1", "new-2"]
    for _ in range(30):
        model.learn(Impression("query 1", listed, ["new-2"]))
    assert model.rerank("query 1", listed).doc_ids[0] == "new-2"
    model.save(tmp_path / "model")
    again: Any = clickbridge.load(tmp_path / "model")
    assert again.state_.digest() == model.state_.digest()
    assert again.doc_ids_ == model.doc_ids_ == [*GRAPH.doc_ids, "new-1", "new-2"]
    assert again.score("query 1", [*listed, "new-3"]).tolist() == model.score("query 1", [*listed, "new-3"]).tolist()
    inner = searching()
    inner.learn(Impression("river", ["d0", "new", "d1"], ["new"]))
    assert inner.score("river", ["new", "newer"]).tolist() == [-np.inf, -np.inf]
    assert inner.rank("river").doc_ids[0] == "d3"
    assert len(inner.similar_documents("new")) == 0


def test_an_update_renumbers_documents_and_keeps_what_they_taught() -> None:
    model = searching()
    for _ in range(20):
        model.learn(Impression("river", ["d0", "d1", "new", "d4"], ["d4"]))
    assert model.rank("river").doc_ids[0] == "d4"
    before = model.state_.digest()
    model.update(
        docs=[Document("new", {"title": "river bed"}), Document("other", {"title": "river bank"})], remove=["d0"]
    )
    assert model.doc_ids_ == ["d1", "d2", "d3", "d4", "new", "other"]
    assert model.state_.digest() == before
    assert model.rank("river").doc_ids[0] == "d4"
    for _ in range(60):
        model.learn(Impression("river", ["d1", "other", "new"], ["new"]))
    assert model.rank("river").doc_ids[0] == "new"
    model.update(remove=["new"])
    assert "new" not in model.rank("river").doc_ids
    model.update([Impression("river", ["d1", "new", "d4"], ["d4"])])
    assert model.score("river", ["new"])[0] == -np.inf


def test_an_inner_model_that_cannot_be_updated(tmp_path: Path) -> None:
    """Clicks are learned all the same, also on documents that it will never know."""
    log = [PairCount("river", "d3", 2), PairCount("stone", "d1", 1)]
    model: Any = build_model("online:rrf:bm25+lmir", {"blend": "0,2,1"}).fit(ClickGraph.build(log, DOCS))
    model.update([Impression("river", ["d0", "d4", "unknown"], ["d4"])] * 20 + [PairCount("river", "unheard-of", 1)])
    assert model.rank("river").doc_ids[0] == "d4"
    assert model.doc_ids_ == [*(d.doc_id for d in DOCS), "unheard-of", "unknown"]
    model.save(tmp_path / "model")
    for one in (model, clickbridge.load(tmp_path / "model")):
        assert (one.score("river", ["unheard-of", "unknown", "nowhere"]) == -np.inf).all()
        with pytest.raises(NotSupported):
            one.update(docs=[Document("new", {"title": "river bed"})])
        with pytest.raises(NotSupported):
            one.update(remove=["d0"])
    assert model.fitted.abilities == {"search", "new queries", "update"}


def test_a_click_far_down_is_learned_by_update_as_by_fit() -> None:
    docs = [Document(f"d{i:02}", {"title": "river " + "stone " * i}) for i in range(30)]
    model: Any = build_model("online:bm25", {"blend": "0,2,1"}).fit(
        ClickGraph.build([PairCount("bed", "d01", 1)], docs)
    )
    listed = model.rank("river", 30).doc_ids
    model.update([PairCount("river", listed[-1], 50)])
    assert model.rerank("river", listed).doc_ids[0] == listed[-1]


def test_an_update_and_events_at_the_same_time() -> None:
    model = fitted()
    model.learn(EVENTS[0])
    start = threading.Barrier(5)

    def work(i: int) -> Any:
        start.wait()
        return model.update(EVENTS[:20]) if i == 0 else [model.learn(page) for page in EVENTS[20:40]]

    in_threads(5, work, 5)
    assert model.state_.events == 41 + 20 + 4 * 20


# --- threads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("durable", [False, True], ids=["in memory", "journal"])
def test_threads_learn_and_rank_at_once(durable: bool, tmp_path: Path) -> None:
    model = fitted(per_user=0.5)
    journal = Journal(tmp_path / "state", model)
    if durable:
        journal.__enter__()
    seen: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            value = model.fitted
            seen.append(value.state.events)
            assert sorted(value.rerank("query 1", IDS).doc_ids) == IDS

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()

    def work(i: int) -> int:
        number = model.learn(EVENTS[i])
        assert model.fitted.state.events >= number, "who learned something sees it"
        return number

    numbers = in_threads(8, work, len(EVENTS))
    done.set()
    for reader in readers:
        reader.join()
    assert sorted(numbers) == list(range(41, 41 + len(EVENTS)))
    assert seen
    one_by_one = fitted(per_user=0.5)
    for i in np.argsort(numbers):
        one_by_one.learn(EVENTS[i])
    assert model.state_.digest() == one_by_one.state_.digest()
    if durable:
        journal.__exit__(None, None, None)
        with Journal(tmp_path / "state", fitted(per_user=0.5)) as again:
            assert again.model.state_.digest() == one_by_one.state_.digest()


def test_events_that_wait_share_an_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    with Journal(tmp_path / "state", fitted()) as journal:
        inside, go = threading.Event(), threading.Event()

        def slow(fd: int) -> None:
            calls.append(fd)
            inside.set()
            go.wait(10)

        monkeypatch.setattr(os, "fsync", slow)
        with ThreadPoolExecutor(8) as pool:
            first = pool.submit(journal.learn, EVENTS[0])
            inside.wait(10)
            others = [pool.submit(journal.learn, page) for page in EVENTS[1:8]]
            while len(journal.learner._waiting) < 7:
                pass
            assert not any(f.done() for f in (first, *others)), "nobody is told before it is on disk"
            assert journal.model.state_.events == 40, "nor is it learned"
            go.set()
            assert sorted(f.result(10) for f in (first, *others)) == list(range(41, 49))
        assert len(calls) == 2
        monkeypatch.undo()


def test_an_event_that_cannot_be_learned_is_refused_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fold_in = Projection.fold_in

    def refuses(self: Projection, listed: Any) -> Any:
        if len(listed) == 3:
            raise MemoryError("no room")
        return fold_in(self, listed)

    monkeypatch.setattr(Projection, "fold_in", refuses)
    with Journal(tmp_path / "state", fitted()) as journal:
        assert journal.learn(EVENTS[0]) == 41
        bad = Impression("query 1", ["d1", "new", "d2"], ["new"])
        with pytest.raises(MemoryError, match="no room"):
            journal.learn(bad)
        with pytest.raises(MemoryError, match="no room"):
            journal.learn_many([Impression("query 1", ["d1", "newer"], ["d1"]), bad])

        def work(i: int) -> Any:
            try:
                return journal.learn(bad if i % 4 == 0 else Impression("query 1", ["d1", f"new-{i}"], ["d1"]))
            except MemoryError:
                return None

        numbers = in_threads(8, work, 40)
        assert [n is None for n in numbers] == [i % 4 == 0 for i in range(40)]
        assert sorted(n for n in numbers if n) == list(range(42, 72))
        assert not {"new", "newer"} & set(journal.model.doc_ids_)
        live = journal.model.state_.digest()
    monkeypatch.undo()
    with Journal(tmp_path / "state", fitted()) as journal:
        assert journal.model.state_.digest() == live


def test_an_undo_asked_for_by_many_happens_once() -> None:
    model = fitted()
    number = model.learn(EVENTS[0])

    def work(_: int) -> bool:
        try:
            return model.undo(number) > 0
        except InputError:
            return False

    assert sum(in_threads(8, work, 16)) == 1
    assert model.state_.events == number + 1


def test_a_learner_by_itself() -> None:
    learner = Learner(fitted().fitted)
    assert learner.learn(EVENTS[0]) == learner.events == 41
    assert not learner.durable
    assert learner.learn({"query": "query 1", "results": IDS, "clicks": ["d6"]}) == 42
    with learner.paused() as value:
        assert value.state.events == 42
    with pytest.raises(ArtifactError, match="journal is open"):
        Learner(fitted().fitted, _Disk()).restart(fitted().fitted)


class _Disk(store.Recent):
    durable = True
