"""A model for one query: the preferences of its neighbourhood, and what is learned from them.

Every preference is between two points (q_i, d+) and (q_i, d-). The points' Gram matrix under the S-kernel is
small (some hundred rows), so a model is trained when its query is asked (Wu et al. 2011, Section 6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.log.preference import Preferences
from clickbridge.numerics.gram import square_of
from clickbridge.skernel.documents import DocumentKernel
from clickbridge.skernel.families import Inner, s_kernel
from clickbridge.skernel.learn import learn_preferences
from clickbridge.skernel.similarity import QueryKernel

Array = np.ndarray[Any, Any]
PASSES, TOLERANCE = 100, 1e-2
"""When training stops: the duality gap is a hundredth of the objective, long after the order has settled."""


@dataclass(frozen=True)
class Training:
    """Preferences by known query: those of query i are `indptr[i]:indptr[i + 1]`, in an order of no meaning, so
    that the first n are a fair sample. `better` and `worse` are points; a point is a query and a document."""

    indptr: Array
    better: Array
    worse: Array
    point_query: Array
    point_doc: Array

    @classmethod
    def of(cls, found: Preferences, numbers: Array, n_queries: int, seed: int) -> Training:
        """`numbers` gives a query of the log its number among the known ones, or -1."""
        query = numbers[found.query]
        keep = query >= 0
        query, better, worse = query[keep], found.better[keep], found.worse[keep]
        order = np.lexsort((np.random.default_rng(seed).random(len(query)), query))
        query, better, worse = query[order], better[order], worse[order]
        n_docs = int(max(better.max(initial=-1), worse.max(initial=-1))) + 1
        points, places = np.unique(
            np.concatenate([query * n_docs + better, query * n_docs + worse]), return_inverse=True
        )
        return cls(
            np.searchsorted(query, np.arange(n_queries + 1)),
            places[: len(query)],
            places[len(query) :],
            points // max(n_docs, 1),
            points % max(n_docs, 1),
        )

    @cached_property
    def has_pairs(self) -> Array:
        return np.diff(self.indptr) > 0

    def sample(self, queries: Array, n: int, own: bool = False) -> Array:
        """About n preferences of the given queries, each query as many as the others where it has them. Where the
        first is the asked query's `own`, it may take half."""
        available = np.diff(self.indptr)[queries]
        taken = np.zeros_like(available)
        if own:
            taken[0] = min(available[0], max(n // 2, 1))
        first = int(own)
        taken[first:] = np.minimum(available[first:], water_level(available[first:], n - int(taken.sum())))
        start = np.repeat(self.indptr[queries] - np.cumsum(taken) + taken, taken)
        return start + np.arange(len(start))

    def write(self, writer: PartWriter, prefix: str) -> None:
        for name in ("indptr", "better", "worse", "point_query", "point_doc"):
            writer.array(f"{prefix}.{name}", getattr(self, name))

    @classmethod
    def read(cls, artifact: Artifact, prefix: str) -> Training:
        names = ("indptr", "better", "worse", "point_query", "point_doc")
        # Plain arrays over the same memory: a memory map's own class is slow to index.
        return cls(*(np.asarray(artifact.array(f"{prefix}.{name}")) for name in names))


def water_level(available: Array, n: int) -> int:
    """The largest share that, given to all who have it, stays within n in sum; at least 1."""
    ordered = np.sort(available)
    before = np.concatenate([[0], np.cumsum(ordered)[:-1]])
    left = len(ordered) - np.arange(len(ordered))
    levels = (n - before) // np.maximum(left, 1)
    # The first who has more than what is left for each is where the water stops.
    over = np.flatnonzero(ordered > levels)
    return max(int(levels[over[0]]), 1) if len(over) else int(ordered.max(initial=1))


@dataclass(frozen=True)
class Neighbourhood:
    """What one query's model is: points with their weight, times g of the point, and k_Q of the query to them.
    Several points may be of one document: `docs` are distinct, `doc_of_point` says which is whose."""

    docs: Array
    doc_of_point: Array
    likeness: Array
    weights: Array
    prior: float
    n_pairs: int
    gap: float

    def values(self, inner: Inner, kernel: DocumentKernel, docs: Array) -> Array:
        """(11) without its leading factor g(q, d)."""
        k_d = kernel.block(docs, self.docs)[:, self.doc_of_point]
        near = inner(np.broadcast_to(self.likeness, k_d.shape), k_d)
        # A sum along rows, not a matrix product: the value of one document does not depend on the others.
        return self.prior + (near * self.weights).sum(axis=1)


def train(
    query: str,
    queries: QueryKernel,
    documents: DocumentKernel,
    training: Training,
    inner: Inner,
    g: Callable[[Array], Array],
    *,
    n_neighbours: int,
    n_pairs: int,
    lam: float,
    loss: str,
    prior: float,
) -> Neighbourhood | None:
    """The model of a query; None where it has no neighbour with preferences. `g` gives points their factor;
    `prior` g is what the learned function corrects."""
    near, likeness = queries.neighbours(query, n_neighbours, training.has_pairs)
    if not len(near):
        return None
    own = queries.number_of(query)
    # Whatever is as like as the query itself, itself comes first.
    order = np.argsort(near != own, kind="stable")
    near, likeness = near[order], likeness[order]
    pairs = training.sample(near, n_pairs, own=bool(near[0] == own))
    points, places = np.unique(np.concatenate([training.better[pairs], training.worse[pairs]]), return_inverse=True)
    docs, doc_of_point = np.unique(training.point_doc[points], return_inverse=True)
    factor = g(points)
    order = np.argsort(near)
    of_point = order[np.searchsorted(near[order], training.point_query[points])]
    k_q, k_d = queries.gram(near), documents.block(docs, docs)
    gram = s_kernel(inner, factor, factor, square_of(k_q, of_point), square_of(k_d, doc_of_point))
    better, worse = places[: len(pairs)], places[len(pairs) :]
    offset = prior * (factor[better] - factor[worse])
    learned = learn_preferences(gram, better, worse, lam, loss, offset=offset, passes=PASSES, tolerance=TOLERANCE)
    weights = learned.alpha * factor
    return Neighbourhood(docs, doc_of_point, likeness[of_point], weights, prior, len(pairs), learned.gap)
