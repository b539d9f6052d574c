"""All named models learned from one GRAPH, run over the same lists, measured, and tested against a baseline.

Each model is fitted as `fit` fits it (tuning goes through `hold_back`, never through the lists) in a process
of its own. What it ranked is kept under `save_dir` by a key over all it depends on: a second call learns only
what changed, and an interrupted one loses only the model that was running.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from clickbridge import __version__
from clickbridge.errors import InputError, SettingError
from clickbridge.evaluate.results import Comparison, ModelResult
from clickbridge.evaluate.significance import Paired, against
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
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.responses import responses
from clickbridge.io.lists import read_lists, write_lists
from clickbridge.measures import Measure, evaluate_run, main_measure, parse_measures
from clickbridge.models.base import titles_of
from clickbridge.models.latent import COUNTING
from clickbridge.models.specs import build_model, parse_spec
from clickbridge.settings import SETTINGS
from clickbridge.types import ResultList

MEASURES = "nDCG@1,nDCG@3,nDCG@5,AP"
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class _Bench:
    """Where trials run: a GRAPH and lists on disk, their digests, and the folder that keeps results."""

    graph: Path
    lists_file: Path
    lists: list[ResultList]
    digests: tuple[str, str]
    home: Path

    def trial(self, spec: str, settings: Mapping[str, Any]) -> Trial:
        key = trial_key(*self.digests, str(parse_spec(spec)), settings)
        folder = trial_folder(self.home, spec, key)
        reused = folder.exists()
        if not reused:
            run_trial(self.graph, self.lists_file, spec, settings, folder)
        return read_trial(folder, self.lists, reused)


def compare(
    graph: ClickGraph | str | Path,
    lists: Sequence[ResultList] | str | Path,
    models: Sequence[str] | str,
    *,
    settings: Mapping[str, Any] | None = None,
    baseline: str = "given",
    measures: str = MEASURES,
    dims: Sequence[int] = (),
    save_dir: str | Path | None = None,
    progress: Progress | None = None,
    command: str = "clickbridge.compare(…)",
) -> Comparison:
    """Learns every spec, re-ranks the labelled lists with it, and says which is better and how sure that is.

    A setting reaches every spec that has it. `dims` fits latent models at these dimensions as well.
    """
    say = progress or (lambda what, count: None)
    specs = _specs(models, baseline)
    parsed = parse_measures(measures)
    wanted_dims = sorted({SETTINGS["dim"].check(dim) for dim in dims})
    labelled, notes = _labelled(read_lists(str(lists)) if isinstance(lists, str | Path) else list(lists))
    opened = graph if isinstance(graph, ClickGraph) else ClickGraph.open(graph)
    chosen, more = _settings(opened, specs, settings or {})
    notes += more
    with tempfile.TemporaryDirectory(prefix="clickbridge-") as scratch:
        bench = _bench(graph, labelled, save_dir, Path(scratch))
        trials: dict[str, Trial] = {}
        refused: dict[str, str] = {}
        for number, spec in enumerate(specs, 1):
            say(f"fitting {spec} ({number} of {len(specs)})", 0)
            try:
                trials[spec] = bench.trial(spec, chosen[spec])
            except CANNOT as error:
                if spec == baseline or len(refused) == len(specs) - 2:
                    raise
                refused[spec] = str(error)
        curves = _curves(bench, {spec: chosen[spec] for spec in trials}, wanted_dims, say)
    say("measuring", 0)
    main = main_measure(parsed)
    found = _measured(trials, labelled, parsed, baseline)
    by_dim = {spec: {dim: _mean(trial, labelled, main) for dim, trial in own.items()} for spec, own in curves.items()}
    return Comparison(
        models=found,
        baseline=baseline,
        measures=[m.name for m in parsed],
        main=main.name,
        refused=refused,
        by_dim=by_dim,
        queries=describe(opened, labelled),
        lists=labelled,
        titles=_titles(opened, labelled),
        notes=notes,
        made=_made(command, graph, opened, lists, labelled),
    )


# --- what is asked -------------------------------------------------------------------------------


def _specs(models: Sequence[str] | str, baseline: str) -> list[str]:
    """Every spec once, the baseline among them; a name that does not exist stops before anything is learned."""
    named = [name.strip() for name in (models.split(",") if isinstance(models, str) else models)]
    specs = list(dict.fromkeys([*([] if baseline in named else [baseline]), *named]))
    seen: dict[str, str] = {}
    for spec in specs:
        canonical = str(parse_spec(spec))
        if canonical in seen:
            raise SettingError(f"{seen[canonical]} and {spec} are the same model: name it once")
        seen[canonical] = spec
    if len(specs) < 2:
        raise SettingError(f"compare needs a model besides the baseline {baseline}; got {', '.join(named)}")
    return specs


def _settings(
    graph: ClickGraph, specs: Sequence[str], settings: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Each spec's own settings, checked; a setting that no spec has is a slip. Thresholds may be given with any
    model, as in `fit`, and are checked against the GRAPH."""
    counting = {name: SETTINGS[name].check(value) for name, value in settings.items() if name in COUNTING}
    counting = {**graph.defaults, **counting}
    wanted = {**counting, **{key: value for key, value in settings.items() if key not in counting}}
    chosen = {spec: settings_for(spec, wanted) for spec in specs}
    for key in wanted:
        if key not in counting and not any(key in own for own in chosen.values()):
            raise SettingError(f"none of {', '.join(specs)} has the setting {key!r}")
    for spec, own in chosen.items():
        build_model(spec, own)
    return chosen, list(responses(graph, **counting).notes) if counting else []


