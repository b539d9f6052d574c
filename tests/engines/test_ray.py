"""The Ray engine on a cluster of several nodes, each a process of its own, and what it says where there is none."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge.engines import shards
from clickbridge.engines.ray import Ray
from clickbridge.errors import EngineError, NotSupported
from clickbridge.numerics.rows import sparse_rows
from clickbridge.numerics.svd import POWER_STEPS, MatrixOperator, randomised_svd

SCRIPT = Path(__file__).with_name("on_a_cluster.py")
SENT_WITH_A_TASK = 100 << 10
"""Bytes up to which Ray keeps a result with the driver, not in the store of the node that made it."""


def on_a_cluster(*words: str) -> dict[str, Any]:
    if os.environ.get("REQUIRE_ALL") != "1":
        pytest.importorskip("ray")
    line = [sys.executable, "-P", str(SCRIPT), *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SCRIPT.parent), *(p for p in sys.path if p)])}
    for _ in range(3):
        done = subprocess.run(line, capture_output=True, text=True, timeout=600, env=environment)
        # Ray gives the server of a client some seconds to start, which may be too few on a busy machine, or it may find
        # the process half started.
        if "ray/util/client/server/proxier.py" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


@pytest.mark.ray
@pytest.mark.parametrize("words", [("3", "kill"), ("2", "client")], ids=["nodes are lost", "joined by address"])
def test_a_cluster_gives_what_one_machine_gives(words: tuple[str, ...]) -> None:
    found = on_a_cluster(*words)
    assert found["workers"] == int(words[0])
    assert found["killed"] == (2 if "kill" in words else 0), "one during RMLS, one during a decomposition"
    assert found["workers here"] == 0, "nodes have memory of their own"
    assert found["rmls to the bit"]
    assert found["walk to the bit"]
    assert found["top-k to the bit"]
    assert found["svd values"] < 1e-5
    assert found["svd maps"] < 1e-5
    assert set(found["models"]) == {"mpls", "pls", "rmls"}
    assert max(found["models"].values()) < 1e-4
    # Of what comes to the driver before a result is asked for, nothing grows with the rows.
    assert found["largest to the driver"] < found["smallest map"] / 20
    if "kill" in words:
        one_lost_at_work(found["lost at work"])


def one_lost_at_work(found: dict[str, Any]) -> None:
    """A node of each: M-PLS, images and walks."""
    assert None not in found["bytes given"], "every node was lost while a task ran on it"
    assert found["bytes given"][0] > SENT_WITH_A_TASK, "what the node had made was in its own store"
    assert found["mpls values"] < 1e-5
    assert found["mpls scores"] < 1e-4
    assert found["images to the bit"]
    assert found["walk to the bit"]


@pytest.mark.ray
@pytest.mark.parametrize("when", [(), ("adding-up",)], ids=["staging", "adding up"])
def test_a_node_is_lost_while_a_log_is_read(when: tuple[str, ...]) -> None:
    found = on_a_cluster("3", "kill", "ingest", *when)
    assert found["workers"] == 3
    assert found["killed"]
    assert found["files"] > 5
    assert found["graph to the bit"]


@pytest.mark.ray
def test_a_node_holds_what_the_page_says() -> None:
    """All matrices on the driver's node, a share elsewhere; maps and what lies between are small beside them."""
    found = on_a_cluster("2", "memory", "at-once")
    for held, expected in zip(found["store"], found["on paper"], strict=True):
        assert 0.7 * expected < held < 1.3 * expected
    assert found["store"][1] < 0.7 * found["store"][0]


