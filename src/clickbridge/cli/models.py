"""Verbs that make a model: models, fit."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickbridge.cli.console import Json, Seed, print_json, print_page, print_table, progress_bar, say
from clickbridge.cli.fitting import (
    Assignments,
    Dim,
    Fields,
    HowToCount,
    WhereToWork,
    checked_counting,
    given,
)
from clickbridge.cli.options import with_options
from clickbridge.errors import SettingError
from clickbridge.settings import parse_assignments

if TYPE_CHECKING:
    from clickbridge.engines.base import Engine
    from clickbridge.graph.clickgraph import ClickGraph
    from clickbridge.io.checkpoint import Checkpoints
    from clickbridge.models.grid import Trial
    from clickbridge.models.model import Model


def models(
    name: Annotated[str | None, typer.Argument(help="A model to explain, with all its settings.")] = None,
    json: Json = False,
) -> None:
    """List every model: name, what it is, what it can do, which paper. With a name: that model and its settings."""
    from clickbridge.models.fitted import ABILITIES
    from clickbridge.models.registry import MODELS, WRAPPERS, model_class

    rows = []
    for found in (*MODELS, *WRAPPERS) if name is None else (name.removesuffix(":SPEC"),):
        kind = model_class(found)
        declared = kind.declared().values()
        rows.append(
            {
                "name": f"{found}:SPEC" if found in WRAPPERS else found,
                "about": kind.about,
                "can": [ability for ability in ABILITIES if ability in kind.abilities()],
                "paper": kind.paper,
                "settings": ", ".join(setting.name for setting in declared if not setting.group),
                "more_settings": ", ".join(setting.name for setting in declared if setting.group),
            }
        )
    if json:
        print_json(rows)
    elif name is not None:
        print_page(kind.__doc__ or kind.about)
    else:
        table = [(row["name"], row["about"], ", ".join(row["can"]), row["paper"], row["settings"]) for row in rows]
        print_table("", ("name", "what it is", "what it can do", "paper", "settings"), table)
        say("`clickbridge models NAME` explains a model and all its settings")


@with_options
def fit(
    graph: Annotated[Path, typer.Argument(help="A GRAPH folder.", show_default=False)],
    model: Annotated[str, typer.Option(help="A spec, e.g. bm25 or bm25+lmir; auto tries several.")] = "auto",
    out: Annotated[Path | None, typer.Option(help="The MODEL folder to write.", show_default=False)] = None,
    dim: Dim = None,
    fields: Fields = None,
    *,
    counting: HowToCount,
    filter_fields: Annotated[
        str | None, typer.Option(help="Fields to filter searches by, e.g. category,stock.")
    ] = None,
    set: Assignments = [],  # noqa: B006
    budget: Annotated[str | None, typer.Option(help="How long auto may try models, e.g. 90s, 10m, 2h.")] = None,
    tune: Annotated[bool, typer.Option("--tune", help="First search for better settings on held-back clicks.")] = False,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Print what learning would cost (rmls, pls, mpls, lsi, their sums), and stop."),
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="A folder for what is learned so far; the same fit, started again, continues from it."),
    ] = None,
    seed: Seed = 0,
    where: WhereToWork,
    json: Json = False,
) -> None:
    """Learn a model from a GRAPH."""
    from clickbridge.graph.clickgraph import ClickGraph
    from clickbridge.graph.responses import responses
    from clickbridge.models.display import check_fields
    from clickbridge.models.specs import build_components, build_model, parse_spec

    runs_on, about_plan = where.for_plan() if plan else (where.start(), "")
    settings, counted = settings_of(set, counting, fields=fields, dim=dim, budget=budget)
    known = {setting for part in build_components(parse_spec(model)) for setting in part.setting_names()}
    if seed and "seed" in known:
        settings["seed"] = seed
    check_out(out, plan)
    checkpoints = None if checkpoint is None else checked_folder(checkpoint, [graph, out])
    opened = ClickGraph.open(graph)
    kept = [name.strip().lower() for name in filter_fields.split(",")] if filter_fields else []
    check_fields(opened, kept)
    counted = {**opened.defaults, **counted}
    settings |= {name: value for name, value in counted.items() if name in known}
    built = build_model(model, settings)
    # Thresholds are checked for every model, so that a slip shows even where clicks only tune weights.
    said = responses(opened, **counted).notes if counted else []
    for note in said:
        say(note)
    if plan:
        plans = built.plans(opened, runs_on, checkpoints)
        if about_plan:
            say(about_plan)
        print_plans(plans, json)
        return
    assert out is not None
    trials = None
    if tune:
        settings, trials = tuned(model, settings, opened, out, seed, runs_on)
        built = build_model(model, settings)
    with progress_bar() as progress:
        progress(f"fitting {model}")
        built.fit(opened, engine=runs_on, progress=progress, checkpoint=checkpoints)
        written(built, out, opened, kept, trials)
        if checkpoints is not None:
            checkpoints.clear()
    for note in built.notes_:
        if note not in said:
            say(note)
    print_report(out, built.report_, json)


def settings_of(
    assignments: list[str], counting: HowToCount, **options: object
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of the model, and those of counting, which every model has. Options count more than --set."""
    settings: dict[str, Any] = dict(parse_assignments(assignments))
    named = asdict(counting)
    counted = {name: settings.pop(name) for name in (*named, "max_clicks_per_user") if name in settings}
    return settings | given(options), checked_counting(**counted | given(named))


