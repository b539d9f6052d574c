"""`fit --tune`: searches documented grids for the best settings of a spec's components, on held-back clicks.

One setting is tuned at a time, as in the papers (13, Section 6.2), starting from the given settings. Each value of its
grid is fitted on the part of the log that was not held back and measured by nDCG@5 on the held-back lists; the best
value is kept. Every trial is written to a file as soon as it is done, so that a search that was stopped can continue.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from clickbridge.engines.base import Engine
from clickbridge.errors import InputError, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE
from clickbridge.models.ascent import labelled
from clickbridge.models.candidates import Labelled
from clickbridge.models.fitted import Fitted
from clickbridge.models.specs import build_components, build_model, parse_spec
from clickbridge.models.study import Study
from clickbridge.progress import Progress, silent

GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "bm25": {"k1": (0.6, 0.9, 1.2, 1.6, 2.0), "b": (0.3, 0.5, 0.75, 0.9)},
    "lmir": {"mu": (20.0, 60.0, 200.0, 600.0)},
    "lsi-dt": {"dim": (100, 300, 600)},
    "lsi-qd": {"dim": (100, 300, 600)},
    "walk": {"steps": (3, 5, 7), "self_transition": (0.5, 0.9)},
    "pls": {"dim": (200, 400, 600, 1000), "sv_power": (0.0, 0.25, 0.5)},
    "mpls": {"dim": (200, 400, 600), "sv_power": (0.0, 0.25, 0.5)},
    "ssi": {"learning_rate": (0.01, 0.03, 0.1), "dim": (50, 100, 200)},
    "svdfeature": {"learning_rate": (0.01, 0.03, 0.1), "decay": (0.0, 0.01, 0.1), "dim": (50, 100, 200)},
    "bltm": {"dim": (100, 300, 600), "tie": (0.0, 1.0, 10.0)},
    "rrf": {"rrf_k": (5.0, 20.0, 60.0, 180.0)},
    "mart": {"trees": (100, 200, 400), "leaves": (7, 15, 31)},
}
"""What `--tune` tries for each model; a model without a row has nothing to tune."""

Trial = dict[str, Any]


def tune(
    spec: str,
    settings: Mapping[str, Any],
    graph: ClickGraph,
    trace: Path,
    seed: int = 0,
    progress: Progress = silent,
    *,
    engine: Engine | None = None,
) -> tuple[dict[str, Any], list[Trial]]:
    """Returns the best settings, and all trials, the best one last. `trace` is a file of trials as JSON lines."""
    space = grid_of(spec, settings)
    if not space:
        known = ", ".join(GRIDS)
        raise SettingError(f"--tune has no grid for {spec} other than the settings given; there are grids for {known}")
    most = 2 + sum(map(len, space.values()))
    search = _Search(spec, settings, Study(graph, engine), trace, seed, progress, most)
    best = dict(settings)
    value = search.value(best)
    for name, values in space.items():
        for candidate in values:
            tried = {**best, name: candidate}
            found = search.value(tried)
            if found > value + 1e-9:
                best, value = tried, found
    search.value(best)
    return best, search.trials


def grid_of(spec: str, settings: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The settings to try, with the name of their component as in `pls.dim`. Settings given by the user are not
    tuned."""
    out = {}
    for component in build_components(parse_spec(spec)):
        for name, values in GRIDS.get(component.name, {}).items():
            if name not in settings and f"{component.name}.{name}" not in settings:
                out[f"{component.name}.{name}"] = values
    return out


class _Search:
    """Trials on one hold-back. They share one study, so that what several trials need is computed only once."""

    def __init__(
        self, spec: str, given: Mapping[str, Any], study: Study, trace: Path, seed: int, progress: Progress,
        most: int,
    ) -> None:  # fmt: skip
        self.most = most
        self.spec, self.given, self.progress, self.path, self.study = spec, dict(given), progress, trace, study
        self.held, self.rest = study.hold_back(seed=seed)
        self.lists: Labelled | None = None
        self.job = {"spec": spec, "seed": seed, "graph": fingerprint(study.graph)}
        self.known = self._read()
        self.trials: list[Trial] = []

    def _read(self) -> dict[str, float]:
        if not self.path.exists():
            return {}
        try:
            first, *rest = [orjson.loads(line) for line in self.path.read_bytes().splitlines() if line]
            known = {_key(trial["settings"]): float(trial["value"]) for trial in rest}
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{self.path} is not a trace of --tune: remove it, or write elsewhere") from None
        if first != self.job:
            raise InputError(f"{self.path} is the trace of another search: remove it, or write elsewhere")
        return known

    def value(self, settings: Mapping[str, Any]) -> float:
        key = _key(settings)
        if key not in self.known:
            self.known[key] = self._try(settings)
            if not self.path.exists():
                self.path.write_bytes(orjson.dumps(self.job, option=orjson.OPT_APPEND_NEWLINE))
            with self.path.open("ab") as out:
                trial = {"settings": dict(settings), "value": self.known[key]}
                out.write(orjson.dumps(trial, option=orjson.OPT_APPEND_NEWLINE))
        self.trials.append({"settings": dict(settings), "value": self.known[key]})
        words = ", ".join(f"{name}={value}" for name, value in settings.items()) or "defaults"
        self.progress(f"tune {self.spec}, {len(self.trials)} of {self.most}: {words}: nDCG@5 {self.known[key]:.4f}")
        return self.known[key]

    def _fitted(self, settings: Mapping[str, Any]) -> Fitted:
        return build_model(self.spec, settings).fit_on(self.rest).fitted

    def _try(self, settings: Mapping[str, Any]) -> float:
        fitted = self._fitted(settings)
        if self.lists is None:
            # Without pages the lists hold what the model finds with the given settings: the same ones after a restart.
            pooled = self.held.shown is None and "search" in fitted.abilities
            finder = self._fitted(self.given) if pooled and settings != self.given else fitted
            can = pooled or self.held.shown is not None
            self.lists = labelled(self.study, self.held.lists([finder]) if can else [])
        if len(self.lists) < MIN_USABLE:
            raise InputError(
                f"--tune needs {MIN_USABLE} held-back lists with a click; this GRAPH gives {len(self.lists)}"
            )
        return self.lists.ndcg(fitted.scores(self.lists.candidates))


def _key(settings: Mapping[str, Any]) -> str:
    return orjson.dumps({name: str(value) for name, value in settings.items()}, option=orjson.OPT_SORT_KEYS).decode()


def fingerprint(graph: ClickGraph) -> str:
    """A hash of a GRAPH's sizes and clicks, to tell GRAPHs apart."""
    pairs = graph.pairs
    digest = 0
    for column in (pairs.query, pairs.doc, pairs.clicks):
        digest = zlib.crc32(np.ascontiguousarray(column, dtype=np.int64).tobytes(), digest)
    return f"{graph.n_queries}-{graph.n_docs}-{len(pairs)}-{digest:08x}"
