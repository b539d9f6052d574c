"""Fits several models on one GRAPH, re-ranks the same lists with each, measures them and tests them against a baseline.

Each model is fitted as by `fit`, in a process of its own. Tuning uses held-back clicks, never the lists. The rankings
are stored in `save_dir` under a key of everything they depend on: a second call fits only what changed, and an
interrupted one loses only the model that was running.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from clickbridge import __version__
from clickbridge.engines.base import Engine
from clickbridge.errors import InputError, SettingError
from clickbridge.evaluate.entrants import Entrant, entrants, own_trial
from clickbridge.evaluate.judged import Judged, Qrels, judged_lists
from clickbridge.evaluate.results import Comparison, ModelResult
from clickbridge.evaluate.significance import Paired, against
from clickbridge.evaluate.single import MEASURES, as_lists
from clickbridge.evaluate.slices import Cell, cell, describe
from clickbridge.evaluate.trial import (
    CANNOT,
    Trial,
    graph_digest,
    lists_digest,
    read_trial,
    run_trial,
    settings_for,
    trial_folder,
    trial_key,
)
from clickbridge.frames import Frame
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.responses import responses
from clickbridge.io.lists import write_lists
from clickbridge.measures import Measure, evaluate_run, main_measure, parse_measures
from clickbridge.models.catalogue import titles_of
from clickbridge.models.specs import build_model, parse_spec
from clickbridge.models.study import documents_language, language_notes
from clickbridge.progress import Progress, logged
from clickbridge.settings import Counting, Setting, declared_in
from clickbridge.types import ResultList
from clickbridge.wording import count_of

COUNTING = declared_in(Counting)
DIM = Setting("dim", 600, "dimensions of the latent space", 1, 100_000)


@dataclass(frozen=True)
class _Spec:
    """A model that is fitted from a spec, with its own settings."""

    name: str
    spec: str
    settings: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What is asked, checked before anything is fitted."""

    graph: ClickGraph
    everyone: dict[str, Entrant]
    specs: list[_Spec]
    baseline: str
    judged: Judged
    measures: list[Measure]
    dims: list[int]
    least_users: int
    notes: list[str]


@dataclass(frozen=True)
class _Bench:
    """Where models are run: a GRAPH and lists on disk, their checksums, and the folder for results."""

    graph: Path
    lists_file: Path
    lists: list[ResultList]
    digests: tuple[str, str]
    home: Path
    engine: Engine | None

    def trial(self, spec: str, settings: Mapping[str, Any]) -> Trial:
        key = trial_key(*self.digests, str(parse_spec(spec)), settings)
        folder = trial_folder(self.home, spec, key)
        reused = folder.exists()
        if not reused:
            run_trial(self.graph, self.lists_file, spec, settings, folder, self.engine)
        return read_trial(folder, self.lists, reused)


def compare(
    graph: ClickGraph | str | Path,
    lists: Sequence[ResultList] | str | Path | Frame,
    models: Sequence[Entrant] | Mapping[str, Entrant] | str,
    *,
    settings: Mapping[str, object] | None = None,
    baseline: str = "given",
    measures: str | Sequence[str] = MEASURES,
    qrels: Qrels | None = None,
    dims: Sequence[int] = (),
    save_dir: str | Path | None = None,
    engine: Engine | None = None,
    progress: Progress = logged,
    command: str = "clickbridge.compare(…)",
) -> Comparison:
    """Fits every model, re-ranks the labelled lists with each, and tests which one is better.

    Parameters
    ----------
    graph : ClickGraph, str or Path
        The GRAPH to learn from, or its folder.
    lists : sequence of ResultList, str, Path or data frame
        Lists with labels: objects, a LISTS file, or a frame (see `read_lists`).
    models : str, sequence or mapping
        Specs ("bm25,pls" or a list of them), model objects, fitted or not, or a dict of any of these by name. Each spec
        is fitted in a process of its own, so that its time and memory can be measured. Model objects run in this
        process. If one is not fitted yet, a copy of it is fitted. An object with a method `score(query, doc_ids)`, or a
        function with the same arguments, is a model, too. Its name is its attribute `name`, or the name of its class or
        function.
    settings : mapping, optional
        Settings by name. A setting goes to every spec that has it.
    baseline : str
        The spec or name of the model that the others are compared with.
    measures : str or sequence of str
        Such as "nDCG@10, MAP".
    qrels : mapping of str to mapping of str to float, str or Path, optional
        Judgments, as `read_qrels` gives them, or their file, in place of the labels. A relevant document that is not in
        the list counts as missed, as in `clickbridge evaluate`.
    dims : sequence of int
        Fit latent models at these dimensions as well.
    save_dir : str or Path, optional
        A folder to store the rankings of specs, so that later calls can reuse them.
    engine : Engine, optional
        Where specs and models are fitted, as `Local(threads=2)`. Lists are re-ranked in the process of the trial.
    progress : function of a str, optional
        Called with one line of text for each step, for example `print`. By default the lines go to the standard logger
        "clickbridge" at level INFO.
    command : str
        The command that the report shows for running this again.

    Returns
    -------
    Comparison
        It prints as a table, and has `to_frame`, `write_csv` and `write_report`.

    Examples
    --------
    >>> from clickbridge import BM25, compare, example_graph, PLS, ResultList
    >>> lists = [ResultList("1", "somewhere to sleep", ["slice", "rooms"], [0, 1])]
    >>> result = compare(example_graph(), lists, {"words": BM25(), "meaning": PLS(dim=10)}, measures="nDCG@1")
    >>> [(row["model"], row["nDCG@1"]) for row in result.rows()]
    [('given', 0.0), ('words', 0.0), ('meaning', 1.0)]
    """
    asked = _asked(graph, lists, models, settings or {}, baseline, measures, qrels, dims)
    with tempfile.TemporaryDirectory(prefix="clickbridge-") as scratch:
        bench = _bench(graph, asked.judged.lists, save_dir, Path(scratch), engine)
        trials, refused = _trials(bench, asked, progress)
        curves = _curves(bench, [spec for spec in asked.specs if spec.name in trials], asked.dims, progress)
    progress("measuring")
    return _compared(asked, trials, refused, curves, _made(command, graph, asked.graph, lists, asked.judged.lists))


