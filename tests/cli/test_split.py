"""`split` on the command line: it writes all of its files or none, and replaces no documents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Run

FILES = {"--train": "train.tsv", "--lists": "held.jsonl", "--docs": "docs.jsonl"}


def words(**other: str) -> list[str]:
    names = FILES | {f"--{name}": value for name, value in other.items()}
    return ["split", "log.jsonl", "--at", "60%", *[word for pair in names.items() for word in pair]]


def test_documents_that_exist_are_not_replaced(call: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny)
    mine = tiny / FILES["--docs"]
    mine.write_text("mine")
    done = call(*words())
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "clickbridge: docs.jsonl exists, and --docs names a file to write here: choose another name, or remove it\n"
    )
    assert mine.read_text() == "mine"
    assert [name for name in FILES.values() if (tiny / name).exists()] == [mine.name]


def test_a_second_split_replaces_what_the_first_one_wrote(
    call: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny)
    written = []
    for docs in ("some.jsonl", "others.jsonl"):
        assert call(*words(docs=docs)).code == 0
        written.append([(tiny / name).read_bytes() for name in (FILES["--train"], FILES["--lists"], docs)])
    assert written[0] == written[1]


def test_a_log_that_its_format_cannot_hold_leaves_no_lists(
    call: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny)
    log = tiny / "log.jsonl"
    log.write_text(log.read_text().replace('"a"', '"a\\tb"'))
    before = {path.name for path in tiny.iterdir()}
    done = call(*words(docs="new.jsonl"))
    assert done.code == 1
    assert "a TSV file cannot hold 'a\\tb'" in done.err
    assert {path.name for path in tiny.iterdir()} == before


def test_a_disk_that_is_full_at_the_end_leaves_the_old_files(tmp_path: Path) -> None:
    """The training log is complete by then, and the lists are not."""
    log = tmp_path / "log.jsonl"
    line = '{"query": "%s", "results": ["%s", "b"], "clicks": ["b"], "time": %d}\n'
    held = [line % (f"q{n}", "x" * 60, 2000 + n) for n in range(200)]
    log.write_text("".join([line % ("a", "c", n) for n in range(9)] + held))
    for name in ("train.jsonl", "lists.jsonl"):
        (tmp_path / name).write_text("old")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from clickbridge import read_log; from clickbridge.log.split import split_log\n"
        "files = {'train': 'train.jsonl', 'lists': 'lists.jsonl'}\n"
        "split_log(read_log('log.jsonl'), at='1970-01-01T00:20:00Z', by='time', **files)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    files = {path.name: path.read_text() for path in tmp_path.iterdir() if path != log}
    assert files == {"train.jsonl": "old", "lists.jsonl": "old"}
