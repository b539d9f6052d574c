"""Verbs that make and look at data: ingest, split, stats, simulate."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickbridge.cli.console import (
    Json,
    Seed,
    in_words,
    keep_apart,
    keep_outside,
    pairs_of,
    print_json,
    print_table,
    progress_bar,
    say,
)
from clickbridge.cli.fitting import (
    EngineName,
    MinClicks,
    MinUsers,
    Response,
    Threads,
    bytes_of,
    checked_counting,
    engine_of,
)
from clickbridge.cli.inputs import Docs, LogReading, Logs, MaxRejects, Reading, Rejects, guesses_told, tell_about
from clickbridge.cli.options import with_options
from clickbridge.cli.pulls import Pulled, local_logs
from clickbridge.errors import InputError, SettingError

if TYPE_CHECKING:
    from clickbridge.graph.clickgraph import ClickGraph
    from clickbridge.log.rejects import RejectLog

Redact = Annotated[
    str, typer.Option(help="Where e-mails, phone and card numbers in queries are hidden: shown, learned or off.")
]
LEAST_MEMORY_MB = 64
LABELS = {
    "impressions": "result pages",
    "pair_rows": "rows of clicks",
    "clicks": "clicks",
    "clicks_outside_results": "clicks outside results",
    "documents": "documents from --docs",
    "repeated_documents": "documents that repeat an id",
    "queries": "queries",
    "docs": "documents known in all",
    "pairs": "pairs with a click",
    "clicked_docs": "clicked documents",
    "clicked_docs_with_text": "clicked documents with text",
    "has_times": "has times",
    "has_users": "has users",
    "has_impressions": "has result pages",
    "rejected_lines": "lines left out",
    "rejected_documents": "documents left out",
}


@with_options
def ingest(
    out: Annotated[Path, typer.Option(help="The GRAPH folder to write.", show_default=False)],
    logs: Annotated[
        list[str] | None,
        typer.Argument(help="Log files; - is standard input; none with --docs alone.", show_default=False),
    ] = None,
    docs: Docs = [],  # noqa: B006
    vectors: Annotated[list[str], typer.Option(help="Dense vectors, NAME=FILE (Parquet: side, id, vector).")] = [],  # noqa: B006
    *,
    reading: Reading,
    max_rejects: MaxRejects = "1%",
    rejects: Rejects = None,
    min_clicks: MinClicks = None,
    min_users: MinUsers = None,
    response: Response = None,
    redact: Redact = "shown",
    pulled: Pulled = None,
    memory: Annotated[
        str, typer.Option(help="Memory for sorting and sums, e.g. 4GiB; the rest goes to disk.")
    ] = "1GiB",
    engine: EngineName = "local",
    threads: Threads = 0,
    json: Json = False,
) -> None:
    """Read click logs and documents into a GRAPH; documents alone are enough for models of text."""
    from clickbridge.graph.clickgraph import KIND, ClickGraph
    from clickbridge.io.artifact import check_target
    from clickbridge.io.files import check_output

    logs = local_logs(logs or [], pulled or out.with_name(f"{out.name}.pulled"))
    if not logs and not docs:
        raise SettingError("ingest needs a log, --docs, or both")
    keep_apart([out, rejects], [*logs, *docs])
    check_redact(redact)
    defaults = checked_counting(min_clicks=min_clicks, min_users=min_users, response=response)
    if engine == "gpu":
        raise SettingError("ingest runs on local, ray or ray://HOST:PORT; a GPU does not help it")
    memory_mb = megabytes(memory)
    dense = pairs_of(vectors, "--vectors takes NAME=FILE, such as minilm=vectors.parquet")
    keep_outside(out, [*logs, *docs, *dense.values(), rejects])
    check_target(out, KIND)
    if rejects is not None:
        check_output(rejects)
    with two_reject_logs(rejects, max_rejects) as (lost, lost_docs):
        log, documents = reading.log_and_docs(logs, docs, lost, lost_docs)
        with guesses_told(json, log, documents), progress_bar() as progress:
            kept: dict[str, Any] = {"vectors": dense, "defaults": defaults, "redact": redact, "memory_mb": memory_mb}
            runs_on = engine_of(engine, threads, "0") if engine != "local" else None
            graph = ClickGraph.build(log, documents, out, progress=progress, engine=runs_on, **kept)
    tell_about(graph, log, documents, rejects or f"{out}/rejects.jsonl")
    left_out = {"rejected_lines": lost.count, "rejected_documents": lost_docs.count}
    summary = {**graph.summary, **clicked_documents(graph), **left_out}
    if json:
        print_json(summary)
    else:
        print_table(f"{out}", ("", "count"), [(LABELS[name], summary[name]) for name in LABELS if name in summary])


def check_redact(redact: str) -> None:
    from clickbridge.log.personal import REDACT

    if redact not in REDACT:
        raise SettingError(f"--redact is one of {', '.join(REDACT)}; got {redact!r}")


def megabytes(memory: str) -> int:
    found = bytes_of(memory) // 10**6
    if found < LEAST_MEMORY_MB:
        raise SettingError(f"--memory of ingest is {LEAST_MEMORY_MB}MB at least; got {memory}")
    return found


@contextmanager
def two_reject_logs(rejects: Path | None, most: str) -> Iterator[tuple[RejectLog, RejectLog]]:
    """One for lines and one for documents, which are read first; what both lose goes to one file."""
    from clickbridge.log.rejects import RejectLog

    with tempfile.TemporaryDirectory(prefix="clickbridge-") as scratch:
        place = rejects or Path(scratch) / "rejects.jsonl"
        if place.is_file():
            place.unlink()
        yield RejectLog(most, place, append=True), RejectLog(most, place, append=True)


def clicked_documents(graph: ClickGraph) -> dict[str, int]:
    """How many documents were clicked, and how many of these have text."""
    from clickbridge.graph.unmatched_ids import unmatched_ids

    matched = unmatched_ids(graph)
    if matched is None:
        return {}
    with_text = matched.all_documents - matched.documents
    return {"clicked_docs": matched.all_documents, "clicked_docs_with_text": with_text}


@with_options
def split(
    logs: Logs,
    at: Annotated[str, typer.Option(help="Where to cut: a share like 80%, or a date.", show_default=False)],
    train: Annotated[
        str,
        typer.Option(help="Training log to write: .jsonl, .csv, .tsv, .parquet.", show_default=False),
    ],
    lists: Annotated[str, typer.Option(help="Click-labelled LISTS to write.", show_default=False)],
    docs: Annotated[str | None, typer.Option(help="JSONL to write: documents that the log brings along.")] = None,
    by: Annotated[str, typer.Option(help="time, or query (whole queries by a hash of their text).")] = "time",
    *,
    reading: LogReading,
    max_rejects: MaxRejects = "1%",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Cut a log into a training log and click-labelled lists, where there are no judgments."""
    from clickbridge.io.files import check_new, check_output
    from clickbridge.log.documents import read_docs
    from clickbridge.log.rejects import RejectLog
    from clickbridge.log.split import split_log

    keep_apart([train, lists, docs], logs)
    for path in (train, lists):
        check_output(path)
    if docs is not None:
        check_new(docs, "--docs")
    log = reading.log(logs, RejectLog(max_rejects))
    with guesses_told(json, log):
        report = asdict(split_log(log, at=at, by=by, train=train, lists=lists, docs=docs, seed=seed))
    tell_about(None, log, read_docs(), None)
    for note in report["notes"]:
        say(note)
    if json:
        print_json(report)
    else:
        rows = [(name.replace("_", " "), value) for name, value in report.items() if name != "notes"]
        print_table("", ("", "value"), rows)


