"""What verbs print on a terminal of 80 columns, a real one."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

WIDTH = 80


def on_terminal(*words: str) -> list[str]:
    """The lines that a verb prints there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    running = subprocess.Popen(
        [sys.executable, "-m", "clickbridge", *words], stdin=theirs, stdout=theirs, stderr=theirs, env=env
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not more:
            break
        said += more
    os.close(ours)
    assert running.wait() == 0
    return said.decode().replace("\r", "").splitlines()


@pytest.mark.parametrize("words", [["models"], ["models", "pls"], ["models", "mart:SPEC"]])
def test_nothing_is_wider_than_the_terminal(words: list[str]) -> None:
    lines = on_terminal(*words)
    assert max(map(len, lines)) <= WIDTH
    assert sum(len(line) > WIDTH * 2 / 3 for line in lines) > 5, "and its width is used"


def test_cells_and_paragraphs_are_wrapped_and_keep_their_words() -> None:
    told = " ".join(" ".join(on_terminal("models")).split())
    assert "tries models from the cheapest to the most expensive on held-back clicks, and takes the best" in told
    lines = on_terminal("models", "pls")
    assert '>>> model.rank("sleep near the statue", k=2).doc_ids' in lines, "examples stay as they are"
    assert lines[lines.index("Settings") + 1] == "--------"
    assert "" in lines
