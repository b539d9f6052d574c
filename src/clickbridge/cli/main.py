"""`clickbridge`: the verbs, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import os
import sys

import typer

from clickbridge import __version__
from clickbridge.cli import (
    bounds,
    compare,
    data,
    demo,
    export,
    forget,
    insight,
    mcp,
    models,
    reproduce,
    runs,
    search,
    serving,
    trying,
    update,
)
from clickbridge.cli.console import say
from clickbridge.cli.stops import stops_heard
from clickbridge.errors import ClickbridgeError

app = typer.Typer(
    name="clickbridge",
    help="Learn from a search click log what people mean by the words they type.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

INTERRUPTED = 130
"""The exit code after Ctrl-C, by which Typer ends the process itself."""


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


for verb in (
    demo.demo,
    data.ingest,
    data.split,
    data.stats,
    insight.validate,
    insight.insights,
    models.models,
    models.fit,
    update.update,
    search.search,
    search.similar,
    runs.rank,
    runs.evaluate,
    compare.compare,
    export.export,
    mcp.mcp,
    data.simulate,
    bounds.bounds,
    forget.forget,
    reproduce.reproduce,
    serving.serve,
):
    app.command()(verb)
app.command("try")(trying.try_log)


def main() -> None:
    ClickbridgeError.on_command_line = True
    try:
        try:
            with stops_heard():
                app()
        finally:
            sys.stdout.flush()  # here, where a reader that has gone is no fault
    except ClickbridgeError as error:
        say(f"clickbridge: {error}")
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, SystemExit) as stop:
        if getattr(stop, "code", INTERRUPTED) != INTERRUPTED:
            raise
        say("clickbridge: interrupted; nothing was left half-written")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Python flushes once more at its end: into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        say(f"clickbridge: {where}{error.strerror or error}")
        sys.exit(1)
    except MemoryError:
        say("clickbridge: out of memory: use a smaller log, or a machine with more")
        sys.exit(1)
    finally:
        ClickbridgeError.on_command_line = False
