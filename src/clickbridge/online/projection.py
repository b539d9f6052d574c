"""What `fit` leaves and clicks do not change: every page's z, its image z~ = U z, and the query clusters.

Pages that come later are folded in by their first list (Nystrom): z(x) = Lambda^-1 sum_j K(x, j) z_j. They are
part of the state, not of the projection, and are marked as such.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.numerics.feedback import Layout
from clickbridge.online.clusters import query_vectors, soft_k_means
from clickbridge.online.eigen import Lists, Space, Spectrum, decompose, keep_frequent
from clickbridge.online.weights import click_to_weight, latent

Array = np.ndarray[Any, Any]
LEAST_EIGENVALUE = 1e-3
"""Directions with less are noise to a page folded in: 1 / lambda would blow them up."""


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


@dataclass(frozen=True)
class Projection:
    layout: Layout
    spaces: Mapping[str, Array]
    """Of each component: its size, eigenvalues and summed z, end to end; of each page: norm and degree."""
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
        """Stands for all of it: a state that another projection made is known by it."""
        digest = hashlib.sha256(repr(self.shape).encode())
        for values in (*self.layout, *self.spaces.values()):
            digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()

    @cached_property
    def _matrices(self) -> dict[int, Array]:
        return {}

    def matrix(self, component: int) -> Array:
        """U of a component, made again when a page is folded in."""
        if component not in self._matrices:
            ends = np.concatenate([[0], np.cumsum(self.layout.dims)])
            here = slice(ends[component], ends[component + 1])
            values, w = self.spaces["values"][here], self.spaces["w"][here]
            self._matrices[component] = _matrix(values, w, int(self.spaces["sizes"][component]), self.shape)
        return self._matrices[component]

    def fold_in(self, listed: Array, layout: Layout) -> tuple[int, Array, Array] | None:
        """(component, z, z~) of a new page from the known pages of one list; None where none is known."""
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
        d = int(layout.dims[c])
        rows = layout.z[layout.start[mates][:, None] + np.arange(d)]
        begin = int(layout.dims[:c].sum())
        values = self.spaces["values"][begin : begin + d]
        z = np.where(values > LEAST_EIGENVALUE, k @ rows / np.maximum(values, LEAST_EIGENVALUE), 0.0)
        return c, z.astype(np.float32), (self.matrix(c) @ z).astype(np.float32)

    def write(self, writer: PartWriter) -> None:
        for name, values in (*self.layout._asdict().items(), *self.spaces.items()):
            writer.array(f"projection.{name}", values)

    @staticmethod
    def read(artifact: Artifact, shape: Shape, residual: float) -> Projection:
        layout = Layout(*(artifact.array(f"projection.{name}") for name in Layout._fields))
        spaces = {name: artifact.array(f"projection.{name}") for name in _SPACES}
        return Projection(Layout(*map(frozen, layout)), spaces, shape, residual)


_SPACES = ("sizes", "values", "w", "norms", "degrees")


def frozen(values: Array) -> Array:
    """Read-only and plain, as arrays mapped from a file are: compiled loops need one version alone."""
    out = np.ascontiguousarray(values).view(np.ndarray)
    out.setflags(write=False)
    return out


def _matrix(values: Array, w: Array, n: int, shape: Shape) -> Array:
    return click_to_weight(values, w, n, shape.alpha, form=shape.form, tau=shape.tau, smoothness=shape.smoothness)


def project(lists: Lists, shape: Shape, threads: int = 0) -> Projection:
    """Section 3.1 and Section 3.2.4 of the paper: spaces, images, clusters."""
    lists = keep_frequent(lists, shape.min_lists) if shape.min_lists > 1 else lists
    spectrum = decompose(lists, shape.rank, tolerance=shape.tolerance, seed=shape.seed, threads=threads)
    images = [latent(s.values, s.vectors, shape.alpha).astype(np.float32) for s in spectrum.spaces]
    sums = [z.sum(axis=0, dtype=np.float64) for z in images]
    turned = [
        (z @ _matrix(s.values, w, len(s.pages), shape).astype(np.float32))
        for s, z, w in zip(spectrum.spaces, images, sums, strict=True)
    ]
    clusters = [_clusters(s, z, lists, shape, threads) for s, z in zip(spectrum.spaces, images, strict=True)]
    residual = max((s.residual for s in spectrum.spaces), default=0.0)
    layout = _layout(spectrum.spaces, images, turned, clusters, lists.n_pages)
    return Projection(layout, _spaces(spectrum, sums), shape, residual)


def _clusters(space: Space, z: Array, lists: Lists, shape: Shape, threads: int) -> tuple[Array, float]:
    """Centres of a component's queries. A component that was decomposed whole tells its pages apart without."""
    if len(space.pages) <= shape.rank or shape.n_clusters == 1:
        return np.zeros((1, z.shape[1]), dtype=np.float32), 1.0
    local = np.full(lists.n_pages, -1, dtype=np.int64)
    local[space.pages] = np.arange(len(space.pages))
    length = np.diff(lists.indptr)
    first = np.minimum(lists.indptr[:-1], len(lists.pages) - 1)
    mine = np.flatnonzero((length > 0) & (local[lists.pages[first]] >= 0))
    if len(mine) == len(lists):
        indptr, pages = lists.indptr, local[lists.pages]
    else:
        indptr = np.concatenate([[0], np.cumsum(length[mine])])
        shown = np.repeat(lists.indptr[mine] - indptr[:-1], length[mine]) + np.arange(indptr[-1])
        pages = local[lists.pages[shown]]
    points = query_vectors(indptr, pages, z, threads)
    return soft_k_means(points, shape.n_clusters, shape.hardness, seed=shape.seed, threads=threads)


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
    spaces: list[Space], images: list[Array], turned: list[Array], clusters: list[tuple[Array, float]], n_pages: int
) -> Layout:
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
    )
    return Layout(*map(frozen, layout))


def _starts(sizes: Array) -> Array:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])[:-1]
