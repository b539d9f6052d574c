"""Snapshot and journal: the same events, the same bits, whatever happens in between."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.errors import ArtifactError, InputError
from clickbridge.online.entry_file import EntryFile
from clickbridge.online.journal import Journal
from clickbridge.online.online import Online
from clickbridge.types import Impression
from oracles.pages import random_pages

EVENTS = [*random_pages(1, 12), Impression("query 2", ["d4", "new-1", "d5"], ["new-1"], user="u9", time=3.5)]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("online") / "model"
    settings = {"blend": "0.5,0.3,4", "per_user": 0.5, "dim": 5, "clusters": 2}
    build_model("online", settings).fit(ClickGraph.build(random_pages(0, 40))).save(path)
    return path


def loaded(path: Path) -> Online:
    model = clickbridge.load(path)
    assert isinstance(model, Online)
    return model


def learned(saved: Path, state: Path, events: list[Impression] = EVENTS) -> str:
    with Journal(state, loaded(saved)) as journal:
        for page in events:
            journal.learn(page)
        return journal.model.state_.digest()


def reopened(saved: Path, state: Path) -> str:
    with Journal(state, loaded(saved)) as journal:
        return journal.model.state_.digest()


def test_replay_gives_the_same_bits(saved: Path, tmp_path: Path) -> None:
    live = learned(saved, tmp_path / "one")
    assert reopened(saved, tmp_path / "one") == live
    assert learned(saved, tmp_path / "two") == live


def test_compaction_keeps_the_bits_and_empties_the_journal(saved: Path, tmp_path: Path) -> None:
    live = learned(saved, tmp_path / "state", EVENTS[:7])
    with Journal(tmp_path / "state", loaded(saved)) as journal:
        journal.compact()
        assert (tmp_path / "state" / "events.jsonl").stat().st_size == 0
        assert journal.model.state_.digest() == live
        for page in EVENTS[7:]:
            journal.learn(page)
        whole = journal.model.state_.digest()
    assert reopened(saved, tmp_path / "state") == whole == learned(saved, tmp_path / "other")


def test_killed_between_snapshot_and_truncation(saved: Path, tmp_path: Path) -> None:
    live = learned(saved, tmp_path / "state")
    with Journal(tmp_path / "state", loaded(saved)) as journal:
        journal._snapshot()  # and no more: the events are in both
    assert reopened(saved, tmp_path / "state") == live


@pytest.mark.parametrize("cut", [1, 20])
def test_a_torn_last_line_is_dropped(saved: Path, tmp_path: Path, cut: int) -> None:
    learned(saved, tmp_path / "state")
    path = tmp_path / "state" / "events.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    assert reopened(saved, tmp_path / "state") == learned(saved, tmp_path / "other", EVENTS[:-1])
    with Journal(tmp_path / "state", loaded(saved)) as journal:
        journal.learn(EVENTS[-1])
    assert reopened(saved, tmp_path / "state") == learned(saved, tmp_path / "third")


def test_damage_before_the_end_is_refused(saved: Path, tmp_path: Path) -> None:
    learned(saved, tmp_path / "state")
    path = tmp_path / "state" / "events.jsonl"
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ArtifactError, match=r"events.jsonl is damaged at byte 0: restore it"):
        reopened(saved, tmp_path / "state")
    lines = bytes(data).splitlines(keepends=True)
    path.write_bytes(b"".join(lines[1:3]))
    with pytest.raises(ArtifactError, match="event 41 is missing"):
        reopened(saved, tmp_path / "state")


def test_a_state_from_another_projection_is_refused(saved: Path, tmp_path: Path) -> None:
    learned(saved, tmp_path / "state")
    other: Any = build_model("online", {"blend": "0,1,1", "dim": 4}).fit(ClickGraph.build(random_pages(0, 40)))
    with pytest.raises(ArtifactError, match=r"was learned on projection .*, the model has .*: open it with the model"):
        Journal(tmp_path / "state", other).__enter__()


def test_undo(saved: Path, tmp_path: Path) -> None:
    with Journal(tmp_path / "state", loaded(saved)) as journal:
        before = journal.model.score("query 2", ["d4", "d5", "d6"])
        first = journal.learn(EVENTS[0])
        journal.learn(EVENTS[1])
        journal.undo(first)
        journal.undo(first + 1)
        assert journal.model.score("query 2", ["d4", "d5", "d6"]) == pytest.approx(before, abs=1e-9)
        for number in (first, 7, 99):
            with pytest.raises(InputError, match=f"event {number} cannot be undone"):
                journal.undo(number)
        live = journal.model.state_.digest()
    assert reopened(saved, tmp_path / "state") == live


def test_one_writer(saved: Path, tmp_path: Path) -> None:
    with Journal(tmp_path / "state", loaded(saved)) as journal:
        with pytest.raises(ArtifactError, match="another process learns into"):
            Journal(tmp_path / "state", loaded(saved)).__enter__()
        journal.learn(EVENTS[0])
    with pytest.raises(ArtifactError, match="is closed"):
        journal.learn(EVENTS[1])


def test_a_saved_model_goes_on_where_it_was(saved: Path, tmp_path: Path) -> None:
    model = loaded(saved)
    for page in EVENTS:
        model.learn(page)
    model.save(tmp_path / "model")
    again = loaded(tmp_path / "model")
    assert again.state_.digest() == model.state_.digest()
    assert again.projection_.id == model.projection_.id
    again.learn(EVENTS[0])
    model.learn(EVENTS[0])
    assert again.state_.digest() == model.state_.digest()
    assert again.doc_ids_ == model.doc_ids_


# --- what must not happen ----------------------------------------------------------------------------


def lines(state: Path) -> list[bytes]:
    return (state / "events.jsonl").read_bytes().splitlines(keepends=True)


class Failing:
    """`os.fsync` that fails some of the times it is asked."""

    def __init__(self, times: set[int]) -> None:
        self.inner, self.times, self.calls = os.fsync, times, 0

    def __call__(self, fd: int) -> None:
        self.calls += 1
        if self.calls in self.times:
            raise OSError(5, "Input/output error")
        self.inner(fd)


def test_what_could_not_be_written_did_not_happen(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(tmp_path / "state", loaded(saved)) as journal:
        assert journal.learn(EVENTS[0]) == 41
        before = journal.model.state_.digest()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", Failing({1}))
            with pytest.raises(OSError, match="Input/output error"):
                journal.learn(EVENTS[1])
            assert journal.model.state_.digest() == before
            assert len(lines(tmp_path / "state")) == 1
            assert journal.learn(EVENTS[2]) == 42, "the number is free again"
        live = journal.model.state_.digest()
    assert reopened(saved, tmp_path / "state") == live
    assert learned(saved, tmp_path / "other", [EVENTS[0], EVENTS[2]]) == live


@pytest.mark.parametrize("also", ["fsync", "ftruncate"])
def test_threads_are_each_told_what_became_of_their_event(
    also: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [Impression(f"q{i}", ["d1", "d2", "d3"], ["d3"]) for i in range(120)]
    with Journal(tmp_path / "state", loaded(saved)) as journal:

        def work(i: int) -> int:
            try:
                return journal.learn(pages[i])
            except OSError:
                return 0

        with monkeypatch.context() as patch, ThreadPoolExecutor(8) as pool:
            patch.setattr(os, "fsync", Failing({2, 5, 6, 11}))
            if also == "ftruncate":
                truncate = os.ftruncate
                calls = iter(range(1000))

                def failing(fd: int, size: int) -> None:
                    if next(calls) % 2 == 0:
                        raise OSError(5, "Input/output error")
                    truncate(fd, size)

                patch.setattr(os, "ftruncate", failing)
            numbers = list(pool.map(work, range(len(pages))))
        live = journal.model.state_.digest()
    acknowledged = {number: f"q{i}" for i, number in enumerate(numbers) if number}
    assert 0 < len(acknowledged) < len(pages)
    assert sorted(acknowledged) == list(range(41, 41 + len(acknowledged)))
    file = EntryFile(tmp_path / "state" / "events.jsonl")
    assert {number: entry.query for number, entry in file.entries()} == acknowledged
    file.close()
    assert reopened(saved, tmp_path / "state") == live


def test_interrupted_between_disk_and_memory(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was interrupted does not know; the disk does, and nothing more is written until it is read again."""
    with Journal(tmp_path / "state", loaded(saved)) as journal:
        journal.learn(EVENTS[0])

        def interrupted(step: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(journal.learner, "_add", interrupted)
            with pytest.raises(KeyboardInterrupt):
                journal.learn(EVENTS[1])
        with pytest.raises(ArtifactError, match="was interrupted: open the journal again"):
            journal.learn(EVENTS[2])
    assert reopened(saved, tmp_path / "state") == learned(saved, tmp_path / "other", EVENTS[:2])


@pytest.mark.parametrize(
    "bad",
    [
        (Impression("query 1", ["d1", "d2"], ["d1"]), math.nan),
        ({"query": "query 1", "results": ["d1", "d2"], "clicks": "d1"}, 1.0),
        (Impression("query 1", None, ["d1"]), 1.0),
        (Impression(7, ["d1"], ["d1"]), 1.0),  # type: ignore[arg-type]
        ({"query": "a", "results": ["d1"], "clicks": [], "what": 1}, 1.0),
    ],
    ids=["nan", "text for clicks", "no results", "query", "unknown key"],
)
def test_what_is_no_event_is_not_written(bad: tuple[Any, float], saved: Path, tmp_path: Path) -> None:
    with Journal(tmp_path / "state", loaded(saved)) as journal:
        live = journal.model.state_.digest()
        with pytest.raises(InputError):
            journal.learn(*bad)
        assert lines(tmp_path / "state") == []
    assert reopened(saved, tmp_path / "state") == live


def test_a_flipped_bit_in_the_last_line_is_damage(saved: Path, tmp_path: Path) -> None:
    learned(saved, tmp_path / "state", EVENTS[:2])
    path = tmp_path / "state" / "events.jsonl"
    data = bytearray(path.read_bytes())
    for place in (-1, -2, -30):
        data[place] ^= 4
        path.write_bytes(bytes(data))
        with pytest.raises(ArtifactError, match=r"events.jsonl is damaged at byte [1-9]\d*: restore it"):
            reopened(saved, tmp_path / "state")
        data[place] ^= 4


@pytest.mark.parametrize("per_user", [0.0, 0.5])
def test_users_in_the_journal(per_user: float, tmp_path: Path) -> None:
    graph = ClickGraph.build(random_pages(0, 40))
    model: Any = build_model("online", {"blend": "0.5,0.3,4", "per_user": per_user}).fit(graph)
    person = "user-4711-secret"
    with Journal(tmp_path / "state", model) as journal:
        number = journal.learn(Impression("query 1", ["d1", "d2"], ["d2"], user=person))
        journal.undo(number)
        journal.learn(Impression("query 1", ["d1", "d2"], ["d2"], user=person))
        journal.compact()
        journal.learn(Impression("query 1", ["d1", "d2"], ["d2"], user=person))
    written = b"".join(file.read_bytes() for file in (tmp_path / "state").rglob("*") if file.is_file())
    mine = graph.secret.user(person)
    assert person.encode() not in written
    hashed = str(mine).encode() in written or mine.to_bytes(8, "little") in written
    assert hashed == (per_user > 0)


def test_every_kind_of_event_comes_back(saved: Path, tmp_path: Path) -> None:
    """Also where the model's own methods bring them, compaction comes in between, and what is learned fades."""
    graph = ClickGraph.build(random_pages(0, 40))
    model: Any = build_model("online", {"blend": "0.5,0.3,4", "kappa": 0.9, "dim": 5, "per_user": 0.5}).fit(graph)
    model.save(tmp_path / "model")
    page = Impression("query 1", ["d1", "d2", "d3", "new-2"], ["d2", "d3"], user="u1")
    with Journal(tmp_path / "state", model) as journal:
        numbers = [journal.learn(event) for event in EVENTS]
        model.undo(numbers[3])
        journal.compact()
        with pytest.raises(InputError, match="cannot be undone"):
            journal.undo(numbers[4])
        model.unlearn(EVENTS[4], numbers[4])
        number = model.learn(page, 2.5)
        model.undo_click(page, "d3", number)
        journal.learn_many(EVENTS[:3])
        half = model.state_.digest()
    assert reopened(tmp_path / "model", tmp_path / "state") == half
    with Journal(tmp_path / "state", loaded(tmp_path / "model")) as journal:
        assert journal.model.forget_clicks() == journal.learner.events
        journal.learn(page)
        journal.compact()
        whole = journal.model.state_.digest()
    assert reopened(tmp_path / "model", tmp_path / "state") == whole != half
    with (
        Journal(tmp_path / "state", loaded(tmp_path / "model")) as journal,
        pytest.raises(InputError, match="no longer"),
    ):
        journal.model.unlearn(EVENTS[0], numbers[0])


def test_undo_reads_one_line(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(tmp_path / "state", loaded(saved)) as journal:
        numbers = [journal.learn(page) for page in EVENTS]
        reads = []
        pread = os.pread
        monkeypatch.setattr(os, "pread", lambda fd, n, at: reads.append(n) or pread(fd, n, at))
        monkeypatch.setattr(Path, "open", None)
        journal.undo(numbers[5])
        assert len(reads) == 1
        monkeypatch.undo()


def test_an_interrupted_compaction_is_finished(saved: Path, tmp_path: Path) -> None:
    live = learned(saved, tmp_path / "state")
    with Journal(tmp_path / "state", loaded(saved)) as journal:
        journal._snapshot()
    assert len(lines(tmp_path / "state")) == len(EVENTS)
    with Journal(tmp_path / "state", loaded(saved)) as journal:
        assert lines(tmp_path / "state") == []
        assert journal.learn(EVENTS[0]) == 41 + len(EVENTS)
        assert journal.model.state_.digest() != live


def test_a_compaction_that_cannot_empty_the_journal(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal(tmp_path / "state", loaded(saved)) as journal:
        for page in EVENTS[:5]:
            journal.learn(page)

        def refuses(fd: int, size: int) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(os, "ftruncate", refuses)
            with pytest.raises(OSError, match="Input/output error"):
                journal.compact()
        assert journal.learn(EVENTS[5]) == 46
        journal.undo(42)
        live = journal.model.state_.digest()
    assert reopened(saved, tmp_path / "state") == live


def test_a_folder_that_lacks_a_part_or_has_another_rule(saved: Path, tmp_path: Path) -> None:
    learned(saved, tmp_path / "state")
    other: Any = loaded(saved)
    other.set_params(kappa=0.5)
    other.fit(ClickGraph.build(random_pages(0, 40)))
    with pytest.raises(ArtifactError, match=r"was learned with kappa 1.0, the model has 0.5: open it with the model"):
        Journal(tmp_path / "state", other).__enter__()
    (tmp_path / "state" / "snapshot").rename(tmp_path / "elsewhere")
    with pytest.raises(ArtifactError, match="has events and no snapshot"):
        reopened(saved, tmp_path / "state")


def test_while_a_journal_is_open_the_model_keeps_its_history(saved: Path, tmp_path: Path) -> None:
    model = loaded(saved)
    with Journal(tmp_path / "state", model) as journal:
        number = model.learn(EVENTS[0])
        assert number == journal.learner.events == 41
        for change in (lambda: model.fit(ClickGraph.build(random_pages(0, 40))), lambda: model.update(EVENTS)):
            with pytest.raises(ArtifactError, match="the model's journal is open: close it"):
                change()
        with pytest.raises(ArtifactError, match="the model learns into another journal"):
            Journal(tmp_path / "other", model).__enter__()
        learner = journal.learner
    live = model.state_.digest()
    assert model.learn(EVENTS[1]) == 42, "in memory again"
    with pytest.raises(ArtifactError, match="is closed"):
        learner.learn(EVENTS[1])
    assert reopened(saved, tmp_path / "state") == live
