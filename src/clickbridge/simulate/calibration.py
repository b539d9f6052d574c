"""What to draw so that a log with known truth has its published size *after* the papers' threshold.

The papers count queries, documents and pairs that are left when pairs of three clicks or fewer are dropped (13,
Table 1; 11M, Section 5.1). So more queries and documents are drawn than they print, and each query is searched often
enough. The figures were found by drawing a twentieth of each scale and correcting by what was left. Searches fall as
a power below 1 of a query's rank, so that their distribution, and with it all of this, is the same at every fraction.

Half a year cannot have its published words: there are 23 queries to a word, and one simulated query in eight is a token
of its own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Draws:
    """Queries, documents, words and searches to draw for each query, document, word and query that should be left."""

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
