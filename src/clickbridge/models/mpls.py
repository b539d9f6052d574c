"""Multi-view partial least squares (Wu, Li, Xu 2011): one space for each type of feature, combined.

f(q, d) = sum_i a_i q_i' L_Qi L_Di' d_i. The mappings are the singular vectors of each M_i; the weights are
the closed form (5), a_i = Lambda_i / sqrt(sum Lambda^2), Lambda_i = the sum of the kept singular values, or
tuned through `hold_back`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.errors import SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE
from clickbridge.models.base import Array
from clickbridge.models.latent import Space
from clickbridge.models.pls import PLS, default_views
from clickbridge.models.tuning import LabelledLists, coordinate_ascent

VIEW_GRID = (0.0, 0.1, 0.2, 0.35, 0.6, 1.0, 1.5, 2.5, 4.0)


class MPLS(PLS):
    """Views are separated by commas; views joined by & share a space."""

    name = "mpls"
    about = "multi-view PLS: a latent space for each type of feature, weighted"
    paper = "11M"
    settings = ("combine", "dims", *PLS.settings)

    combine: str
    dims: str

    weights_: Array
    group_names_: list[str]

    def _fit(self, graph: ClickGraph) -> None:
        groups = self._groups(graph)
        if self.combine == "tuned" and "weights" not in self.tuned_ and len(groups) > 1:
            self.tuned_["weights"] = self._tune(graph, groups)
            # What the fit on the rest said of thresholds and fields is said again, of the whole, below.
            self.tuned_["note"], self.notes_ = self.notes_[-1], []
        spaces = self._spaces(graph, groups)
        self.notes_ += [self.tuned_["note"]] if "note" in self.tuned_ else []
        self.group_names_ = groups
        self.weights_ = self.tuned_.get("weights", closed_form(spaces))
        self.spaces_ = [self.scaled_space(s, w) for s, w in zip(spaces, self.weights_, strict=True)]
        words = ", ".join(f"{g}:{w:.3g}" for g, w in zip(groups, self.weights_, strict=True))
        self.notes_.append(f"{self.name}: views {words}; residual {max(s.residual for s in spaces):.1e}")
        self._finish()
        self.prepare_search()

    def _groups(self, graph: ClickGraph) -> list[str]:
        if self.views != "auto":
            return [v.strip() for v in self.views.split(",")]
        views = default_views(graph)
        text = [v for v in views if v.startswith(("word", "char"))]
        if len(text) < 2:
            # Views of one side alone make a space together.
            sided = [v for v in views if v.startswith(("q.", "d."))]
            return [*(["&".join(sided)] if sided else []), *(v for v in views if v not in sided)]
        bigram = text[1].replace("char", "bigram")
        return ["&".join(text), *text, bigram, *(v for v in views if v not in text)]

    def _spaces(self, graph: ClickGraph, groups: list[str]) -> list[Space]:
        """Unscaled spaces of all groups; k_i is `dims`, or `dim` for each."""
        columns = self._learn_features(graph, groups)
        dims = self.space_dims(len(groups))
        return [self.learn_space(*pair, dim) for pair, dim in zip(columns, dims, strict=True)]

    def space_dims(self, n_spaces: int) -> list[int]:
        return parse_dims(self.dims, n_spaces) if self.dims else super().space_dims(n_spaces)

    def _tune(self, graph: ClickGraph, groups: list[str]) -> Array | None:
        """Weights by nDCG@5 on held-back lists, the spaces learned from the rest."""
        held = graph.hold_back(seed=self.seed)
        spaces = self._spaces(held.graph, groups)
        self.spaces_ = [self.scaled_space(s, w) for s, w in zip(spaces, closed_form(spaces), strict=True)]
        self._finish()
        lists = LabelledLists(held.lists([lambda query, k: self.rank(query, k).doc_ids]))
        self._forget()
        if len(lists) < MIN_USABLE:
            self.notes_.append(f"{self.name}: {len(lists)} usable held-back queries are too few; weights by eq. (5)")
            return closed_form(spaces)
        columns = []
        for space in spaces:
            self.spaces_ = [self.scaled_space(space)]
            self._finish()
            scores = np.concatenate(self.score_lists(lists.lists))
            columns.append(np.where(np.isfinite(scores), scores, 0.0))
            self._forget()
        by_view = np.stack(columns, axis=1)
        weights, found = coordinate_ascent(
            np.ones(len(groups)), VIEW_GRID, lambda w: lists.ndcg(by_view @ w), scales=()
        )
        self.notes_.append(f"{self.name}: weights tuned to nDCG@5 {found:.3f} on {len(lists)} held-back lists")
        return weights / np.linalg.norm(weights)

    def _report(self) -> dict[str, Any]:
        return {
            **super()._report(),
            "weights": dict(zip(self.group_names_, self.weights_.round(4).tolist(), strict=True)),
        }


def parse_dims(text: str, n_groups: int) -> list[int]:
    dims = [int(d) if d.strip().isdecimal() else 0 for d in text.split(",")]
    if len(dims) != n_groups or min(dims) < 1:
        raise SettingError(f"dims must be {n_groups} whole numbers above 0, one for each view; got {text!r}")
    return dims


def closed_form(spaces: list[Space]) -> Array:
    """Eq. (5)."""
    sums = np.array([float(space.singular_values.sum()) for space in spaces])
    return sums / max(float(np.linalg.norm(sums)), 1e-300)
