"""What docs/trust.md promises, through the verbs."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickbridge import ClickGraph
from clickbridge.io.artifact import kept_for_writing
from clickbridge.models.model_folder import load
from forgery import identity, replaced

Run = Callable[..., Any]
COMMAND = str(Path(sys.executable).with_name("clickbridge"))


# --- what is not ours stays ------------------------------------------------------------------------------


def test_inputs_inside_of_the_output_are_refused(call: Run, tiny: Path) -> None:
    graph = tiny / "graph"
    for name in ("log.jsonl", "docs.jsonl"):
        shutil.copy(tiny / name, graph / name)
    for words in (
        [graph / "log.jsonl"],
        [tiny / "log.jsonl", "--docs", graph / "docs.jsonl"],
        [tiny / "log.jsonl", "--rejects", graph / "rejects.jsonl"],
        [tiny / "log.jsonl", "--vectors", f"v={graph / 'v.parquet'}"],
    ):
        done = call("ingest", *words, "--out", graph)
        assert done.code == 2
        assert "lies inside" in done.err
        assert done.err.count("\n") == 1
    assert (graph / "log.jsonl").read_bytes() == (tiny / "log.jsonl").read_bytes()
    assert call("ingest", tiny / "log.jsonl", "--out", graph).code == 0
    assert (graph / "log.jsonl").read_bytes() == (tiny / "log.jsonl").read_bytes()
    assert call("stats", graph).code == 0


@pytest.mark.parametrize("kind", ["device", "pipe", "link", "folder"])
def test_outputs_that_are_no_files_are_refused(call: Run, tiny: Path, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    (tmp_path / "target").write_text("mine")
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to("/dev/null" if kind == "device" else tmp_path / "target")
    log, lists = tiny / "log.jsonl", tiny / "lists.jsonl"
    free = tmp_path / "free.jsonl"
    before = identity(place)
    for words in (
        ["ingest", log, "--out", place],
        ["ingest", log, "--out", tmp_path / "g", "--rejects", place],
        ["split", log, "--at", "60%", "--train", place, "--lists", free],
        ["split", log, "--at", "60%", "--train", free, "--lists", place],
        ["fit", tiny / "graph", "--model", "bm25", "--out", place],
        ["rank", tiny / "model", "--lists", lists, "--out", place],
        ["compare", tiny / "graph", "--lists", lists, "--models", "bm25", "--report", place],
        ["compare", tiny / "graph", "--lists", lists, "--models", "bm25", "--csv", place],
    ):
        done = call(*words)
        assert done.code in (1, 2), words
        assert done.err.count("\n") == 1, done.err
    assert identity(place) == before
    assert (tmp_path / "target").read_text() == "mine"
    assert not free.exists()
    assert not (tmp_path / "g").exists()


def test_every_verb_honours_the_umask(call: Run, tiny: Path, tmp_path: Path) -> None:
    """Logs, LISTS, runs, tables and reports hold queries as a GRAPH does."""
    out, log, lists = tmp_path / "out", tiny / "log.jsonl", tiny / "lists.jsonl"
    (tiny / "bad.jsonl").write_text(log.read_text() + "x\n")
    before = os.umask(0o077)
    try:
        out.mkdir()
        rejects, reports = (
            ["--rejects", out / "rejects.jsonl"],
            ["--report", out / "report.html", "--csv", out / "c.csv"],
        )
        for words in (
            ["ingest", tiny / "bad.jsonl", "--max-rejects", "50%", *rejects, "--out", out / "g"],
            ["split", log, "--at", "60%", "--train", out / "train.jsonl", "--lists", out / "lists.jsonl"],
            ["fit", tiny / "graph", "--model", "bm25", "--out", out / "m"],
            ["rank", tiny / "model", "--lists", lists, "--out", out / "run.txt"],
            ["compare", tiny / "graph", "--lists", lists, "--models", "bm25", *reports, "--save-dir", out / "runs"],
        ):
            done = call(*words)
            assert done.code == 0, done.err
    finally:
        os.umask(before)
    written = [path for path in out.rglob("*") if path.is_file()]
    assert {"rejects.jsonl", "train.jsonl", "lists.jsonl", "run.txt", "c.csv", "report.html"} <= {
        p.name for p in written
    }
    assert [path for path in out.rglob("*") if path.stat().st_mode & 0o077] == []


# --- one writer at a time --------------------------------------------------------------------------------


def test_a_second_update_is_refused(call: Run, tiny: Path) -> None:
    model, held, over = tiny / "model", threading.Event(), threading.Event()

    def first() -> None:
        with kept_for_writing(model, "model"):
            load(model)
            held.set()
            over.wait(30)

    thread = threading.Thread(target=first)
    thread.start()
    held.wait(30)
    done = call("update", model, "--docs", tiny / "docs.jsonl")
    over.set()
    thread.join()
    assert done.code == 1
    assert done.err == f"clickbridge: another process is writing {model}: wait for it, or write elsewhere\n"
    assert call("update", model, "--docs", tiny / "docs.jsonl").code == 0
    assert not list(tiny.glob(".*"))


def test_of_overlapping_updates_none_is_lost(tiny: Path) -> None:
    """Those that succeed are all in the model; those that do not say so."""
    model, lines = tiny / "model", []
    for number in range(3):
        docs = tiny / f"more{number}.jsonl"
        docs.write_text(json.dumps({"doc_id": f"new{number}", "title": "Pizza"}) + "\n")
        lines.append([COMMAND, "update", str(model), "--docs", str(docs)])
    running = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for line in lines]
    ended = [(process.communicate(timeout=600)[1].decode(), process.returncode) for process in running]
    taken = {f"new{number}" for number, (_, code) in enumerate(ended) if code == 0}
    assert taken
    assert {d for d in load(model).doc_ids_ if d.startswith("new")} == taken
    assert all("another process is writing" in said for said, code in ended if code)


# --- forged files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("pairs.doc", [2**30] * 6),
        ("pairs.query", [-5] * 6),
        ("pairs.clicks", [1]),
        ("impressions.indptr", [0, 2**40, 3, 4, 5, 6]),
        ("impressions.doc", [-1] * 13),
    ],
)
def test_a_forged_graph_is_refused(call: Run, tiny: Path, name: str, values: list[int]) -> None:
    replaced(tiny / "graph", name, np.array(values))
    done = call("stats", tiny / "graph")
    assert done.code == 1
    assert done.err.endswith(": ingest again\n")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("number", [2**30, -5])
@pytest.mark.parametrize("spec", ["bm25", "pls", "bm25+pls", "robust-bm25", "cos-click", "walk"])
def test_forged_places_of_a_model_are_refused(built: Path, call: Run, tmp_path: Path, spec: str, number: int) -> None:
    """Every array of whole numbers that says where something is: a wrong one is refused, never followed."""
    from clickbridge.models.specs import build_model

    settings = {"dim": 2} if "pls" in spec else {}
    build_model(spec, settings).fit(ClickGraph.open(built / "graph")).save(tmp_path / "m")
    tried = 0
    for path in sorted((tmp_path / "m").rglob("*.npy")):
        name = path.name.rsplit(".", 2)[0]
        values = np.load(path)
        if values.dtype.kind not in "iu" or not values.size or not name.endswith((".indices", ".indptr", "better")):
            continue
        tried += 1
        shutil.copytree(tmp_path / "m", tmp_path / "forged")
        values.flat[-1] = number if values.dtype.itemsize > 4 else np.int32(number)
        part = path.parent.name if path.parent.parent.name == "parts" else None
        replaced(tmp_path / "forged", name, values, part)
        done = call("search", tmp_path / "forged", "ny pizza")
        assert done.code == 1, (spec, name)
        assert done.err.count("\n") == 1
        shutil.rmtree(tmp_path / "forged")
    assert tried


# --- little in, little out -------------------------------------------------------------------------------

PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, len(done.stderr))
assert "Traceback" not in done.stderr
"""
BOMBS = {
    "line.csv.gz": (b"query,doc_id\n", b"a" * 1_000_000, 300),
    "header.csv.gz": (b"", b"a," * 500_000, 300),
    "quote.csv.gz": (b"query,doc_id\n", b'"a\n","' + b"a" * 1_000_000 + b"\n", 200),
    "line.jsonl.gz": (b"", b"a" * 1_000_000, 300),
    "elements.xml.gz": (b"<sessions><session>", b"<a/>" * 250_000, 100),
    "text.xml.gz": (b"<sessions><session>", b"a" * 1_000_000, 300),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_packed_file_takes_little_memory(tmp_path: Path, name: str) -> None:
    start, piece, times = BOMBS[name]
    with gzip.open(tmp_path / name, "wb", 1) as out:
        out.write(start)
        for _ in range(times):
            out.write(piece)
    line = [COMMAND, "ingest", str(tmp_path / name), "--out", str(tmp_path / "g")]
    done = subprocess.run([sys.executable, "-c", PEAK, *line], capture_output=True, text=True, timeout=600)
    code, megabytes, characters = map(int, done.stdout.split())
    assert code == 1
    assert megabytes < 700
    assert characters < 2000
    assert not (tmp_path / "g").exists()


def test_rejects_are_counted_to_the_end_and_written_to_a_limit(
    call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clickbridge.log.rejects.MOST_KEPT", 10)
    good = '{"query": "a", "results": ["1", "2"], "clicks": ["1"]}\n'
    (tmp_path / "log.jsonl").write_text(
        good * 50 + json.dumps({"query": "b", "clicks": ["x " * 10_000]}) + "\n" + "x\n" * 40
    )
    words = ["ingest", tmp_path / "log.jsonl", "--max-rejects", "60%", "--out", tmp_path / "g", "--json"]
    done = call(*words, "--rejects", tmp_path / "r.jsonl")
    assert done.json["rejected_lines"] == 41
    assert len(done.err) < 2000
    kept = (tmp_path / "r.jsonl").read_text().splitlines()
    assert len(kept) == 10
    assert max(map(len, kept)) < 600


def test_a_row_of_many_clicks_does_not_become_a_large_file(call: Run, tmp_path: Path) -> None:
    rows = "".join(f"q{n},{n},2000000\n" for n in range(8))
    (tmp_path / "log.csv").write_text(f"query,doc_id,clicks\n{rows}")
    out = {kind: tmp_path / f"train.{kind}" for kind in ("jsonl", "csv")}
    for kind, code in (("jsonl", 1), ("csv", 0)):
        words = ["--train", out[kind], "--lists", tmp_path / "l.jsonl", "--by", "query", "--at", "50%"]
        done = call("split", tmp_path / "log.csv", *words)
        assert done.code == code, done.err
        assert ("write the log as .csv" in done.err) == bool(code)
    assert not out["jsonl"].exists()


@pytest.mark.parametrize("field", ["time", "results", "user", "doc_id"])
def test_a_long_value_is_cut_in_what_is_said(call: Run, tmp_path: Path, field: str) -> None:
    record = {"query": "a", "results": ["1"], "clicks": ["1"]} | {field: "x " * 100_000}
    (tmp_path / "log.jsonl").write_text(json.dumps(record) + "\n")
    done = call("ingest", tmp_path / "log.jsonl", "--out", tmp_path / "g")
    assert len(done.err) < 2000


# --- what is shown ---------------------------------------------------------------------------------------

HOSTILE = "\x1b]0;owned\x07\x1b[31m\x9b2J\x7f\u202e\x00"


def test_nothing_steers_the_terminal(call: Run, tmp_path: Path) -> None:
    docs = [{"doc_id": f"{n}\x1b[2J", "title": f"word {HOSTILE} {n}"} for n in range(3)]
    log = [
        {"query": f"word {HOSTILE}{n}", "results": [d["doc_id"] for d in docs], "clicks": [docs[n % 3]["doc_id"]]}
        for n in range(9)
    ]
    for name, records in (("docs.jsonl", docs), ("log.jsonl", log)):
        (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in records))
    (tmp_path / "bad.csv").write_text(f"que{HOSTILE.replace(chr(0), '')}ry,thing\n1,2\n")
    graph, model = tmp_path / "g", tmp_path / "m"
    said = [
        call("ingest", tmp_path / "log.jsonl", "--docs", tmp_path / "docs.jsonl", "--out", graph),
        call("ingest", tmp_path / "bad.csv", "--out", tmp_path / "g2"),
        call("stats", graph),
        call("fit", graph, "--model", "bm25", "--out", model),
        call("search", model, "word", "--explain"),
        call("search", model, f"nothing {HOSTILE.replace(chr(0), '')}"),
        call("similar", model, "--doc", "0\x1b[2J"),
        call("similar", model, "--query", "word 1", "--by", "clicks"),
    ]
    for done in said:
        for stream in (done.out, done.err):
            assert not set(stream) & {*map(chr, range(32)), *map(chr, range(127, 160)), "\u202e"} - {"\n"}, stream
    assert "\\x1b]0;owned\\x07" in said[4].out
    assert "\\x1b" in said[1].err
    assert call("search", model, "word", "--json").json["hits"][0]["title"].startswith("word \x1b]0;owned")


def test_formulas_are_quoted_in_tables_for_people(call: Run, tiny: Path) -> None:
    lists = [
        {"query_id": f"{sign}{n}", "query": f"{sign}cmd", "results": ["ny", "rome"], "labels": [0, 1]}
        for n, sign in enumerate("=+-@")
    ]
    (tiny / "l.jsonl").write_text("".join(json.dumps(r) + "\n" for r in lists))
    done = call(
        "compare", tiny / "graph", "--lists", tiny / "l.jsonl", "--models", "bm25,given", "--csv", tiny / "c.csv"
    )
    assert done.code == 0, done.err
    rows = list(csv.reader((tiny / "c.csv").read_text().splitlines()))[1:]
    assert rows
    assert all(cell.startswith("'") for row in rows for cell in row[:2])


# --- no tracebacks ---------------------------------------------------------------------------------------


def test_times_that_python_has_not(call: Run, tmp_path: Path) -> None:
    far = pa.array([2**62, 0, 1_700_000_000_000_000], pa.int64()).cast(pa.timestamp("us"), safe=False)
    more = {
        "lasted": pa.array([1, 2, 3], pa.duration("ns")),
        "at": pa.array([1, 2, 3], pa.time64("ns")),
        "when": pa.array([2**55, 1, 2], pa.timestamp("ms")),
    }
    for name, odd in (
        ("fine", {}),
        ("far", {"time": far}),
        ("lasting", {"time": more["lasted"]}),
        ("day", {"time": more["at"]}),
    ):
        table = pa.table({"query": ["a", "b", "c"], "doc_id": ["1", "2", "3"], **more, **odd})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        done = call(
            "ingest", tmp_path / f"{name}.parquet", "--docs", tmp_path / f"{name}.parquet", "--out", tmp_path / name
        )
        assert done.code == int(bool(odd)), done.err
        assert "Traceback" not in done.err


def test_a_year_far_ahead_is_rejected(call: Run, tmp_path: Path) -> None:
    line = '{"query": "%s", "results": ["1", "2"], "clicks": ["1"], "time": "%s"}\n'
    log = "".join(line % (f"q{n}", "2024-01-01") for n in range(200)) + line % ("late", "9999-01-01")
    (tmp_path / "log.jsonl").write_text(log)
    done = call("ingest", tmp_path / "log.jsonl", "--out", tmp_path / "g", "--json")
    assert done.json["rejected_lines"] == 1
    assert "is in the year 9999: check it" in done.err


@pytest.mark.parametrize("name", ["?", "*", "a b", "[x]", "#", "%41", "a?b=c"])
def test_any_name_may_be_an_output(call: Run, tiny: Path, name: str) -> None:
    (tiny / "home").mkdir()
    for words in ([], ["--docs", tiny / "docs.jsonl"]):
        assert call("ingest", tiny / "log.jsonl", *words, "--out", tiny / "home" / name).code == 0
    assert call("stats", tiny / "home" / name).code == 0
    assert [p.name for p in (tiny / "home").iterdir()] == [name]


@pytest.mark.parametrize("vector", [pa.array([1.0]), pa.array(["x"]), pa.array([{"a": 1}]), pa.array([[["x"]]])])
def test_vectors_that_are_no_lists(call: Run, tiny: Path, vector: pa.Array) -> None:
    pq.write_table(pa.table({"side": ["doc"], "id": ["ny"], "vector": vector}), tiny / "v.parquet")
    done = call("ingest", tiny / "log.jsonl", "--vectors", f"v={tiny / 'v.parquet'}", "--out", tiny / "g")
    assert done.code == 1
    assert done.err.count("\n") == 1


def test_streams_that_are_closed_or_ascii(tiny: Path) -> None:
    (tiny / "more.jsonl").write_text('{"doc_id": "ä", "title": "Pizzä word"}\n')
    graph = shlex.quote(str(tiny / "g"))
    made = f"{COMMAND} ingest {tiny}/log.jsonl --docs {tiny}/more.jsonl --out {graph}"
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    for line in (
        f"{made} >&-", f"{made} 2>&-", f"{made} >&- 2>&-", f"{COMMAND} fit {graph} --model bm25 --out {tiny}/m",
        f"{COMMAND} search {tiny}/m word", f"{COMMAND} search {tiny}/m word --json", f"{COMMAND} models | head -c 1",
    ):  # fmt: skip
        done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, env=ascii_only, timeout=600)
        assert done.returncode == 0, (line, done.stderr)
        assert b"Traceback" not in done.stderr + done.stdout
        assert b"Exception ignored" not in done.stderr
        if line.endswith("--json"):
            assert json.loads(done.stdout)["hits"][0]["title"] == "Pizzä word"


