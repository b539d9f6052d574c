"""Verbs around rankings: rank, evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickbridge.cli.console import Json, ModelPath, keep_apart, print_json, print_table, progress, say
from clickbridge.errors import InputError, SettingError

if TYPE_CHECKING:
    from clickbridge.measures import Measure

CHUNK = 4096
Grades = dict[str, dict[str, float]]
Values = dict[str, dict[str, float]]


def rank(
    model: ModelPath,
    lists: Annotated[str, typer.Option(help="LISTS to re-rank.", show_default=False)],
    out: Annotated[Path, typer.Option(help="TREC run to write.", show_default=False)],
    json: Json = False,
) -> None:
    """Re-rank lists of results; every given result comes out exactly once."""
    import numpy as np

    from clickbridge.io.lists import read_lists
    from clickbridge.io.trec import write_run
    from clickbridge.models.candidates import asked
    from clickbridge.models.model_folder import load

    keep_apart([out], [lists, model])
    opened, given = load(model), read_lists(lists)
    rankings = []
    with progress() as report:
        for start in range(0, len(given), CHUNK):
            report("lists", start)
            rankings += opened.rerank_lists(given[start : start + CHUNK])
    unscored = sum(1 for r in rankings if r and not np.isfinite([h.score for h in r]).any())
    write_run(out, ((r.query_id, ranking) for r, ranking in zip(given, rankings, strict=True)), opened.spec)
    summary = {"run": str(out), "model": opened.spec, "lists": len(given), "no score": unscored}
    if json:
        print_json(summary)
    else:
        print_table("", ("", "value"), list(summary.items()))
        if unscored:
            say(f"{opened.spec} has no score for {unscored:,} of {len(given):,} lists: their order is as it came")
        fell_back = sum(opened.falls_back(asked(result, opened.fitted.queries).key) for result in given) - unscored
        if fell_back > 0:
            say(f"{opened.spec} knows no query like {fell_back:,} of {len(given):,}: its base model ranked them")


def evaluate(
    runs: Annotated[list[Path], typer.Argument(help="TREC runs; each is named by its file stem.", show_default=False)],
    qrels: Annotated[Path | None, typer.Option(help="TREC judgments.")] = None,
    lists: Annotated[str | None, typer.Option(help="LISTS with labels, as judgments.")] = None,
    measures: Annotated[str, typer.Option(help="Comma-separated: nDCG@5, AP, AP(rel=2), RR, P@5, R@10.")] = (
        "nDCG@1,nDCG@3,nDCG@5,AP"
    ),
    baseline: Annotated[str | None, typer.Option(help="Run to compare the others with.")] = None,
    json: Json = False,
) -> None:
    """Measure runs against judgments or labelled lists."""
    from clickbridge.measures import parse_measures

    parsed = parse_measures(measures)
    grades = _grades(qrels, lists)
    names = [Path(path.name.removesuffix(".gz")).stem for path in runs]
    if len({*names}) != len(names):
        raise SettingError(f"two runs share a name ({', '.join(names)}): rename one file")
    if baseline is not None and baseline not in names:
        raise SettingError(f"--baseline must be one of {', '.join(names)}; got {baseline!r}")
    values = {name: _measured(path, grades, parsed) for name, path in zip(names, runs, strict=True)}
    table = [
        {
            "run": name,
            "queries": max(len(per_query) for per_query in own.values()),
            **{measure: sum(per_query.values()) / len(per_query) for measure, per_query in own.items()},
            **(_tested(values, name, baseline, parsed) if baseline is not None and name != baseline else {}),
        }
        for name, own in values.items()
    ]
    if json:
        print_json(table)
    else:
        columns = list(dict.fromkeys(name for row in table for name in row))
        print_table("", columns, [[row.get(name) for name in columns] for row in table])
        skipped = len(grades) - table[0]["queries"]
        if skipped:
            say(f"{skipped:,} judged queries have no relevant document and are not counted")


def _measured(path: Path, grades: Grades, measures: list[Measure]) -> Values:
    """Every query's value by measure; a run that answers no judged query is a mistake, not a zero."""
    from clickbridge.io.trec import read_run
    from clickbridge.measures import evaluate_run

    run = read_run(path)
    if not grades.keys() & run.keys():
        raise InputError(
            f"{path} answers none of the {len(grades):,} judged queries: its query ids are like {next(iter(run))!r}, "
            f"those of the judgments like {next(iter(grades))!r}"
        )
    values = evaluate_run(run, grades, measures)
    for measure, per_query in values.items():
        if not per_query:
            raise InputError(f"no judged query has a relevant document for {measure}: nothing to measure")
    return values


def _tested(values: dict[str, Values], name: str, baseline: str, measures: list[Measure]) -> dict[str, Any]:
    """Columns that compare one run with the baseline; p-values are corrected over all runs."""
    from clickbridge.evaluate.significance import against
    from clickbridge.measures import main_measure

    main = main_measure(measures).name
    others = {other: own[main] for other, own in values.items() if other != baseline}
    columns = against(values[baseline][main], others)[name].as_dict()
    return {f"{main} gain" if key == "gain" else key: value for key, value in columns.items()}


def _grades(qrels: Path | None, lists: str | None) -> Grades:
    from clickbridge.io.lists import read_lists
    from clickbridge.io.trec import read_qrels

    if (qrels is None) == (lists is None):
        raise SettingError("evaluate needs either --qrels or --lists")
    if qrels is not None:
        return read_qrels(qrels)
    assert lists is not None
    labelled = [result for result in read_lists(lists) if result.labels is not None]
    if not labelled:
        raise InputError(f"{lists} has no labels: give labelled lists, or --qrels")
    return {r.query_id: dict(zip(r.results, r.labels or (), strict=True)) for r in labelled}
