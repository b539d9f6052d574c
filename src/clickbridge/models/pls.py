"""Partial least squares on a click graph (Wu et al. 2013, Section 3; Wu et al. 2011 M-PLS with one view).

W = (1/n^x) sum_i (1/n_i^y) sum_j r_ij x_i y_ij' = X' R Y, never formed unless that is cheaper; its first
singular vectors are the maps: score = x' U S^p V' y, p = `sv_power` (the papers: 0).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.products import products_of
from clickbridge.models.base import Array
from clickbridge.models.latent import COUNTING, SEARCHING, LatentModel, Space
from clickbridge.numerics.svd import (
    CorrectedOperator,
    MatrixOperator,
    Operator,
    ProductOperator,
    randomised_svd,
)
from clickbridge.views.fields import HEADINGS

CHEAP_PRODUCTS = 2e7
"""Multiplications up to which W is formed to see whether it is smaller than its factors."""
REPEATED = 0.5
"""Share of searches whose query occurs again, from which on clicks are features of a query by default."""


class PLS(LatentModel):
    """All views side by side in one space (the paper's concatenated setting)."""

    name = "pls"
    about = "partial least squares: one latent space for queries and documents"
    paper = "13 3, 11M"
    settings: ClassVar[tuple[str, ...]] = (
        "dim", "views", "mean", "sv_power", "centre", "precision", *COUNTING,
        "fields", "language", "stop_words", *SEARCHING, "seed",
    )  # fmt: skip

    dim: int
    views: str
    mean: bool
    sv_power: float
    centre: str
    precision: str

    def _fit(self, graph: ClickGraph) -> None:
        group = "&".join(self._groups(graph))
        columns = self._learn_features(graph, [group])[0]
        space = self.learn_space(*columns, self.dim)
        self.spaces_ = [self.scaled_space(space)]
        self.notes_.append(f"{self.name}: views {group.replace('&', ', ')}; {self._dim_note(space)}")
        self._finish()
        self.prepare_search()

    def relearn(self) -> None:
        """Click features anew, then every space from its old subspace; the weights of the views stay."""
        self.refresh_clicks()
        weights = getattr(self, "weights_", np.ones(len(self.spaces_)))
        spaces = []
        for space, weight, dim in zip(self.spaces_, weights, self.space_dims(len(weights)), strict=True):
            fresh = self.learn_space(space.q_columns, space.d_columns, dim, start=space.l_y)
            spaces.append(self.scaled_space(fresh, float(weight)))
        self.spaces_ = spaces
        self._finish()
        self.prepare_search()

    def _groups(self, graph: ClickGraph) -> list[str]:
        return default_views(graph) if self.views == "auto" else [v.strip() for v in self.views.split(",")]

    def space_dims(self, n_spaces: int) -> list[int]:
        return [self.dim] * n_spaces

    def _dim_note(self, space: Space) -> str:
        clipped = f" (of {self.dim} asked for: the data has no more)" if space.dim < self.dim else ""
        return f"dim {space.dim}{clipped}, residual {space.residual:.1e}"

    def learn_space(self, q_columns: Array, d_columns: Array, dim: int, start: Any = None) -> Space:
        """Unscaled maps: the singular vectors themselves."""
        x, y = self.query_features_[:, q_columns], self.doc_features_[:, d_columns]
        dtype = np.dtype(self.precision)
        operator = self._operator(sparse.csr_array(x), sparse.csr_array(y), dtype)
        svd = randomised_svd(operator, dim, seed=self.seed, dtype=dtype, start=start)
        return Space(q_columns, d_columns, svd.u, svd.v, svd.s, svd.residual)

    def weighted_responses(self) -> sparse.csr_array:
        """r_ij / (n^x n_i^y), or r_ij / n^x without the mean over a query's documents."""
        counts = np.maximum(np.diff(self.responses_.indptr), 1) if self.mean else np.ones(self.responses_.shape[0])
        return sparse.csr_array(sparse.diags_array(1 / (counts * self.responses_.shape[0])) @ self.responses_)

    def _operator(self, x: sparse.csr_array, y: sparse.csr_array, dtype: Any) -> Operator:
        r = self.weighted_responses()
        product = ProductOperator(x, r, y, dtype)
        operator: Operator = product
        if products_of(x, r, y) <= CHEAP_PRODUCTS:
            formed = sparse.csr_array(x.T @ r @ y)
            if formed.nnz < product.nnz:
                operator = MatrixOperator(formed, dtype)
        if self.centre == "none":
            return operator
        return CorrectedOperator(operator, *centring(x, r, y, self.centre))

    def scaled_space(self, space: Space, weight: float = 1.0) -> Space:
        """S^(p/2) and the square root of the weight into both maps."""
        relative = space.singular_values / max(float(space.singular_values[0]) if space.dim else 1.0, 1e-30)
        scale = (np.sqrt(weight) * relative ** (self.sv_power / 2)).astype(np.float32)
        l_x, l_y = (np.ascontiguousarray(m * scale, dtype=np.float32) for m in (space.l_x, space.l_y))
        return Space(space.q_columns, space.d_columns, l_x, l_y, space.singular_values, space.residual)


def default_views(graph: ClickGraph) -> list[str]:
    """All that the GRAPH supports: words and characters where there is text, clicks where queries repeat."""
    views = []
    has_text = any(graph.query_texts)
    if graph.field_names and has_text:
        heading = next((name for name in HEADINGS if name in graph.field_names), "")
        views += ["word", f"char:{heading}" if heading else "char"]
    elif has_text:
        views += ["q.word", "q.char", "d.click"]
    if not views or repeated_share(graph) >= REPEATED:
        views.append("click")
    return views


def repeated_share(graph: ClickGraph) -> float:
    """Share of searches (or clicks, where the log has no pages) whose query is searched more than once."""
    if graph.impressions is not None:
        times = np.bincount(graph.impressions.query, minlength=graph.n_queries)
    else:
        times = np.bincount(graph.pairs.query, graph.pairs.clicks, minlength=graph.n_queries)
    return float(times[times > 1].sum() / max(times.sum(), 1))


def centring(x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array, how: str) -> tuple[Array, Array]:
    """Left and right factors of what centring takes away from X' R Y.

    `pairs`: x and y'_i = sum_j r_ij y_ij are centred over queries: X'(I - 11'/n)(R Y), rank one.
    `sides`: X over queries and Y over documents, each by its own mean: (X - 1 m_x')' R (Y - 1 m_y'), rank two.
    """
    ones = np.ones(x.shape[0])
    mean_x = np.asarray(x.T @ ones) / x.shape[0]
    if how == "pairs":
        return mean_x[:, None], np.asarray(y.T @ (r.T @ ones))[:, None]
    mean_y = np.asarray(y.T @ np.ones(y.shape[0])) / y.shape[0]
    out_x = np.asarray(x.T @ (r @ np.ones(y.shape[0])))
    out_y = np.asarray(y.T @ (r.T @ ones))
    total = float(r.sum())
    # X'RY - m_x out_y' - out_x m_y' + total m_x m_y'
    left = np.stack([mean_x, out_x - total * mean_x], axis=1)
    return left, np.stack([out_y, mean_y], axis=1)
