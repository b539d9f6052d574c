"""The real command, the same verbs in this process, and a tiny data set with its GRAPH and MODEL."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import clickbridge
from clickbridge import ClickGraph
from clickbridge.cli.main import main
from clickbridge.log.documents import read_docs
from clickbridge.log.readers import read_log
from clickbridge.models.specs import build_model

COMMAND = Path(sys.executable).with_name("clickbridge")
HOME = str(Path(clickbridge.__file__).parents[1])
DOCS = [
    {"doc_id": "ny", "title": "New York City", "body": "The big apple, city of pizza and bagels"},
    {"doc_id": "pizza", "title": "Pizza", "body": "New York style pizza by the slice"},
    {"doc_id": "rome", "title": "Rome", "body": "Pizza al taglio in the eternal city"},
    {"doc_id": "bagel", "title": "Bagels", "body": "Boiled, then baked"},
    {"doc_id": "[bold]", "title": "A :cat: in [red] brackets", "year": 1999, "nested": {"a": 1}},
]
LOG = [
    {"query": "NY pizza", "results": ["pizza", "rome", "ny"], "clicks": ["pizza"], "user": "a", "time": 10},
    {"query": "ny  pizza", "results": ["rome", "pizza", "ny"], "clicks": ["pizza", "ny"], "user": "b", "time": 20},
    {"query": "big apple", "results": ["ny", "bagel"], "clicks": ["ny"], "user": "a", "time": 30},
    {"query": "pizza slice", "results": ["pizza", "rome"], "clicks": ["pizza"], "user": "c", "time": 40},
    {"query": "eternal city", "results": ["rome", "ny", "bagel"], "clicks": ["rome"], "user": "d", "time": 50},
]
LISTS = [
    {"query_id": "1", "query": "pizza", "results": ["bagel", "rome", "pizza"], "labels": [0, 1, 2]},
    {"query_id": "2", "query": "eternal city", "results": ["ny", "rome"], "labels": [0, 1]},
    {"query_id": "3", "query": "zzz", "results": ["ny", "rome", "pizza"], "labels": [1, 0, 0]},
]


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture(scope="session", autouse=True)
def same_package() -> Iterator[None]:
    """Commands, wherever they run, are those of the package under test; another one may be installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([HOME, *filter(None, [os.environ.get("PYTHONPATH")])]))
        yield


@pytest.fixture(scope="session")
def command() -> Run:
    """`command("stats", graph)` runs the installed command. Neither stream may ever hold a traceback."""

    def run(*words: Any, stdin: bytes | None = None, cwd: Path | None = None) -> Result:
        line = [str(COMMAND), *map(str, words)]
        done = subprocess.run(line, capture_output=True, input=stdin or b"", cwd=cwd, timeout=600)
        result = Result(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in result.out + result.err, result.err
        return result

    return run


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The same through `main()` in this process: for the long tail of cases."""

    def run(*words: Any) -> Result:
        monkeypatch.setattr(sys, "argv", ["clickbridge", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        code = caught.value.code or 0
        assert isinstance(code, int)
        return Result(code, *capsys.readouterr())

    return run


def write_jsonl(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with log.jsonl, docs.jsonl, lists.jsonl, qrels, graph, notext (a GRAPH without text), model, given."""
    home = tmp_path_factory.mktemp("tiny")
    log, docs = str(write_jsonl(home / "log.jsonl", LOG)), str(write_jsonl(home / "docs.jsonl", DOCS))
    write_jsonl(home / "lists.jsonl", LISTS)
    (home / "qrels").write_text("1 0 pizza 2\n1 0 rome 1\n2 0 rome 1\n3 0 ny 1\n4 0 ny 0\n")
    graph = ClickGraph.build(read_log(log), read_docs(docs), home / "graph")
    ClickGraph.build(read_log(log), out=home / "notext")
    build_model("bm25").fit(graph).save(home / "model")
    build_model("given").fit(graph).save(home / "given")
    return home


@pytest.fixture
def tiny(built: Path, tmp_path: Path) -> Path:
    """A copy of `built` to write into."""
    shutil.copytree(built, tmp_path / "tiny")
    return tmp_path / "tiny"