def skewed(n_rows: int, n_columns: int) -> sparse.csr_array:
    """A matrix whose first rows have most of the non-zeros, so that equal shares of these are not equal rows."""
    rng = np.random.default_rng(0)
    counts = rng.binomial(n_columns, np.where(np.arange(n_rows) < n_rows // 5, 0.02, 0.001))
    columns = [np.sort(rng.choice(n_columns, count, replace=False)) for count in counts]
    data = rng.standard_normal(counts.sum()).astype(np.float32)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((data, np.concatenate(columns), indptr), shape=(n_rows, n_columns))


class Stopped(Exception):
    pass


class Keeper:
    """Keeps the last state, and stops the work after one step."""

    def __init__(self, stop: int) -> None:
        self.stop = stop
        self.state: Any = None

    def read(self) -> Any:
        return self.state

    def write(self, state: Any) -> None:
        self.state = state
        if state[0] == self.stop:
            raise Stopped


@pytest.mark.ray
@pytest.mark.usefixtures("ray_here")
@pytest.mark.parametrize("turned", [False, True], ids=["wide", "tall"])
def test_a_decomposition_goes_on_after_any_step(turned: bool) -> None:
    a = skewed(5000, 6000)
    with Ray(threads=2, memory=1 << 29) as engine:
        operator = MatrixOperator(sparse.csr_array(a.T) if turned else a, np.float32, engine)
        whole = randomised_svd(operator, 6, oversample=10, keeper=Keeper(0))
        for stop in (2, POWER_STEPS + turned):
            keeper = Keeper(stop)
            with pytest.raises(Stopped):
                randomised_svd(operator, 6, oversample=10, keeper=keeper)
            keeper.stop = 0
            resumed = randomised_svd(operator, 6, oversample=10, keeper=keeper)
            assert resumed.residual == pytest.approx(whole.residual, rel=1e-3)
            for one, other in zip((resumed.u, resumed.s, resumed.v), (whole.u, whole.s, whole.v), strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_here")
def test_blocks_in_other_shards_are_cut_anew() -> None:
    a, rng = skewed(5000, 6000), np.random.default_rng(1)
    right, left = (rng.standard_normal((n, 3)).astype(np.float32) for n in (6000, 5000))
    with Ray(threads=2, memory=1 << 29) as engine:
        made, put = engine.times(a, engine.hold(right)), engine.hold(left)
        assert made.bounds != put.bounds
        expected = a @ right
        for one, other, x, y in ((made, put, expected, left), (put, made, left, expected)):
            np.testing.assert_allclose(engine.fetch(engine.joined([one, other])), np.hstack([x, y]), atol=1e-4)
            np.testing.assert_allclose(engine.cross([one], other), x.T @ y, rtol=1e-4, atol=1e-3)
            np.testing.assert_allclose(engine.lengths(one, other, 0.5), np.linalg.norm(x - 0.5 * y, axis=0), rtol=1e-5)


def test_shares_are_whole_blocks_and_cover_all_rows() -> None:
    rng = np.random.default_rng(0)
    for n_rows, parts in ((0, 3), (1, 3), (5000, 1), (5000, 2), (50_000, 4), (3000, 40)):
        indptr = np.concatenate([[0], np.cumsum(rng.integers(0, 50, n_rows))])
        made = shards.cut(indptr, parts)
        assert [block for part in made for block in part] == shards.row_blocks(indptr)
        assert len(made) <= parts
        assert all(made)
        if made:
            bounds = shards.bounds_of(made)
            assert (bounds[0], bounds[-1]) == (0, n_rows)
        even = shards.even_bounds(n_rows, parts)
        assert (even[0], even[-1]) == (0, n_rows)
        assert len(even) <= parts + 1


@pytest.mark.parametrize("as_sparse", [True, False])
def test_parts_make_the_whole(as_sparse: bool) -> None:
    dense = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)
    maps = sparse_rows(dense) if as_sparse else dense
    back = shards.whole(tuple(shards.split(maps, [0, 2, 2, 7, 9])))
    np.testing.assert_array_equal(back.dense() if as_sparse else back, dense)  # type: ignore[union-attr]
    matrix = sparse.csr_array(dense)
    np.testing.assert_array_equal(shards.rows_between(matrix, 2, 7).toarray(), dense[2:7])


@pytest.mark.ray
@pytest.mark.usefixtures("ray_here")
def test_an_error_of_a_worker_is_the_same_error_here() -> None:
    def refused(engine: Any, start: int, stop: int) -> None:
        raise NotSupported("it cannot search")

    def crashed(engine: Any, start: int, stop: int) -> None:
        os._exit(1)

    with Ray(threads=2) as engine:
        with pytest.raises(NotSupported, match=r"^it cannot search$"):
            engine.by_rows(refused, 4)
        with pytest.raises(EngineError, match=r"^Ray gave up \(.+\): see to its nodes and their memory") as given_up:
            engine.by_rows(crashed, 4)
    assert "\n" not in str(given_up.value)


@pytest.mark.ray
def test_logs_that_workers_refuse_are_one_line(tmp_path: Path) -> None:
    if os.environ.get("REQUIRE_ALL") != "1":
        pytest.importorskip("ray")
    logs = [tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl")]
    for log in logs:
        log.write_text('{"nonsense": 1}\n')
    line = [sys.executable, "-m", "clickbridge", "ingest", *logs, "--out", tmp_path / "graph"]
    done = subprocess.run([*line, "--engine", "ray", "--threads", "2"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"clickbridge: \S+\.jsonl needs keys query and clicks.*\n", done.stderr)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_here")
def test_a_process_works_on_one_cluster() -> None:
    for _ in range(2):
        with pytest.raises(EngineError, match=r"another Ray cluster than ray://10\.0\.0\.5:10001"):
            Ray(address="ray://10.0.0.5:10001").hold(np.ones((3, 2)))


class Unreachable:
    """Ray where there is no cluster at an address."""

    @staticmethod
    def is_initialized() -> bool:
        return False

    @staticmethod
    def init(*_: object, **__: object) -> None:
        warnings.warn("timed out", UserWarning, stacklevel=2)
        raise ConnectionError("timed out\nsecond line")


def test_an_engine_without_a_cluster_says_so_each_time(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setattr("clickbridge.engines.ray._imported", Unreachable)
    engine = Ray(address="ray://10.0.0.5:10001")
    for _ in range(2):
        with pytest.raises(EngineError, match=r"^no Ray cluster at ray://10\.0\.0\.5:10001 \(timed out\): check"):
            engine.hold(np.ones((3, 2)))
    assert not recwarn.list


def test_a_cluster_that_goes_away_is_one_line() -> None:
    class Gone:
        exceptions = SimpleNamespace(RayError=KeyError, RayTaskError=IndexError)

        def get(self, refs: Any) -> Any:
            raise ConnectionError("Client is shutting down.")

    engine = Ray(address="ray://10.0.0.5:10001")
    engine._ray = Gone()
    with pytest.raises(EngineError, match=r"^Ray gave up \(Client is shutting down\): see to its nodes"):
        engine._get([])


def test_no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError, match=r"needs Ray: pip install 'clickbridge\[ray\]'"):
        Ray(threads=1).hold(np.ones((3, 2)))
