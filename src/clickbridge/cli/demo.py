"""`clickbridge demo`: the whole path on built-in data, from a raw log to a search page."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clickbridge.cli.console import Seed, out, print_table, progress_bar, say
from clickbridge.progress import Progress

if TYPE_CHECKING:
    from clickbridge.models.model import Model
    from clickbridge.models.study import Study
    from clickbridge.online.interleave import Verdict
    from clickbridge.online.online import Online
    from clickbridge.online.simulated import Point
    from clickbridge.types import ResultList

    Curve = tuple[int, list[Point], Verdict]
    Scores = dict[str, dict[str, dict[str, float]]]

SPECS = ("vsm", "lmir", "bm25", "lsi-dt", "cos-click", "pls", "auto")
BEFORE, AFTER, TAUGHT = "bm25", "auto", "online"
"""A model of words, the best one, and one that learns while the page is used."""
BUDGET = "30s"
EXAMPLES = 6
MEASURES = "nDCG@1,nDCG@5,R@10"
SEARCHES = (0, 250, 500, 1000, 2000)


def demo(
    folder: Annotated[Path, typer.Option(help="Folder for the demo's files.")] = Path("demo-out"),
    serve: Annotated[bool, typer.Option(help="End on the search page, where there is a terminal.")] = True,
    seed: Seed = 0,
) -> None:
    """Search Python's own documentation, with simulated users, and see which model ranks best."""
    from clickbridge.graph.clickgraph import ClickGraph
    from clickbridge.io.lists import read_lists
    from clickbridge.log.documents import read_docs
    from clickbridge.log.readers import read_log
    from clickbridge.models.study import Study
    from clickbridge.simulate.demo import write_demo

    start = time.perf_counter()
    with progress_bar() as progress:
        progress("collecting the standard library's documentation, simulating searches")
        counts = write_demo(folder, seed)
        graph = ClickGraph.build(
            read_log(str(folder / "log.jsonl.gz")),
            read_docs(str(folder / "docs.jsonl.gz")),
            folder / "graph",
            progress=progress,
        )
    # Each table is printed as soon as it is known: all of them take minutes.
    title = "The data (documents are real, searches and clicks are simulated)"
    print_table(title, ("", "count"), list(counts.items()))
    out.print()
    study = Study(graph)  # what the models share is worked out once
    model_folder = folder / "models"
    model_folder.mkdir(exist_ok=True)
    judged = {kind: read_lists(str(folder / f"{kind}.lists.jsonl")) for kind in ("seen", "unseen")}
    with progress_bar() as progress:
        models = _fitted(study, model_folder, progress)
        progress("searching")
        scores = {spec: {kind: _measure(model, judged[kind]) for kind in judged} for spec, model in models.items()}
    _print_scores(scores, models)
    out.print()
    _examples(models[BEFORE], models[AFTER], judged["unseen"])
    out.print()
    _similar(models[AFTER], [r.query for r in judged["seen"]][:: len(judged["seen"]) // EXAMPLES])
    out.print()
    with progress_bar() as progress:
        progress("learning from simulated clicks")
        learner = _learner(study)
        learner.save(model_folder / TAUGHT)
        curve = _learning_curve(learner, models[BEFORE], judged["seen"], seed)
    _print_curve(curve)
    picture = folder / "quality.svg"
    _plot(scores, picture)
    say(f'plot: {picture}   search yourself: clickbridge search {folder}/models/{AFTER} "parse json string" --explain')
    say(f"done in {time.perf_counter() - start:.0f} s")
    _end_on_page(model_folder, serve)


def _fitted(study: Study, folder: Path, progress: Progress) -> dict[str, Model]:
    """Every model of the table, saved as well."""
    from clickbridge.models.specs import build_model

    models: dict[str, Model] = {}
    for number, spec in enumerate(SPECS, 1):
        progress(f"fitting {spec} ({number} of {len(SPECS)})")
        models[spec] = build_model(spec, {"budget": BUDGET} if spec == AFTER else None).fit_on(study)
        models[spec].save(folder / spec)
    return models


def _print_scores(scores: Scores, models: Mapping[str, Model]) -> None:
    names, kinds = MEASURES.split(","), list(next(iter(scores.values())))
    columns = ["model", *(f"{kind} {name}" for kind in kinds for name in names)]
    shown = {spec: f"{spec} ({model.fitted.spec})" if spec == AFTER else spec for spec, model in models.items()}
    rows = [[shown[spec], *(own[kind][name] for kind in kinds for name in names)] for spec, own in scores.items()]
    print_table("Searching all documents; unseen phrasings never occur in the simulated log", columns, rows)


def _end_on_page(folder: Path, serve: bool) -> None:
    """Serves three models where someone looks at a terminal; else says how."""
    named = [f"{name}={folder / name}" for name in (TAUGHT, AFTER, BEFORE)]
    installed = find_spec("fastapi") is not None
    if not (serve and installed and sys.stdout.isatty() and sys.stdin.isatty()):
        first = "" if installed else "pip install 'clickbridge[serve]', then "
        say(f"the search page: {first}clickbridge serve {' '.join(named)} --min-users 1")
        return
    from clickbridge.cli.serving import serve as serve_models

    say("the search page is at http://127.0.0.1:8765; Ctrl-C ends it")
    serve_models(named, min_users=1, quiet=True)


def _measure(model: Model, lists: list[ResultList]) -> dict[str, float]:
    """Means over the queries, searching the whole collection."""
    from clickbridge.measures import evaluate_run, parse_measures

    rankings = model.rank_many([r.query for r in lists], 10)
    run = {r.query_id: ranking.doc_ids for r, ranking in zip(lists, rankings, strict=True)}
    grades = {r.query_id: {d: g for d, g in zip(r.results, r.labels or (), strict=True) if g} for r in lists}
    values = evaluate_run(run, grades, parse_measures(MEASURES))
    return {name: sum(v.values()) / len(v) for name, v in values.items()}


def _examples(before: Model, after: Model, lists: list[ResultList]) -> None:
    """Unseen phrasings whose best answer rises most from one model to the other."""
    queries = [r.query for r in lists]
    best = [dict(zip(r.labels or (), r.results, strict=True))[max(r.labels or (0,))] for r in lists]
    places = [
        [ranking.doc_ids.index(b) + 1 if b in ranking.doc_ids else 11 for ranking, b in zip(found, best, strict=True)]
        for found in (before.rank_many(queries, 10), after.rank_many(queries, 10))
    ]
    gains = sorted(range(len(lists)), key=lambda i: places[1][i] - places[0][i])[:EXAMPLES]
    words = [[f"#{p}" if p <= 10 else "not in 10" for p in side] for side in places]
    rows = [(queries[i], best[i], words[0][i], words[1][i]) for i in gains]
    print_table("Before and after", ("typed", "wanted", before.spec, after.spec), rows)


def _similar(model: Model, queries: list[str]) -> None:
    rows = [(query, ", ".join(name for name, _ in model.similar_queries(query, 3))) for query in queries[:EXAMPLES]]
    print_table(f"Similar queries ({model.spec}, from simulated clicks)", ("typed", "similar"), rows)


def _learner(study: Study) -> Online:
    """A model of words that learns from every click."""
    from clickbridge.models.specs import build_model
    from clickbridge.online.online import Online

    # The blend is what hold_back finds on this data; to look for it again would take longer than all the rest.
    model = build_model(f"online:{BEFORE}", {"online.dim": 20, "clusters": 10, "blend": "0,0.6,1"})
    model.fit_on(study)
    assert isinstance(model, Online)
    return model


def _learning_curve(model: Online, before: Model, lists: list[ResultList], seed: int) -> Curve:
    """The first search page of `before`, used by simulated users while the online learner watches."""
    import numpy as np

    from clickbridge.online.simulated import against_the_engine, learning_curve
    from clickbridge.types import ResultList

    pages = []
    found = before.rank_many([r.query for r in lists], model.list_length)
    for judged, ranking in zip(lists, found, strict=True):
        grades = dict(zip(judged.results, judged.labels or (), strict=True))
        labels = [grades.get(d, 0.0) for d in ranking.doc_ids]
        if any(labels):
            pages.append(ResultList(judged.query_id, judged.query, ranking.doc_ids, labels))
    rng = np.random.default_rng(seed)
    points = learning_curve(model, pages, SEARCHES, rng)
    return len(pages), points, against_the_engine(model, pages, SEARCHES[-1] // 4, rng)


def _print_curve(curve: Curve) -> None:
    pages, points, verdict = curve
    rows = [(p.searches, p.clicks, p.ndcg) for p in points]
    title = f"online:{BEFORE} learns from simulated clicks, one at a time ({pages} pages of {BEFORE} with an answer)"
    print_table(title, ("searches", "clicks", "nDCG@10"), rows)
    say(
        f"interleaved with {BEFORE}, it wins {verdict.first:,} simulated pages and loses {verdict.second:,}; "
        f"{verdict.ties:,} are undecided"
    )


def _plot(scores: Scores, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    kinds = list(next(iter(scores.values())))
    for offset, kind in enumerate(kinds):
        places = [i + (offset - 0.5) * 0.38 for i in range(len(scores))]
        bars = axes.bar(places, [s[kind]["nDCG@5"] for s in scores.values()], 0.36, label=f"{kind} phrasings")
        axes.bar_label(bars, fmt="%.2f", fontsize=8)
    axes.set_xticks(range(len(scores)), list(scores))
    axes.set(ylabel="nDCG@5", ylim=(0, 1), title="Standard library search, simulated clicks")
    axes.legend(frameon=False)
    figure.savefig(path)
    plt.close(figure)
