"""A log read by several workers is the same GRAPH."""

from __future__ import annotations

import gzip
import json
import os
import weakref
from pathlib import Path
from typing import Any

import pytest

from clickbridge import ClickGraph, read_docs, read_log
from clickbridge.engines.local import Local
from clickbridge.engines.ray import Ray
from clickbridge.errors import InputError, SettingError
from clickbridge.io.secret import Secret
from clickbridge.log import aggregate, batches, blocks, partitions
from clickbridge.log.batches import EventBatch
from clickbridge.log.pair_sums import connect
from clickbridge.log.rejects import RejectLog
from clickbridge.simulate.scale import write_log

SECRET = Secret(bytes(range(32)))


class Several(Local):
    """The exchange in this process, under the name by which a log is shared out."""

    name = "ray"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Path]:
    """Pages in two files, click counts in one; some lines that cannot be used."""
    folder = tmp_path_factory.mktemp("log")
    write_log("one-week", folder / "pages", fraction=0.01, impressions=1500)
    write_log("one-week", folder / "counts", fraction=0.01, seed=1)
    lines = gzip.decompress((folder / "pages/log.jsonl.gz").read_bytes()).splitlines(keepends=True)
    for name, own in (("a.jsonl", lines[:700]), ("b.jsonl", [*lines[700:], b"no json\n", lines[3], lines[3]])):
        (folder / name).write_bytes(b"".join(own))
    return [folder / "a.jsonl", folder / "counts/log.parquet", folder / "b.jsonl"], folder / "pages/docs.jsonl.gz"


def built(data: tuple[list[Path], Path], out: Path, engine: Any, **more: Any) -> tuple[dict[str, str], dict[str, Any]]:
    logs, docs = data
    rejects = RejectLog("1%", out.with_suffix(".rejects"))
    log = read_log(*map(str, logs), rejects=rejects)
    graph = ClickGraph.build(log, read_docs(str(docs)), out, engine=engine, secret=SECRET, **more)
    files = json.loads((out / "manifest.json").read_text())["files"]
    lost = [json.loads(line) for line in out.with_suffix(".rejects").read_text().splitlines()]
    said = {"lost": lost, "lines": rejects.lines, "repeated": log.repeated, "formats": list(log.layouts)}
    return {name: entry["sha256"] for name, entry in files.items()}, {**graph.summary, **said}