def _labelled(lists: list[ResultList]) -> tuple[list[ResultList], list[str]]:
    labelled = [result for result in lists if result.labels is not None]
    if not any(max(result.labels or [0.0]) > 0 for result in labelled):
        raise InputError("no list has a label above 0: compare needs judged lists, with `labels`")
    left_out = len(lists) - len(labelled)
    return labelled, [f"{left_out:,} lists without labels are left out"] if left_out else []


# --- what is done --------------------------------------------------------------------------------


def _bench(
    graph: ClickGraph | str | Path, lists: list[ResultList], save_dir: str | Path | None, scratch: Path
) -> _Bench:
    home = scratch / "trials" if save_dir is None else Path(save_dir)
    if home.exists() and not home.is_dir():
        raise InputError(f"{home} is a file: --save-dir takes a folder")
    home.mkdir(parents=True, exist_ok=True)
    place = scratch / "graph" if isinstance(graph, ClickGraph) else Path(graph)
    if isinstance(graph, ClickGraph):
        graph.save(place)
    write_lists(scratch / "lists.jsonl", lists)
    return _Bench(place, scratch / "lists.jsonl", lists, (graph_digest(place), lists_digest(lists)), home)


def _curves(
    bench: _Bench, chosen: Mapping[str, dict[str, Any]], dims: Sequence[int], say: Progress
) -> dict[str, dict[int, Trial]]:
    """Every latent model at every dimension."""
    out: dict[str, dict[int, Trial]] = {}
    for spec, own in chosen.items():
        if not dims or not settings_for(spec, {"dim": 1}):
            continue
        fixed = {key: value for key, value in own.items() if key.rpartition(".")[2] != "dim"}
        out[spec] = {}
        for dim in dims:
            say(f"fitting {spec} at dimension {dim:,}", 0)
            out[spec][dim] = bench.trial(spec, {**fixed, "dim": dim})
    return out


def _run(trial: Trial, lists: Sequence[ResultList]) -> dict[str, list[str]]:
    return {r.query_id: [r.results[i] for i in places] for r, places in zip(lists, trial.ranked, strict=True)}


def _grades(lists: Sequence[ResultList]) -> dict[str, dict[str, float]]:
    return {r.query_id: dict(zip(r.results, r.labels or (), strict=True)) for r in lists}


def _no_score(trial: Trial, lists: Sequence[ResultList], counted: Mapping[str, Any]) -> frozenset[str]:
    unscored = {r.query_id for r, scored in zip(lists, trial.scored, strict=True) if not scored}
    return frozenset(unscored & set(counted))


def _mean(trial: Trial, lists: Sequence[ResultList], measure: Measure) -> Cell:
    values = evaluate_run(_run(trial, lists), _grades(lists), [measure])[measure.name]
    return cell(values, list(values), _no_score(trial, lists, values))


def _measured(
    trials: Mapping[str, Trial], lists: Sequence[ResultList], measures: Sequence[Measure], baseline: str
) -> list[ModelResult]:
    grades = _grades(lists)
    values = {spec: evaluate_run(_run(trial, lists), grades, measures) for spec, trial in trials.items()}
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
    """How to make it again: the command, the data, the versions, the machine, the date."""
    clicks = int(np.asarray(opened.pairs.clicks).sum())
    size = f"{opened.n_queries:,} queries, {opened.n_docs:,} documents, {len(opened.pairs):,} pairs, {clicks:,} clicks"
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "duckdb", "pyarrow"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "command": command,
        "GRAPH": f"{'in memory' if isinstance(graph, ClickGraph) else graph}: {size}",
        "lists": f"{lists if isinstance(lists, str | Path) else 'in memory'}: {len(labelled):,} labelled lists, "
        f"{sum(len(r.results) for r in labelled) / len(labelled):.1f} results each on average",
        "versions": f"clickbridge {__version__}, Python {platform.python_version()}, {libraries}",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
