"""What is refused: exit 1, one line on stderr that says what to do, nothing written, the old artifact as it was."""

from __future__ import annotations

import gzip
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickbridge.io.artifact import FORMAT_VERSION as NEWEST
from forgery import changed

Run = Callable[..., Any]
GOOD = b'{"query":"a b","results":["1","2"],"clicks":["1"]}\n'
ALL_20 = "20 of 20 lines are unusable, at most 1% of them may be"
THE_ONE = "1 of 1 line is unusable, at most 1% of them may be"
DAMAGED = "is damaged or cut short"

TEN_MALFORMED_LOGS = {
    "words.jsonl": (b"not json\n" * 20, f"{ALL_20} (words.jsonl line 1: not JSON: "),
    "cut.jsonl.gz": (gzip.compress(GOOD * 999)[:120], f"cut.jsonl.gz {DAMAGED} (Compressed file ended before "),
    "empty.tsv": (b"", "empty.tsv is empty"),
    "clicks.jsonl": (
        b'{"query":"a","results":["1"],"clicks":"1"}\n' * 20,
        f"{ALL_20} (clicks.jsonl line 1: clicks must be a list of ids, got text; clicks.jsonl line 2: ",
    ),
    "minus.tsv": (
        b"query\tdoc_id\tclicks\na\t1\t-1\n",
        f"{THE_ONE} (minus.tsv line 2: clicks must be a whole number from 0 to 2147483647, got '-1'): ",
    ),
    "columns.csv": (
        b"q,d\na,1\n",
        "columns.csv needs columns query and doc_id; it has q, d: name them with --columns query=...,doc_id=...",
    ),
    "broken.parquet": (b"PAR1 and then something else", "broken.parquet is not a valid Parquet file ("),
    "cut.xml": (b'<sessiontrack><session num="1"><interaction>', "cut.xml is not valid XML (no element found: line 1"),
    "blank.jsonl": (
        b'{"query":"a","results":["1 2"],"clicks":[]}\n',
        f"{THE_ONE} (blank.jsonl line 1: an id in results '1 2' is empty or has white space)",
    ),
    "binary": (b"\0\1\2\3", "cannot recognise the format of binary: no JSON, no XML, no table"),
}
MORE_MALFORMED_LOGS = {
    "silent.jsonl": (b'{"query":"a","results":[],"clicks":[]}\n', "the log has neither a shown result nor a click: "),
    "empty.jsonl": (b"", "the log has neither a shown result nor a click: empty.jsonl has no records"),
    "latin.csv": (b"query,doc_id\n\xff\x81,1\n", f"{THE_ONE} (latin.csv line 2: not UTF-8: give --encoding)"),
    "time.jsonl": (
        b'{"query":"a","clicks":["1"],"time":"yesterday"}\n',
        "time.jsonl: time 'yesterday' is neither ISO 8601 nor a number: say how days are written, as in "
        '--time-format "%d.%m.%Y %H:%M"',
    ),
    "wide.tsv": (b"query\tdoc_id\na\t1\t2\t3\n", f"{THE_ONE} (wide.tsv line 2: 4 columns, the header has 2; a tab"),
    "anonymous.jsonl": (
        b'{"clicks":["1"]}\n',
        "anonymous.jsonl needs keys query and clicks; it has clicks: name them with --columns query=...,clicks=...",
    ),
    "deep.jsonl": (b"[" * 100_000, f"{THE_ONE} (deep.jsonl line 1: not JSON: "),
    "long.jsonl": (
        b'{"query":"%s","clicks":["1"]}' % (b"a" * 5000),
        f"{THE_ONE} (long.jsonl line 1: query has 5000 ",
    ),
    "cut.tsv.zst": (b"\x28\xb5\x2f\xfd\x00\x58", f"cut.tsv.zst {DAMAGED}"),
    "one-in-fifty.jsonl": (
        GOOD * 49 + b"{}\n",
        "1 of 50 lines is unusable, at most 1% of them may be (one-in-fifty.jsonl line 50: neither query nor query_id)",
    ),
}


def one_line(result: Any, start: str) -> None:
    assert result.code == 1, result
    assert result.out == ""
    assert result.err.startswith(f"clickbridge: {start}"), result.err
    assert result.err.count("\n") == 1
    assert result.err.endswith("\n")


