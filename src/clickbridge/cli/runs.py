"""Verbs around rankings: rank, evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickbridge.cli.console import Json, ModelPath, keep_apart, print_json, print_table, progress_bar, say
from clickbridge.cli.fitting import WhereToWork
from clickbridge.cli.options import with_options
from clickbridge.errors import InputError, SettingError
from clickbridge.wording import count_of

if TYPE_CHECKING:
    from clickbridge.measures import Measure
    from clickbridge.types import ResultList

CHUNK = 4096
Queries = Annotated[str | None, typer.Option(help="Topics with the text of a run's queries: id, tab, text.")]
Grades = dict[str, dict[str, float]]
Values = dict[str, dict[str, float]]


@with_options
def rank(
    model: ModelPath,
    lists: Annotated[str, typer.Option(help="LISTS to re-rank; with --queries, a TREC run.", show_default=False)],
    out: Annotated[Path, typer.Option(help="TREC run to write.", show_default=False)],
    queries: Queries = None,
    *,
    where: WhereToWork,
    json: Json = False,
) -> None:
    """Re-rank lists of results; every given result comes out exactly once."""
    import numpy as np

    from clickbridge.io.trec import write_run
    from clickbridge.models.candidates import asked
    from clickbridge.models.model_folder import load

    keep_apart([out], [lists, model, queries])
    with where.start() as runs_on, progress_bar() as progress:
        opened, given = load(model), lists_of(lists, queries)
        rankings = []
        for start in range(0, len(given), CHUNK):
            progress(f"lists, {start + 1:,} of {len(given):,}")
            rankings += opened.rerank_lists(given[start : start + CHUNK], engine=runs_on)
    unscored = sum(1 for r in rankings if r and not np.isfinite([h.score for h in r]).any())
    write_run(out, ((r.query_id, ranking) for r, ranking in zip(given, rankings, strict=True)), opened.spec)
    known = {*opened.doc_ids_}
    unknown, shown = sum(doc_id not in known for r in given for doc_id in r.results), sum(len(r.results) for r in given)
    summary = {"run": str(out), "model": opened.spec, "lists": len(given), "no_score": unscored}
    summary |= {"results": shown, "unknown_results": unknown}
    if json:
        print_json(summary)
    else:
        print_table("", ("", "value"), [(name.replace("_", " "), value) for name, value in summary.items()])
        if unknown:
            say(f"{count_of(unknown, 'result', 'are', of=shown)} not in the model: no score, so last")
        if unscored:
            lists = count_of(unscored, "list", of=len(given))
            say(f"{opened.spec} has no score for {lists}: these keep their order")
        fell_back = sum(opened.falls_back(asked(result, opened.fitted.queries).key) for result in given) - unscored
        if fell_back > 0:
            say(f"{opened.spec} knows no query like {fell_back:,} of {len(given):,}: its base model ranked them")


def lists_of(lists: str, queries: str | None) -> list[ResultList]:
    """Lists of a LISTS file or, with the topics of its queries, of a run."""
    from clickbridge.io.lists import read_lists
    from clickbridge.io.topics import lists_of_run, read_topics
    from clickbridge.io.trec import read_run

    return read_lists(lists) if queries is None else lists_of_run(read_run(lists), read_topics(queries))


def evaluate(
    runs: Annotated[list[Path], typer.Argument(help="TREC runs; each is named by its file stem.", show_default=False)],
    qrels: Annotated[Path | None, typer.Option(help="TREC judgments.")] = None,
    lists: Annotated[str | None, typer.Option(help="LISTS with labels, used as judgments.")] = None,
    measures: Annotated[str, typer.Option(help="Comma-separated: nDCG@5, AP, AP(rel=2), RR, P@5, R@10.")] = (
        "nDCG@1,nDCG@3,nDCG@5,AP"
    ),
    baseline: Annotated[str | None, typer.Option(help="Run to compare the others with.")] = None,
    json: Json = False,
) -> None:
    """Measure runs against judgments or labelled lists."""
    from clickbridge.measures import main_measure, parse_measures

    parsed = parse_measures(measures)
    grades = _grades(qrels, lists)
    names = [Path(path.name.removesuffix(".gz")).stem for path in runs]
    if len({*names}) != len(names):
        raise SettingError(f"two runs share a name ({', '.join(names)}): rename one file")
    if baseline is not None and baseline not in names:
        raise SettingError(f"--baseline must be one of {', '.join(names)}; got {baseline!r}")
    values, answered = {}, {}
    for name, path in zip(names, runs, strict=True):
        values[name], answered[name] = _measured(path, grades, parsed)
    table = [
        {
            "run": name,
            "queries": max(len(per_query) for per_query in own.values()),
            "answered": answered[name],
            **{measure: sum(per_query.values()) / len(per_query) for measure, per_query in own.items()},
            **(_tested(values, name, baseline, parsed) if baseline is not None and name != baseline else {}),
        }
        for name, own in values.items()
    ]
    if json:
        print_json(table)
    else:
        _print(table, main_measure(parsed).name)
        for row in table:
            if row["answered"] < row["queries"]:
                part = count_of(row["answered"], "query", of=row["queries"])
                say(f"{row['run']} answers {part}; the others count 0")
        skipped = len(grades) - table[0]["queries"]
        if skipped:
            say(f"{count_of(skipped, 'judged query', 'have')} no relevant document: not counted")


def _print(table: list[dict[str, Any]], main: str) -> None:
    """One table of how good the runs are and, where they are tested against a baseline, one of the tests."""
    columns = list(dict.fromkeys(name for row in table for name in row))
    tests = columns.index("gain") if "gain" in columns else len(columns)
    heads = {"gain": f"{main} gain"}
    for title, names in (("", columns[:tests]), ("\n", ["run", *columns[tests:]])):
        if len(names) > 1:
            shown = [heads.get(name, name.replace("_", " ")) for name in names]
            print_table(title, shown, [[row.get(name) for name in names] for row in table])


def _measured(path: Path, grades: Grades, measures: list[Measure]) -> tuple[Values, int]:
    """Every query's value by measure, and how many of the queries the run answers; a run that answers no judged query
    is a mistake, not a zero."""
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
    counted = {query_id for per_query in values.values() for query_id in per_query}
    return values, len(counted & run.keys())


def _tested(values: dict[str, Values], name: str, baseline: str, measures: list[Measure]) -> dict[str, Any]:
    """Columns that compare one run with the baseline; p-values are corrected over all runs."""
    from clickbridge.evaluate.significance import against
    from clickbridge.measures import main_measure

    main = main_measure(measures).name
    others = {other: own[main] for other, own in values.items() if other != baseline}
    return against(values[baseline][main], others)[name].as_dict()


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
