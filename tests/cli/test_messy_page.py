"""docs/messy-files.md: every command on it prints what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cli.conftest import Run
from log.messy import FAULTY, LOGS, write_all

PAGE = (Path(__file__).parents[2] / "docs" / "messy-files.md").read_text(encoding="utf8")
COMMAND = re.compile(r"^    \$ clickbridge (.+)\n((?:    .+\n)+)", re.MULTILINE)
COMMANDS = [(match[1], match[2]) for match in COMMAND.finditer(PAGE)]


@pytest.mark.parametrize(("command", "promised"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_messy_file_prints_what_the_page_says(
    call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, promised: str
) -> None:
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = call(*shlex.split(command))
    printed = [line.rstrip() for line in (done.out + done.err).splitlines()]
    lines = [line.removeprefix("    ") for line in promised.splitlines()]
    assert [line for line in lines if line not in printed] == []
    refused = any(line.startswith("clickbridge: ") for line in lines)
    assert done.code == refused
    assert (tmp_path / "graph").exists() != refused


def test_every_messy_file_is_on_the_page() -> None:
    shown = {word for command, _ in COMMANDS for word in shlex.split(command)}
    assert {*LOGS, *FAULTY, "products.csv"} <= shown
    for name, (_, options) in LOGS.items():
        assert not options or f"    guessed, written as options: {name}: {options}\n" in PAGE
