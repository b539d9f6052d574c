"""`clickbridge compare`: every model on the same lists, with tests, cost and a report."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickbridge.cli.console import Json, Seed, in_words, keep_apart, print_json, print_table, progress_bar, say
from clickbridge.cli.fitting import Assignments, Dim, Fields, HowToCount, WhereToWork, fit_settings
from clickbridge.cli.options import with_options
from clickbridge.cli.runs import Queries, lists_of
from clickbridge.errors import SettingError
from clickbridge.wording import count_of

if TYPE_CHECKING:
    from clickbridge.evaluate.results import Comparison


@with_options
def compare(
    graph: Annotated[Path, typer.Argument(help="A GRAPH folder.", show_default=False)],
    lists: Annotated[
        str, typer.Option(help="LISTS to re-rank and measure; with --queries, a TREC run.", show_default=False)
    ],
    models: Annotated[str, typer.Option(help="Comma-separated specs, e.g. bm25,pls,bm25+pls.", show_default=False)],
    baseline: Annotated[str, typer.Option(help="Spec to compare the others with.")] = "given",
    measures: Annotated[str, typer.Option(help="Comma-separated: nDCG@5, AP, AP(rel=2), RR, P@5, R@10.")] = (
        "nDCG@1,nDCG@3,nDCG@5,AP"
    ),
    qrels: Annotated[str | None, typer.Option(help="TREC judgments, in place of the lists' labels.")] = None,
    queries: Queries = None,
    dims: Annotated[str, typer.Option(help="Fit latent models at these dimensions as well, e.g. 100,300,600.")] = "",
    report: Annotated[Path | None, typer.Option(help="HTML report to write.")] = None,
    csv: Annotated[Path | None, typer.Option(help="CSV to write: every query, model and measure.")] = None,
    save_dir: Annotated[Path | None, typer.Option(help="Folder that keeps results for later calls.")] = None,
    set: Assignments = [],  # noqa: B006
    dim: Dim = None,
    fields: Fields = None,
    seed: Seed = 0,
    *,
    counting: HowToCount,
    where: WhereToWork,
    json: Json = False,
) -> None:
    """Learn several models, run them on the same lists, and test which is better."""
    from clickbridge.evaluate.compare import compare as compare_models

    runs_on = where.start()
    keep_apart([report, csv, save_dir], [graph, lists, qrels, queries])
    for path in (report, csv):
        if path is not None and not path.parent.is_dir():
            raise SettingError(f"cannot write {path}: its folder does not exist")
    settings = fit_settings(set, **asdict(counting), dim=dim, fields=fields, seed=seed or None)
    judged = lists_of(lists, queries)
    with progress_bar() as progress:
        found = compare_models(
            graph,
            judged,
            models,
            settings=settings,
            baseline=baseline,
            measures=measures,
            qrels=qrels,
            dims=_numbers(dims),
            save_dir=save_dir,
            engine=runs_on,
            progress=progress,
            command=shlex.join(["clickbridge", *sys.argv[1:]]),
        )
        if csv is not None:
            found.write_csv(csv)
        if report is not None:
            progress("drawing the report")
            found.write_report(report)
    for note in found.notes:
        say(note)
    for spec, reason in found.refused.items():
        say(f"{spec} is left out: {reason}")
    if json:
        print_json(found.as_dict())
    else:
        _print(found)
        if report is not None:
            say(f"report: {report}")


def _numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")] if text.strip() else []
    except ValueError:
        raise SettingError(f"--dims takes whole numbers, such as 100,300,600; got {text!r}") from None


def _print(found: Comparison) -> None:
    """Two tables, each for a terminal of 80 columns: how good and how sure; then the other tests and the cost."""
    from clickbridge.evaluate.significance import p_in_words

    quality, more = [], []
    for row, model in zip(found.rows(), found.models, strict=True):
        tested = model.paired.get(found.main)
        shown: dict[str, Any] = {"model": row["model"]}
        for name in found.measures:
            mark = model.paired[name].mark if model.paired else ""
            shown[name] = "no score" if row[name] is None else f"{row[name]:.4f}{mark}"
        shown[f"{found.main} gain"] = f"{tested.difference:+.4f}" if tested else None
        shown["p"] = p_in_words(tested.p_value) if tested else None
        quality.append(shown)
        also: dict[str, Any] = {"model": row["model"]}
        also["95% interval"] = f"{tested.low:+.3f} to {tested.high:+.3f}" if tested and isfinite(tested.low) else None
        also["p random"] = p_in_words(tested.p_random) if tested else None
        also["p sign"] = p_in_words(tested.p_sign) if tested else None
        also["won/tied/lost"] = row.get("won_tied_lost")
        also |= {cost.replace("_", " "): in_words(row[cost]) for cost in ("no_score", "fit_s", "query_ms")}
        also["MB"] = f"{row['peak_mb']:,.0f}"
        more.append(also)
    for title, rows in (("", quality), ("\n", more)):
        print_table(title, list(rows[0]), [list(row.values()) for row in rows])
    say(
        f"{count_of(len(found.counted), 'judged query')}; against {found.baseline}: ▲ better, ▼ worse, by the paired "
        "t-test at .05 (doubled at .01); all p-values are Holm-corrected"
    )
    reused = sum(m.trial.reused for m in found.models)
    if reused:
        taken = count_of(reused, "model", "were", of=len(found.models))
        say(f"{taken} taken from earlier calls, with their times and memory")