def test_a_letor_feature_without_end(tmp_path: Path) -> None:
    from clickbridge.errors import InputError
    from clickbridge.io.letor import read_letor

    (tmp_path / "x").write_text("1 qid:1 1000000000000:1\n")
    with pytest.raises(InputError, match="numbers up to 10,000"):
        read_letor(str(tmp_path / "x"))


# --- the rest ----------------------------------------------------------------------------------------------


def test_a_query_of_a_million_words_is_cut(tiny: Path) -> None:
    model = load(tiny / "model")
    start = time.process_time()
    found = model.rank("pizza " * 1_000_000)
    assert time.process_time() - start < 2
    assert found.doc_ids[0] == "pizza"


def test_a_terminated_compare_leaves_no_queries_behind(tiny: Path, tmp_path: Path) -> None:
    """The temporary folder holds the lists, and a copy of the GRAPH where one is made."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    rows = [{"query": f"pizza {n}", "results": ["ny", "rome"], "labels": [0, 1]} for n in range(5)]
    (tiny / "l.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    line = [COMMAND, "compare", str(tiny / "graph"), "--lists", str(tiny / "l.jsonl"), "--models", "bm25,pls,rmls"]
    child = subprocess.Popen(line, env={**os.environ, "TMPDIR": str(temporary)}, stderr=subprocess.PIPE)
    while not list(temporary.glob("clickbridge-*/lists.jsonl")):
        assert child.poll() is None
        time.sleep(0.01)
    child.terminate()
    _, err = child.communicate()
    assert child.returncode == 143, err
    assert b"Traceback" not in err
    assert list(temporary.iterdir()) == []
