"""`auto`: tries several models on a log and takes the best. The default of `fit`.

Candidates are tried from the cheapest to the most expensive, until the budget is used up. Part of the clicks is held
back; each candidate learns from the rest and is measured on the part held back. The candidate with the best mean paired
difference is taken, or a simpler one within .001 of it. The chosen model is then fitted on the whole log, as if it had
been asked for by name. It is saved as a MODEL of its own kind, with a record of the choice in its report.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.errors import InputError, MissingPart, NoRoom, NotSupported, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE, few_held
from clickbridge.graph.notes import said_by
from clickbridge.io.values import stored
from clickbridge.models.composite import choose_once, learn_once
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.jury import Jury
from clickbridge.models.ladder import Candidate, candidates, split_words, usual
from clickbridge.models.model import Model
from clickbridge.models.registry import model_class
from clickbridge.models.specs import build_components, build_model, parse_spec
from clickbridge.models.study import Study
from clickbridge.settings import Counting, Fields, Seeded, addressed, setting, settings
from clickbridge.wording import count_of

CLOSE = 0.001
"""A simpler model is taken where it is as good as the best within this."""
SURE = 1.96
"""Standard errors beyond which a difference is more than chance."""
SLOW = 3
"""A machine that has worked this many times the budget tries no more, whatever was predicted."""
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


@settings
class AutoSettings(Counting, Fields, Seeded):
    budget: str = setting("10m", "how long to try candidates, e.g. 90s, 10m or 2h, by predicted cost")
    candidates: str = setting("auto", "specs to try, separated by commas; auto takes those that suit the GRAPH")


@stored
@dataclass(frozen=True, kw_only=True)
class AutoChoices(Choices):
    """The spec that was chosen, the settings it was tried with, and what was tried."""

    chosen: str
    settings: dict[str, float] = field(default_factory=dict)
    trials: tuple[dict[str, Any], ...] = ()
    others: tuple[tuple[str, dict[str, float]], ...] = ()
    """What else could be taken, the next best first, each with its settings."""

    def instead(self, refusal: NoRoom) -> AutoChoices:
        """The next best. What fits in memory with most of the log may not fit with all of it."""
        if not self.others:
            raise refusal
        (spec, settings), *rest = self.others
        note = f"auto: takes {spec} after all: {self.chosen} does not fit on everything ({refusal})"
        return replace(self, chosen=spec, settings=settings, others=tuple(rest), notes=(*self.notes, note))


def budget_seconds(text: str) -> float:
    """`10m` in seconds; a number alone is seconds."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", text)
    if found is None:
        raise SettingError(f"budget must be a time, such as 90s, 10m or 2h; got {text!r}")
    return float(found[1]) * UNITS[found[2]]


