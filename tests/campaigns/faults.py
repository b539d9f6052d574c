"""An exception after every call to the system that a commit, an update, a journal or a compaction makes: what is there
afterwards is the old state or the new one, whole, and the next writer goes on."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from campaigns.data import answers, graph_of, pages, save_model
from campaigns.tally import Tally
from clickbridge import ClickGraph, load
from clickbridge.errors import ClickbridgeError
from clickbridge.online import entry_file
from clickbridge.online.journal import Journal
from clickbridge.types import Impression

SHORT, LONG = 60, 1_000
CALLS: list[tuple[Any, str]] = [
    (os, "replace"), (os, "rename"), (os, "fsync"), (os, "open"), (os, "rmdir"), (os, "ftruncate"), (os, "unlink"),
    (shutil, "copyfile"), (shutil, "rmtree"), (Path, "unlink"), (Path, "write_bytes"), (Path, "iterdir"),
    (entry_file, "_sync_folder"),
]  # fmt: skip
KINDS = (OSError, KeyboardInterrupt, MemoryError)


def run(count: int, seed: int = 0) -> Tally:
    """Every call of every operation in turn, by every kind of exception, again and again until `count` is reached."""
    tally, rng = Tally(), Random(seed)
    with tempfile.TemporaryDirectory(prefix="campaign-") as place:
        home = Path(place)
        graph = graph_of(pages(), home / "graph.sound")
        save_model("bm25+cos-click", graph, home / "model.sound")
        save_model("online:given", graph, home / "online", blend="0.5,0.3,4")
        while tally.tried < count:
            for operation in (_commit, _update, _learn, _compact):
                for kind in KINDS:
                    if tally.tried >= count:
                        return tally
                    _every_call(tally, home, operation, kind, rng, count)
    return tally


Operation = Callable[[Path], tuple[Callable[[], None], Callable[[], None]]]
"""Prepares a folder; gives what is to be struck, and what must hold afterwards."""


def _every_call(
    tally: Tally, home: Path, operation: Operation, kind: type[BaseException], rng: Random, count: int
) -> None:
    for moment in range(10_000):
        if tally.tried >= count:
            return
        act, check = operation(home)
        hit = _struck(act, moment, kind)
        name = f"{operation.__name__} after call {moment} by {kind.__name__}"
        try:
            check()
        except (AssertionError, ClickbridgeError) as error:
            tally.error(name, error)
        if not hit:
            return
        tally.tried += 1
        tally.hit += 1


def _struck(act: Callable[[], None], moment: int, kind: type[BaseException]) -> bool:
    left, hit = [moment], [False]

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            out = real(*arguments, **more)
            left[0] -= 1
            if left[0] == -1:
                hit[0] = True
                raise kind(28, "No space left on device") if kind is OSError else kind
            return out

        return call

    with ExitStack() as patches:
        for owner, name in CALLS:
            patches.enter_context(patch.object(owner, name, failing(getattr(owner, name))))
        with suppress(kind, ClickbridgeError):
            act()
    return hit[0]


def _commit(home: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    target = _fresh(home, "graph")
    graph = ClickGraph.open(home / "graph.sound")

    def check() -> None:
        assert len(ClickGraph.open(target).pairs) == len(graph.pairs)
        graph.save(target)
        assert len(ClickGraph.open(target).pairs) == len(graph.pairs)
        assert not [p.name for p in home.iterdir() if p.name.startswith(".graph")]

    return lambda: graph.save(target), check


def _update(home: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    target = _fresh(home, "model")
    more = [Impression(**row) for row in pages(5, seed=11)]
    before = answers(target)
    after = load(home / "model.sound").update(more)

    def check() -> None:
        found = answers(target)
        assert len(found) == len(before)
        if found != before:
            scores = b"".join(after.score(q, after.doc_ids_).tobytes() for q in ("salt river", "stone", "glass cloud"))
            assert found == scores, "neither the old model nor the new one"

    return lambda: load(target).update(more).save(target), check


def _learn(home: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    return _journal(home, compact=False)


def _compact(home: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    return _journal(home, compact=True)


def _journal(home: Path, compact: bool) -> tuple[Callable[[], None], Callable[[], None]]:
    state = home / "state"
    shutil.rmtree(state, ignore_errors=True)
    told: list[int] = []

    def act() -> None:
        with Journal(state, load(home / "online")) as journal:  # type: ignore[arg-type]
            for i in range(6):
                told.append(journal.learn(Impression(f"q{i}", ["d1", "d2", "d3"], ["d3"])))
                if compact and i % 2:
                    journal.compact()

    def check() -> None:
        with Journal(state, load(home / "online")) as journal:  # type: ignore[arg-type]
            events = journal.learner.events
            assert events >= max(told, default=0), "an acknowledged event is lost"
            assert len(told) == len(set(told)), "a number was given twice"
            assert journal.learn(Impression("q", ["d1", "d2"], ["d2"])) == events + 1

    return act, check


def _fresh(home: Path, name: str) -> Path:
    shutil.rmtree(home / name, ignore_errors=True)
    shutil.copytree(home / f"{name}.sound", home / name)
    return home / name
