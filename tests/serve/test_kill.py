"""`kill -9` at random moments under feedback load: nothing acknowledged is lost, nothing counts twice.

A few rounds here; `CLICKBRIDGE_KILLS=200` runs the whole campaign.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import clickbridge
from clickbridge.io.secret import Secret
from clickbridge.serve.config import VARIABLE, Config
from clickbridge.serve.served import Served
from clickbridge.serve.store import Store
from clickbridge.types import Impression

KILLS = int(os.environ.get("CLICKBRIDGE_KILLS", "3"))
IDS = ["bagel", "rome", "ny", "pizza"]
CALLERS = 3
ZYGOTE = """
import os, sys
import clickbridge
from clickbridge.serve.config import Config
from clickbridge.serve.run import run
clickbridge.load(sys.argv[1])
for line in sys.stdin:
    child = os.fork()
    if not child:
        os.environ["%s"] = line
        run(Config.from_environment())
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Imports once and forks for every start: two hundred starts would be two hundred times the imports."""


class Starter:
    """Starts services, one after the other, each a process of its own."""

    def __init__(self, model: Path) -> None:
        line = [sys.executable, "-c", ZYGOTE % VARIABLE, str(model)]
        pipe = subprocess.PIPE
        self.model = model
        self.process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    def start(self, store: str) -> Process:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        config = Config(models={"m": str(self.model)}, store=store, port=port, log_requests=False)
        assert self.process.stdin is not None
        self.process.stdin.write(config.to_json() + "\n")
        self.process.stdin.flush()
        return Process(int(self.line()), port, self)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Process:
    """A running service."""

    def __init__(self, pid: int, port: int, starter: Starter) -> None:
        self.pid, self._starter = pid, starter
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)

    def ready(self) -> None:
        for _ in range(30_000):
            try:
                if self.http.get("/health").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        raise AssertionError("the service did not become ready")

    def stop(self, how: signal.Signals) -> int:
        """Sends the signal; the exit code."""
        os.kill(self.pid, how)
        code = int(self._starter.line())
        self.http.close()
        return code


def events(caller: str, count: int, rng: random.Random) -> list[dict[str, Any]]:
    return [
        {"event_id": f"{caller}-{n}", "query": rng.choice(["ny pizza", "big apple"]), "results": rng.sample(IDS, 4),
         "clicks": [rng.choice(IDS)], "user": f"u{n % 5}"}
        for n in range(count)
    ]  # fmt: skip


def call(service: Process, name: str, acknowledged: set[str], sent: set[str], rng: random.Random) -> None:
    """Sends batches until the service is gone."""
    with httpx.Client(base_url=service.http.base_url, timeout=30) as http:
        for batch in range(100_000):
            given = events(f"{name}-{batch}", rng.choice([1, 5, 20]), rng)
            sent.update(event["event_id"] for event in given)
            try:
                answer = http.post("/feedback", json={"events": given})
            except httpx.TransportError:
                return
            if answer.status_code == 200:
                assert answer.json() == {"accepted": len(given), "duplicates": 0}
                acknowledged.update(event["event_id"] for event in given)


def campaign(model: Path, store: str, kills: int, seed: int = 0) -> tuple[int, int, int]:
    """Events sent, acknowledged and stored, after checking that they agree."""
    rng = random.Random(seed)
    acknowledged: set[str] = set()
    sent: set[str] = set()
    starter = Starter(model)
    for kill in range(kills):
        service = starter.start(store)
        service.ready()
        callers = [
            threading.Thread(
                target=call, args=(service, f"{kill}-{i}", acknowledged, sent, random.Random(rng.random()))
            )
            for i in range(CALLERS)
        ]
        for caller in callers:
            caller.start()
        # On a busy machine nothing would happen in a fixed time: some events are acknowledged first.
        enough, latest = len(acknowledged) + rng.randint(1, 60), time.monotonic() + 20
        while len(acknowledged) < enough and time.monotonic() < latest:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.1))
        service.stop(signal.SIGKILL)
        for caller in callers:
            caller.join()
    starter.close()
    return check(model, store, acknowledged, sent)


def check(model: Path, store: str, acknowledged: set[str], sent: set[str]) -> tuple[int, int, int]:
    kept = Store(store)
    stored: list[Any] = []
    while batch := kept.after(len(stored)):
        stored += batch
    ids = [event.event_id for event in stored]
    assert [event.seq for event in stored] == list(range(1, len(stored) + 1)), "one order without gaps"
    assert len(set(ids)) == len(ids), "nothing twice"
    assert acknowledged <= set(ids) <= sent, "nothing acknowledged is lost, nothing is made up"
    served = Served("m", model, kept)
    served.catch_up()
    python: Any = clickbridge.load(model)
    for event in stored:
        python.learn(Impression(event.query, list(event.results), list(event.clicks)))
    np.testing.assert_array_equal(served.model.fitted.state.weights, python.fitted.state.weights)  # type: ignore[attr-defined]
    assert served.model.fitted.state.events == python.fitted.state.events  # type: ignore[attr-defined]
    kept.close()
    return len(sent), len(acknowledged), len(stored)


def test_kill_at_random_moments(models: Callable[[str], Path], store_url: str) -> None:
    model = models("online:bm25")
    sent, acknowledged, stored = campaign(model, store_url, KILLS)
    print(f"{KILLS} kills: {sent} events sent, {acknowledged} acknowledged, {stored} stored")
    assert acknowledged


def test_a_stop_keeps_what_was_taken(models: Callable[[str], Path], tmp_path: Path) -> None:
    """SIGTERM: requests in flight are answered, and the process ends."""
    store = f"sqlite:///{tmp_path}/events.db"
    starter = Starter(models("online:bm25"))
    service = starter.start(store)
    service.ready()
    acknowledged, sent = set[str](), set[str]()
    caller = threading.Thread(target=call, args=(service, "stop", acknowledged, sent, random.Random(1)))
    caller.start()
    time.sleep(0.5)
    assert service.stop(signal.SIGTERM) in (0, -signal.SIGTERM)
    caller.join()
    starter.close()
    check(models("online:bm25"), store, acknowledged, sent)


def test_secrets_are_not_shared_between_stores(tmp_path: Path) -> None:
    one, two = (Store(f"sqlite:///{tmp_path}/{name}.db") for name in "ab")
    assert one.secret.user("u") != two.secret.user("u") != Secret().user("u")