# --- what is asked -------------------------------------------------------------------------------


def _asked(
    graph: ClickGraph | str | Path,
    lists: Sequence[ResultList] | str | Path | Frame,
    models: Sequence[Entrant] | Mapping[str, Entrant] | str,
    settings: Mapping[str, object],
    baseline: str,
    measures: str | Sequence[str],
    qrels: Qrels | None,
    dims: Sequence[int],
) -> _Asked:
    everyone = entrants(models, baseline)
    parsed = parse_measures(measures)
    wanted_dims = sorted({DIM.check(dim) for dim in dims})
    judged = judged_lists(as_lists(lists), "compare", qrels)
    opened = graph if isinstance(graph, ClickGraph) else ClickGraph.open(graph)
    specs, notes = _settings(opened, everyone, settings)
    return _Asked(
        graph=opened,
        everyone=everyone,
        specs=specs,
        baseline=baseline,
        judged=judged,
        measures=parsed,
        dims=wanted_dims,
        least_users=COUNTING["min_users"].check({**opened.defaults, **settings}.get("min_users", 1)),
        notes=[*judged.notes, *notes, *_language_notes(opened, settings)],
    )


def _settings(
    graph: ClickGraph, everyone: Mapping[str, Entrant], settings: Mapping[str, Any]
) -> tuple[list[_Spec], list[str]]:
    """The specs, each with its own settings, checked. A setting that no spec has is refused. Thresholds may be given
    with any model, as in `fit`, and are checked against the GRAPH."""
    counting = {name: COUNTING[name].check(value) for name, value in settings.items() if name in COUNTING}
    counting = {**graph.defaults, **counting}
    wanted = {**counting, **{key: value for key, value in settings.items() if key not in counting}}
    specs = [
        _Spec(name, model, settings_for(model, wanted)) for name, model in everyone.items() if isinstance(model, str)
    ]
    for key in wanted:
        if key not in counting and not any(key in spec.settings for spec in specs):
            raise SettingError(f"none of {', '.join(spec.name for spec in specs)} has the setting {key!r}")
    for spec in specs:
        build_model(spec.spec, spec.settings)
    return specs, list(responses(graph, **counting).notes) if counting else []


def _language_notes(graph: ClickGraph, settings: Mapping[str, Any]) -> list[str]:
    """Which stemmer the specs use, if the settings leave it open."""
    if any(key.rpartition(".")[2] == "language" for key in settings):
        return []
    return list(language_notes(documents_language({name: graph.field(name) for name in graph.field_names})))


# --- what is done --------------------------------------------------------------------------------


def _bench(
    graph: ClickGraph | str | Path,
    lists: list[ResultList],
    save_dir: str | Path | None,
    scratch: Path,
    engine: Engine | None,
) -> _Bench:
    home = scratch / "trials" if save_dir is None else Path(save_dir)
    if home.exists() and not home.is_dir():
        raise InputError(f"{home} is a file: --save-dir takes a folder")
    home.mkdir(parents=True, exist_ok=True)
    place = scratch / "graph" if isinstance(graph, ClickGraph) else Path(graph)
    if isinstance(graph, ClickGraph):
        graph.save(place)
    write_lists(scratch / "lists.jsonl", lists)
    return _Bench(place, scratch / "lists.jsonl", lists, (graph_digest(place), lists_digest(lists)), home, engine)


def _trials(bench: _Bench, asked: _Asked, progress: Progress) -> tuple[dict[str, Trial], dict[str, str]]:
    """The results of all models by name; and, of those that cannot be fitted, the reasons. It is an error if the
    baseline is one of these, or if nothing is left to compare with it."""
    specs = {spec.name: spec for spec in asked.specs}
    trials: dict[str, Trial] = {}
    refused: dict[str, str] = {}
    for number, (name, model) in enumerate(asked.everyone.items(), 1):
        progress(f"fitting {name} ({number} of {len(asked.everyone)})")
        try:
            if isinstance(model, str):
                trials[name] = bench.trial(model, specs[name].settings)
            else:
                trials[name] = own_trial(name, model, asked.graph, bench.lists, bench.engine)
        except CANNOT as error:
            if name == asked.baseline or len(refused) == len(asked.everyone) - 2:
                raise
            refused[name] = str(error)
    return trials, refused


