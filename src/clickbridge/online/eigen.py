"""The projection of Kim and Choi (2009), Section 3.1: from result lists to a latent space, without forming K.

Pages that are shown together on one list are similar. The normalised K of eq. (11) has the eigenvalue 1 once for each
connected component, so with many components its first R eigenvectors would only tell components apart. Each component
therefore has a space of its own. A component with at most R pages is decomposed completely, including the identity
part. For a larger one, the first R eigenvectors are computed by block Lanczos with the implicit product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.numerics.diffusion import components, spread
from clickbridge.numerics.lanczos import fewest_rows, leading_eigenpairs
from clickbridge.numerics.ragged import Ragged
from clickbridge.numerics.svd import fix_signs

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Lists:
    """Result lists, one after the other: list k shows `pages[indptr[k]:indptr[k + 1]]`, each page once."""

    ragged: Ragged
    pages: Array
    n_pages: int

    @property
    def indptr(self) -> Array:
        return self.ragged.indptr

    def __len__(self) -> int:
        return len(self.ragged)

    def take(self, lists: Array) -> tuple[Ragged, Array]:
        """The given lists by number, and their pages."""
        ragged, rows = self.ragged.rows_of(lists)
        return ragged, self.pages[rows]

    def first_pages(self) -> Array:
        """The first page of each list; -1 for an empty one."""
        first = np.full(len(self), -1, dtype=np.int64)
        filled = self.ragged.lengths > 0
        first[filled] = self.pages[self.indptr[:-1][filled]]
        return first


@dataclass(frozen=True)
class ListSpace:
    """One component: its pages, eigenvalues (largest first) and eigenvectors, one row per page."""

    pages: Array
    values: Array
    vectors: Array
    residual: float


@dataclass(frozen=True)
class Spectrum:
    """The spaces of all components, and what is needed to fold in a new page."""

    spaces: list[ListSpace]
    norms: Array
    """||x_i||: root of the number of lists that show the page."""
    degrees: Array
    """d_i of eq. (11)."""


def keep_frequent(lists: Lists, min_lists: int) -> Lists:
    """Only pages that at least `min_lists` lists show (09, Section 4: more than ten)."""
    counts = np.bincount(lists.pages, minlength=lists.n_pages)
    keep = counts[lists.pages] >= min_lists
    lengths = lists.ragged.sums(keep).astype(np.int64)
    return Lists(Ragged.of_lengths(lengths), lists.pages[keep], lists.n_pages)


def scales(lists: Lists, engine: Engine | None = None) -> tuple[Array, Array, Array]:
    """(1 / (sqrt(d_i) ||x_i||), ||x_i||, d_i); zeros for a page in no list."""
    norms = np.sqrt(np.bincount(lists.pages, minlength=lists.n_pages).astype(np.float64))
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    # d_i of eq. (11) is K 1 before normalisation.
    degrees = spread(lists.indptr, lists.pages, inverse, np.ones((lists.n_pages, 1)), engine)[:, 0]
    scale = np.divide(inverse, np.sqrt(degrees), out=np.zeros_like(norms), where=degrees > 0)
    return scale, norms, degrees


def decompose(
    lists: Lists, rank: int, *, tolerance: float = 1e-3, seed: int = 0, engine: Engine | None = None,
    together: bool = False,
) -> Spectrum:  # fmt: skip
    """The spaces of all components, each with at most `rank` dimensions; with `together`, one space for all."""
    scale, norms, degrees = scales(lists, engine)
    found = []
    for pages, part in _parts(lists):
        local = scale[pages]
        if len(pages) <= rank:
            found.append(ListSpace(pages, *_whole(part, local, engine), 0.0))
        else:
            found.append(ListSpace(pages, *leading(part, local, rank, tolerance=tolerance, seed=seed, engine=engine)))
    return Spectrum([joined(found, rank)] if together and found else found, norms, degrees)


def joined(spaces: list[ListSpace], rank: int) -> ListSpace:
    """The first `rank` eigenpairs of the whole K (09, Table 1). K has one block per component, so these are the largest
    eigenvalues over all components. If some are equal, those of larger components come first."""
    pages = np.concatenate([space.pages for space in spaces])
    values = np.concatenate([space.values for space in spaces])
    sizes = [len(space.pages) for space in spaces]
    owner = np.repeat(np.arange(len(spaces)), [len(space.values) for space in spaces])
    column = np.concatenate([np.arange(len(space.values)) for space in spaces])
    best = np.lexsort((owner, -np.array(sizes)[owner], -values.round(9)))[:rank]
    vectors, starts = np.zeros((len(pages), len(best)), dtype=np.float32), np.cumsum([0, *sizes])
    for place, number in enumerate(best.tolist()):
        space = spaces[owner[number]]
        start = starts[owner[number]]
        vectors[start : start + len(space.pages), place] = space.vectors[:, column[number]]
    return ListSpace(pages, values[best], vectors, max(space.residual for space in spaces))


def _parts(lists: Lists) -> Iterator[tuple[Array, Lists]]:
    """Each component's pages and its lists, renumbered."""
    component = components(lists.indptr, lists.pages, lists.n_pages)
    n = int(component.max(initial=-1)) + 1
    first = lists.first_pages()
    of_list = np.where(first >= 0, component[first], -1) if lists.n_pages else first
    by_list, by_page = np.argsort(of_list, kind="stable"), np.argsort(component, kind="stable")
    list_ends = np.searchsorted(of_list[by_list], np.arange(n + 1))
    page_ends = np.searchsorted(component[by_page], np.arange(n + 1))
    local = np.empty(lists.n_pages, dtype=np.int32)
    for c in range(n):
        pages = by_page[page_ends[c] : page_ends[c + 1]]
        local[pages] = np.arange(len(pages))
        mine = by_list[list_ends[c] : list_ends[c + 1]]
        ragged, shown = lists.take(mine)
        yield pages, Lists(ragged, local[shown], len(pages))


def _whole(lists: Lists, scale: Array, engine: Engine | None) -> tuple[Array, Array]:
    """Every eigenpair of a small component."""
    k = spread(lists.indptr, lists.pages, scale, np.eye(lists.n_pages), engine)
    values, vectors = np.linalg.eigh((k + k.T) / 2)
    vectors = fix_signs(vectors[:, ::-1], np.empty((0, vectors.shape[1])))[0]
    return np.clip(values[::-1], 0.0, 1.0), vectors


def leading(
    lists: Lists, scale: Array, rank: int, *, tolerance: float = 1e-3, seed: int = 0, engine: Engine | None = None
) -> tuple[Array, Array, float]:
    """The first `rank` eigenpairs and the largest ||K v - lambda v||, by block Lanczos in float32. If K is no larger
    than the Lanczos basis, it is decomposed completely."""
    n = lists.n_pages
    if n < fewest_rows(rank):
        values, vectors = _whole(lists, scale, engine)
        return values[:rank], vectors[:, :rank].astype(np.float32), 0.0

    def product(v: Array) -> Array:
        return spread(lists.indptr, lists.pages, scale, v, engine)

    values, vectors, residual = leading_eigenpairs(product, n, rank, tolerance=tolerance, seed=seed, engine=engine)
    return np.clip(values, 0.0, 1.0), fix_signs(vectors, np.empty((0, vectors.shape[1])))[0], residual