def everything_in(folder: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", TEN_MALFORMED_LOGS)
def test_ten_malformed_logs(command: Run, tmp_path: Path, name: str) -> None:
    data, line = TEN_MALFORMED_LOGS[name]
    (tmp_path / name).write_bytes(data)
    one_line(command("ingest", name, "--out", "g", cwd=tmp_path), line)
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", [*TEN_MALFORMED_LOGS, *MORE_MALFORMED_LOGS])
def test_malformed_logs_leave_the_old_graph(call: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tiny)
    before = everything_in(tiny)
    data, line = {**TEN_MALFORMED_LOGS, **MORE_MALFORMED_LOGS}[name]
    (tiny / name).write_bytes(data)
    one_line(call("ingest", name, "--docs", "docs.jsonl", "--out", "graph"), line)
    (tiny / name).unlink()
    assert everything_in(tiny) == before


@pytest.mark.parametrize(
    ("docs", "line"),
    [
        ("nowhere.jsonl", "no file nowhere.jsonl: check the path"),
        ("model", "cannot read model: Is a directory"),
        ("qrels", "cannot recognise the format of qrels: no JSON, no XML, no table"),
        (
            "log.jsonl",
            "log.jsonl: a key doc_id is needed; there are query, results, clicks, user, time: name it",
        ),
    ],
)
def test_malformed_documents(call: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch, docs: str, line: str) -> None:
    monkeypatch.chdir(tiny)
    before = everything_in(tiny)
    one_line(call("ingest", "log.jsonl", "--docs", docs, "--out", "graph"), line)
    assert everything_in(tiny) == before


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("ingest log.jsonl --out new --min-clicks 4", "min_clicks 4 keeps 0 of 5 pairs; try --min-clicks 1"),
        ("ingest log.jsonl --out graph --min-users 9", "min_clicks 1 and min_users 9 keeps 0 of 5 pairs; try"),
        ("ingest nowhere.jsonl --out new", "no file nowhere.jsonl: check the path"),
        ("ingest log.jsonl --out none/new", "none is not a folder: create it first, or write elsewhere"),
        ("stats nowhere", "no graph at nowhere: give the folder that it was saved to"),
        ("stats model", "model is a model; a graph is needed here"),
        ("stats folder", "folder is not a graph: it has no manifest.json"),
        ("fit model --model bm25 --out new", "model is a model; a graph is needed here"),
        ("fit notext --model bm25 --out new", "bm25 needs document text: ingest documents with --docs"),
        ("fit notext --model vsm+lmir --out new", "vsm needs document text: ingest documents with --docs"),
        ("fit graph --model bm25 --out new --min-clicks 4", "min_clicks 4 keeps 0 of 5 pairs; try --min-clicks 1"),
        ("fit graph --model given --out new --min-users 9", "min_clicks 1 and min_users 9 keeps 0 of 5 pairs; try"),
        ("similar model --query ''", "the query is empty"),
        ("similar model --doc nowhere", "no document 'nowhere' in the model: check the id"),
        ("search graph pizza", "graph is a graph; a model is needed here"),
        ("search given pizza", "given re-ranks given lists; it cannot search the collection by itself"),
        ("rank model --lists qrels --out new", "qrels, line 1: not JSON: "),
        ("rank model --lists nowhere --out new", "no file nowhere: check the path"),
        ("rank model --lists lists.jsonl --out folder", "cannot write folder: it is a folder, or its folder does not"),
        ("evaluate qrels --qrels qrels", "qrels, line 1: 4 columns, expected 6: query_id Q0 doc_id rank score name"),
        ("evaluate a.run --qrels a.run", "a.run, line 1: 6 columns, expected 4: query_id 0 doc_id grade"),
        ("evaluate a.run --lists log.jsonl", "log.jsonl, line 2: query_id 'ny_pizza' occurs twice; give each once"),
        ("evaluate a.run --lists plain.jsonl", "plain.jsonl has no labels: give labelled lists, or --qrels"),
        ("evaluate a.run --qrels qrels --measures AP(rel=9)", "no judged query has a relevant document for AP(rel=9)"),
        (
            "split log.jsonl --at 2020-01-01 --train t --lists l",
            "--at 2020-01-01T00:00:00+00:00 leaves 5 lines to train",
        ),
    ],
)
def test_refusals(call: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch, words: str, line: str) -> None:
    monkeypatch.chdir(tiny)
    (tiny / "folder").mkdir()
    (tiny / "a.run").write_text("1 Q0 pizza 1 9 x\n")
    (tiny / "plain.jsonl").write_text('{"query":"a","results":["ny"]}\n')
    if "log.jsonl, line 2" in line:
        text = (tiny / "log.jsonl").read_text()
        (tiny / "log.jsonl").write_text(text.replace("NY pizza", "ny pizza"))
    before = everything_in(tiny)
    result = call(*shlex.split(words))
    line = str(tiny / line) if line.startswith("none ") else line
    one_line(result, line)
    assert everything_in(tiny) == before
    assert not (tiny / "new").exists()


