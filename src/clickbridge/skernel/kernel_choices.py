"""What the kernel models choose on held-back clicks: kernel weights, k_D, epsilon, the ridge and rho.

One coordinate is tuned at a time over small grids, by nDCG@5 on held-back lists, with everything learned from the rest.
What a trial needs from the log and from the base model is computed once and shared by all trials. Only the small models
of the lists' queries are trained again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clickbridge.errors import SettingError
from clickbridge.graph.hold_back import MIN_USABLE, few_held
from clickbridge.graph.notes import said_by
from clickbridge.io.values import stored
from clickbridge.models.ascent import labelled
from clickbridge.models.candidates import Labelled, at_most, without_gaps
from clickbridge.models.fitted import Choices
from clickbridge.models.jury import Jury
from clickbridge.models.study import Study
from clickbridge.settings import Settings
from clickbridge.skernel.query_kernel import QueryKernel, checked_weights

if TYPE_CHECKING:
    from clickbridge.skernel.kernel_model import FittedKernel, KernelModel
    from clickbridge.skernel.neighbourhood import Neighbourhood

AUTO = "auto"
MOST_LISTS = 300
MOST_SEARCHES = 1000
"""Held-back searches on which the base is compared with what corrects it."""
LEAST_GAIN = 5e-4
QUERY_KERNELS = (
    "word:0.5,char:0.5",
    "word:0.8,char:0.2",
    "word:0.2,char:0.8",
    "click:0.5,word:0.25,char:0.25",
    "click:0.8,word:0.1,char:0.1",
)
GRIDS: dict[str, tuple[float, ...]] = {
    "rho": (1.0, 0.3, 3.0),
    "epsilon": (0.1, 0.01, 0.03, 0.3, 1.0, 3.0),
    "ridge": (3.0, 0.3, 1.0, 10.0),
    "prior": (0.3, 0.1, 1.0),
    "n_neighbours": (50, 10, 20),
}
"""The first is the default."""
RHO_OF = {"geometric": (0.9, 0.3, 0.6), "product": (1.0,)}
"""A geometric series must converge where both kernels are 1; a product has no rho."""
FAMILY_GRID = ("product", "exponential")
Grids = Mapping[str, tuple[Any, ...]]


@stored
@dataclass(frozen=True)
class Choice:
    """One value for each setting that can be `auto`."""

    query_kernel: str
    doc_kernel: str
    family: str
    ridge: float
    epsilon: float
    rho: float
    prior: float
    n_neighbours: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def query_weights(self) -> dict[str, float]:
        return parse_weights(self.query_kernel)

    @property
    def neighbourhood(self) -> tuple[str, str, float]:
        """The values that determine a neighbourhood. The others only affect what is learned in it."""
        return self.query_kernel, self.doc_kernel, self.n_neighbours


@stored
@dataclass(frozen=True, kw_only=True)
class KernelChoices(Choices):
    choice: Choice
    corrects: bool = True
    """Whether what was learned improves the base that the model has; if not, the base's own order stays."""


def parse_weights(text: str) -> dict[str, float]:
    """Parses weights such as `click:0.5,word:0.25,char:0.25`. A name without a number has the weight 1."""
    try:
        parts = (term.strip().partition(":") for term in text.split(","))
        return {name: float(weight) if colon else 1.0 for name, colon, weight in parts}
    except ValueError:
        raise SettingError(f"query_kernel is auto or weights, such as click:0.5,word:0.5; got {text!r}") from None


def grids_of(settings: Settings, doc_kernels: tuple[str, ...], by: str) -> Grids:
    """The values to choose from for each coordinate; only one if a setting fixes it."""
    # Held-back queries that are new have no clicks, so they cannot be used to choose a click kernel.
    kernels = QUERY_KERNELS if by != "query" else tuple(k for k in QUERY_KERNELS if "click" not in k)
    named = {"query_kernel": kernels, "doc_kernel": doc_kernels, "family": FAMILY_GRID}
    out: dict[str, tuple[Any, ...]] = {**named, **GRIDS}
    for name in out:
        given = getattr(settings, name, None)
        if given is None:  # the pairwise kernel has no base to weigh
            out[name] = ("product",) if name == "family" else (0.0,)
        elif given != AUTO:
            out[name] = (given,) if name in named else (_number(name, given),)
    checked_weights(parse_weights(out["query_kernel"][0]))
    if len(out["rho"]) > 1 and len(out["family"]) == 1:
        out["rho"] = RHO_OF.get(out["family"][0], out["rho"])
    return out


def _number(name: str, given: str) -> float:
    try:
        value = float(given)
    except ValueError:
        value = -1.0
    from_zero = name in ("prior", "epsilon")
    least = 0.0 if from_zero else np.nextafter(0, 1)
    if not least <= value < np.inf:
        raise SettingError(f"{name} must be auto or a number {'from' if from_zero else 'above'} 0; got {given!r}")
    return value


