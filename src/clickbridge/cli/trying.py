"""`clickbridge try`: one command from a log to a model, a comparison and insights."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from clickbridge.cli.console import Json, keep_apart, keep_outside, out, print_json, progress_bar, visible
from clickbridge.cli.fitting import Memory, Threads, engine_of
from clickbridge.cli.inputs import Docs, Logs, MaxRejects, Reading, guesses_told
from clickbridge.cli.insight import MinPeople
from clickbridge.cli.options import with_options
from clickbridge.cli.serving import check_serving
from clickbridge.cli.serving import serve as serve_models


@with_options
def try_log(
    logs: Logs,
    docs: Docs = [],  # noqa: B006
    out_: Annotated[Path, typer.Option("--out", help="Folder for report, model, graph, insights.")] = Path("try-out"),
    budget: Annotated[str, typer.Option(help="How long models may be tried and learned, e.g. 90s, 10m, 2h.")] = "10m",
    serve: Annotated[bool, typer.Option("--serve", help="End on the search page.")] = False,
    *,
    reading: Reading,
    max_rejects: MaxRejects = "1%",
    min_users: MinPeople = 2,
    threads: Threads = 0,
    memory: Memory = "0",
    json: Json = False,
) -> None:
    """Guess the columns, validate, split by time, choose and fit, compare, report: from a log to a model."""
    from clickbridge.insight.try_lines import lines_of
    from clickbridge.insight.try_log import try_log as run
    from clickbridge.log.rejects import RejectLog

    if serve:
        check_serving()
    runs_on = engine_of("local", threads, memory)
    keep_apart([], [*logs, *docs])
    keep_outside(out_, [*logs, *docs])
    log, documents = reading.log_and_docs(logs, docs, RejectLog("100%"), RejectLog("100%"))
    command = shlex.join(["clickbridge", *sys.argv[1:]])
    with guesses_told(json, log, documents), progress_bar() as progress:
        tried = run(
            log, documents, out_, budget=budget, min_users=min_users, max_rejects=max_rejects, engine=runs_on,
            progress=progress, command=command,
        )  # fmt: skip
    lines = lines_of(tried, min_users=min_users)
    if json:
        compared = None if tried.compared is None else tried.compared.as_dict()
        print_json({"out": str(out_), "model": tried.model.fitted.spec, "lines": lines, "compared": compared})
    else:
        for line in lines:
            out.print(visible(line))
    if serve:
        serve_models([str(out_ / "model")])
