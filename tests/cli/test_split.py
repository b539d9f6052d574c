"""`split` on the command line: it writes all of its files or none, and replaces none."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Run

FILES = {"--train": "train.tsv", "--lists": "held.jsonl", "--docs": "docs.jsonl"}


def words(**other: str) -> list[str]:
    names = FILES | {f"--{name}": value for name, value in other.items()}
    return ["split", "log.jsonl", "--at", "60%", *[word for pair in names.items() for word in pair]]


@pytest.mark.parametrize("option", FILES)
def test_no_file_is_replaced(call: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    monkeypatch.chdir(tiny)
    for name in FILES.values():
        (tiny / name).unlink(missing_ok=True)
    mine = tiny / FILES[option]
    mine.write_text("mine")
    done = call(*words())
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"clickbridge: {FILES[option]} exists, and would be written over: choose another {option}, or remove it\n"
    )
    assert mine.read_text() == "mine"
    assert [name for name in FILES.values() if (tiny / name).exists()] == [mine.name]
    mine.unlink()
    assert call(*words()).code == 0
    assert all((tiny / name).exists() for name in FILES.values())


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
