"""Verbs that look at a log for people: validate, insights."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clickbridge.cli.console import (
    Json,
    keep_apart,
    keep_outside,
    out,
    print_json,
    print_table,
    progress_bar,
    say,
    visible,
)
from clickbridge.cli.inputs import Docs, Logs, Reading, guesses_told
from clickbridge.cli.options import with_options
from clickbridge.errors import InputError

if TYPE_CHECKING:
    from clickbridge.insight.validation import Check

MinPeople = Annotated[int, typer.Option(min=1, help="People who must have typed a query before it is shown.")]


@with_options
def validate(
    logs: Logs,
    docs: Docs = [],  # noqa: B006
    *,
    reading: Reading,
    json: Json = False,
) -> None:
    """Check a log before learning from it: what is wrong, how often, and what it costs. Exit 1 if a check fails."""
    from clickbridge.insight.validation import FAIL, worst
    from clickbridge.insight.validation import validate as check_log
    from clickbridge.log.rejects import RejectLog

    keep_apart([], [*logs, *docs])
    # Every line that cannot be used is counted; none stops it.
    log, documents = reading.log_and_docs(logs, docs, RejectLog("100%"), RejectLog("100%"))
    with guesses_told(json, log, documents), progress_bar() as progress:
        checks = check_log(log, documents, progress)
    verdict = worst(checks)
    if json:
        print_json({"verdict": verdict, "checks": [asdict(check) for check in checks]})
    else:
        print_checks(checks)
    if verdict == FAIL:
        raise typer.Exit(1)


def print_checks(checks: list[Check]) -> None:
    print_table("", ("", "check", "found"), [(c.verdict, c.name, c.found) for c in checks])
    for check in checks:
        if check.verdict != "PASS":
            examples = f" (such as {', '.join(map(repr, check.examples))})" if check.examples else ""
            out.print(visible(f"{check.verdict} {check.name}: {check.costs}{examples}"))


def insights(
    source: Annotated[Path, typer.Argument(help="A GRAPH or MODEL folder.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The folder to write.", show_default=False)],
    min_users: MinPeople = 2,
    language: Annotated[str, typer.Option(help="Language of the text; auto is that of the documents.")] = "auto",
    strictness: Annotated[
        float,
        typer.Option(min=0.01, max=10, help="Evidence that a synonym needs; 0.5 halves it: more synonyms, less sure."),
    ] = 1.0,
    json: Json = False,
) -> None:
    """Find synonyms, dead searches, buried documents and queries of one need: tables and one page."""
    from clickbridge.graph.clickgraph import KIND, ClickGraph
    from clickbridge.insight.insights import check_folder, find_insights, insights_of_model, write_insights
    from clickbridge.io.manifest import read_manifest
    from clickbridge.models.model_folder import load

    keep_outside(out, [source])
    check_folder(out)
    if not (source / "manifest.json").is_file():
        raise InputError(f"no GRAPH or MODEL at {source}: give the folder that ingest or fit wrote")
    kind = read_manifest(source)["kind"]
    with progress_bar() as progress:
        progress("reading")
        if kind == KIND:
            graph = ClickGraph.open(source)
            found = find_insights(graph, min_users=min_users, language=language, strictness=strictness)
        else:
            found = insights_of_model(load(source).fitted, min_users=min_users)
        write_insights(found, out, f"What {source.name} tells")
    for note in found.notes:
        say(note)
    if json:
        print_json({**found.counts, "notes": found.notes, "page": str(out / "insights.html")})
    else:
        rows = [(name.replace("_", " "), count) for name, count in found.counts.items()]
        print_table(f"{out}", ("", "found"), rows)
        say(f"page: {out}/insights.html")
