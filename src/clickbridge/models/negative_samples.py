"""Negative samples for gradient descent: for a clicked document, others that were not clicked.

Where the log has pages, a negative is an unclicked document of the same page, drawn at random whatever its place: a
rule that looks at places (13 took skip-above) needs an order that means something, and 13 found half of its pairs at
odds with judgments. Without pages it is any document of the collection that the query never led to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph

Array = np.ndarray[Any, Any]
MOST = 1_000_000
"""Samples of one pass. Of a larger log every pass draws others, so that its time does not grow with the log."""


def negative_samples(graph: ClickGraph, n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """(query, clicked, not clicked), numbers of the GRAPH: `n` for each clicked document of each page; for
    clicks without pages `n` for each pair. About `MOST` at most, of clicks drawn at random."""
    pages = graph.impressions
    if pages is not None and pages.clicked.any():
        return _of_pages(pages, n, rng)
    pairs = graph.pairs
    clicked = _some(np.flatnonzero(pairs.clicks > 0), n, rng)
    query, doc = np.repeat(pairs.query[clicked], n), np.repeat(pairs.doc[clicked], n)
    other = rng.integers(graph.n_docs, size=len(query))
    known = pairs.clicks > 0
    keys = pairs.query[known].astype(np.int64) * graph.n_docs + pairs.doc[known]
    fine = ~np.isin(query.astype(np.int64) * graph.n_docs + other, keys)
    return query[fine], doc[fine], other[fine]


def _of_pages(pages: Any, n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    on = pages.clicked.astype(bool)
    page = np.repeat(np.arange(len(pages)), np.diff(pages.indptr))
    others = np.flatnonzero(~on)
    # Unclicked places stand page by page in `others`: those of page p are first[p]:first[p + 1].
    first = np.searchsorted(page[others], np.arange(len(pages) + 1))
    chosen = np.repeat(_some(np.flatnonzero(on), n, rng), n)
    room = (first[1:] - first[:-1])[page[chosen]]
    chosen, room = chosen[room > 0], room[room > 0]
    place = first[page[chosen]] + (rng.random(len(chosen)) * room).astype(np.int64)
    return pages.query[page[chosen]], pages.doc[chosen], pages.doc[others[place]]


def _some(clicked: Array, n: int, rng: np.random.Generator) -> Array:
    most = max(MOST // n, 1)
    return clicked if len(clicked) <= most else np.sort(rng.choice(clicked, most, replace=False))