@pytest.mark.parametrize("target", ["folder", "empty", "file", "model", "broken"])
def test_out_never_replaces_something_else(call: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.chdir(tiny)
    (tiny / "folder").mkdir()
    (tiny / "folder" / "thesis.txt").write_text("years of work")
    (tiny / "empty").mkdir()
    (tiny / "file").write_text("text")
    shutil.copytree(tiny / "graph", tiny / "broken")
    (tiny / "broken" / "manifest.json").write_text("{")
    before = everything_in(tiny)
    line = f"{target}/manifest.json is damaged: remove" if target == "broken" else f"{target} exists and is not a graph"
    one_line(call("ingest", "log.jsonl", "--out", target), line)
    assert everything_in(tiny) == before
    if target != "model":
        one_line(call("fit", "graph", "--model", "bm25", "--out", target), line.replace("a graph", "a model"))
        assert everything_in(tiny) == before


def test_damaged_artifacts(call: Run, tiny: Path) -> None:
    file = next((tiny / "model").glob("images.data.*.npy"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    one_line(call("search", tiny / "model", "pizza"), f"{tiny}/model: {file.name} does not match its checksum")
    file.unlink()
    one_line(call("search", tiny / "model", "pizza"), f"{tiny}/model: {file.name} is missing or cut short")
    manifest = tiny / "graph" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(f'"format": {NEWEST}', f'"format": {NEWEST + 1}'))
    newer = f"{tiny}/graph has format {NEWEST + 1}, this clickbridge reads up to {NEWEST}: update"
    one_line(call("stats", tiny / "graph"), newer)


@pytest.mark.parametrize("spec", ["bm25", "bm25+lmir"])
def test_a_model_of_an_earlier_format_is_refused(call: Run, tiny: Path, spec: str) -> None:
    """Those of format 1 hold other arrays. `fit` may write over one; nothing else takes it."""
    model = tiny / "old"
    assert call("fit", tiny / "graph", "--model", spec, "--out", model).code == 0
    changed(model, lambda m: m.update(format=1))
    before = everything_in(tiny)
    line = f"{model} was written by an earlier clickbridge (format 1): fit it again\n"
    for words in (
        ("search", model, "pizza"),
        ("similar", model, "--query", "pizza"),
        ("rank", model, "--lists", tiny / "lists.jsonl", "--out", tiny / "run"),
        ("update", model, tiny / "log.jsonl"),
        ("bounds", model),
    ):
        refused = call(*words)
        assert (refused.code, refused.out, refused.err) == (1, "", f"clickbridge: {line}")
    assert everything_in(tiny) == before
    assert call("fit", tiny / "graph", "--model", spec, "--out", model).code == 0
    assert call("search", model, "pizza", "--json").json["hits"][0]["doc_id"] == "pizza"


def test_a_graph_of_an_earlier_format_is_read(call: Run, tiny: Path) -> None:
    changed(tiny / "graph", lambda m: m.update(format=1))
    assert call("stats", tiny / "graph", "--json").json["clicks"] == 6


def test_system_errors_are_one_line_too(call: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "/data/model")

    monkeypatch.setattr("clickbridge.models.model.Model.save", full)
    result = call("fit", tiny / "graph", "--model", "bm25", "--out", tiny / "new", "--fields", "title")
    one_line(result, "/data/model: No space left on device")


def test_graph_beside_another_file_system(call: Run, tiny: Path) -> None:
    """Rejects are collected under the temporary folder, which is often another file system."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tiny.stat().st_dev:
        pytest.skip("no second file system at hand")
    (tiny / "more.jsonl").write_text("bad line\n")
    out = shared / f"clickbridge-test-{tiny.parent.name}"
    try:
        result = call("ingest", tiny / "log.jsonl", tiny / "more.jsonl", "--max-rejects", "50%", "--out", out)
        assert result.code == 0
    finally:
        shutil.rmtree(out, ignore_errors=True)
