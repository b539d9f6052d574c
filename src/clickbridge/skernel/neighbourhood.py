"""A model for one query, trained on the preferences of its neighbourhood.

Every preference is between two points (q_i, d+) and (q_i, d-). The points' Gram matrix under the S-kernel is small (a
few hundred rows), so a model can be trained for every search (Wu et al. 2011, Section 6).
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
    """The number of queries in a neighbourhood, and about how many of their preferences are used."""

    queries: int
    pairs: int


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The preferences of a query's neighbours. A point is a pair of a query and a document, and many points share one
    or the other: point p has the neighbour `query_of[p]` and the document `docs[doc_of[p]]`. Preference i says that the
    point `better[i]` is better than the point `worse[i]`."""

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
        """The neighbourhood of a query; None if no known query with preferences is similar to it. `items` are the
        documents to score."""
        near, likeness = queries.neighbours(asked, size.queries, training.has_pairs)
        if not len(near):
            return None
        # The query itself comes first, even if another query has the same similarity.
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
        """The same neighbourhood, for scoring other documents."""
        return replace(self, k_items=documents.block(items, self.docs))

    def trained(
        self, family: Family, factor: Array, lam: float, loss: str, prior: float, gap: float = 0.01
    ) -> QueryModel:
        """Trains the model. `factor` is g of the points; `prior` is the g that the learned function corrects. Training
        stops when the duality gap is the share `gap` of the objective. At 1% the order no longer changes."""
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
    """The model learned for one query: the weights of points, times their g, and k_Q between the query and them."""

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
        """What each point contributes to the value of one document."""
        values: Array = self.family(self.likeness, k_item[self.doc_of]) * self.weights
        return values
