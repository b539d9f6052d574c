"""The settings of `online:SPEC`, and what it chooses on held-back clicks: which pairs of results on a page it learns
from, and how much weight the learned parts get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from clickbridge.graph.hold_back import HoldBack
from clickbridge.graph.notes import prefixed
from clickbridge.io.values import stored
from clickbridge.log.bias import click_rates
from clickbridge.models.composite import PartsChoices
from clickbridge.models.fitted import Choices, Fitted
from clickbridge.models.study import Study
from clickbridge.numerics.feedback import read_only
from clickbridge.online.blend import ALONE, SHRINKS, Blend, ClickedLists, learn_blend, log_rates
from clickbridge.online.events import (
    Events,
    distinct_lists,
    events_from,
    events_of,
    found_lists,
    query_hashes,
    query_lists,
)
from clickbridge.online.projection import Projection, Shape, project
from clickbridge.online.state import State
from clickbridge.online.steps import PREFERENCES, Rules
from clickbridge.online.working import WorkingState
from clickbridge.settings import ADVANCED, Printed, Seeded, setting, settings

Array = np.ndarray[Any, Any]
HELD_BACK = 0.25
CAUTIOUS_PAIRS = "residual"
CAUTIOUS = Blend(0.0, 0.2, 4.0)
"""Where there is too little to learn a blend from: what the very same query taught, and that gently."""


@settings
class OnlineSettings(Printed, Seeded):
    printed: ClassVar[Mapping[str, Any]] = {
        "min_lists": 11, "teaching": "selected", "lists": "queries", "spaces": "one", "clustering": "absolute",
        "hardness": 1000.0, "closed_form": "printed", "pairs": "all", "blend": ALONE,
    }  # fmt: skip

    dim: int = setting(200, "dimensions of the latent space; at most the rank of the data is used", 1, 100_000)
    diffusion: float = setting(
        0.95, "how far a click spreads to pages that share lists: alpha of the diffusion kernel", 0, 0.999999
    )
    list_length: int = setting(20, "how many results of a list count: the paper's T", 1, 1000, group=ADVANCED)
    min_lists: int = setting(
        1, "documents on fewer lists keep the incoming order; the paper has 11", 1, 1e9, group="09"
    )
    teaching: str = setting(
        "all",
        "clicks to learn from: all, or those on documents on at least `min_lists` lists (selected, the paper)",
        choices=("all", "selected"),
        group="09",
    )
    lists: str = setting(
        "distinct",
        "lists that say which pages are similar: every different list once, or the first list of each query (the "
        "paper)",
        choices=("distinct", "queries"),
        group="09",
    )
    spaces: str = setting(
        "components",
        "a latent space for each connected component of the pages, or one of `dim` dimensions for all (the paper)",
        choices=("components", "one"),
        group="09",
    )
    clusters: int = setting(
        100, "query clusters of a component that is too large to decompose whole", 1, 100_000, group=ADVANCED
    )
    clustering: str = setting(
        "relative",
        "how queries are clustered: with hardness in mean squared distances and a query as the mean of its pages "
        "(relative), or with hardness as given, a query as the sum of its pages, and clusters in every space "
        "(absolute, the paper)",
        choices=("relative", "absolute"),
        group="09",
    )
    hardness: float = setting(
        10.0, "beta of the soft k-means, in mean squared distances to the nearest centre", 1e-6, 1e9, group=ADVANCED
    )
    closed_form: str = setting(
        "weighted",
        "weight of pairs that nobody clicked: unlabelled / N (weighted), 1 (corrected), or equation (19) as printed",
        choices=("weighted", "corrected", "printed"),
        group="09",
    )
    unlabelled: float = setting(
        10.0, "weight of all unlabelled pairs of a document together: tau", 1e-6, 1e9, group=ADVANCED
    )
    smoothness: bool = setting(True, "with the smoothness term, or without it (Appendix B)", group="09")
    pairs: str = setting(
        "auto",
        "pairs taken from a page: all clicked over unclicked results (the paper), only over those above (skip-above), "
        "or all less what the ranks explain (residual); auto chooses on held-back clicks",
        choices=("auto", "all", "skip-above", "residual"),
    )
    kappa: float = setting(1.0, "share of what was learned that is left after each event; 1 forgets nothing", 1e-3, 1)
    blend: str = setting(
        "auto",
        "weights of the latent and the own part, and the shrinkage, e.g. 0.1,0.2,4; none orders by the learned "
        "function alone (the paper); auto learns them from held-back clicks",
    )
    per_user: float = setting(0.0, "weight of a user's own clicks against everyone's; 0 keeps nothing by user", 0, 1000)

    @property
    def shape(self) -> Shape:
        return Shape(
            self.dim, self.diffusion, self.clusters, self.hardness, self.closed_form, self.unlabelled,
            self.smoothness, self.min_lists, self.seed, together=self.spaces == "one",
            absolute=self.clustering == "absolute",
        )  # fmt: skip


@stored
@dataclass(frozen=True, kw_only=True)
class OnlineChoices(PartsChoices):
    blend: Blend
    pairs: str
    prior: Array | None = None
    """How often each rank that the inner model gives is clicked, where it is not the order of the log's pages."""


