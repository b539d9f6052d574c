"""`--engine`, `--threads` and `--memory`: where work is done, and limits that change nothing but time."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge.cli.fitting import bytes_of
from clickbridge.engines import local
from clickbridge.engines.emulation import Emulation
from clickbridge.engines.gpu import Gpu
from clickbridge.engines.named import engine_named, in_plain_values
from clickbridge.engines.ray import Ray
from clickbridge.errors import SettingError
from clickbridge.models.rmls import RMLS
from clickbridge.models.study import Study

Run = Callable[..., Any]


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[local.Local]:
    """Every engine that is made."""
    made: list[local.Local] = []

    class Watched(local.Local):
        def __init__(self, threads: int = 0, memory: int = 0) -> None:
            super().__init__(threads, memory)
            made.append(self)

    monkeypatch.setattr("clickbridge.engines.local.Local", Watched)
    return made


ADDRESS = "the address of a Ray cluster is ray://HOST:PORT, such as ray://10.0.0.5:10001"
NO_ADDRESSES = [
    "ray://", "ray://host", "ray://:x", "ray://:10001", "ray://host:", "ray://host:x", "ray://host:0", "ray://host:65536",
    "ray://host:10001/", "ray://a host:10001", "ray://me@host:10001", "ray://::1:10001", "ray://host:10001\n",
]  # fmt: skip


def data_of(model: Path) -> dict[str, str]:
    """Checksums of all that was learned, by file."""
    manifest = json.loads((model / "manifest.json").read_text())
    whole = [manifest, *manifest.get("parts", {}).values()]
    return {f"{n}/{name}": entry["sha256"] for n, part in enumerate(whole) for name, entry in part["files"].items()}


@pytest.mark.parametrize("spec", ["pls", "rmls", "bm25+pls"])
def test_limits_do_not_change_what_is_learned(call: Run, tiny: Path, spec: str) -> None:
    plain = call("fit", tiny / "graph", "--model", spec, "--out", tiny / "plain")
    limited = ("--threads", "1", "--memory", "1GiB", "--engine", "local")
    one = call("fit", tiny / "graph", "--model", spec, "--out", tiny / "one", *limited)
    assert (plain.code, one.code) == (0, 0)
    assert one.err == plain.err
    assert data_of(tiny / "one") == data_of(tiny / "plain")


def test_what_is_asked_for_reaches_the_learning(
    call: Run, tiny: Path, engines: list[local.Local], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Study] = []
    learn = RMLS.learn
    monkeypatch.setattr(RMLS, "learn", lambda self, study, choices: seen.append(study) or learn(self, study, choices))
    line = ("fit", tiny / "graph", "--model", "rmls", "--out", tiny / "m", "--threads", "3", "--memory", "1.5GiB")
    assert call(*line).code == 0
    (engine,) = engines
    assert (engine.threads, engine.memory) == (3, 3 << 29)
    assert [study.engine for study in seen] == [engine]
    (tiny / "new.jsonl").write_text('{"query":"pizza slice","results":["pizza"],"clicks":["pizza"]}\n')
    assert call("update", tiny / "m", tiny / "new.jsonl", "--threads", "2", "--memory", "800MB").code == 0
    assert [(e.threads, e.memory) for e in engines[1:]] == [(2, 800_000_000)]


def test_update_with_limits_gives_the_same_model(call: Run, tiny: Path) -> None:
    (tiny / "new.jsonl").write_text('{"query":"pizza slice","results":["pizza","ny"],"clicks":["ny"]}\n')
    for name, words in (("a", ()), ("b", ("--threads", "1", "--memory", "64MiB"))):
        assert call("fit", tiny / "graph", "--model", "bm25+pls", "--out", tiny / name).code == 0
        assert call("update", tiny / name, tiny / "new.jsonl", *words).code == 0
    assert data_of(tiny / "a") == data_of(tiny / "b")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--engine", "nonsense"], "--engine is local, ray, ray://HOST:PORT or gpu; got 'nonsense'"),
        (["--engine", "rya"], "--engine is local, ray, ray://HOST:PORT or gpu; got 'rya'"),
        (
            ["--engine", "http://10.0.0.5:10001"],
            "--engine is local, ray, ray://HOST:PORT or gpu; got 'http://10.0.0.5:10001'",
        ),
        *((["--engine", name], f"{ADDRESS}; got {name!r}") for name in NO_ADDRESSES),
        (["--memory", "nonsense"], "--memory is a size, such as 12GiB or 800MiB; got 'nonsense'"),
        (["--memory", "12 parsecs"], "--memory is a size, such as 12GiB or 800MiB; got '12 parsecs'"),
        (["--memory", "-1GiB"], "--memory is a size, such as 12GiB or 800MiB; got '-1GiB'"),
        (["--memory", ""], "--memory is a size, such as 12GiB or 800MiB; got ''"),
    ],
)
def test_engines_and_sizes_that_are_none(call: Run, tiny: Path, words: list[str], line: str) -> None:
    refused = call("fit", tiny / "graph", "--model", "bm25", "--out", tiny / "new", *words)
    assert (refused.code, refused.out, refused.err) == (2, "", f"clickbridge: {line}\n")
    assert not (tiny / "new").exists()
    if "--memory" in words:
        before = data_of(tiny / "model")
        refused = call("update", tiny / "model", tiny / "log.jsonl", *words)
        assert (refused.code, refused.out, refused.err) == (2, "", f"clickbridge: {line}\n")
        assert data_of(tiny / "model") == before


@pytest.mark.parametrize("address", [*NO_ADDRESSES, "auto", "host:10001", "http://host:10001"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(SettingError) as refused:
        Ray(address=address)
    assert str(refused.value) == f"{ADDRESS}; got {address!r}"


@pytest.mark.parametrize("address", ["ray://10.0.0.5:10001", "ray://head.example.org:1", "ray://[fe80::1]:65535"])
def test_addresses(address: str) -> None:
    assert Ray(address=address).address == address


def test_a_decomposition_that_workers_of_this_machine_cannot_hold(call: Run, tiny: Path) -> None:
    for words in (("--plan",), ("--out", tiny / "new")):
        line = (
            "fit",
            tiny / "graph",
            "--model",
            "pls",
            "--engine",
            "ray",
            "--threads",
            "2",
            "--memory",
            "1000",
            *words,
        )
        refused = call(*line)
        assert (refused.code, refused.out) == (1, "")
        assert "GiB for 2 Ray workers and may use 1.86e-06: raise --memory, lower dim" in refused.err
        assert refused.err.count("\n") == 1
    assert not (tiny / "new").exists()


@pytest.mark.parametrize("verb", ["fit", "update"])
@pytest.mark.parametrize("threads", ["-1", "many", "4096"])
def test_threads_that_are_none(call: Run, tiny: Path, verb: str, threads: str) -> None:
    words = {"fit": ("graph", "--model", "bm25", "--out", "new"), "update": ("model", "log.jsonl")}[verb]
    refused = call(verb, *words, "--threads", threads)
    assert refused.code == 2
    assert "--threads" in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("12GiB", 12 << 30), ("800 mib", 800 << 20), ("1.5GB", 1_500_000_000), ("4096", 4096), (" 2KiB ", 2048)],
)
def test_sizes(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["GiB", "1.2.3GiB", "1e9", "1TiB TiB", "nan", "inf"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(SettingError, match="memory is a size"):
        bytes_of(text)


# --- many queries, many lists, many models ---------------------------------------------------------


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.ray), "gpu"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An engine by its name. The card is an emulated one: what a real one gives is for tests/engines."""
    if request.param == "ray" and os.environ.get("REQUIRE_ALL") != "1":
        pytest.importorskip("ray")
    monkeypatch.setattr("clickbridge.engines.gpu.Card", Emulation)
    return str(request.param)


