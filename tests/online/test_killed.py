"""A process that is killed while it learns: what it was told is there, and nothing is there twice."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.numerics.feedback import OF_QUERY
from clickbridge.numerics.hash_table import mixed, value_at
from clickbridge.online.events import query_hash
from clickbridge.online.journal import Journal
from oracles.pages import random_pages

CHILD = """
import os, sys, threading
import clickbridge
from clickbridge.online.journal import Journal
from clickbridge.types import Impression

model, state, name = sys.argv[1:]
with Journal(state, clickbridge.load(model)) as journal:

    def work(thread):
        for i in range(10**9):
            query = f"{name}-{thread}-{i}"
            number = journal.learn(Impression(query, ["d1", "d2", "d3"], ["d3"]))
            os.write(1, f"{number} {query} told\\n".encode())
            if thread == 0 and i % 20 == 19:
                journal.compact()

    for thread in range(4):
        threading.Thread(target=work, args=(thread,), daemon=True).start()
    threading.Event().wait()
"""


@pytest.mark.filterwarnings("ignore:overflow")
def test_killed_again_and_again(tmp_path: Path) -> None:
    graph = ClickGraph.build(random_pages(0, 40))
    build_model("online", {"blend": "0,1,1"}).fit(graph).save(tmp_path / "model")
    told: dict[int, str] = {}
    for name, wait in (("one", 0.2), ("two", 0.6)):
        command = [sys.executable, "-c", CHILD, str(tmp_path / "model"), str(tmp_path / "state"), name]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        lines = [child.stdout.readline()]
        time.sleep(wait)
        child.kill()
        lines += child.stdout.read().splitlines()
        child.stdout.close()
        child.wait()
        for number, query, *rest in (line.split() for line in lines):
            assert rest == ["told"]
            assert int(number) not in told
            told[int(number)] = query
        model: Any = clickbridge.load(tmp_path / "model")
        with Journal(tmp_path / "state", model):
            state = model.state_
            assert state.events >= max(told)
            for query in told.values():
                key = np.uint64(mixed(np.uint64(query_hash(query)), np.uint64(OF_QUERY)))
                assert value_at(state.keys, state.values, key) == 1.0