def chosen(model: KernelModel, study: Study) -> KernelChoices:
    """The best choice, the choices of the parts, and one line for the user about them."""
    seed = model.settings.seed
    held, rest = study.hold_back(seed=seed)
    grids = grids_of(model.settings, model.doc_kernels(study), held.by)
    first = Choice(**{name: grid[0] for name, grid in grids.items()})
    if all(len(grid) == 1 for grid in grids.values()):
        return model.choices(study, first, f"{model.spec}: every choice is given")
    if not np.any(rest.graph.pairs.clicks):
        note = f"{model.spec}: too few clicks to hold any back; kernels and constants are the defaults"
        return model.choices(study, first, note)
    trials = Trials(model, rest, model.choices(rest, first))
    rankers = [*trials.parts, trials.fitted(first)]
    # A document that no model finds could not be re-ranked in use either.
    lists = labelled(study, at_most(MOST_LISTS, held.lists(rankers, missed=not trials.parts), seed))
    if len(lists) < MIN_USABLE:
        few = few_held(len(lists), follows="all constants are defaults")
        return replace(trials.choices, notes=(said_by(model.spec, few),))
    # Constants that suit one family do not suit another, so each family is tuned separately.
    climbs = [climb(trials, lists, replace(first, family=f), {**grids, "family": (f,)}) for f in grids["family"]]
    best, found = max(climbs, key=lambda reached: reached[1])
    words = ", ".join(f"{name} {getattr(best, name)}" for name, grid in grids.items() if len(grid) > 1)
    note = f"{model.spec}: {words} (nDCG@5 {found:.3f} on {len(lists)} held-back lists)"
    return guarded(trials, replace(trials.choices, choice=best, notes=(note,)), study)


def guarded(trials: Trials, choices: KernelChoices, study: Study) -> KernelChoices:
    """The choices, marked to keep the base's order if they do not improve it. That is measured on held-back pages or,
    if there are none, on a search of the collection. A model without a base has nothing to fall back on."""
    if not trials.parts:
        return choices
    jury, base = Jury(study, trials.model.settings.seed, MOST_SEARCHES), trials.parts[0]
    gain = jury.gain(jury.values(trials.fitted(choices.choice)), jury.values(base))
    said = f"{trials.model.spec}: {gain.mean:+.4f} (± {gain.error:.4f}) over {base.spec} {jury.task}"
    if gain.mean > gain.error:
        return replace(choices, notes=(*choices.notes, said))
    said = f"{said}: no significant gain, so the order of {base.spec} stays"
    return replace(choices, corrects=False, notes=(*choices.notes, said))


class Trials:
    """Fitted values for trial choices, all computed from one study."""

    def __init__(self, model: KernelModel, study: Study, choices: KernelChoices) -> None:
        self.model, self.study, self.choices = model, study, choices
        self.parts = model.learned_parts(study, choices)
        self._first: dict[frozenset[str], FittedKernel] = {}
        self._kernels: dict[str, QueryKernel] = {}

    def fitted(self, choice: Choice) -> FittedKernel:
        """A fitted value for one trial. It is cheap: trials with the same training data share their base scores."""
        choices = replace(self.choices, choice=choice)
        taught = self.model.taught_parts(choice)
        if taught not in self._first:
            self._first[taught] = self.model.assembled(self.study, choices, self.parts)
            self._kernels[choice.query_kernel] = self._first[taught].kernel
        if choice.query_kernel not in self._kernels:
            self._kernels[choice.query_kernel] = self.model.query_kernel_of(self.study, choice, self.parts)
        kernel, rows = self._kernels[choice.query_kernel], self.model.document_rows(self.study, choice.doc_kernel)
        return replace(self._first[taught], choices=choices, kernel=kernel, doc_rows=rows)

    def values(self, choices: Sequence[Choice], lists: Labelled) -> list[float]:
        """nDCG@5 of each choice. Choices with the same neighbourhoods share them."""
        fitted = [self.fitted(choice) for choice in choices]
        columns: list[list[Any]] = [[] for _ in fitted]
        for query, items in lists.candidates.each():
            found: dict[Any, Neighbourhood | None] = {}
            for model, column in zip(fitted, columns, strict=True):
                kind = model.choice.neighbourhood
                if kind not in found:
                    found[kind] = model.neighbourhood(query, items)
                column.append(model.score_within(found[kind], query, items))
        return [lists.ndcg(without_gaps(np.concatenate(column), -1e300)) for column in columns]


def climb(trials: Trials, lists: Labelled, best: Choice, grids: Grids) -> tuple[Choice, float]:
    """Improves a choice: finds the best value of each coordinate in turn, with the others fixed."""
    (found,) = trials.values([best], lists)
    what = f"{trials.model.spec}, family {best.family}: choosing kernels and constants"
    for name, grid in trials.study.steps(what, list(grids.items())):
        if name == "rho" and best.family == "product":
            continue
        others = [replace(best, **{name: candidate}) for candidate in grid if candidate != getattr(best, name)]
        for trial, reached in zip(others, trials.values(others, lists), strict=True):
            if reached > found + LEAST_GAIN:
                best, found = trial, reached
    return best, found
