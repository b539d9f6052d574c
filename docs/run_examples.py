"""Runs the examples of a page, as the tests do; as a program it writes what they print into the page.

    python docs/run_examples.py docs/first-ranking.md

What a fence says after its language decides: `sh run` and `python run` are run, in one folder and, in Python, with one
set of names for the whole page; `json file=log.jsonl` and the like are files that the examples read; `pycon` is checked
as a doctest; `text out` is what the block before it prints. `sh no-run` needs what a test has not: other programs, the
network, data of ours, much time.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^( *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^\1```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    info: str
    body: str


class Example(NamedTuple):
    """A block that was run, what it printed, and what the page says it prints (None: the page says nothing)."""

    block: Block
    printed: str
    promised: str | None


def blocks(page: Path) -> list[Block]:
    return [Block(m["info"].strip(), m["body"]) for m in FENCE.finditer(page.read_text(encoding="utf8"))]


def run(page: Path, folder: Path) -> Iterator[Example]:
    """Runs the blocks of a page one after the other in the folder, which is the working directory meanwhile."""
    names: dict[str, object] = {"__name__": "__main__"}
    found = blocks(page)
    with contextlib.chdir(folder):
        for number, block in enumerate(found):
            language, _, rest = block.info.partition(" ")
            if rest.startswith("file="):
                (folder / rest.removeprefix("file=")).write_text(block.body, encoding="utf8")
            elif block.info == "pycon":
                _doctest(block.body, page.name, names)
            elif rest == "run":
                follows = found[number + 1] if number + 1 < len(found) else None
                promised = follows.body if follows is not None and follows.info == "text out" else None
                printed = io.TextIOWrapper(io.BytesIO(), encoding="utf8")  # JSON is written as bytes
                with contextlib.redirect_stdout(printed):
                    if language == "sh":
                        _shell(block.body)
                    else:
                        exec(compile(block.body, page.name, "exec"), names)
                    printed.flush()
                yield Example(block, printed.buffer.getvalue().decode(), promised)  # type: ignore[attr-defined]


def _shell(body: str) -> None:
    """Lines of the command, in this process: starting Python for each would take most of the time."""
    from clickbridge.cli.app import app

    for line in body.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            program, *arguments = shlex.split(line, comments=True)
            if program != "clickbridge":
                raise ValueError(f"only clickbridge is run; got {line!r}: mark the block no-run")
            app(arguments, standalone_mode=False)


def _doctest(body: str, name: str, names: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(body, names, name, name, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, verbose=False)
    runner.run(test, clear_globs=False)
    names.update(test.globs)
    if runner.failures:
        raise AssertionError(f"{name}: an example does not print what it says: {body}")


def in_outline(text: str) -> str:
    """Words without figures: a figure may differ by machine, and columns are as wide as their figures."""
    return re.sub(r"\s+", " ", re.sub(r"[-+]?\d[\d,.]*(e[-+]\d+)?", "#", text)).strip()


def rewrite(page: Path) -> None:
    """Puts what the examples print into the blocks that promise it."""
    with tempfile.TemporaryDirectory() as folder:
        printed = [example.printed for example in run(page, Path(folder)) if example.promised is not None]
    wanted = iter(printed)

    def filled(match: re.Match[str]) -> str:
        if match["info"].strip() != "text out":
            return match[0]
        text = "\n".join(line.rstrip() for line in next(wanted).strip("\n").splitlines())
        return f"{match[1]}```text out\n{text}\n{match[1]}```"

    page.write_text(FENCE.sub(filled, page.read_text(encoding="utf8")), encoding="utf8")


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    for name in sys.argv[1:]:
        rewrite(Path(name).resolve())