def stats(
    graph: Annotated[Path, typer.Argument(help="A GRAPH folder.", show_default=False)],
    paper: Annotated[bool, typer.Option("--paper", help="Table 1 of the papers, in their symbols.")] = False,
    json: Json = False,
) -> None:
    """Print the counts that describe a log."""
    from clickbridge.evaluate.statistics import stats as count
    from clickbridge.graph.clickgraph import ClickGraph

    with progress_bar() as progress:
        progress("opening")
        opened = ClickGraph.open(graph)
        progress("counting")
        table = count(opened, paper)
    if json:
        print_json(table)
    else:
        print_table(f"{graph}", ("", "value"), [(label, in_words(value)) for label, value in table.labelled().items()])


def simulate(
    out: Annotated[Path, typer.Option(help="Folder to write the log and documents to.", show_default=False)],
    scale: Annotated[str, typer.Option(help="demo, enterprise, one-week or half-year.")] = "demo",
    fraction: Annotated[float, typer.Option(help="Part of the scale's queries, documents and words.")] = 1.0,
    impressions: Annotated[int, typer.Option(help="Write this many result pages instead of click counts.")] = 0,
    clicks: Annotated[str, typer.Option(help="Users who click by pbm, cascade or dbn; writes the truth as well.")] = "",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Write a simulated log with the statistics that the papers report."""
    from clickbridge.simulate.scale import SCALES, write_log

    if scale not in (*SCALES, "demo"):
        raise SettingError(f"--scale must be one of demo, {', '.join(SCALES)}; got {scale!r}")
    if scale == "demo" and (fraction != 1 or impressions):
        raise SettingError("the demo has one size: leave --fraction and --impressions out, or take another --scale")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file: --out is the folder to write the simulated log to")
    if (out / "manifest.json").exists():
        raise InputError(f"{out} is a GRAPH or a MODEL: choose another --out for the simulated log")
    with progress_bar() as progress:
        if scale == "demo":
            from clickbridge.simulate.demo import write_demo

            counts: dict[str, Any] = write_demo(out, seed=seed, clicks=clicks or "pbm")
        else:
            counts = dict(
                write_log(
                    scale,
                    out,
                    fraction=fraction,
                    impressions=impressions or None,
                    clicks=clicks or None,
                    seed=seed,
                    progress=progress,
                )
            )
    if json:
        print_json(counts)
    else:
        print_table(f"simulated: {out}", ("", "count"), list(counts.items()))
