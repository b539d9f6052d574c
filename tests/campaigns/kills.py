"""`kill -9` at a random moment of ingest, fit, update and of a learner with its journal: the old artifact is there or
the new one, whole; every event that was acknowledged is there; and the next run succeeds."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from campaigns.children import Child, preload, verb
from campaigns.data import answers, graph_of, pages, save_model, write_world
from campaigns.tally import Tally
from clickbridge.errors import ClickbridgeError
from clickbridge.graph.clickgraph import ClickGraph

SHORT, LONG = 12, 1_000
SIGNAL = signal.SIGKILL


def run(count: int, seed: int = 0) -> Tally:
    return strike(count, seed, SIGNAL)


def strike(count: int, seed: int, number: signal.Signals) -> Tally:
    tally, rng = Tally(), Random(seed)
    preload()
    with tempfile.TemporaryDirectory(prefix="campaign-") as place:
        home = Path(place)
        _in_child(lambda: _prepare(home), home)
        lasts = {name: _whole(home, name) for name in ("ingest", "fit", "update")}
        verbs = [*lasts, "journal"] if number == signal.SIGKILL else [*lasts]
        for i in range(count):
            name = verbs[i % len(verbs)]
            _one(tally, home, name, rng, lasts, number)
            if i % 50 == 49:
                print(tally.line("so far"), file=sys.stderr, flush=True)
    return tally


def _prepare(home: Path) -> None:
    write_world(home)
    graph = graph_of(pages(), home / "graph")
    save_model("bm25+cos-click", graph, home / "model")
    save_model("online:bm25", graph, home / "online", blend="0.5,0.3,4")
    shutil.copytree(home / "graph", home / "graph.sound")
    shutil.copytree(home / "model", home / "model.sound")


def _in_child(work: Callable[[], None], home: Path) -> None:
    ended = Child(work, home / "err").wait()
    if ended.code:
        raise RuntimeError(ended.err[-500:])


def _work(home: Path, name: str) -> Callable[[], None]:
    if name == "ingest":
        logs = (home / "log.jsonl", home / "more.jsonl")
        return verb("ingest", *logs, "--docs", home / "docs.jsonl", "--out", home / "graph")
    if name == "fit":
        return verb("fit", home / "graph.sound", "--model", "bm25+cos-click", "--out", home / "model")
    if name == "update":
        return verb("update", home / "model", home / "more.jsonl", "--again")
    return lambda: _learn(home)


def _learn(home: Path) -> None:
    from clickbridge import load
    from clickbridge.online.journal import Journal
    from clickbridge.types import Impression

    told = os.open(home / "told", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    with Journal(home / "state", load(home / "online")) as journal:  # type: ignore[arg-type]
        for i in range(10**6):
            number = journal.learn(Impression(f"q{i % 50}", ["d1", "d2", "d3"], ["d3"]))
            os.write(told, f"{number}\n".encode())
            if i % 25 == 24:
                journal.compact()


def _whole(home: Path, name: str) -> float:
    """Seconds of computing that a verb takes when nothing strikes it: the shortest of three."""
    ends = [Child(_work(home, name), home / "err").wait() for _ in range(3)]
    if any(ended.code for ended in ends):
        raise RuntimeError(f"{name} fails by itself: {ends[-1].err[-300:]}")
    return min(ended.cpu for ended in ends)


def _strike(child: Child, home: Path, name: str, rng: Random, lasts: dict[str, float], number: signal.Signals) -> None:
    """Anywhere; of the verbs, half of the time in the last part, in which they write."""
    if name == "journal":
        told, before = home / "told", _size(home / "told")
        while _size(told) == before:  # it has opened its journal and acknowledges
            time.sleep(0.001)
        time.sleep(rng.random() * 0.1)
        child.signal(number)
    else:
        child.signal_after(lasts[name] * rng.uniform(rng.choice((0.0, 0.75)), 1.02), number)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _one(tally: Tally, home: Path, name: str, rng: Random, lasts: dict[str, float], number: signal.Signals) -> None:
    for kind in ("graph", "model"):
        if rng.random() < 0.1:  # often over what earlier kills have left
            shutil.rmtree(home / kind, ignore_errors=True)
            shutil.copytree(home / f"{kind}.sound", home / kind)
    child = Child(_work(home, name), home / "err")
    _strike(child, home, name, rng, lasts, number)
    ended = child.wait()
    if ended.code not in (0, -number, 130):
        tally.fault(f"{name} ended with {ended.code}: {ended.err[-300:]}")
    elif "Traceback" in ended.err:
        tally.fault(f"{name}: a traceback: {ended.err[-300:]}")
    tally.tried += 1
    tally.hit += ended.code != 0
    if number != signal.SIGKILL and ended.code and list(home.glob(".*.new-*")):
        tally.fault(f"{name}: half-written files are left")
    check = home / "check"
    found = Child(lambda: _check(home, name), check).wait()
    if found.code:
        tally.fault(f"{name} killed: {found.err[-300:]}")


def _check(home: Path, name: str) -> None:
    """In a child, so that the parent stays as it is."""
    if name == "ingest":
        assert len(ClickGraph.open(home / "graph").pairs) > 100
    elif name in ("fit", "update"):
        assert len(answers(home / "model")) > 100
    else:
        told = [int(line) for line in (home / "told").read_text().splitlines()] if (home / "told").exists() else []
        assert len(told) == len(set(told)), "a number was given twice"
        _reopened(home, max(told, default=0))


def _reopened(home: Path, last: int) -> None:
    from clickbridge import load
    from clickbridge.online.journal import Journal

    try:
        with Journal(home / "state", load(home / "online")) as journal:  # type: ignore[arg-type]
            assert journal.learner.events >= last, f"event {last} was acknowledged and is lost"
    except ClickbridgeError as error:
        raise AssertionError(str(error)) from error
