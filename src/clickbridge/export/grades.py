"""Grades from clicks, from 0 to 3: how well a document answers a query, as far as the log shows it.

The most clicked document of a query gets 3, the others get a grade in proportion, and a document that was shown and
never clicked gets 0. If the log has result pages, a click is divided by the probability that its rank was looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clickbridge.export.source import Source
from clickbridge.graph.responses import responses
from clickbridge.models.fitted import Array
from clickbridge.types import ResultList

BEST = 3.0
MOST_QUERIES = 5_000


@dataclass(frozen=True)
class Graded:
    query: str
    doc_ids: list[str]
    grades: list[float]

    def as_list(self, query_id: str) -> ResultList:
        return ResultList(query_id, self.query, self.doc_ids, self.grades)


def graded_queries(source: Source, most: int = MOST_QUERIES) -> Iterator[Graded]:
    """The most clicked queries that may be shown, each with the documents that were shown or clicked for it."""
    graph = source.log
    pages = graph.impressions
    values = responses(graph, response="clicks" if pages is None else "debiased").matrix
    clicks = np.bincount(graph.pairs.query, graph.pairs.clicks, minlength=graph.n_queries)
    chosen = source.shown_queries
    chosen = np.sort(chosen[np.argsort(-clicks[chosen], kind="stable")][:most])
    shown = {} if pages is None else _shown(np.repeat(pages.query, pages.lists.lengths), pages.doc, chosen)
    ids = graph.doc_ids
    for query in chosen.tolist():
        row = values[[query]]
        own = dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        top = max(own.values(), default=0.0)
        docs = list(dict.fromkeys([*own, *shown.get(query, ())]))
        docs.sort(key=lambda doc: (-own.get(doc, 0.0), ids[doc]))
        grades = [round(BEST * own.get(doc, 0.0) / top, 3) if top else 0.0 for doc in docs]
        yield Graded(graph.query_texts[query], [ids[doc] for doc in docs], grades)


def _shown(query: Array, doc: Array, chosen: Array) -> dict[int, list[int]]:
    """The different documents that were shown for each of the chosen queries."""
    there = np.isin(query, chosen)
    pairs = np.unique(np.stack([query[there], doc[there]], axis=1), axis=0)
    starts = np.flatnonzero(np.diff(pairs[:, 0], prepend=-1))
    groups = np.split(pairs[:, 1], starts[1:])
    return dict(zip(pairs[starts, 0].tolist(), (group.tolist() for group in groups), strict=True))
