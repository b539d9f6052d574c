"""A model for one query: the preferences of its neighbourhood, and what is learned from them.

Every preference is between two points (q_i, d+) and (q_i, d-). The points' Gram matrix under the S-kernel is
small (some hundred rows), so a model is trained whenever its query is asked (Wu et al. 2011, Section 6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from clickbridge.skernel.document_kernel import DocumentKernel
from clickbridge.skernel.families import Family
from clickbridge.skernel.learn import learn_preferences
from clickbridge.skernel.query_kernel import Asked, QueryKernel
from clickbridge.skernel.training_data import KernelTraining

Array = np.ndarray[Any, Any]
PASSES, COARSE = 100, 1e-3
"""The most passes of training; ten times as many where the duality gap is to be smaller than this."""


class Size(NamedTuple):
    """How many queries a neighbourhood has, and about how many of their preferences."""

    queries: int
    pairs: int


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The preferences of a query's neighbours. Points are a query and a document each; few of both are distinct:
    point p is of the neighbour `query_of[p]` and of the document `docs[doc_of[p]]`. Preference i is the point
    `better[i]` over the point `worse[i]`."""

    points: Array
    better: Array
    worse: Array
    query_of: Array
    doc_of: Array
    docs: Array
    likeness: Array
    """k_Q of the asked query and each neighbour."""
    k_q: Array
    k_d: Array
    k_items: Array
    """k_D of the documents to be scored, a row each, and `docs`."""

    @classmethod
    def of(
        cls,
        asked: Asked,
        queries: QueryKernel,
        documents: DocumentKernel,
        training: KernelTraining,
        size: Size,
        items: Array,
    ) -> Neighbourhood | None:
        """None where no known query with preferences is like the asked one. `items` are the documents to be scored."""
        near, likeness = queries.neighbours(asked, size.queries, training.has_pairs)
        if not len(near):
            return None
        # Whatever is as like as the query itself, itself comes first.
        order = np.argsort(near != asked.number, kind="stable")
        near, likeness = near[order], likeness[order]
        pairs = training.sample(near, size.pairs, own=bool(near[0] == asked.number))
        points, places = np.unique(np.concatenate([training.better[pairs], training.worse[pairs]]), return_inverse=True)
        docs, doc_of = np.unique(training.point_doc[points], return_inverse=True)
        order = np.argsort(near)
        query_of = order[np.searchsorted(near[order], training.point_query[points])]
        k_d, k_items = documents.square(docs, items)
        better, worse = places[: len(pairs)], places[len(pairs) :]
        return cls(points, better, worse, query_of, doc_of, docs, likeness, queries.gram(near), k_d, k_items)

    def scoring(self, documents: DocumentKernel, items: Array) -> Neighbourhood:
        """The same for other documents."""
        return replace(self, k_items=documents.block(items, self.docs))

    def trained(
        self, family: Family, factor: Array, lam: float, loss: str, prior: float, gap: float = 0.01
    ) -> QueryModel:
        """`factor` is g of the points; `prior` g is what the learned function corrects. Training stops where the
        duality `gap` is this share of the objective: at a hundredth the order has long settled."""
        gram = family.gram(self.k_q, self.query_of, self.k_d, self.doc_of, factor)
        offset = prior * (factor[self.better] - factor[self.worse])
        passes = PASSES if gap >= COARSE else 10 * PASSES
        learned = learn_preferences(
            gram, self.better, self.worse, lam, loss, offset=offset, passes=passes, tolerance=gap
        )
        likeness, weights = self.likeness[self.query_of], learned.alpha * factor
        return QueryModel(family, self.docs, self.doc_of, likeness, weights, prior, len(self.better), learned.gap)


@dataclass(frozen=True, eq=False)
class QueryModel:
    """What is learned for one query: points with their weight, times g of the point, and k_Q of the query to them."""

    family: Family
    docs: Array
    doc_of: Array
    likeness: Array
    weights: Array
    prior: float
    n_pairs: int
    gap: float

    def values(self, k_items: Array) -> Array:
        """(11) without its leading factor g(q, d), for each row of k_D."""
        return self.prior + self.family.sums(self.likeness, k_items, self.doc_of, self.weights)

    def parts(self, k_item: Array) -> Array:
        """What each point adds to the value of one document."""
        values: Array = self.family(self.likeness, k_item[self.doc_of]) * self.weights
        return values