def lines_of(run: Path) -> list[tuple[list[str], float]]:
    """Documents and scores of a run."""
    words = [line.split() for line in run.read_text().splitlines()]
    return [([query_id, doc_id, rank], float(score)) for query_id, _, doc_id, rank, score, _ in words]


@pytest.mark.parametrize("spec", ["pls", "walk"])
def test_runs_are_those_of_this_machine(call: Run, tiny: Path, engine: str, spec: str) -> None:
    assert call("fit", tiny / "graph", "--model", spec, "--out", tiny / spec).code == 0
    texts = ["ny pizza", "big apple", "eternal city", "zzz"] * 5
    (tiny / "topics.tsv").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(texts)))
    (tiny / "given.run").write_text("".join(f"{i} Q0 {d} 1 1 x\n" for i in range(20) for d in ("rome", "ny", "pizza")))
    topics, where = ("--queries", tiny / "topics.tsv"), ("--engine", engine, "--threads", "2", "--memory", "1GiB")
    for verb, words in (("search", topics), ("rank", ("--lists", tiny / "given.run", *topics))):
        runs = []
        for name, more in (("here", ()), ("there", where)):
            done = call(verb, tiny / spec, *words, "--out", tiny / name, *more, "--json")
            assert (done.code, done.json["model"]) == (0, spec), done.err
            runs.append(lines_of(tiny / name))
        assert [line for line, _ in runs[0]] == [line for line, _ in runs[1]]
        np.testing.assert_allclose([s for _, s in runs[0]], [s for _, s in runs[1]], rtol=1e-5)
        assert len(runs[0]) >= 15


