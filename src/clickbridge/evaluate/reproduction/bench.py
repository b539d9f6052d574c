"""Data sets for the reproduction, and models fitted on them. Each model is fitted once for all tables that need it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from clickbridge.errors import ClickbridgeError, SettingError
from clickbridge.evaluate.reproduction.paper_table import Cell, missing
from clickbridge.evaluate.reproduction.printed_sums import PrintedSum
from clickbridge.evaluate.reproduction.shelf import Shelf
from clickbridge.evaluate.similar import Judgments, answers_of
from clickbridge.fusion.mart import Mart, choose_together
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.measures import evaluate_run, parse_measures
from clickbridge.models.algebra import WeightedSum
from clickbridge.models.composite import Composite
from clickbridge.models.fitted import Choices, Fitted
from clickbridge.models.model import Model
from clickbridge.models.registry import model_class
from clickbridge.models.specs import Spec, build_model, parse_spec
from clickbridge.models.study import Study
from clickbridge.settings import addressed
from clickbridge.types import ResultList

Answer = TypeVar("Answer")
NOT_HERE = "not in this version"
NO_SCORE = "no score"
NDCG = ("nDCG@1", "nDCG@3", "nDCG@5")
KEPT_FITS = 3
LARGE = 100_000
"""Documents from which on a single fit is kept: with 1000 dimensions it takes several gigabytes."""
OVER_LISTS = {"over": "lists"}
"""Beside the settings of a sum: its parts are added as printed, whatever they are."""


@dataclass(frozen=True)
class Fit:
    """A fitted model, or the reason why there is none."""

    model: Model | None
    seconds: float = 0.0
    """Processor time over all threads, so that other work on the machine does not count."""
    learning: float = 0.0
    """The part of it after everything is chosen, as the papers give times."""
    why: str = ""


@dataclass(frozen=True)
class Trial:
    """What is kept of a fit after the model is deleted: its time and, by kind of list and measure, the value of each
    judged query, or the reason why there is none. Without values, the reason why there is no model."""

    seconds: float
    values: dict[str, dict[str, dict[str, float]] | str]
    why: str = ""
    learning: float = 0.0


@dataclass
class Data:
    """A log as a GRAPH, with judged lists by kind (seen, unseen), and the queries that are known to be similar.

    All trials are kept, also on the shelf. Of the models only the last few are kept, since one can take a gigabyte.
    """

    name: str
    about: str
    graph: ClickGraph
    lists: dict[str, list[ResultList]]
    alike: Judgments | None = None
    relevant: int = 3
    """The lowest grade that is relevant for MAP: 3 is Excellent on a scale where 4 is Perfect."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings for every model, such as dim."""
    shelf: Shelf = field(default_factory=Shelf)
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Settings for our own rows alone: what the papers tuned without a limit has none as printed."""

    _fits: dict[tuple[str, str], Fit] = field(default_factory=dict, repr=False)
    _trials: dict[tuple[str, str], Trial] = field(default_factory=dict, repr=False)
    _choices: dict[tuple[str, str], tuple[Choices, float]] = field(default_factory=dict, repr=False)
    """What models chose on held-back clicks, and the processor time of that. It is small and takes long."""
    _answers: dict[Hashable, dict[str, list[str]]] = field(default_factory=dict, repr=False)
    _kept: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def once(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """A value that tables and claims both need, computed the first time."""
        if key not in self._kept:
            self._kept[key] = make()
        found: Answer = self._kept[key]
        return found

    @property
    def map_name(self) -> str:
        return f"AP(rel={self.relevant})"

    @cached_property
    def clicks_of(self) -> dict[str, int]:
        """Clicks of each query in the log."""
        clicks = np.bincount(self.graph.pairs.query, self.graph.pairs.clicks, minlength=self.graph.n_queries)
        return dict(zip(self.graph.query_keys, clicks.astype(int).tolist(), strict=True))

    @cached_property
    def study(self) -> Study:
        """The study that all models share, so that common work is done once."""
        return Study(self.graph)

    def fit(self, spec: str, settings: Mapping[str, Any] | None = None) -> Fit:
        """Fits a model. If this version does not have it, or it cannot learn from this data, the Fit has the reason,
        which the tables show."""
        wanted = self._wanted(settings)
        key = key_of(spec, wanted)
        found = self._fits.pop(key, None)
        most = KEPT_FITS if self.graph.n_docs < LARGE else 1
        while found is None and len(self._fits) >= most:
            del self._fits[next(iter(self._fits))]  # the one not asked for the longest
        self._fits[key] = self._fit(spec, wanted) if found is None else found
        return self._fits[key]

    def _wanted(self, settings: Mapping[str, Any] | None) -> dict[str, Any]:
        """What a row asks for, over what the data gives every row."""
        own = settings or {}
        return {**self.settings, **({} if own.get("as_printed") else self.limits), **own}

    def _fit(self, spec: str, wanted: Mapping[str, Any]) -> Fit:
        try:
            model = built(parse_spec(spec), wanted)
        except SettingError as error:
            return Fit(None, why=str(error) if exists(spec) else NOT_HERE)
        try:
            choices, choosing = self._choose(key_of(spec, wanted), model)
            start = time.process_time()
            model.fit_on(self.study, choices)
        except ClickbridgeError as error:
            return Fit(None, why=str(error))
        learning = time.process_time() - start
        return Fit(model, choosing + learning, learning)

    def chosen(self, spec: str, settings: Mapping[str, Any] | None = None) -> tuple[Model, Choices]:
        """An unfitted model, and what it chooses on held-back clicks: once, also if it was fitted before."""
        wanted = self._wanted(settings)
        model = built(parse_spec(spec), wanted)
        return model, self._choose(key_of(spec, wanted), model)[0]

    def _choose(self, key: tuple[str, str], model: Model) -> tuple[Choices, float]:
        if key not in self._choices:
            start = time.process_time()
            study = self.study.of_several(model.least_users)
            with study.engine.at_work():
                choices = model.in_language_of(study).choose(study)
            self._choices[key] = choices, time.process_time() - start
        return self._choices[key]

    def trial(self, spec: str, settings: Mapping[str, Any] | None = None) -> Trial:
        """Fits and measures a model, once."""
        key = key_of(spec, self._wanted(settings))
        return self._known(key) or self._tried(key, self.fit(spec, settings))

    def tried_fit(self, spec: str, settings: Mapping[str, Any] | None = None) -> Fit:
        """A fit that is measured at once, so that a later table of relevance need not fit the model again."""
        self.trial(spec, settings)
        return self.fit(spec, settings)

    def _known(self, key: tuple[str, str]) -> Trial | None:
        if key not in self._trials:
            kept = self.shelf.read(self._place(key))
            if kept is None:
                return None
            self._trials[key] = Trial(kept["seconds"], kept["values"], kept["why"], kept["learning"])
        return self._trials[key]

    def _tried(self, key: tuple[str, str], fitted: Fit) -> Trial:
        """The trial of a model. Lists with two names are measured once."""
        values: dict[int, dict[str, dict[str, float]] | str] = {}
        if fitted.model is not None:
            for lists in self.lists.values():
                if id(lists) not in values:
                    values[id(lists)] = self.measure(fitted.model, lists)
        by_kind = {kind: values[id(lists)] for kind, lists in self.lists.items() if id(lists) in values}
        trial = Trial(fitted.seconds, by_kind, fitted.why, fitted.learning)
        self._trials[key] = trial
        self.shelf.add(self._place(key), asdict(trial))
        return trial

    def _place(self, key: tuple[str, str]) -> str:
        digest = hashlib.sha256("\n".join(key).encode()).hexdigest()[:16]
        return f"{self.name}/{key[0].replace(':', '-')[:40]}-{digest}"

    def try_forests(self, specs: Sequence[str], settings: Mapping[str, Any]) -> None:
        """Fits boosted trees over overlapping models. The parts they have in common are fitted once. The total seconds
        are divided equally among them."""
        wanted = self._wanted(settings)
        keys = [key_of(spec, wanted) for spec in specs]
        if all(self._known(key) is not None for key in keys):
            return
        parsed = [parse_spec(spec) for spec in specs]
        marts = [build_model(spec, taken(spec, wanted)) for spec in parsed]
        start, why = time.process_time(), ""
        try:
            forests = [mart for mart in marts if isinstance(mart, Mart)]
            chosen = choose_together([forest.in_language_of(self.study) for forest in forests], self.study)
            for forest, choices in zip(forests, chosen, strict=True):
                forest.fit_on(self.study, choices)
        except ClickbridgeError as error:
            why = str(error)
        seconds = (time.process_time() - start) / len(marts)
        for key, mart in zip(keys, marts, strict=True):
            self._tried(key, Fit(None if why else mart, seconds, why=why))

    def answers(
        self, spec: str, settings: Mapping[str, Any], queries: Sequence[str], among: frozenset[str] | None = None
    ) -> dict[str, list[str]] | None:
        """The three most similar queries of each query, of `among` alone if that is given; computed once. None if
        there is no such model."""
        known = self._answers.setdefault((*key_of(spec, self._wanted(settings)), among), {})
        new = [query for query in queries if query not in known]
        if new:
            fitted = self.fit(spec, settings)
            if fitted.model is None:
                return None
            known |= answers_of(fitted.model, new, among=among)
        return {query: known[query] for query in queries}

    def values(
        self, spec: str, settings: Mapping[str, Any] | None = None, kind: str = "seen"
    ) -> dict[str, dict[str, float]] | str:
        """The value of each judged query by measure, or the reason why there is none."""
        trial = self.trial(spec, settings)
        return trial.values.get(kind, trial.why)

    def measure(self, model: Model | Fitted, lists: Sequence[ResultList]) -> dict[str, dict[str, float]] | str:
        """The value of each judged query by measure, for a fitted model."""
        rankings = model.rerank_lists(lists)
        if not any(np.isfinite(hit.score) for ranking in rankings for hit in ranking):
            return NO_SCORE
        run = {r.query_id: ranking.doc_ids for r, ranking in zip(lists, rankings, strict=True)}
        grades = {r.query_id: dict(zip(r.results, r.labels or (), strict=True)) for r in lists}
        return evaluate_run(run, grades, parse_measures(",".join((*NDCG, self.map_name))))

    def means(
        self,
        spec: str,
        measures: Sequence[str] = NDCG,
        settings: Mapping[str, Any] | None = None,
        kind: str = "seen",
        only: set[str] | None = None,
    ) -> tuple[Cell, ...]:
        """Means over the judged queries, or over those in `only`. If there are none, the first cell has the reason."""
        found = self.values(spec, settings, kind)
        if isinstance(found, str):
            return missing(found, measures)
        out: list[Cell] = []
        for measure in measures:
            values = [v for query_id, v in found[measure].items() if only is None or query_id in only]
            out.append(float(np.mean(values)) if values else None)
        return tuple(out)


def built(spec: Spec, wanted: Mapping[str, Any]) -> Model:
    """The model of a row, not fitted yet."""
    model = build_model(spec, taken(spec, wanted))
    if isinstance(model, WeightedSum) and wanted.items() >= OVER_LISTS.items():
        return PrintedSum(model.parts, weights=model.weights, seed=model.seed)
    return model


def key_of(spec: str, wanted: Mapping[str, Any]) -> tuple[str, str]:
    """Rows that ask for the same model have the same key, however they ask: by a default, or for all models at
    once."""
    try:
        return spec, described(built(parse_spec(spec), wanted))
    except SettingError:
        return spec, repr(sorted(wanted.items()))


def described(model: Model) -> str:
    """All settings of a model and of its parts."""
    own = {name: getattr(model, name) for name in sorted(model.declared())}
    parts = [described(part) for part in model.parts] if isinstance(model, Composite) else []
    return f"{type(model).__name__}({own}, {', '.join(parts)})"


def names_in(spec: Spec) -> set[str]:
    """All names in a spec."""
    own = {*spec.names, *([spec.wrapper] if spec.wrapper else [])}
    return own | (names_in(spec.inner) if spec.inner else set())


def taken(spec: Spec, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that at least one part of the spec has. `pls.views` is for one part."""
    has = {name: {*model_class(name).setting_names()} for name in names_in(spec)}
    sums = {"weights"} if len(spec.names) > 1 else set()

    def fits(key: str) -> bool:
        return key.rpartition(".")[2] in sums or any(addressed(key, part, names) for part, names in has.items())

    return {key: value for key, value in wanted.items() if fits(key)}


def exists(spec: str) -> bool:
    try:
        parse_spec(spec)
    except SettingError:
        return False
    return True