class Auto(Model):
    """Tries several models on your log and takes the best: `Auto(budget="5m").fit(graph)`.

    Candidates are fitted on most of the log, from the cheapest to the most expensive, and measured on the rest. The
    best one is then fitted on the whole log. After `fit`, `rank` and the other methods use the chosen model.
    `chosen_model` is that model, and `save` saves it.

    Examples
    --------
    >>> from clickbridge import Auto, example_graph
    >>> model = Auto(candidates="bm25,bm25+pls").fit(example_graph())
    >>> model.rank("sleep near the statue", k=2).doc_ids
    ['subway', 'ferry']
    """

    name = "auto"
    about = "tries models from the cheapest to the most expensive on held-back clicks, and takes the best"
    paper = "-"
    Settings = AutoSettings
    fitted_type: ClassVar[type[Fitted]] = Fitted

    @classmethod
    def abilities(cls) -> frozenset[str]:
        """What every model that `auto` chooses for a log with text can do."""
        return frozenset({"search", "new queries", "update"})

    @property
    def settings(self) -> Any:
        s = super().settings
        budget_seconds(s.budget)
        if s.candidates != "auto":
            for spec in s.candidates.split(","):
                parse_spec(spec)
        return s

    # --- choosing --------------------------------------------------------------------------------

    def built(self, spec: str, settings: Mapping[str, float] | None = None) -> Model:
        """A candidate with its own settings, and those settings of `auto` that were changed and that it has."""
        defaults, own = self.declared(), self.get_params()
        changed = {n: v for n, v in own.items() if n not in ("budget", "candidates") and v != defaults[n].default}
        parts = build_components(parse_spec(spec))
        taken = {n: v for n, v in changed.items() if any(addressed(n, p.name, p.setting_names()) for p in parts)}
        return build_model(spec, {**taken, **(settings or {})})

    def choose(self, study: Study) -> AutoChoices:
        s: AutoSettings = self.settings
        shared = Study(study.graph, study.engine, study.progress, study.corpus, study.whole, True, study.checkpoints)
        given = s.candidates != "auto"
        specs = [Candidate(spec.strip(), 0.0) for spec in s.candidates.split(",")] if given else None
        jury = Jury(shared, s.seed) if len(study.graph.pairs) else None
        if jury is None or len(jury) < MIN_USABLE or not len(jury.rest.clicked().queries):
            spec = specs[0].spec if specs else usual(study.graph)
            n = 0 if jury is None else len(jury)
            few = few_held(n, "search", f"to compare models: takes {spec}")
            return AutoChoices(chosen=spec, notes=(said_by("auto", few),))
        contest = Contest(self, jury, budget_seconds(s.budget))
        contest.run(candidates(study.graph) if specs is None else specs)
        if specs is None:
            contest.on_top()
        best, *others = contest.in_order()
        notes = contest.lines(best, split_words(study.graph))
        (chosen, more), *rest = ((t.candidate.spec, dict(t.candidate.settings)) for t in (best, *others))
        record = contest.record()
        return AutoChoices(chosen=chosen, settings=more, trials=record, others=tuple(rest), notes=notes)

    def plans_on(self, study: Study) -> list[dict[str, object]]:
        raise NotSupported(
            "auto has no plan of its cost, which --budget limits: ask for that of one model, such as --model bm25+pls"
        )

    @property
    def has_plan(self) -> bool:
        return False

    # --- learning --------------------------------------------------------------------------------

    def learn(self, study: Study, choices: Choices) -> Fitted:
        assert isinstance(choices, AutoChoices)
        study.progress(f"fitting {choices.chosen} on everything")
        model = self.built(choices.chosen, choices.settings)
        fitted = model.learned(study, model.choose(study))
        return fitted._with(notes=(*choices.notes, *fitted.notes))

    def learned(self, study: Study, choices: Choices) -> Fitted:
        assert isinstance(choices, AutoChoices)
        try:
            fitted = super().learned(study, choices)
        except NoRoom as refusal:
            return self.learned(study, choices.instead(refusal))
        record = {
            "chosen": choices.chosen,
            "settings": choices.settings,
            "budget": self.budget,
            "trials": list(choices.trials),
        }
        return fitted.noted(auto=record)

    def refit(self, graph: ClickGraph, *, engine: Engine | None = None) -> Self:
        """Fits the model chosen before on a GRAPH, without trying the others again.

        Takes and gives the same as `Model.refit`."""
        again = self.chosen_model.refit(graph, engine=engine).fitted
        self.fitted_ = again.noted(auto=self.fitted.report.get("auto"))
        return self

    @property
    def chosen_model(self) -> Model:
        """The chosen model, as an object of its own class, such as `Sum` or `Online`."""
        return model_class(self.fitted.model).from_fitted(self.fitted)


# --- trying ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate that was tried, with nDCG@5 of each held-back search."""

    candidate: Candidate
    values: Array = field(repr=False)
    mean: float
    searches: bool

    @property
    def spec(self) -> str:
        return self.candidate.name