@pytest.mark.ray
def test_models_are_compared_on_a_cluster(call: Run, tiny: Path) -> None:
    """Each is fitted there by a process of its own."""
    if os.environ.get("REQUIRE_ALL") != "1":
        pytest.importorskip("ray")
    line = ("compare", tiny / "graph", "--lists", tiny / "lists.jsonl", "--models", "pls", "--dim", "2", "--json")
    here, there = (call(*line, *more) for more in ((), ("--engine", "ray", "--threads", "1", "--memory", "1GiB")))
    assert (here.code, there.code) == (0, 0), there.err
    one, two = (found.json["models"] for found in (here, there))
    assert [row["AP"] for row in one] == [row["AP"] for row in two]


def test_an_engine_that_is_none_ends_a_comparison(call: Run, tiny: Path) -> None:
    line = ("compare", tiny / "graph", "--lists", tiny / "lists.jsonl", "--models", "pls")
    refused = call(*line, "--engine", "nonsense")
    assert refused.code == 2
    assert "--engine is local, ray, ray://HOST:PORT or gpu; got 'nonsense'" in refused.err


def test_one_query_is_searched_for_here(call: Run, tiny: Path) -> None:
    for words in (("--engine", "ray"), ("--threads", "2"), ("--memory", "1GiB")):
        refused = call("search", tiny / "model", "pizza", *words)
        assert refused.code == 2
        assert refused.err == (
            "clickbridge: --engine, --threads and --memory are for --queries: one query is searched for here\n"
        )


def test_an_engine_by_its_plain_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickbridge.engines.gpu.Card", Emulation)
    engines = [
        local.Local(3, 1 << 20), Ray(2, 1 << 21), Ray(1, 1 << 22, "ray://10.0.0.5:10001"),
        Gpu(1, 1 << 23, store="bfloat16"),
    ]  # fmt: skip
    for engine in engines:
        values = json.loads(json.dumps(in_plain_values(engine)))
        assert repr(engine_named(**values)) == repr(engine)


# --- plans -----------------------------------------------------------------------------------------


def test_plans_of_parts(call: Run, tiny: Path) -> None:
    line = ("fit", tiny / "graph", "--model", "bm25+pls", "--dim", "2", "--plan")
    shown = call(*line)
    assert shown.code == 0
    head, *rows = shown.out.splitlines()
    assert head.split()[:2] == ["part", "plan"]
    assert [row.split()[:2] for row in rows] == [["bm25", "little"], ["pls", "block"]]
    assert "each is for learning a part once" in shown.err
    assert [row["part"] for row in call(*line, "--json").json] == ["bm25", "pls"]


def test_what_does_not_fit_is_refused(call: Run, tiny: Path) -> None:
    for words in (("--plan",), ("--out", tiny / "new")):
        refused = call("fit", tiny / "graph", "--model", "pls", "--memory", "100", *words)
        assert (refused.code, refused.out) == (1, "")
        assert "GiB and may use 9.31e-08: raise --memory, lower dim" in refused.err
    assert not (tiny / "new").exists()


def test_a_plan_for_a_card_that_is_not_there(call: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    line = ("fit", tiny / "graph", "--model", "rmls", "--engine", "gpu", "--memory", "80GiB")
    shown = call(*line, "--plan", "--json")
    assert shown.code == 0
    assert {row["name"] for row in shown.json} == {"w-sparse", "w-dense", "factors"}
    assert shown.err == (
        "the GPU cannot be used: CuPy is not installed; pip install 'clickbridge[gpu]', or use --engine local; "
        "this plan is for a card with 80 GiB, as --memory says\n"
    )
    refused = call(*line, "--out", tiny / "new")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("clickbridge: the GPU cannot be used")
    refused = call("fit", tiny / "graph", "--model", "walk", "--engine", "gpu", "--plan")
    assert (refused.code, refused.out) == (1, "")
    assert re.fullmatch(r"clickbridge: walk costs little: .*\n", refused.err)
