"""The result of `fit` that clicks do not change: every page's z, its image z~ = U z, and the query clusters.

Later pages are folded in by their first list (Nystrom): z(x) = Lambda^-1 sum_j K(x, j) z_j. They are part of the state,
not of the projection.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.io.values import stored
from clickbridge.numerics.feedback import Layout, read_only
from clickbridge.online.clusters import query_vectors, soft_k_means
from clickbridge.online.eigen import Lists, ListSpace, Spectrum, decompose, keep_frequent
from clickbridge.online.weights import click_to_weight, latent

Array = np.ndarray[Any, Any]
LEAST_EIGENVALUE = 1e-3
"""Eigenvalues below this are treated as noise when a page is folded in: 1 / lambda would be too large."""


@stored
@dataclass(frozen=True)
class Shape:
    """The settings of the projection."""

    rank: int
    alpha: float
    n_clusters: int
    hardness: float
    form: str
    tau: float
    smoothness: bool
    min_lists: int = 1
    seed: int = 0
    tolerance: float = 1e-3
    # Not in `repr`, which the id of a projection is made of: they show in its arrays.
    together: bool = field(default=False, repr=False)
    """One space for all components."""
    absolute: bool = field(default=False, repr=False)
    """As in the paper: absolute hardness, queries as sums, clusters in every space."""


@stored
@dataclass(frozen=True, eq=False)
class Projection:
    layout: Layout
    spaces: Mapping[str, Array]
    """For each component its size, eigenvalues and summed z, one after the other; for each page its norm and degree."""
    shape: Shape
    residual: float

    @property
    def n_pages(self) -> int:
        return len(self.layout.component)

    @property
    def n_components(self) -> int:
        return len(self.layout.dims)

    @cached_property
    def id(self) -> str:
        """A hash of the whole projection. It shows whether a state belongs to this projection."""
        digest = hashlib.sha256(repr(self.shape).encode())
        for values in (*(getattr(self.layout, name) for name in _LAYOUT), *self.spaces.values()):
            digest.update(np.ascontiguousarray(values).data)
        return digest.hexdigest()

    def has_place(self, pages: Array) -> Array:
        """Which of these pages are in the latent space. Later pages are not, though a list may fold them in."""
        known = (pages >= 0) & (pages < self.n_pages)
        known[known] = self.layout.component[pages[known]] >= 0
        return known

    def matrix(self, component: int) -> Array:
        """U of a component."""
        here = slice(*self._ends[component : component + 2])
        values, w = self.spaces["values"][here], self.spaces["w"][here]
        return _matrix(values, w, int(self.spaces["sizes"][component]), self.shape)

    @cached_property
    def _ends(self) -> Array:
        """The offsets of each component's eigenvalues, and the end of the last one's."""
        return np.concatenate([[0], np.cumsum(self.layout.dims)])

    def fold_in(self, listed: Array) -> tuple[int, Array, Array] | None:
        """(component, z, z~) of a new page, from the known pages of one list; None if no page of the list is known. It
        depends only on the list, not on what was learned or on pages folded in before."""
        layout = self.layout
        known = listed[(listed >= 0) & (listed < self.n_pages)]
        known = known[layout.component[known] >= 0]
        if not len(known):
            return None
        numbers, counts = np.unique(layout.component[known], return_counts=True)
        c = int(numbers[np.argmax(counts)])
        mates = known[layout.component[known] == c]
        # The new page is on one list, so ||x|| = 1, K(x, j) = 1 / ||x_j||, and d is their sum (eq. 11). It is no
        # node of the graph: its similarity to itself, which would outweigh the others, is left out.
        k = 1.0 / self.spaces["norms"][mates]
        k = k / np.sqrt(k.sum() * self.spaces["degrees"][mates])
        rows = layout.z[layout.start[mates][:, None] + np.arange(int(layout.dims[c]))]
        values = self.spaces["values"][slice(*self._ends[c : c + 2])]
        z = np.where(values > LEAST_EIGENVALUE, k @ rows / np.maximum(values, LEAST_EIGENVALUE), 0.0)
        return c, z.astype(np.float32), (self.matrix(c) @ z).astype(np.float32)

    # --- files -----------------------------------------------------------------------------------

    def to_stored(self) -> dict[str, Any]:
        layout = {name: getattr(self.layout, name) for name in _LAYOUT}
        return {"layout": layout, "spaces": dict(self.spaces), "shape": self.shape, "residual": self.residual}

    @classmethod
    def from_stored(cls, value: Mapping[str, Any]) -> Projection:
        shape: Shape = value["shape"]
        arrays = {name: read_only(value["layout"][name]) for name in _LAYOUT}
        layout = Layout(**arrays, sums=read_only(np.full(len(arrays["dims"]), shape.absolute)))
        spaces = {name: value["spaces"][name] for name in _SPACES}
        _check(layout, spaces)
        return cls(layout, spaces, shape, float(value["residual"]))


_LAYOUT = [name for name in Layout._fields if not name.startswith("later_") and name != "sums"]
_SPACES = ("sizes", "values", "w", "norms", "degrees")


def _check(layout: Layout, spaces: Mapping[str, Array]) -> None:
    """Checks that all indexes lie within their arrays, since compiled loops do not check bounds."""
    dims, clusters, n = layout.dims, layout.n_clusters, len(layout.component)
    placed = layout.component >= 0
    sound = [
        len(layout.start) == n,
        len({len(dims), len(clusters), *(len(a) for a in layout[6:8]), *(len(a) for a in layout[9:11])}) == 1,
        bool((dims >= 0).all() and (clusters >= 1).all()),
        bool((layout.component < len(dims)).all()),
        len(layout.z) == len(layout.z_tilde),
    ]
    if all(sound):
        ends = layout.start[placed] + dims[layout.component[placed]]
        sound += [
            bool((layout.start >= 0).all() and (ends <= len(layout.z)).all()),
            np.array_equal(layout.centre_start, _starts(clusters * dims)),
            np.array_equal(layout.weight_start, _starts(clusters * dims)),
            np.array_equal(layout.slot_start, _starts(clusters)),
            len(layout.centres) == int((clusters * dims).sum()),
            len(spaces["values"]) == len(spaces["w"]) == int(dims.sum()),
            len(spaces["norms"]) == len(spaces["degrees"]) == n,
        ]
    if not all(sound):
        raise ValueError("a projection whose arrays do not fit together")


def _matrix(values: Array, w: Array, n: int, shape: Shape) -> Array:
    return click_to_weight(values, w, n, shape.alpha, form=shape.form, tau=shape.tau, smoothness=shape.smoothness)


def project(lists: Lists, shape: Shape, engine: Engine | None = None) -> Projection:
    """Section 3.1 and Section 3.2.4 of the paper: spaces, images, clusters."""
    lists = keep_frequent(lists, shape.min_lists) if shape.min_lists > 1 else lists
    how: dict[str, Any] = {"tolerance": shape.tolerance, "seed": shape.seed, "engine": engine}
    spectrum = decompose(lists, shape.rank, together=shape.together, **how)
    images = [latent(s.values, s.vectors, shape.alpha).astype(np.float32) for s in spectrum.spaces]
    sums = [z.sum(axis=0, dtype=np.float64) for z in images]
    turned = [
        (z @ _matrix(s.values, w, len(s.pages), shape).astype(np.float32))
        for s, z, w in zip(spectrum.spaces, images, sums, strict=True)
    ]
    clusters = [_clusters(s, z, lists, shape, engine) for s, z in zip(spectrum.spaces, images, strict=True)]
    residual = max((s.residual for s in spectrum.spaces), default=0.0)
    layout = _layout(spectrum.spaces, images, turned, clusters, lists.n_pages, shape.absolute)
    return Projection(layout, _spaces(spectrum, sums), shape, residual)


def _clusters(space: ListSpace, z: Array, lists: Lists, shape: Shape, engine: Engine | None) -> tuple[Array, float]:
    """The cluster centres of a component's queries. A component that was decomposed completely needs no clusters."""
    if shape.n_clusters == 1 or (len(space.pages) <= shape.rank and not shape.absolute):
        return np.zeros((1, z.shape[1]), dtype=np.float32), 1.0
    local = np.full(lists.n_pages, -1, dtype=np.int64)
    local[space.pages] = np.arange(len(space.pages))
    first = lists.first_pages()
    mine = np.flatnonzero((first >= 0) & (local[first] >= 0))
    ragged, shown = (lists.ragged, lists.pages) if len(mine) == len(lists) else lists.take(mine)
    points = query_vectors(ragged.indptr, local[shown], z, engine)
    if shape.absolute:
        points = points * ragged.lengths[:, None].astype(points.dtype)
    return soft_k_means(
        points, shape.n_clusters, shape.hardness, seed=shape.seed, engine=engine, relative=not shape.absolute
    )


