"""The verbs of `clickbridge`, as one Typer application."""

from __future__ import annotations

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

app = typer.Typer(
    name="clickbridge",
    help="Learn from a search click log what people mean by the words they type.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