# --- from a GRAPH to rules and a state -------------------------------------------------------------


class Lessons:
    """What there is to learn from a GRAPH, for any choice of the pairs of results to learn from."""

    def __init__(self, study: Study, inner: Fitted, how: OnlineSettings) -> None:
        graph, top = study.graph, how.list_length
        self.found = found_lists(graph, inner, top)
        self.events = events_of(graph, self.found, top)
        make = query_lists if how.lists == "queries" else distinct_lists
        lists = make(graph.impressions, self.found, top)
        self.projection: Projection = project(lists, how.shape, study.engine)
        clicked = self.events.with_clicks()
        self.rates = read_only(click_rates(clicked.indptr, clicked.clicked, top, clicked.amounts))
        self.queries = query_hashes(graph.query_keys)
        self._how = how

    def rules(self, pairs: str) -> Rules:
        how = self._how
        return Rules(self.projection, self.rates, pairs, how.list_length, how.kappa, how.teaching == "selected")

    def state(self, pairs: str) -> State:
        """The state after learning all clicks of the GRAPH."""
        working = WorkingState(self.rules(pairs), State.empty(self.projection), _nothing_new)
        working.add_log(self.events, self.queries, users=self._how.per_user > 0)
        return working.state()


def _nothing_new(doc_ids: Sequence[str]) -> Array:
    raise AssertionError("documents of a GRAPH are known by number")


# --- through hold_back -----------------------------------------------------------------------------


def choose_blend(
    study: Study, held: HoldBack, rest: Study, inner: Fitted, parts: tuple[Choices, ...], how: OnlineSettings
) -> OnlineChoices:
    """The pairs and the blend that rank held-back clicks best. Everything, also `inner`, is learned from the rest."""
    lessons = Lessons(rest, inner, how)
    searches, top = "search" in inner.abilities, how.list_length
    found = lessons.found if searches else found_lists(study.graph, inner, top)
    events = events_from(held.shown, held.clicked, found, top, reachable=True).with_clicks()
    by_inner = None
    if held.shown is not None and searches:
        # At query time lists come in this model's order, not in that of the page.
        events = events.in_order(inner, study.graph.query_keys)
        by_inner = click_rates(events.indptr, events.clicked, top, events.amounts)
    prior = log_rates(lessons.rates if by_inner is None else by_inner, events.ragged.places)
    lists = ClickedLists(events.ragged, events.clicked, prior, events.amounts)
    learned = {
        pairs: learn_blend(lists, _parts(lessons, pairs, events), CAUTIOUS)
        for pairs in (PREFERENCES if how.pairs == "auto" else [how.pairs])
    }
    best = max(learned, key=lambda pairs: learned[pairs].most)
    note = prefixed(f"online: pairs {best}, ", learned[best].words)
    return OnlineChoices(parts=parts, blend=learned[best].blend, pairs=best, prior=by_inner, notes=(note,))


def _parts(lessons: Lessons, pairs: str, events: Events) -> dict[float, tuple[Array, Array]]:
    """The parts (latent, own) of each held-back result, by shrink."""
    state, layout = lessons.state(pairs), lessons.projection.layout
    queries, top = lessons.queries[events.query], lessons.rules(pairs).list_length
    return {
        shrink: (
            state.latent(layout, events.indptr, events.docs, top, shrink),
            state.own(events.indptr, events.docs, queries, shrink),
        )
        for shrink in SHRINKS
    }
