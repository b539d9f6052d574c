"""What the kernel models choose through `hold_back`: kernel weights, k_D, epsilon, the ridge and rho.

One coordinate at a time over small grids, by nDCG@5 on held-back lists, everything learned on the rest.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clickbridge.errors import SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE
from clickbridge.models.tuning import LabelledLists, at_most

if TYPE_CHECKING:
    from clickbridge.skernel.model import KernelModel

AUTO = "auto"
MOST_LISTS = 300
LEAST_GAIN = 5e-4
TEXT_ALONE = {"word": 0.5, "char": 0.5}
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


@dataclass(frozen=True)
class Choice:
    """Everything that `auto` stands for."""

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

    def as_strings(self) -> list[str]:
        return [f"{name}={value}" for name, value in asdict(self).items()]

    @classmethod
    def of_strings(cls, lines: list[str]) -> Choice:
        read = dict(line.split("=", 1) for line in lines)
        numbers = {name: float(read[name]) for name in GRIDS}
        return cls(read["query_kernel"], read["doc_kernel"], read["family"], **numbers)


def parse_weights(text: str) -> dict[str, float]:
    """`click:0.5,word:0.25,char:0.25` as weights; a name alone weighs 1."""
    try:
        parts = (term.strip().partition(":") for term in text.split(","))
        return {name: float(weight) if colon else 1.0 for name, colon, weight in parts}
    except ValueError:
        raise SettingError(f"query_kernel is auto or weights, as click:0.5,word:0.5; got {text!r}") from None


def grids_of(model: KernelModel, graph: ClickGraph, by: str) -> dict[str, tuple[Any, ...]]:
    """For each coordinate what may be chosen: one value where a setting says it."""
    # Held-back queries that were never seen before can say nothing about clicks.
    kernels = QUERY_KERNELS if by != "query" else tuple(k for k in QUERY_KERNELS if "click" not in k)
    named = {"query_kernel": kernels, "doc_kernel": model.doc_kernels(graph), "family": FAMILY_GRID}
    out: dict[str, tuple[Any, ...]] = {**named, **GRIDS}
    for name in out:
        given = getattr(model, name, None)
        if given is None:
            out[name] = ("product",) if name == "family" else (0.0,)
        elif given != AUTO:
            out[name] = (given,) if name in named else (_number(name, given),)
    if len(out["rho"]) > 1 and len(out["family"]) == 1:
        out["rho"] = RHO_OF.get(out["family"][0], out["rho"])
    return out


def _number(name: str, given: str) -> float:
    try:
        value = float(given)
    except ValueError:
        value = -1.0
    least = 0.0 if name == "prior" else np.nextafter(0, 1)
    if not least <= value < np.inf:
        raise SettingError(f"{name} must be auto or a number {'from' if name == 'prior' else 'above'} 0; got {given!r}")
    return value


def tuned(model: KernelModel, graph: ClickGraph) -> tuple[Choice, str]:
    """The best choice and one line that says what was done."""
    held = graph.hold_back(seed=model.seed)
    grids = grids_of(model, graph, held.by)
    best = Choice(**{name: grid[0] for name, grid in grids.items()})
    if all(len(grid) == 1 for grid in grids.values()):
        return best, f"{model.spec}: every choice is given"
    if not np.any(held.graph.pairs.clicks):
        return best, f"{model.spec}: too few clicks to hold any back; kernels and constants are the defaults"
    model.prepare(held.graph)
    model.adopt(best)
    pool = [lambda query, k: model.rank(query, k).doc_ids]
    labelled = LabelledLists(at_most(MOST_LISTS, held.lists(pool), model.seed))
    if len(labelled) < MIN_USABLE:
        return best, f"{model.spec}: {len(labelled)} usable held-back queries are too few; all constants are defaults"
    # The constants that suit one family do not suit another: each gets a climb of its own.
    climbs = [_climb(model, labelled, replace(best, family=f), {**grids, "family": (f,)}) for f in grids["family"]]
    best, found = max(climbs, key=lambda climb: climb[1])
    words = ", ".join(f"{name} {getattr(best, name)}" for name, grid in grids.items() if len(grid) > 1)
    return best, f"{model.spec}: {words} (nDCG@5 {found:.3f} on {len(labelled)} held-back lists)"


def _climb(
    model: KernelModel, lists: LabelledLists, best: Choice, grids: dict[str, tuple[Any, ...]]
) -> tuple[Choice, float]:
    def value(choice: Choice) -> float:
        model.adopt(choice)
        scores = np.concatenate(model.score_lists(lists.lists))
        return lists.ndcg(np.where(np.isfinite(scores), scores, -1e300))

    found = value(best)
    for name, grid in grids.items():
        start = getattr(best, name)
        for candidate in grid if name != "rho" or best.family != "product" else ():
            if candidate != start:
                trial = replace(best, **{name: candidate})
                reached = value(trial)
                if reached > found + LEAST_GAIN:
                    best, found = trial, reached
    return best, found
