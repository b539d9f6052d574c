"""Negative samples for gradient descent: for a clicked document, others that were not clicked.

If the log has result pages, a negative is an unclicked document of the same page, drawn at random regardless of its
rank. A rule that uses ranks (13 used skip-above) needs a meaningful order, and in 13 half of its pairs contradicted
the judgments. Without pages, a negative is any document of the collection that was never clicked for the query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.parts import Impressions
from clickbridge.numerics.csr import entries

Array = np.ndarray[Any, Any]
Triples = tuple[Array, Array, Array]
"""(query, clicked, not clicked), numbers of the GRAPH."""
MOST = 1_000_000
"""Samples of one pass. Of a larger log every pass draws others, so that its time does not grow with the log."""


class NegativeSamples:
    """Draws negative samples for the clicks of a GRAPH. The clicks are found once; samples can be drawn repeatedly."""

    def __init__(self, graph: ClickGraph, counts: Callable[[Array, Array], Array]) -> None:
        """`counts(query, doc)` tells which clicks to learn from."""
        pages = graph.impressions
        if pages is not None and pages.clicked.any():
            self._of_pages(pages)
        else:
            self._of_pairs(graph)
        kept = counts(self._query, self._doc)
        self._click = np.flatnonzero(kept & (self._room > 0))

    def _of_pairs(self, graph: ClickGraph) -> None:
        pairs, self._n_docs = graph.pairs, graph.n_docs
        clicked = np.flatnonzero(pairs.clicks > 0)
        self._query, self._doc = pairs.query[clicked], pairs.doc[clicked]
        self._known = graph.matrix(rows="queries")
        self._room = self._n_docs - np.diff(self._known.indptr)[self._query]
        self._draw = self._any_other

    def _of_pages(self, pages: Impressions) -> None:
        on = pages.clicked.astype(bool)
        page = np.repeat(np.arange(len(pages)), np.diff(pages.indptr))
        self._query, self._doc = pages.query[page[on]], pages.doc[on]
        others = np.flatnonzero(~on)
        # `others` has the unclicked results page by page: those of page p are first[p]:first[p + 1].
        first = np.searchsorted(page[others], np.arange(len(pages) + 1))
        self._others, self._first, self._room = pages.doc[others], first[page[on]], np.diff(first)[page[on]]
        self._draw = self._of_the_page

    def draw(self, n: int, rng: np.random.Generator) -> Triples:
        """Draws `n` samples for each clicked document of each page; for clicks without pages, `n` for each pair. If
        that is more than about `MOST`, a random part of the clicks is used. The samples are in random order."""
        most = max(MOST // n, 1)
        click = self._click if len(self._click) <= most else rng.choice(self._click, most, replace=False)
        return self._draw(rng.permutation(np.repeat(click, n)), rng)

    def _any_other(self, click: Array, rng: np.random.Generator) -> Triples:
        query, doc = self._query[click], self._doc[click]
        other = rng.integers(self._n_docs, size=len(click))
        fine = entries(self._known, query, other) == 0
        return query[fine], doc[fine], other[fine]

    def _of_the_page(self, click: Array, rng: np.random.Generator) -> Triples:
        place = self._first[click] + (rng.random(len(click)) * self._room[click]).astype(np.int64)
        return self._query[click], self._doc[click], self._others[place]
