"""The engine of this machine: its limits, and the life of its threads."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from clickbridge.engines import local
from clickbridge.engines.base import default_engine
from clickbridge.engines.local import Local
from clickbridge.errors import SettingError
from clickbridge.numerics.csr import csr_times_dense
from clickbridge.numerics.topk import paired_dots, sparse_topk

FORKING = """
import os, sys
import numpy as np
from scipy import sparse
from clickbridge.engines.local import Local

engine = Local(threads=2)
a = sparse.csr_array(np.ones((200, 100)))
before = engine.times(a, np.ones((100, 3)))  # threads are running
child = os.fork()
same = (engine.times(a, np.ones((100, 3))) == before).all() and list(engine.map(abs, range(9))) == list(range(9))
if child == 0:
    sys.exit(0 if same else 3)
print(os.waitpid(child, 0)[1], bool(same))
"""


def threads_at_work() -> int:
    return sum(thread.name.startswith("clickbridge") for thread in threading.enumerate())


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 5
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


def test_limits_come_from_the_machine_not_from_its_mood() -> None:
    engine = Local()
    assert engine.threads == len(os.sched_getaffinity(0))
    assert engine.memory == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    for wrong in ({"threads": -1}, {"memory": -1}):
        with pytest.raises(SettingError, match="0 or more"):
            Local(**wrong)
    for text in ({"threads": "2"}, {"memory": "2GB"}):
        with pytest.raises(SettingError, match="threads and memory, in bytes, are whole numbers, not"):
            Local(**text)  # type: ignore[arg-type]


def test_threads_start_with_work_and_end_with_close() -> None:
    before = threads_at_work()
    with Local(threads=3) as engine:
        assert threads_at_work() == before
        for _ in range(3):
            list(engine.map(lambda _: time.sleep(0.01), range(6)))
            assert threads_at_work() == before + 3
    assert threads_at_work() == before
    assert list(engine.map(str, range(3))) == ["0", "1", "2"]  # more work starts new ones
    engine.close()
    engine.close()
    assert threads_at_work() == before


def test_threads_end_with_the_engine() -> None:
    before = threads_at_work()
    engine = Local(threads=2)
    list(engine.map(str, range(5)))
    del engine
    gc.collect()
    wait_for(lambda: threads_at_work() == before)


def test_a_forked_child_makes_its_own_threads() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.stdout.split(), done.stderr) == (["0", "True"], "")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda engine: pickle.loads(pickle.dumps(engine))])  # noqa: S301
def test_a_copy_has_the_limits_and_threads_of_its_own(copied: Any) -> None:
    with Local(threads=2, memory=1000) as engine:
        list(engine.map(str, range(5)))
        with copied(engine) as other:
            assert (other.threads, other.memory) == (2, 1000)
            engine.close()
            assert list(other.map(str, range(3))) == ["0", "1", "2"]


def test_who_names_no_engine_shares_one() -> None:
    assert default_engine() is default_engine()
    assert default_engine().threads == Local().threads


def test_a_single_query_stays_in_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a pool was asked for")

    monkeypatch.setattr(Local, "_pool", refused)
    engine = Local(threads=4)
    rng = np.random.default_rng(0)
    row, documents = sparse.csr_array(rng.random((1, 30))), sparse.csr_array(rng.random((2000, 30)))
    assert csr_times_dense(row, rng.random((30, 4)), engine).shape == (1, 4)
    assert engine.times(row, rng.random((30, 4))).shape == (1, 4)
    assert sparse_topk(row, sparse.csr_array(documents.T), 5, engine)[2].tolist() == [5]
    assert len(paired_dots(row, documents, np.array([0, 9]), np.arange(9), engine)) == 9
    items, scores = engine.top_k(rng.random((3, 8)), rng.random((50_000, 8)), 5, None)
    assert items.shape == scores.shape == (3, 5)


@pytest.mark.parametrize("tiles", [1, 2])
def test_top_k_keeps_to_its_memory(tiles: int) -> None:
    memory = tiles * 9 * 2**20  # a tile has 8 MiB
    engine = Local(threads=4, memory=memory)
    rng = np.random.default_rng(0)
    queries, images = (rng.standard_normal((n, 4), dtype=np.float32) for n in (2048, 8192))
    engine.top_k(queries[:2], images, 3, None)
    tracemalloc.start()
    try:
        engine.top_k(queries, images, 3, None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < memory + 2**20  # and the answer


def threads_of_blas() -> set[int]:
    """Of the BLAS that NumPy and SciPy use: another package's, loaded by some other test, is not the engine's."""
    return {library["num_threads"] for library in local._BLAS._libraries().info()}


def test_blas_has_one_thread_until_the_last_caller_is_done() -> None:
    with threadpool_limits(2, "blas"), Local(threads=2) as engine:
        before = threads_of_blas()
        assert before == {2}
        first, second = (engine.map(str, range(10)) for _ in range(2))
        assert (next(first), threads_of_blas()) == ("0", {1})
        next(second)
        list(first)
        assert threads_of_blas() == {1}, "the second caller is still at work"
        list(second)
        assert threads_of_blas() == before


def test_blas_has_its_threads_again_after_many_callers_at_once() -> None:
    with threadpool_limits(2, "blas"), Local(threads=2) as engine:

        def call() -> None:
            for _ in range(50):
                list(engine.map(str, range(3)))

        callers = [threading.Thread(target=call) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert threads_of_blas() == {2}


def test_every_blas_has_one_thread_at_work_also_one_that_is_used_later() -> None:
    script = "from clickbridge.engines.local import Local; from threadpoolctl import threadpool_info\n"
    script += "with Local(2).at_work():\n    import scipy.linalg\n"
    script += "    print([lib['num_threads'] for lib in threadpool_info() if lib['user_api'] == 'blas'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    threads = json.loads(done.stdout)
    assert len(threads) >= 1
    assert set(threads) == {1}
