"""What the verbs share: tables, progress, --json, and the one line on stderr when something is refused."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from clickbridge.errors import SettingError
from clickbridge.evaluate.tables import in_words as in_words
from clickbridge.evaluate.tables import text_table
from clickbridge.io.files import check_output
from clickbridge.progress import silent

for _name in ("stdout", "stderr"):
    # A stream that was closed before the start is None: what is written goes nowhere.
    if getattr(sys, _name) is None:
        setattr(sys, _name, open(os.devnull, "w"))  # noqa: SIM115
    # What the terminal's encoding cannot hold is escaped.
    if hasattr(getattr(sys, _name), "reconfigure"):
        getattr(sys, _name).reconfigure(errors="backslashreplace")
# Ids, titles and paths are printed as they are: "[bold]" and ":cat:" mean nothing here.
# Where no one looks at a terminal, a row of a table stays one line.
WIDE = None if sys.stdout.isatty() else 10_000
out = Console(highlight=False, soft_wrap=True, markup=False, emoji=False, width=WIDE)
err = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)

STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
STEP = re.compile(r"\b([\d,]*\d) of (?:at most )?([\d,]*\d)\b")
LONGEST = 1_500
"""Characters of a line for a person: whoever reports a value has cut it, and if not it is cut here."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ModelPath = Annotated[Path, typer.Argument(help="A MODEL folder.", show_default=False)]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of everything random.")]


def print_json(value: Any) -> None:
    # JSON is UTF-8, whatever the terminal's encoding.
    data = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    head = visible(title.removeprefix("\n"))
    title = "\n" + head if title.startswith("\n") else head
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    numeric = [bool(rows) and all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(columns))]
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(visible(name), justify="right" if right else "left")
    words = [[visible(in_words(cell)) for cell in row] for row in rows]
    sizes = [max(map(len, column)) for column in zip([visible(name) for name in columns], *words, strict=True)]
    if len(columns) > 3 and sum(sizes) + 2 * len(sizes) > out.width:
        # Cells must not be cut: they continue on the next line, and columns in another table below.
        named = [dict(zip(columns, row, strict=True)) for row in words]
        out.print("\n".join(filter(None, [title, text_table(named, out.width)])))
        return
    for row_ in words:
        table.add_row(*row_)
    out.print(table)


def print_page(text: str) -> None:
    """Text written for a page, such as a docstring: paragraphs that are wider than the terminal are filled anew."""
    for (_, indent), group in groupby(text.splitlines(), key=lambda line: (bool(line.strip()), _indent(line))):
        block = list(group)
        verbatim = any(re.match(r"\s*(>>>|\.\.\. |---)", line) for line in block)
        if not verbatim and max(map(len, block)) > out.width:
            words = " ".join(line.strip() for line in block)
            block = textwrap.wrap(
                words, out.width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
            )
        typer.echo("\n".join(block))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def say(line: str) -> None:
    """A line for a person; on stderr, so that stdout stays clean for --json and pipes."""
    text = visible(" ".join(line.splitlines()))
    err.print(text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}")


def visible(text: str) -> str:
    """Text from outside, made safe for a terminal: what would steer it (escape sequences, C0 and C1
    controls, marks that turn the direction of writing) is shown as an escape, `\\x1b`."""
    return STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


@contextmanager
def progress_bar() -> Iterator[Callable[[str], None]]:
    """Shows lines of progress on a terminal, with a bar and the time left if a line contains something like `3 of 10`.
    Shows nothing if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield silent
        return
    with Progress(*progress_columns(err.width), console=err, transient=True) as bars:
        yield Steps(bars).show


BAR, PAST, LEFT = 12, len("0:00:00"), len("about 0:00:00 left")
"""Widths of what stands after the line of progress: the bar, the time that has passed and the time that is left."""


def progress_columns(width: int) -> tuple[ProgressColumn, ...]:
    """Spinner, line, bar and times, on one line of the terminal: a line that does not fit ends in dots."""
    room = max(width - 1 - BAR - PAST - LEFT - 4, 1)  # a spinner and four gaps of one
    return (
        SpinnerColumn(),
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", max_width=room)),
        BarColumn(BAR),
        TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=PAST)),
        TimeLeftColumn(table_column=Column(no_wrap=True, min_width=LEFT)),
    )


class TimeLeftColumn(ProgressColumn):
    """How long it will take, as soon as that is known."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        left = task.time_remaining
        return Text(f"about {timedelta(seconds=int(left))} left" if left else "")


class Steps:
    """One bar for the current stage. Lines that differ only in their numbers belong to the same stage."""

    def __init__(self, bars: Progress) -> None:
        self.bars, self.stage = bars, ""
        self.task = bars.add_task("starting", total=None)

    def show(self, line: str) -> None:
        found, stage = STEP.search(line), re.sub(r"[\d,.]+", "", line)
        number, total = (int(word.replace(",", "")) for word in found.groups()) if found else (0, None)
        text = visible(line)
        if stage != self.stage:
            self.bars.remove_task(self.task)
            self.task = self.bars.add_task(text, total=total)
        # A line is written when its step begins.
        self.bars.update(self.task, description=text, completed=max(number - 1, 0))
        self.stage = stage


def keep_apart(outputs: Sequence[object], inputs: Sequence[object]) -> None:
    """Refuses to write over what is being read, twice to one place, or to read standard input twice."""
    if sum(str(path) == "-" for path in inputs) > 1:
        raise SettingError("standard input can be read once: give - for one input and files for the others")
    for path in (Path(str(path)) for path in outputs if path is not None):
        if os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
            check_output(path)
    taken = {Path(str(path)).resolve() for path in inputs if path is not None and str(path) != "-"}
    for output in (Path(str(path)).resolve() for path in outputs if path is not None):
        if output in taken:
            raise SettingError(f"{output} would be read and written, or written twice: choose another name")
        taken.add(output)


def keep_outside(folder: Path, inputs: Sequence[object]) -> None:
    """Refuses an output folder that holds what is to be read, or another output: the folder is replaced."""
    home = folder.resolve()
    for path in (Path(str(path)).resolve() for path in inputs if path is not None and str(path) != "-"):
        if home in path.parents:
            raise SettingError(f"{path} lies inside {folder}, which is to be written: move it, or choose another --out")


def pairs_of(words: Sequence[str], shape: str) -> dict[str, str]:
    """`name=value` words as a table; `shape` says what was expected."""
    out: dict[str, str] = {}
    for word in words:
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals or not name or not value:
            raise SettingError(f"{shape}; got {word!r}")
        out[name] = value
    return out