def check_out(out: Path | None, plan: bool) -> None:
    from clickbridge.io.artifact import check_target
    from clickbridge.models.model_folder import KIND

    if out is not None:
        check_target(out, KIND)
    elif not plan:
        raise SettingError("fit needs --out MODEL, the folder to write; only --plan goes without")


def written(model: Model, out: Path, graph: ClickGraph, kept: list[str], trials: list[Trial] | None) -> None:
    if trials is not None:
        model.fitted_ = model.fitted.noted(tuning=trials)
    if kept:
        model.keep_fields(graph, kept)
    model.save(out)


def tuned(
    model: str, given: dict[str, Any], graph: ClickGraph, out: Path, seed: int, engine: Engine | None
) -> tuple[dict[str, Any], list[Trial]]:
    """Settings with what the grids' search found, and a record of its trials, also written next to the MODEL."""
    from clickbridge.models.grid import tune

    settings, trials = tune(model, given, graph, out.with_name(out.name + ".tune.jsonl"), seed, say, engine=engine)
    found = ", ".join(f"{name}={value}" for name, value in settings.items() if name not in given)
    say(f"tune {model}: takes {found or 'the defaults'}")
    return settings, trials


def print_report(out: Path, report: dict[str, Any], json: bool) -> None:
    """What was fitted; without --json what is long is left out."""
    if json:
        print_json(report)
        return
    long = ("notes", "parts", "importance", "tuning", "auto", "trace", "bounds")
    print_table(f"{out}", ("", "value"), [(k, v) for k, v in report.items() if v is not None and k not in long])


def checked_folder(checkpoint: Path, artifacts: list[Path | None]) -> Checkpoints:
    """A folder for checkpoints. Those of this fit are removed once the MODEL is written."""
    from clickbridge.io.checkpoint import Checkpoints

    checkpoints = Checkpoints(checkpoint)
    taken = [path for path in artifacts if path is not None and checkpoint.resolve() == path.resolve()]
    if taken:
        raise SettingError(f"--checkpoint needs a folder of its own; {taken[0]} is the GRAPH or the MODEL")
    return checkpoints


def print_plans(plans: list[dict[str, Any]], json: bool) -> None:
    """The plan that `fit` would take is first, of each part."""
    if json:
        print_json(plans)
        return
    gib = 1 << 30
    units = {
        "10^9 operations": ("operations", 1e9), "GiB moved": ("bytes", gib), "GiB memory": ("memory", gib),
        "seconds, about": ("seconds", 1), "columns": ("tile", 1),
    }  # fmt: skip
    of_parts = "part" in plans[0]
    rows = [
        [*([p["part"]] if of_parts else []), p["name"]]
        + [None if p[name] is None else p[name] if unit == 1 else p[name] / unit for name, unit in units.values()]
        for p in plans
    ]
    print_table("", (*(["part"] if of_parts else []), "plan", *units), rows)
    if of_parts:
        say("each is for learning a part once; what is chosen through hold_back, such as weights, learns it again")
