"""What the verbs share: tables, progress, --json, and the one line on stderr when something is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from clickbridge.errors import SettingError
from clickbridge.evaluate.tables import in_words as in_words

# Ids, titles and paths are printed as they are: "[bold]" and ":cat:" mean nothing here.
# Where no one looks at a terminal, a row of a table stays one line.
WIDE = None if sys.stdout.isatty() else 10_000
out = Console(highlight=False, soft_wrap=True, markup=False, emoji=False, width=WIDE)
err = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of everything random.")]


def print_json(value: Any) -> None:
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode() + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    numeric = [bool(rows) and all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(columns))]
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(name, justify="right" if right else "left")
    for row in rows:
        table.add_row(*(in_words(cell) for cell in row))
    out.print(table)


def say(line: str) -> None:
    """A line for a person; on stderr, so that stdout stays clean for --json and pipes."""
    err.print(" ".join(line.splitlines()))


@contextmanager
def progress() -> Iterator[Callable[[str, int], None]]:
    """A spinner with what is being done and how many so far; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda what, count: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bars:
        task = bars.add_task("starting", total=None)

        def report(what: str, count: int) -> None:
            bars.update(task, description=f"{what} {count:,}" if count else what)

        yield report


def renames(columns: Sequence[str]) -> dict[str, str]:
    """`--columns time=click_time,query=q`, repeatable."""
    return pairs_of(
        [pair for text in columns for pair in text.split(",")], "--columns takes ours=theirs, as time=click_time"
    )


def keep_apart(outputs: Sequence[object], inputs: Sequence[object]) -> None:
    """Refuses to write over what is being read, twice to one place, or to read standard input twice."""
    if sum(str(path) == "-" for path in inputs) > 1:
        raise SettingError("standard input can be read once: give - for one input and files for the others")
    taken = {Path(str(path)).resolve() for path in inputs if path is not None and str(path) != "-"}
    for output in (Path(str(path)).resolve() for path in outputs if path is not None):
        if output in taken:
            raise SettingError(f"{output} would be read and written, or written twice: choose another name")
        taken.add(output)


def pairs_of(words: Sequence[str], shape: str) -> dict[str, str]:
    """`name=value` words as a table; `shape` says what was expected."""
    out: dict[str, str] = {}
    for word in words:
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals or not name or not value:
            raise SettingError(f"{shape}; got {word!r}")
        out[name] = value
    return out
