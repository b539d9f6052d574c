"""A small log of a city guide, for examples: small enough to read, large enough for every model to learn from."""

from __future__ import annotations

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.types import Document, Impression

PAGES = {
    "slice": ("Pizza by the slice", "Thin crust, tomato and cheese, open late in Brooklyn"),
    "oven": ("Wood-fired pizza", "Baked in two minutes; basil from the roof"),
    "hotels": ("Hotels in New York City", "From Times Square to the park, with prices"),
    "rooms": ("Rooms in Manhattan", "Small rooms with a view, by the night"),
    "subway": ("The subway map", "All lines and stations of the underground"),
    "ferry": ("Boats to the island", "Timetable of the ferry and where it lands"),
}
CLICKS = {
    "ny pizza": {"slice": 5, "oven": 2},
    "slice joint": {"slice": 4},
    "margherita": {"oven": 4, "slice": 1},
    "big apple stay": {"hotels": 4, "rooms": 2},
    "where to sleep": {"rooms": 4, "hotels": 3},
    "nyc hotel": {"hotels": 5},
    "metro plan": {"subway": 5},
    "train stations": {"subway": 4},
    "boat trip": {"ferry": 4},
    "see the statue": {"ferry": 5},
}
"""What was clicked for each query, and how often."""
SHOWN = 3
FIRST = 1_767_225_600.0
"""The start of 2026, in seconds."""


def example_graph() -> ClickGraph:
    """A small GRAPH for trying things out: six pages of a city guide, ten queries, 52 searches with one click each.

    Most queries share no word with the document that was clicked.

    Returns
    -------
    ClickGraph
        It has result pages of three documents, users and times. It is always the same.

    Examples
    --------
    >>> from clickbridge import example_graph
    >>> graph = example_graph()
    >>> graph
    ClickGraph(10 queries, 6 documents, 14 pairs)
    >>> graph.field("title")[0]
    'Boats to the island'
    """
    clicks = [(query, page) for query, counts in CLICKS.items() for page, n in counts.items() for _ in range(n)]
    order = sorted(range(len(clicks)), key=lambda i: (i * 7) % len(clicks))  # queries mixed in time
    log = []
    for number, i in enumerate(order):
        query, page = clicks[i]
        others = [other for other in PAGES if other != page]
        shown = [others[(i + step) % len(others)] for step in range(SHOWN - 1)]
        shown.insert(number % SHOWN, page)
        log.append(Impression(query, shown, [page], user=f"user {number % 20}", time=FIRST + 3600 * number))
    return ClickGraph.build(log, [Document(page, {"title": t, "text": text}) for page, (t, text) in PAGES.items()])
