"""Verbs around a model: models, fit, update, search, similar."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from clickbridge.cli.console import Json, Seed, keep_apart, print_json, print_table, progress, renames, say
from clickbridge.cli.data import Columns, Format, MaxRejects, TimeUnit
from clickbridge.cli.fitting import (
    Assignments,
    Dim,
    EngineName,
    Fields,
    HalfLife,
    Memory,
    MinClicks,
    MinUsers,
    Response,
    Threads,
    checked_counting,
    engine_of,
)
from clickbridge.errors import InputError, SettingError
from clickbridge.settings import parse_assignments

REASONS = 6
ModelPath = Annotated[Path, typer.Argument(help="A MODEL folder.", show_default=False)]


def models(json: Json = False) -> None:
    """List every model: name, what it is, what it can do, which paper."""
    from clickbridge.models.fitted import ABILITIES
    from clickbridge.models.registry import MODELS, WRAPPERS, model_class

    rows = []
    for name in (*MODELS, *WRAPPERS):
        kind = model_class(name)
        rows.append(
            {
                "name": f"{name}:SPEC" if name in WRAPPERS else name,
                "about": kind.about,
                "can": [ability for ability in ABILITIES if ability in kind.abilities()],
                "paper": kind.paper,
                "settings": ", ".join(kind.setting_names()),
            }
        )
    if json:
        print_json(rows)
    else:
        table = [(*row.values(),) for row in (row | {"can": ", ".join(row["can"])} for row in rows)]
        print_table("", ("name", "what it is", "what it can do", "paper", "settings"), table)


def fit(
    graph: Annotated[Path, typer.Argument(help="A GRAPH folder.", show_default=False)],
    model: Annotated[str, typer.Option(help="A spec, as bm25 or bm25+lmir; auto tries several.")] = "auto",
    out: Annotated[Path | None, typer.Option(help="The MODEL folder to write.", show_default=False)] = None,
    dim: Dim = None,
    fields: Fields = None,
    min_clicks: MinClicks = None,
    min_users: MinUsers = None,
    response: Response = None,
    half_life: HalfLife = None,
    set: Assignments = [],  # noqa: B006
    budget: Annotated[str | None, typer.Option(help="How long auto may try models, as 90s, 10m, 2h.")] = None,
    tune: Annotated[bool, typer.Option("--tune", help="Search the settings' grids through hold_back first.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Say what learning would cost, and stop (rmls).")] = False,
    seed: Seed = 0,
    engine: EngineName = "local",
    threads: Threads = 0,
    memory: Memory = "0",
    json: Json = False,
) -> None:
    """Learn a model from a GRAPH."""
    from clickbridge.graph.clickgraph import ClickGraph
    from clickbridge.graph.responses import responses
    from clickbridge.io.artifact import check_target
    from clickbridge.models.model_folder import KIND
    from clickbridge.models.specs import build_components, build_model, parse_spec

    runs_on = engine_of(engine, threads, memory)
    settings: dict[str, Any] = dict(parse_assignments(set))
    options = {"min_clicks": min_clicks, "min_users": min_users, "response": response, "half_life": half_life}
    counting = {name: settings.pop(name) for name in (*options, "max_clicks_per_user") if name in settings}
    counting = checked_counting(**counting | {name: value for name, value in options.items() if value is not None})
    more = (("fields", fields), ("dim", dim), ("budget", budget))
    settings |= {name: value for name, value in more if value is not None}
    known = {setting for part in build_components(parse_spec(model)) for setting in part.setting_names()}
    if seed and "seed" in known:
        settings["seed"] = seed
    if out is None and not plan:
        raise SettingError("fit needs --out MODEL, the folder to write; only --plan goes without")
    if out is not None:
        check_target(out, KIND)
    opened = ClickGraph.open(graph)
    counting = {**opened.defaults, **counting}
    settings |= {name: v for name, v in counting.items() if name in known}
    built = build_model(model, settings)
    # Thresholds are checked for every model, so that a slip shows even where clicks only tune weights.
    said = responses(opened, **counting).notes if counting else []
    for note in said:
        say(note)
    if plan:
        print_plans(built.plans(opened, runs_on), json)
        return
    assert out is not None
    trials = None
    if tune:
        from clickbridge.models.grid import tune as search

        trace, given = out.with_name(out.name + ".tune.jsonl"), settings
        settings, trials = search(model, given, opened, trace, seed, say, engine=runs_on)
        found = ", ".join(f"{name}={value}" for name, value in settings.items() if name not in given)
        say(f"tune {model}: takes {found or 'the defaults'}")
        built = build_model(model, settings)
    with progress() as report:
        report(f"fitting {model}", 0)
        built.fit(opened, engine=runs_on, watch=lambda line: report(line, 0))
        if trials is not None:
            built.fitted_ = built.fitted.noted(tuning=trials)
        built.save(out)
    for note in built.notes_:
        if note not in said:
            say(note)
    if json:
        print_json(built.report_)
    else:
        shown = (
            (k, v)
            for k, v in built.report_.items()
            if v is not None and k not in ("notes", "parts", "importance", "tuning", "auto")
        )
        print_table(f"{out}", ("", "value"), [(k, v) for k, v in shown])


def print_plans(plans: list[dict[str, Any]], json: bool) -> None:
    """The plan that `fit` would take is first."""
    if json:
        print_json(plans)
        return
    gib = 1 << 30
    rows = [
        (p["name"], p["operations"] / 1e9, p["bytes"] / gib, p["memory"] / gib, p["seconds"], p["tile"]) for p in plans
    ]
    print_table("", ("plan", "10^9 operations", "GiB moved", "GiB memory", "seconds, about", "columns"), rows)


def update(
    model: ModelPath,
    logs: Annotated[list[str] | None, typer.Argument(help="New log files.", show_default=False)] = None,
    docs: Annotated[list[str], typer.Option(help="New or changed documents.")] = [],  # noqa: B006
    remove_docs: Annotated[Path | None, typer.Option(help="File with ids of documents to remove, one a line.")] = None,
    format: Format = "auto",
    columns: Columns = [],  # noqa: B006
    time_unit: TimeUnit = "s",
    max_rejects: MaxRejects = "1%",
    again: Annotated[bool, typer.Option("--again", help="Take in a log that was taken in before.")] = False,
    engine: EngineName = "local",
    threads: Threads = 0,
    memory: Memory = "0",
    json: Json = False,
) -> None:
    """Take new clicks and documents into a model without learning from scratch."""
    from clickbridge.io.artifact import file_sha256, kept_for_writing
    from clickbridge.log.documents import read_docs
    from clickbridge.log.readers import read_log
    from clickbridge.log.rejects import RejectLog
    from clickbridge.models.model_folder import KIND, load

    runs_on = engine_of(engine, threads, memory)
    if not (logs or docs or remove_docs):
        raise SettingError("update needs a log, --docs or --remove-docs")
    keep_apart([], docs)
    if "-" in (logs or []):
        raise SettingError("update must know a log again by its bytes: give a file, not standard input")
    for path in logs or []:
        if not Path(path).is_file():
            raise InputError(f"no file {path}: check the path")
    # From reading to writing: of two updates at once, one would lose what the other has taken in.
    with kept_for_writing(model, KIND):
        opened = load(model)
        hashes = [file_sha256(Path(path)) for path in logs or []]
        for path, digest in zip(logs or [], hashes, strict=True):
            if digest in opened.applied_ and not again:
                raise InputError(f"{path} was taken into {model} before: give a new log, or --again")
        log = read_log(
            *(logs or []), format=format, columns=renames(columns), time_unit=time_unit, rejects=RejectLog(max_rejects)
        )
        gone = remove_docs.read_text(encoding="utf8", errors="replace").split() if remove_docs else []
        if set(opened.doc_ids_) <= {*gone}:
            raise InputError(f"{remove_docs} names every document of {model}: a model needs at least one")
        unknown = len({*gone} - {*opened.doc_ids_})
        if unknown:
            say(f"{unknown:,} ids in {remove_docs} are not in the model")
        with progress() as report:
            report(f"updating {opened.spec}", 0)
            documents = read_docs(*docs, rejects=RejectLog(max_rejects))
            opened.update(log, documents, gone, engine=runs_on, applied=hashes)
            opened.save(model)
    for note in log.notes:
        say(note)
    summary = {"model": opened.spec, "documents": len(opened.doc_ids_), "logs taken in": len(opened.applied_)}
    if json:
        print_json(summary)
    else:
        print_table(f"{model}", ("", "value"), list(summary.items()))


def search(
    model: ModelPath,
    query: Annotated[str, typer.Argument(help="What to look for.", show_default=False)],
    k: Annotated[int, typer.Option("-k", min=1, max=10_000, help="How many documents.")] = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Say which features carried each score.")] = False,
    json: Json = False,
) -> None:
    """Search the whole collection."""
    from clickbridge.models.model_folder import load

    opened = load(model)
    query = readable(query)
    hits = opened.rank(query, k)
    if opened.falls_back(query):
        say(f"{opened.spec}: no known query is like {query!r}; this is its base model's answer")
    reasons = [opened.explain(query, hit.doc_id, REASONS) for hit in hits] if explain else []
    if json:
        rows = [{"doc_id": h.doc_id, "score": h.score, "title": opened.title(h.doc_id)} for h in hits]
        for row, reason in zip(rows, reasons, strict=False):
            row["explanation"] = asdict(reason)
        print_json({"query": query, "model": opened.spec, "hits": rows})
    elif not hits:
        say(f"{opened.spec} finds nothing for {query!r}")
    else:
        table = [(rank, h.score, h.doc_id, opened.title(h.doc_id)) for rank, h in enumerate(hits, 1)]
        print_table("", ("", "score", "doc_id", "title"), table)
        for reason in reasons:
            rows_ = [(p.query_feature, p.doc_feature, f"{p.share:.0%}", "; ".join(p.taught_by)) for p in reason.pairs]
            print_table(
                f"\n{reason.doc_id} {opened.title(reason.doc_id)}", ("typed", "met", "share", "taught by"), rows_
            )


def similar(
    model: ModelPath,
    query: Annotated[str | None, typer.Option(help="Find queries like this one.")] = None,
    doc: Annotated[str | None, typer.Option(help="Find documents like the one with this id.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="How many.")] = 3,
    min_clicks: Annotated[int, typer.Option(min=1, help="Show only queries with this many clicks.")] = 1,
    by: Annotated[str, typer.Option(help="latent: in the model's own space; clicks: by clicks in common.")] = "latent",
    json: Json = False,
) -> None:
    """Find similar queries or similar documents."""
    from clickbridge.models.model_folder import load
    from clickbridge.skernel.similar_queries import similar_by_clicks

    if (query is None) == (doc is None):
        raise SettingError("similar needs either --query or --doc")
    if by not in ("latent", "clicks") or (by == "clicks" and doc is not None):
        raise SettingError(f"--by is latent, or clicks together with --query; got {by!r}")
    opened = load(model)
    if query is not None:
        asked = readable(query)
        latent = opened.similar_queries
        near = (
            latent(asked, k, min_clicks) if by == "latent" else similar_by_clicks(opened.fitted, asked, k, min_clicks)
        )
        rows = [{"query": name, "similarity": s} for name, s in near]
    else:
        assert doc is not None
        if doc not in opened.doc_ids_:
            raise InputError(f"no document {doc!r} in the model: check the id")
        hits = opened.similar_documents(doc, k)
        rows = [{"doc_id": h.doc_id, "similarity": h.score, "title": opened.title(h.doc_id)} for h in hits]
    if json:
        print_json({"query": query, "doc": doc, "model": opened.spec, "similar": rows})
    elif not rows:
        say(f"{opened.spec} knows nothing like {query or doc!r}")
    else:
        print_table("", list(rows[0]), [list(row.values()) for row in rows])


def readable(query: str) -> str:
    """Bytes of the shell that are not UTF-8 become replacement marks."""
    return query.encode(errors="replace").decode()