@pytest.mark.parametrize("redact", ["shown", "learned"])
@pytest.mark.parametrize("threads", [1, 3])
def test_partitions_give_the_same_graph(
    data: Any, threads: int, redact: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = built(data, tmp_path / "local", None, redact=redact)
    monkeypatch.setattr(batches, "BATCH_RECORDS", 300)
    found = built(data, tmp_path / "parts", Several(threads), redact=redact)
    assert found == expected
    assert expected[1]["lost"][0]["reason"].startswith("not JSON")
    assert not (tmp_path / "parts" / ".scratch").exists()


@pytest.mark.ray
def test_workers_of_ray_give_the_same_graph(data: Any, tmp_path: Path) -> None:
    if os.environ.get("REQUIRE_ALL") != "1":
        pytest.importorskip("ray")
    with Ray(threads=2, memory=1 << 29) as engine:
        sizes: list[int] = []
        get = engine._get

        def noted(refs: Any) -> Any:
            found = get(refs)
            sizes.append(len(repr(found)))
            return found

        engine._get = noted  # type: ignore[method-assign]
        assert built(data, tmp_path / "ray", engine) == built(data, tmp_path / "local", None)
        assert max(sizes) < 5000, "names and counts, whatever the size of the log"
        with pytest.raises(InputError, match="unusable"):
            ClickGraph.build(read_log(str(data[0][2]), rejects=RejectLog(0.0)), (), tmp_path / "none", engine=engine)
        assert not (tmp_path / "none").exists()

        def full(item: int, n: int) -> Any:
            raise OSError("no space left on the disk")

        with pytest.raises(OSError, match=r"^no space left on the disk$"):
            engine.exchange(full, [1], full)


def test_what_a_lost_worker_left_does_not_stop_its_successor(data: Any, tmp_path: Path) -> None:
    """Ray runs the work of a lost worker again. Its tables and a part of its file are still there."""

    class OneIsLost(Several):
        def exchange(self, split: Any, items: Any, merge: Any, *shared: Any) -> Any:
            def staged_again(item: Any, n: int) -> Any:
                # A node is lost with some of the results: others are those of the first time.
                first, second = split(item, n), split(item, n)
                half_written = second[0].batches[0]
                Path(half_written).write_bytes(Path(half_written).read_bytes()[:10])
                return first[0], second[1], *first[2:]

            def again(*given: Any) -> str:
                left = Path(merge(*given))
                left.write_bytes(left.read_bytes()[:10])
                return str(merge(*given))

            return super().exchange(staged_again, items, again, *shared)

    assert built(data, tmp_path / "again", OneIsLost(2)) == built(data, tmp_path / "local", None)


def test_workers_keep_to_the_memory_of_the_caller(data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[int] = []

    def noted(folder: Path, memory_mb: int, threads: int | None = None) -> Any:
        allowed.append(memory_mb)
        return connect(folder, memory_mb, threads)

    monkeypatch.setattr(aggregate, "connect", noted)
    built(data, tmp_path / "graph", Several(2), memory_mb=300)
    assert allowed == [300] * 3, "the caller, and two workers"


class Alive:
    """The batches that are in memory, and the most rows that they had at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[weakref.ref[EventBatch]] = []
        self.most = self.n_made = 0
        make = EventBatch.__init__

        def noted(batch: EventBatch, *given: Any, **more: Any) -> None:
            make(batch, *given, **more)
            self._note(batch)

        made = partitions.Batch.__init__

        def noted_with_texts(batch: partitions.Batch, *given: Any, **more: Any) -> None:
            made(batch, *given, **more)
            self._note(batch)

        monkeypatch.setattr(EventBatch, "__init__", noted)
        monkeypatch.setattr(partitions.Batch, "__init__", noted_with_texts)

    def _note(self, batch: EventBatch) -> None:
        self.n_made += 1
        self.batches = [one for one in (*self.batches, weakref.ref(batch)) if one() is not None]
        held = [one for one in (ref() for ref in self.batches) if one is not None]
        self.most = max(self.most, sum(len(one.pages["length"]) + len(one.clicks["query"]) for one in held))


def test_a_worker_holds_one_batch_whatever_the_length_of_its_file(
    data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, times, shares = tmp_path / "long.jsonl", 8, 3
    log.write_bytes(data[0][0].read_bytes() * times)
    monkeypatch.setattr(batches, "BATCH_RECORDS", 300)
    largest = 300 + blocks.BLOCK  # a batch is of whole blocks
    reading = read_log(str(log)).reading
    alive = Alive(monkeypatch)
    found, *pieces = partitions.stage(partitions.Partition(0, str(log), reading, str(tmp_path), SECRET, False), shares)
    assert found.lines == 700 * times > 3 * largest
    assert len(found.batches) > 3
    assert all(isinstance(name, str) for names in pieces for name in names), "names go from worker to worker"
    assert 300 <= alive.most < 2 * largest, "a batch and a piece of it"
    alive.most = 0
    for number, names in enumerate(pieces):
        assert len(names) == len(found.batches), "every batch has queries of every share"
        partitions.add_up(number, str(tmp_path), 64, names)
    assert 0 < alive.most < 2 * largest, "a piece, and the same with other numbers"
    assert alive.n_made == (1 + shares) * len(found.batches) + 2 * shares * len(found.batches)


def test_what_cannot_be_read_apart_is_refused(data: Any, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="leave out dedupe"):
        ClickGraph.build(read_log(str(data[0][0]), dedupe=True), (), tmp_path / "graph", engine=Several(2))
    rows = [{"query": "a", "doc_id": f"d{i}", "position": i, "clicked": 0, "session": "s"} for i in range(3)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log(str(tmp_path / "rows.jsonl"), format="shown")
    with pytest.raises(InputError, match="use engine local"):
        ClickGraph.build(log, (), tmp_path / "graph", engine=Several(2))
    assert not (tmp_path / "graph").exists()
