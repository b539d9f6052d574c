"""How much to draw so that a simulated log has its published size *after* the papers' threshold.

The papers count the queries, documents and pairs that remain when pairs with three clicks or fewer are dropped (13,
Table 1; 11M, Section 5.1). So more queries and documents are drawn than they report, and each query is searched often
enough. The figures were found by drawing a twentieth of each scale and correcting for what remained. The number of
searches falls as a power below 1 of a query's rank, so that the distribution is the same at every fraction.

Half a year cannot have its published number of words: there are 23 queries per word, and one simulated query in eight
is a token of its own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Draws:
    """How many queries, documents, words and searches to draw for each query, document, word and query that should
    remain."""

    queries: float
    docs: float
    words: float
    searches: float
    queries_per_intent: float


DRAWS = {
    "one-week": Draws(4.0, 2.47, 0.82, 52.5, 3.5),
    "half-year": Draws(1.8, 1.08, 1.0, 78.5, 10.0),
    "enterprise": Draws(2.3, 2.1, 0.275, 57.0, 3.5),
}