def _curves(
    bench: _Bench, specs: Sequence[_Spec], dims: Sequence[int], progress: Progress
) -> dict[str, dict[int, Trial]]:
    """Every latent model at every dimension."""
    out: dict[str, dict[int, Trial]] = {}
    for spec in specs:
        if not dims or not settings_for(spec.spec, {"dim": 1}):
            continue
        fixed = {key: value for key, value in spec.settings.items() if key.rpartition(".")[2] != "dim"}
        out[spec.name] = {}
        for dim in dims:
            progress(f"fitting {spec.name} at dimension {dim:,}")
            out[spec.name][dim] = bench.trial(spec.spec, {**fixed, "dim": dim})
    return out


# --- what is found -------------------------------------------------------------------------------


def _compared(
    asked: _Asked,
    trials: dict[str, Trial],
    refused: dict[str, str],
    curves: Mapping[str, Mapping[int, Trial]],
    made: dict[str, str],
) -> Comparison:
    judged, main = asked.judged, main_measure(asked.measures)
    return Comparison(
        models=_measured(trials, judged, asked.measures, asked.baseline),
        baseline=asked.baseline,
        measures=[measure.name for measure in asked.measures],
        main=main.name,
        refused=refused,
        by_dim={name: {dim: _mean(trial, judged, main) for dim, trial in own.items()} for name, own in curves.items()},
        queries=describe(asked.graph, judged.lists, asked.least_users),
        lists=judged.lists,
        titles=_titles(asked.graph, judged.lists),
        notes=asked.notes,
        made=made,
        pages=asked.graph.impressions,
    )


def _run(trial: Trial, lists: Sequence[ResultList]) -> dict[str, list[str]]:
    return {r.query_id: [r.results[i] for i in places] for r, places in zip(lists, trial.ranked, strict=True)}


def _no_score(trial: Trial, lists: Sequence[ResultList], counted: Mapping[str, Any]) -> frozenset[str]:
    unscored = {r.query_id for r, scored in zip(lists, trial.scored, strict=True) if not scored}
    return frozenset(unscored & set(counted))


def _mean(trial: Trial, judged: Judged, measure: Measure) -> Cell:
    values = evaluate_run(_run(trial, judged.lists), judged.grades, [measure])[measure.name]
    return cell(values, list(values), _no_score(trial, judged.lists, values))


def _measured(
    trials: Mapping[str, Trial], judged: Judged, measures: Sequence[Measure], baseline: str
) -> list[ModelResult]:
    lists = judged.lists
    values = {spec: evaluate_run(_run(trial, lists), judged.grades, measures) for spec, trial in trials.items()}
    for measure in measures:
        if not values[baseline][measure.name]:
            raise InputError(f"no list has a relevant document for {measure.name}: nothing to measure")
    main = main_measure(measures).name
    no_score = {spec: _no_score(trial, lists, values[spec][main]) for spec, trial in trials.items()}
    # A model without any score only keeps the order that came: there is nothing to test.
    tested = [s for s in trials if s != baseline and len(no_score[s]) < len(values[s][main])]
    paired: dict[str, dict[str, Paired]] = {spec: {} for spec in trials}
    for measure in measures:
        found = against(values[baseline][measure.name], {spec: values[spec][measure.name] for spec in tested})
        for spec, own in found.items():
            paired[spec][measure.name] = own
    return [ModelResult(s, values[s], no_score[s], trial, paired[s]) for s, trial in trials.items()]


def _titles(graph: ClickGraph, lists: Sequence[ResultList]) -> dict[str, str]:
    shown = {doc_id for result in lists for doc_id in result.results}
    return {d: title for d, title in zip(graph.doc_ids, titles_of(graph), strict=True) if d in shown and title}


def _made(command: str, graph: Any, opened: ClickGraph, lists: Any, labelled: Sequence[ResultList]) -> dict[str, str]:
    """What is needed to repeat it: the command, the data, the versions, the machine, the date."""
    clicks = int(np.asarray(opened.pairs.clicks).sum())
    counts = {"query": opened.n_queries, "document": opened.n_docs, "pair": len(opened.pairs), "click": clicks}
    size = ", ".join(count_of(n, noun) for noun, n in counts.items())
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "duckdb", "pyarrow"))
    length = sum(len(r.results) for r in labelled) / len(labelled)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "command": command,
        "GRAPH": f"{'in memory' if isinstance(graph, ClickGraph) else graph}: {size}",
        "lists": f"{lists if isinstance(lists, str | Path) else 'in memory'}: "
        f"{count_of(len(labelled), 'labelled list')}, {length:.1f} results each on average",
        "versions": f"clickbridge {__version__}, Python {platform.python_version()}, {libraries}",
        "machine": f"{platform.system()} {platform.machine()}, {count_of(os.cpu_count() or 1, 'core')}, "
        f"{memory:.0f} GiB",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
