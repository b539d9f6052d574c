"""`clickbridge reproduce`: the papers' tables on data at hand, next to the papers' own figures."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clickbridge.cli.console import Json, Seed, in_words, out, print_json, print_table, progress_bar, say, visible
from clickbridge.errors import SettingError
from clickbridge.wording import count_of

if TYPE_CHECKING:
    from clickbridge.evaluate.reproduction.paper_table import Table
    from clickbridge.evaluate.reproduction.parts import Parts
    from clickbridge.evaluate.reproduction.run_folder import Files


def reproduce(
    context: typer.Context,
    table: Annotated[list[str], typer.Option(help="Only this table, e.g. 13-2, or all of a paper, e.g. 11M.")] = [],  # noqa: B006
    quick: Annotated[
        bool, typer.Option("--quick", help="A small part of everything; real data only where --data is given.")
    ] = False,
    fraction: Annotated[float | None, typer.Option(help="Part of the one-week size; 0.1, quick 0.01.")] = None,
    dim: Annotated[int | None, typer.Option(min=1, help="Dimensions of latent spaces; 1000, quick 100.")] = None,
    clicks: Annotated[str, typer.Option(help="Click model of the simulated users: pbm, cascade, dbn.")] = "pbm",
    data: Annotated[
        Path | None, typer.Option(envvar="CLICKBRIDGE_DATA", help="Folder with real data sets: msrd, bestbuy, clara2.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for tables.md, CSV and SVG files; a stopped run continues there."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Print the papers' tables on data at hand, next to the published figures."""
    if quick:
        # Before NumPy is loaded: on matrices this small a second thread only waits, on a busy machine for minutes.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from clickbridge.evaluate.reproduction.lab import Lab
    from clickbridge.evaluate.reproduction.parts import Parts
    from clickbridge.evaluate.reproduction.run import FULL, QUICK, chosen
    from clickbridge.evaluate.reproduction.run import reproduce as tables_of
    from clickbridge.evaluate.reproduction.run_folder import Files
    from clickbridge.simulate.clicks import check_click_model

    # A quick run is not to grow because the environment names a folder.
    source = context.get_parameter_source("data")
    given = source is not None and source.name == "COMMANDLINE"
    chosen(table)
    check_click_model(clicks)
    sizes = QUICK if quick else FULL
    share = sizes["fraction"] if fraction is None else fraction
    if not 0 < share <= 1:
        raise SettingError(f"--fraction must be above 0 and at most 1; got {fraction}")
    command = shlex.join(["clickbridge", *sys.argv[1:]])
    files = Files(folder, command, in_words) if folder is not None else None
    start, made = time.perf_counter(), []
    with tempfile.TemporaryDirectory(prefix="clickbridge-") as scratch, progress_bar() as progress:
        lab = Lab(
            Path(scratch), share, dim or int(sizes["dim"]), clicks, seed,
            None if quick and not given else data, quick, None if folder is None else folder / "parts",
            progress,
        )  # fmt: skip
        parts = Parts(lab.shelf)
        for found in tables_of(table, lab, parts):
            made.append(found)
            if files is not None:
                files.add(found)
            if not json:
                show(found)
    if files is not None:
        tell_cost(files, parts, len(made))
    if json:
        print_json([found.as_dict() for found in made])
    done = f"{count_of(len(made), 'table')} in {time.perf_counter() - start:.0f} s"
    say(f"{done}; files in {folder}" if folder else done)


def show(table: Table) -> None:
    out.print(visible(f"{table.key}  {table.title}"))
    print_table(table.data, table.header(), table.cells())
    for note in table.notes:
        out.print(f"  {note}")
    out.print()


def tell_cost(files: Files, parts: Parts, made: int) -> None:
    """What the tables cost, and where, as the end of tables.md."""
    cores, version = count_of(len(os.sched_getaffinity(0)), "core"), f"Python {platform.python_version()}"
    spent = f"{sum(parts.seconds.values()):.0f} s of processor time"
    by_key = ", ".join(f"{key} {seconds:.0f}" for key, seconds in parts.seconds.items())
    files.end(f"{made} tables in {spent}, on {cores}, {version}, {date.today().isoformat()}.")
    files.end(f"Seconds by key: {by_key}. A log or a fit counts where it is first asked for.")