def _spaces(spectrum: Spectrum, sums: list[Array]) -> dict[str, Array]:
    def flat(parts: list[Array]) -> Array:
        return np.concatenate([np.empty(0), *parts])

    return {
        "sizes": np.array([len(s.pages) for s in spectrum.spaces], dtype=np.int64),
        "values": flat([s.values for s in spectrum.spaces]),
        "w": flat(sums),
        "norms": spectrum.norms,
        "degrees": spectrum.degrees,
    }


def _layout(
    spaces: list[ListSpace], images: list[Array], turned: list[Array], clusters: list[tuple[Array, float]],
    n_pages: int, sums: bool,
) -> Layout:  # fmt: skip
    component, start = np.full(n_pages, -1, dtype=np.int32), np.zeros(n_pages, dtype=np.int64)
    begin = 0
    for c, (space, z) in enumerate(zip(spaces, images, strict=True)):
        component[space.pages] = c
        start[space.pages] = begin + np.arange(len(space.pages)) * z.shape[1]
        begin += z.size
    dims = np.array([z.shape[1] for z in images], dtype=np.int64)
    counts = np.array([len(centres) for centres, _ in clusters], dtype=np.int64)
    nothing = np.empty(0, dtype=np.float32)
    layout = Layout(
        component=component,
        start=start,
        z=np.concatenate([nothing, *(z.ravel() for z in images)]),
        z_tilde=np.concatenate([nothing, *(z.ravel() for z in turned)]),
        dims=dims,
        n_clusters=counts,
        beta=np.array([beta for _, beta in clusters], dtype=np.float64),
        centre_start=_starts(counts * dims),
        centres=np.concatenate([nothing, *(centres.T.ravel().astype(np.float32) for centres, _ in clusters)]),
        weight_start=_starts(counts * dims),
        slot_start=_starts(counts),
        sums=np.full(len(counts), sums),
    )
    return Layout(*map(read_only, layout))


def _starts(sizes: Array) -> Array:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])[:-1]
