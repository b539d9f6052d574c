"""Snapshot and journal: the same events, the same bits, whatever happens in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.errors import ArtifactError, InputError
from clickbridge.online.journal import Journal
from clickbridge.online.reranker import Online
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
