"""Regularised mapping to latent structures (Wu et al. 2013, Section 4; Wu et al. 2012): sparse maps of bounded
row length, learned by alternating over the two sides.

As printed, the objective has a useless optimum: over the iterations all rows turn to one direction, and the score
only depends on how heavy the features are. So by default the latent dimensions are decorrelated before each threshold
(`numerics/rmls.py`). `docs/models/rmls.md` shows the experiment and the settings for the printed algorithm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.graph.hold_back import MIN_USABLE, few_held
from clickbridge.graph.notes import said_by
from clickbridge.io.values import stored
from clickbridge.models.ascent import labelled
from clickbridge.models.candidates import Candidates, Labelled, without_gaps
from clickbridge.models.change import Change
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.latent import Features, FittedLatent, LatentChoices, Space, mapped
from clickbridge.models.latent_features import check_updatable, updated_features
from clickbridge.models.pls import LatentModel, dim_note, with_spaces
from clickbridge.models.rmls_passes import AUTO, Pass, Problem, RMLSSettings, limits_of, map_density, passes
from clickbridge.models.rmls_plan import choose, plans
from clickbridge.models.rmls_tuning import TooFewLists, tune
from clickbridge.models.study import Known, Study
from clickbridge.numerics.row import as_matrix
from clickbridge.numerics.topk import paired_dots
from clickbridge.progress import Progress, silent

COLLAPSED = 0.5
"""Cosine of the rows to one direction from which on the maps have collapsed."""
Trace = list[dict[str, float]]


@stored
@dataclass(frozen=True, kw_only=True)
class RMLSChoices(LatentChoices):
    iterations: int
    beta: float | None = None
    gamma: float | None = None
    """Thresholds, where they were chosen."""

    def at(self, threshold: float | None, s: RMLSSettings) -> Self:
        """With a threshold for each side that leaves it open."""
        return replace(self, beta=threshold if s.beta == AUTO else None, gamma=threshold if s.gamma == AUTO else None)

    def settled(self, s: RMLSSettings) -> RMLSSettings:
        """The settings with what was chosen."""
        beta, gamma = (
            given if chosen is None else str(chosen) for given, chosen in ((s.beta, self.beta), (s.gamma, self.gamma))
        )
        return replace(s, beta=beta, gamma=gamma)


@stored
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRMLS(FittedLatent):
    settings: RMLSSettings
    choices: RMLSChoices
    plan: str
    trace: Trace
    """Every pass in numbers."""

    @property
    def map_density(self) -> float:
        """The share of non-zero numbers in both maps."""
        return map_density(*(m for space in self.spaces for m in (space.l_x, space.l_y)))

    def relearned(self, features: Features, space: Space, dim: int, engine: Engine, start: Any = None) -> Space:
        """Learns a space from other rows of the same features, with the chosen number of passes. `start` is an L_y to
        start from."""
        return last_of(self._passes(features, space, dim, engine, start)).space

    def _passes(self, features: Features, space: Space, dim: int, engine: Engine, start: Any) -> Iterator[Pass]:
        s, steps = self.choices.settled(self.settings), self.choices.iterations
        return passes(features, space.q_columns, space.d_columns, dim, s, steps, engine, start)

    def updated(self, change: Change, engine: Engine) -> Self:
        """Computes click features again, then more passes, starting from the old maps."""
        s = self.settings
        check_updatable(self.model, s, change)
        features, queries = updated_features(self.features, self.queries, change, s, self.field_weights, self.encode)
        (old,) = self.spaces
        last = last_of(self._passes(features, old, s.dim, engine, old.l_y))
        return with_spaces(self, change, queries, features, [last.space], plan=last.plan, trace=list(last.trace))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "density": self.map_density, "plan": self.plan, "trace": self.trace}


class RMLS(LatentModel):
    """PLS for large logs, with sparse maps: `RMLS(dim=300).fit(graph)`.

    Regularised mapping to latent structures: each row of a map keeps only a small share of its numbers, the setting
    `density`. All views share one space. Use it if PLS takes too much memory or time.

    Examples
    --------
    >>> from clickbridge import RMLS, example_graph
    >>> model = RMLS(dim=10).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['rooms', 'hotels', 'slice']
    """

    name = "rmls"
    about = "regularised mapping to latent structures: sparse maps, scalable"
    paper = "13 4, 12"
    Settings = RMLSSettings
    fitted_type: ClassVar[type[Fitted]] = FittedRMLS

    def choose(self, study: Study) -> RMLSChoices:
        s: RMLSSettings = self.settings
        study = self.on(study)
        groups = tuple(self.groups(study.whole))
        if s.tunes:
            return self._tuned(study, groups)
        weights, notes = self.choose_fields(study)
        return RMLSChoices(field_weights=weights, groups=groups, iterations=s.iterations, notes=notes)

    def _tuned(self, study: Study, groups: tuple[str, ...]) -> RMLSChoices:
        """The number of passes and the thresholds with the best nDCG@5 on held-back lists."""
        s: RMLSSettings = self.settings
        held, rest = study.hold_back(seed=s.seed)
        weights, said = self.choose_fields(rest)
        choices = RMLSChoices(field_weights=weights, groups=groups, iterations=s.iterations, notes=said)
        features = self.learn_features(rest, ["&".join(groups)], choices)
        lists: Labelled | None = None
        rows: sparse.csr_array | None = None

        def judged(threshold: float | None) -> Iterator[float]:
            nonlocal lists, rows
            for fitted in self._each(rest, choices.at(threshold, s), *features):
                if not fitted.map_density:
                    return
                if lists is None or rows is None:
                    lists = labelled(study, held.lists([fitted]))
                    rows = as_matrix([fitted.query_row(q) for q in lists.candidates.queries], fitted.q_views.width)
                if len(lists) < MIN_USABLE:
                    raise TooFewLists(few_held(len(lists)))
                yield lists.ndcg(without_gaps(scores_of_rows(fitted, rows, lists.candidates, study.engine)))

        found = tune(judged, s)
        notes = (*said, said_by(self.name, found.note))
        return replace(choices.at(found.threshold, s), iterations=found.passes, notes=notes)

    def each_pass(self, study: Study, choices: RMLSChoices) -> Iterator[FittedRMLS]:
        """The model as it is after each of the chosen number of passes."""
        study = self.on(study)
        return self._each(study, choices, *self.learn_features(study, ["&".join(choices.groups)], choices))

    def _each(
        self,
        study: Study,
        choices: RMLSChoices,
        known: Known,
        features: Features,
        columns: Sequence[tuple[Array, Array]],
    ) -> Iterator[FittedRMLS]:
        s, (of_queries, of_docs) = choices.settled(self.settings), columns[0]
        for now in passes(features, of_queries, of_docs, s.dim, s, choices.iterations, study.engine):
            fitted = self._fitted(study, choices, known, features, now, (), exact=True)
            assert isinstance(fitted, FittedRMLS)
            yield fitted

    def learn(self, study: Study, choices: Choices) -> FittedLatent:
        assert isinstance(choices, RMLSChoices)
        s = choices.settled(self.settings)
        study = self.on(study)
        group = "&".join(choices.groups)
        known, features, (columns,) = self.learn_features(study, [group], choices)
        made = passes(features, *columns, s.dim, s, choices.iterations, study.engine, None, study.checkpoints)
        last = last_of(made, study.progress)
        views, density = group.replace("&", ", "), map_density(last.space.l_x, last.space.l_y)
        note = f"views {views}; plan {last.plan}; {dim_note(last.space, s.dim)}, density {density:.4f}"
        notes = (f"{self.name}: {note}", *self._warnings(last))
        return self._fitted(study, choices, known, features, last, notes)

    def _fitted(
        self, study: Study, choices: RMLSChoices, known: Known, features: Features, last: Pass, notes: Sequence[str],
        exact: bool = False,
    ) -> FittedLatent:  # fmt: skip
        more = {"plan": last.plan, "trace": list(last.trace)}
        return self.finish(study, choices, known, features, [last.space], notes, exact, **more)

    def _warnings(self, last: Pass) -> tuple[str, ...]:
        cosine, rank = last.report["cosine_to_constant"], last.report["effective_rank"]
        if cosine < COLLAPSED:
            return ()
        return (
            f"{self.name}: the maps have collapsed: all features are mapped to nearly the same place (mean cosine "
            f"{cosine:.2f}, effective rank {rank:.0f} of {last.space.dim}), so documents with many features score high "
            "whatever the query is; set fewer iterations, or a larger decorrelate",
        )

    def plans_on(self, study: Study) -> list[dict[str, object]]:
        """Estimates the cost of each plan without running it. The first one is the plan that `fit` would use."""
        s: RMLSSettings = self.settings
        graph, study = study.graph, self.on(study)
        _, features, (columns,) = self.learn_features(study, ["&".join(self.groups(graph))], super().choose(study))
        sizes = Problem.of(features, *columns, s.dim, s).sizes(s, s.iterations, study.engine)
        limits = limits_of(study.engine)
        chosen = choose(sizes, wanted=s.plan, **limits)
        rest = [plan for plan in plans(sizes, **limits) if plan.name != chosen.name]
        return [asdict(plan) for plan in (chosen, *rest)]


def scores_of_rows(fitted: FittedLatent, rows: sparse.csr_array, candidates: Candidates, engine: Engine) -> Array:
    """Like `fitted.scores`, up to rounding, for lists whose query features are known. The same lists are scored after
    every pass, and one product for all of them takes a tenth of the time."""
    images, items = mapped(rows, fitted.spaces, "q_columns", "l_x", sparse.issparse(fitted.images)), candidates.items
    known = items >= 0
    known[known] = fitted.scorable[items[known]]
    docs, place = np.unique(np.where(known, items, 0), return_inverse=True)
    one, two = (sparse.csr_array(matrix) for matrix in (images, fitted.images[docs]))
    known &= (np.diff(one.indptr) > 0)[candidates.lists.owner]
    found = paired_dots(one, two, candidates.lists.indptr, place, engine)
    return np.where(known, found, -np.inf)


def last_of(made: Iterable[Pass], progress: Progress = silent) -> Pass:
    """The last pass. The maps of the other passes are freed."""
    for now in made:
        progress(now.line)
    return now