class Contest:
    """Tries candidates one after the other on the same held-back clicks. Simpler ones come first."""

    def __init__(self, auto: Auto, jury: Jury, budget: float) -> None:
        self.auto, self.jury, self.budget = auto, jury, budget
        self.spent = 0.0
        self.started = time.process_time()
        self.trials: dict[str, Trial] = {}
        self.left: dict[str, str] = {}

    def run(self, ladder: list[Candidate]) -> None:
        for number, candidate in enumerate(ladder, 1):
            why = self._why_not(candidate)
            if why:
                self.left[candidate.name] = why
            else:
                left = max(self.budget - self.spent, 0)
                said = f"auto: trying {candidate.name}, {number} of {len(ladder)}"
                self.jury.rest.progress(f"{said} (about {left:.0f} s of the budget left)")
                self._try(candidate)

    def _why_not(self, candidate: Candidate) -> str:
        if self.spent + candidate.seconds > self.budget:
            return f"about {candidate.seconds:.0f} s more than the budget has left"
        if self.trials and time.process_time() - self.started > SLOW * self.budget:
            return f"this machine has taken {SLOW} times the budget already"
        lost, against = (self.trials.get(spec) for spec in candidate.unless)
        if lost and against and self.jury.gain(lost.values, against.values).bounds(SURE)[1] < CLOSE:
            return f"{lost.spec} gained nothing over {against.spec}"
        return ""

    def _try(self, candidate: Candidate) -> None:
        jury, rest = self.jury, self.jury.rest
        model = self.auto.built(candidate.spec, dict(candidate.settings))
        self.spent += candidate.seconds
        try:
            choices = choose_once(model, rest)
            fitted = learn_once(model, rest, choices)
        except (MissingPart, InputError, NotSupported, NoRoom) as refusal:
            self.left[candidate.name] = str(refusal)
            return
        if not jury.can_judge(fitted):
            self.left[candidate.name] = "it cannot search the collection"
            return
        values = jury.values(fitted)
        searches = "search" in fitted.abilities
        self.trials[candidate.name] = Trial(candidate, values, jury.mean(values), searches)

    def on_top(self) -> None:
        """Candidates built on the best so far: its sum with the given order, if result pages show that this order
        helps, and the online learner around it."""
        if not self.trials:
            return
        best, given = self.best(), self.trials.get("given")
        seconds = 0.2 * best.candidate.seconds + 5
        if given is not None:
            plain = (t for t in self.trials.values() if t.searches and not t.candidate.settings)
            sums = [t for t in plain if ":" not in t.spec]
            if sums and self.jury.gain(given.values, best.values).bounds(SURE)[1] >= 0:
                inner = max(sums, key=lambda trial: trial.mean)
                both = Candidate(f"given+{inner.spec}", seconds)
                # Where all that can search lose to the given order, its sum with one of them is what is left to take.
                self._try(both) if best is given else self.run([both])
        if self.jury.pages and not self.best().candidate.settings:
            self.run([Candidate(f"online:{self.best().spec}", seconds)])

    def best(self) -> Trial:
        return self.in_order()[0]

    def in_order(self) -> list[Trial]:
        """What can be taken, the best first. The best is the simplest candidate whose mean is within CLOSE of the
        highest; never one that is significantly worse than the given order. Without text nothing can be searched. Then
        the given order stays, with or without the online learner, unless another candidate is significantly better."""
        if not self.trials:
            raise SettingError(f"auto could try nothing: {'; '.join(f'{s}: {why}' for s, why in self.left.items())}")
        allowed = [trial for trial in self.trials.values() if not self._below_given(trial)]
        given = self.trials.get("given")
        if given is not None and not self.jury.has_text:
            better = [t for t in allowed if self.jury.gain(t.values, given.values).bounds(SURE)[0] > 0]
            searching = better or [t for t in allowed if t.spec in ("given", "online:given")]
        else:
            # A model that cannot search is of no use where others can: it is measured, and taken only by itself.
            searching = [trial for trial in allowed if trial.searches] or allowed
        ordered = []
        while searching:
            most = max(trial.mean for trial in searching)
            ordered.append(next(trial for trial in searching if trial.mean >= most - CLOSE))
            searching = [trial for trial in searching if trial is not ordered[-1]]
        return ordered

    def _below_given(self, trial: Trial) -> bool:
        given = self.trials.get("given")
        if given is None or given is trial:
            return False
        return self.jury.gain(trial.values, given.values).bounds(SURE)[1] < 0

    # --- what to say -----------------------------------------------------------------------------

    def record(self) -> tuple[dict[str, Any], ...]:
        """Every candidate with its result, or the reason why it was not tried."""
        reached = [{"spec": t.spec, "ndcg": round(t.mean, 5), "predicted_s": round(t.candidate.seconds, 1)}
                   for t in self.trials.values()]  # fmt: skip
        return (*reached, *({"spec": spec, "left_out": why} for spec, why in self.left.items()))

    def lines(self, best: Trial, how: str) -> tuple[str, ...]:
        """At most five lines: the data, what was tried, what was not, what was chosen and why, and its gain over the
        incoming order."""
        jury, new = self.jury, float(np.average(self.jury.new, weights=self.jury.weights))
        said = [
            f"auto: nDCG@5 {jury.task}: {count_of(len(jury), 'search')} ({how}), {new:.0%} of them of "
            "queries not seen before",
            "auto: tried " + ", ".join(f"{t.spec} {t.mean:.4f}" for t in self.trials.values()),
        ]
        if self.left:
            said.append("auto: not tried " + "; ".join(f"{spec} ({why})" for spec, why in self.left.items()))
        said.append(f"auto: takes {best.spec}{self._reason(best)}")
        given = self.trials.get("given")
        if given is not None and given is not best:
            said.append(f"auto: against the given order {self._difference(best, given)}")
        return tuple(said)

    def _reason(self, best: Trial) -> str:
        highest = max(self.trials.values(), key=lambda trial: trial.mean)
        others = [t for t in self.trials.values() if t is not best and t.spec != "given"]
        if highest is not best and highest.searches >= best.searches:
            return f", simpler than {highest.spec} and {self._difference(best, highest)} from it"
        if not others:
            return ", the only one"
        second = max(others, key=lambda trial: trial.mean)
        return f", {self._difference(best, second)} over {second.spec}"

    def _difference(self, one: Trial, two: Trial) -> str:
        gain = self.jury.gain(one.values, two.values)
        low, high = gain.bounds(SURE)
        return f"{gain.mean:+.4f} ({low:+.4f} to {high:+.4f})"
