"""Multi-view partial least squares (Wu, Li, Xu 2011): one space for each type of feature, combined.

f(q, d) = sum_i a_i q_i' L_Qi L_Di' d_i. The mappings are the singular vectors of each M_i. The weights follow from the
closed form (5), a_i = Lambda_i / sqrt(sum Lambda^2), Lambda_i = the sum of the kept singular values, or are tuned on
held-back clicks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from clickbridge.errors import SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE, few_held
from clickbridge.graph.notes import said_by
from clickbridge.io.values import stored
from clickbridge.models.ascent import coordinate_ascent, labelled
from clickbridge.models.candidates import without_gaps
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.latent import Features, FittedLatent, LatentChoices, Space
from clickbridge.models.pls import PLS, FittedPLS, LatentSettings, PLSSettings, default_views, learn_space, scaled_space
from clickbridge.models.study import Known, Study
from clickbridge.settings import ADVANCED, setting, settings

VIEW_GRID = (0.0, 0.1, 0.2, 0.35, 0.6, 1.0, 1.5, 2.5, 4.0)


@settings
class MPLSSettings(PLSSettings):
    printed: ClassVar[Mapping[str, Any]] = {
        **PLSSettings.printed, "response": "log-t", "mean": False, "combine": "closed", "similarity": "dot",
    }  # fmt: skip

    combine: str = setting(
        "tuned",
        "weights of the views: chosen on held-back clicks, or by equation (5) of 11M (closed)",
        choices=("tuned", "closed"),
    )
    dims: str = setting("", "dimensions of each view's space, e.g. 600,300; empty gives each `dim`", group=ADVANCED)


@stored
@dataclass(frozen=True, kw_only=True)
class MPLSChoices(LatentChoices):
    """`weights` are those of the groups. None means eq. (5), which is computed from what is learned."""

    weights: tuple[float, ...] | None = None


@stored
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedMPLS(FittedPLS):
    settings: MPLSSettings
    choices: MPLSChoices
    weights: Array
    """Of the spaces. They stay through updates, those of eq. (5) too."""

    @property
    def group_names(self) -> tuple[str, ...]:
        return self.choices.groups

    @property
    def space_weights(self) -> Array:
        return self.weights

    @property
    def space_dims(self) -> list[int]:
        return dims_of(self.settings, len(self.spaces))

    def describe(self) -> dict[str, Any]:
        weights = dict(zip(self.group_names, self.weights.round(4).tolist(), strict=True))
        return {**super().describe(), "weights": weights}


class MPLS(PLS):
    """PLS with one latent space for each view, and a weight for each: `MPLS(views="word,click")`.

    Views are separated by commas. Views joined by & share a space. The weights are chosen on held-back clicks.

    Examples
    --------
    >>> from clickbridge import MPLS, example_graph
    >>> model = MPLS(dim=10).fit(example_graph())
    >>> model.rank("sleep near the statue", k=2).doc_ids
    ['ferry', 'rooms']
    """

    name = "mpls"
    about = "multi-view PLS: a latent space for each type of feature, weighted"
    paper = "11M"
    Settings: ClassVar[type[LatentSettings]] = MPLSSettings
    fitted_type: ClassVar[type[Fitted]] = FittedMPLS

    def groups(self, graph: ClickGraph) -> list[str]:
        if self.settings.views != "auto":
            return super().groups(graph)
        views = default_views(graph)
        text = [v for v in views if v.startswith(("word", "char"))]
        if len(text) < 2:
            # Views that exist on one side only are put into one space together.
            sided = [v for v in views if v.startswith(("q.", "d."))]
            return [*(["&".join(sided)] if sided else []), *(v for v in views if v not in sided)]
        bigram = text[1].replace("char", "bigram")
        return ["&".join(text), *text, bigram, *(v for v in views if v not in text)]

    def choose(self, study: Study) -> MPLSChoices:
        s: MPLSSettings = self.settings
        study = self.on(study)
        groups = tuple(self.groups(study.whole))
        dims_of(s, len(groups))  # refused before any work
        if s.combine == "tuned" and len(groups) > 1:
            return self._tuned(study, groups)
        weights, notes = self.choose_fields(study)
        return MPLSChoices(field_weights=weights, groups=groups, notes=notes)

    def _tuned(self, study: Study, groups: tuple[str, ...]) -> MPLSChoices:
        """The weights with the best nDCG@5 on held-back lists, with spaces learned from the rest of the log."""
        s: MPLSSettings = self.settings
        held, rest = study.hold_back(seed=s.seed)
        fields, said = self.choose_fields(rest)
        closed = MPLSChoices(field_weights=fields, groups=groups)
        known, features, spaces = self._learn_spaces(rest, closed)

        def fitted(chosen: Sequence[Space], weights: Array) -> FittedLatent:
            return self._fitted(rest, closed, known, features, chosen, weights, exact=True)

        lists = labelled(study, held.lists([fitted(spaces, closed_form(spaces))]))
        if len(lists) < MIN_USABLE:
            few = few_held(len(lists), follows="weights by eq. (5)")
            return MPLSChoices(field_weights=fields, groups=groups, notes=(*said, said_by(self.name, few)))
        columns = [without_gaps(fitted([space], np.ones(1)).scores(lists.candidates)) for space in spaces]
        by_view = np.stack(columns, axis=1)
        weights, found = coordinate_ascent(
            np.ones(len(groups)), VIEW_GRID, lambda w: lists.ndcg(by_view @ w), scales=()
        )
        note = f"{self.name}: weights tuned to nDCG@5 {found:.3f} on {len(lists)} held-back lists"
        unit = tuple((weights / np.linalg.norm(weights)).tolist())
        return MPLSChoices(field_weights=fields, groups=groups, weights=unit, notes=(*said, note))

    def learn(self, study: Study, choices: Choices) -> FittedLatent:
        assert isinstance(choices, MPLSChoices)
        study = self.on(study)
        known, features, spaces = self._learn_spaces(study, choices)
        weights = closed_form(spaces) if choices.weights is None else np.array(choices.weights)
        words = ", ".join(f"{g}:{w:.3g}" for g, w in zip(choices.groups, weights, strict=True))
        note = f"{self.name}: views {words}; residual {max(s.residual for s in spaces):.1e}"
        return self._fitted(study, choices, known, features, spaces, weights, (note,))

    def spaces_to_learn(self, graph: ClickGraph) -> tuple[list[str], list[int]]:
        groups = self.groups(graph)
        return groups, dims_of(self.settings, len(groups))

    def _learn_spaces(self, study: Study, choices: MPLSChoices) -> tuple[Known, Features, list[Space]]:
        """Learns the spaces of all groups, before they are scaled by weights."""
        s: MPLSSettings = self.settings
        known, features, columns = self.learn_features(study, choices.groups, choices)
        dims = dims_of(s, len(columns))
        spaces = [
            learn_space(features, *c, d, s, study.engine, within=study) for c, d in zip(columns, dims, strict=True)
        ]
        return known, features, spaces

    def _fitted(
        self, study: Study, choices: MPLSChoices, known: Known, features: Features, spaces: Sequence[Space],
        weights: Array, notes: Sequence[str] = (), exact: bool = False,
    ) -> FittedLatent:  # fmt: skip
        power = self.settings.sv_power
        scaled = [scaled_space(space, power, weight) for space, weight in zip(spaces, weights.tolist(), strict=True)]
        return self.finish(study, choices, known, features, scaled, notes, exact, weights=weights)


def dims_of(s: MPLSSettings, n_groups: int) -> list[int]:
    """The number of dimensions of each space: `dims`, or `dim` for all."""
    return parse_dims(s.dims, n_groups) if s.dims else [s.dim] * n_groups


def parse_dims(text: str, n_groups: int) -> list[int]:
    dims = [int(d) if d.strip().isdecimal() else 0 for d in text.split(",")]
    if len(dims) != n_groups or min(dims) < 1:
        raise SettingError(f"dims must be {n_groups} whole numbers above 0, one for each view; got {text!r}")
    return dims


def closed_form(spaces: Sequence[Space]) -> Array:
    """Eq. (5)."""
    sums = np.array([float(space.singular_values.sum()) for space in spaces])
    return sums / max(float(np.linalg.norm(sums)), 1e-300)
