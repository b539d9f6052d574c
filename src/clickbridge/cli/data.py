"""Verbs that make and look at data: ingest, split, stats, simulate."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

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
    progress,
    renames,
    say,
)
from clickbridge.cli.fitting import MinClicks, MinUsers, Response, checked_counting
from clickbridge.cli.pulls import Pulled, local_logs
from clickbridge.errors import SettingError

Logs = Annotated[list[str], typer.Argument(help="Log files; - is standard input.", show_default=False)]
Format = Annotated[
    str, typer.Option(help="auto, sessions, triples, trec-session, ubi, metarank, algolia, meilisearch, typesense.")
]
Columns = Annotated[list[str], typer.Option(help="Rename columns: ours=theirs, as time=click_time.")]
TimeUnit = Annotated[str, typer.Option(help="Unit of numeric times: s, ms, us, ns.")]
MaxRejects = Annotated[str, typer.Option(help="Share of unusable lines above which nothing is written.")]
Redact = Annotated[
    str, typer.Option(help="Where e-mails, phone and card numbers in queries are hidden: shown, learned or off.")
]
Rejects = Annotated[Path | None, typer.Option(help="Also keep the unusable lines here.")]


def ingest(
    logs: Logs,
    out: Annotated[Path, typer.Option(help="The GRAPH folder to write.", show_default=False)],
    format: Format = "auto",
    docs: Annotated[list[str], typer.Option(help="Documents: JSONL, CSV, TSV or Parquet with doc_id.")] = [],  # noqa: B006
    vectors: Annotated[list[str], typer.Option(help="Dense vectors, NAME=FILE (Parquet: side, id, vector).")] = [],  # noqa: B006
    columns: Columns = [],  # noqa: B006
    time_unit: TimeUnit = "s",
    max_rejects: MaxRejects = "1%",
    rejects: Rejects = None,
    min_clicks: MinClicks = None,
    min_users: MinUsers = None,
    response: Response = None,
    redact: Redact = "shown",
    pulled: Pulled = None,
    json: Json = False,
) -> None:
    """Read click logs and documents into a GRAPH."""
    from clickbridge.graph.clickgraph import KIND, ClickGraph
    from clickbridge.io.artifact import check_target
    from clickbridge.io.files import check_output
    from clickbridge.log.documents import read_docs
    from clickbridge.log.personal import REDACT
    from clickbridge.log.readers import read_log
    from clickbridge.log.rejects import RejectLog

    logs = local_logs(logs, pulled or out.with_name(f"{out.name}.pulled"))
    keep_apart([out, rejects], [*logs, *docs])
    if redact not in REDACT:
        raise SettingError(f"--redact is one of {', '.join(REDACT)}; got {redact!r}")
    defaults = checked_counting(min_clicks=min_clicks, min_users=min_users, response=response)
    dense = pairs_of(vectors, "--vectors takes NAME=FILE, as minilm=vectors.parquet")
    keep_outside(out, [*logs, *docs, *dense.values(), rejects])
    check_target(out, KIND)
    if rejects is not None:
        check_output(rejects)
    with tempfile.TemporaryDirectory(prefix="clickbridge-") as scratch, progress() as report:
        # Documents are read first; what both lose goes to one file.
        place = rejects or Path(scratch) / "rejects.jsonl"
        if place.is_file():
            place.unlink()
        rejected = RejectLog(max_rejects, place, append=True)
        log = read_log(*logs, format=format, columns=renames(columns), time_unit=time_unit, rejects=rejected)
        documents = read_docs(*docs, rejects=RejectLog(max_rejects, place, append=True))
        graph = ClickGraph.build(log, documents, out, vectors=dense, defaults=defaults, progress=report, redact=redact)
    summary = {
        **graph.summary,
        "rejected_lines": rejected.count,
        "rejected_documents": documents.rejects.count,
    }
    for note in log.notes:
        say(note)
    if documents.ignored:
        say(f"fields that are not text were left out: {', '.join(sorted(documents.ignored))}")
    if graph.summary["repeated_documents"]:
        say(f"{graph.summary['repeated_documents']:,} documents repeat an id; the first of each counts")
    if documents.rejects.count:
        lost = documents.rejects
        say(f"{lost.count:,} of {lost.lines:,} documents left out ({lost.first[0].reason}, …)")
    if rejected.count:
        kept = rejects or f"{out}/rejects.jsonl"
        say(f"{rejected.count:,} of {rejected.lines:,} lines left out ({rejected.first[0].reason}, …): see {kept}")
    if json:
        print_json(summary)
    else:
        rows = [(name.replace("_", " "), value) for name, value in summary.items()]
        print_table(f"{out}", ("", "count"), rows)


def split(
    logs: Logs,
    at: Annotated[str, typer.Option(help="Where to cut: a share like 80%, or a date.", show_default=False)],
    train: Annotated[
        str,
        typer.Option(help="Training log to write: .jsonl, .csv, .tsv, .parquet.", show_default=False),
    ],
    lists: Annotated[str, typer.Option(help="Click-labelled LISTS to write.", show_default=False)],
    by: Annotated[str, typer.Option(help="time, or query (whole queries by a hash of their text).")] = "time",
    format: Format = "auto",
    columns: Columns = [],  # noqa: B006
    time_unit: TimeUnit = "s",
    max_rejects: MaxRejects = "1%",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Cut a log into a training log and click-labelled lists, where there are no judgments."""
    from clickbridge.io.files import check_output
    from clickbridge.log.readers import read_log
    from clickbridge.log.rejects import RejectLog
    from clickbridge.log.split import split_log

    keep_apart([train, lists], logs)
    for path in (train, lists):
        check_output(path)
    rejects = RejectLog(max_rejects)
    log = read_log(*logs, format=format, columns=renames(columns), time_unit=time_unit, rejects=rejects)
    report = asdict(split_log(log, at=at, by=by, train=train, lists=lists, seed=seed))
    for note in report["notes"]:
        say(note)
    if json:
        print_json(report)
    else:
        rows = [(name.replace("_", " "), value) for name, value in report.items() if name != "notes"]
        print_table("", ("", "value"), rows)


def stats(
    graph: Annotated[Path, typer.Argument(help="A GRAPH folder.", show_default=False)], json: Json = False
) -> None:
    """Print the papers' Table 1 for a GRAPH, and what else one asks first of a log."""
    from clickbridge.evaluate.statistics import stats as count
    from clickbridge.graph.clickgraph import ClickGraph

    with progress() as report:
        report("opening", 0)
        opened = ClickGraph.open(graph)
        report("counting", 0)
        table = count(opened)
    if json:
        print_json(table)
    else:
        print_table(f"{graph}", ("", "value"), [(name, in_words(value)) for name, value in table.items()])


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
    with progress() as report:
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
                    progress=lambda done, total: report(f"simulating, of {total:,},", done),
                )
            )
    if json:
        print_json(counts)
    else:
        print_table(f"simulated: {out}", ("", "count"), list(counts.items()))
