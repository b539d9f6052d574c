"""Statistics of a log: the papers' Table 1 and more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clickbridge.evaluate.tables import html_of, in_words, text_table
from clickbridge.frames import Table, make_frame
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.responses import responses
from clickbridge.graph.stats import table1
from clickbridge.views.word import count_words

PLAIN = {
    "queries": "queries in the log",
    "documents": "documents known",
    "clicks": "clicks",
    "impressions": "result pages",
    "queries_with_clicks": "queries with a click",
    "documents_with_clicks": "documents with a click",
    "pairs": "pairs with a click",
    "documents_per_query": "clicked documents per query",
    "queries_per_document": "queries per clicked document",
    "unique_words": "different words",
    "density": "share of possible pairs",
    "queries_by_clicks": "queries by clicks",
    "components": "connected components",
    "isolated_queries": "queries that share no document",
}
"""The statistics that most people need, with plain labels."""
PAPER = {
    "queries_with_clicks": "n^x",
    "documents_with_clicks": "n^y",
    "pairs": "n",
    "unique_words": "unique words",
    **{name: name for name in ("d_x", "d_y", "c_x", "c_y")},
    "documents_per_query": "n~y",
    "queries_per_document": "n~x",
    **{name: name for name in ("N_x", "N_y", "W_x", "W_y")},
    "w_counted": "W counted",
}
"""Table 1 of Wu et al. 2013, in its symbols."""


class Statistics(dict[str, Any]):
    """Numbers by name. Print them for a table; `to_frame` gives columns `statistic` and `value`.

    Tables call the numbers what `clickbridge stats` calls them: in plain words, or, with `paper`, in the symbols of
    the papers' Table 1. The names of the dict are those of `clickbridge stats --json`.
    """

    def __init__(self, values: Mapping[str, Any], paper: bool = False) -> None:
        super().__init__(values)
        self.paper = paper

    def labelled(self) -> dict[str, Any]:
        """What a table shows, by what it is called there."""
        return {label: self[name] for name, label in (PAPER if self.paper else PLAIN).items()}

    def _rows(self) -> list[dict[str, str]]:
        return [{"statistic": label, "value": in_words(value)} for label, value in self.labelled().items()]

    def to_frame(self, kind: str | None = None) -> Table:
        """One row for each number of the table; counts by group are rows of their own."""
        flat: dict[str, float] = {}
        for label, value in self.labelled().items():
            if isinstance(value, dict):
                flat |= {f"{label} {group}": float(n) for group, n in value.items()}
            elif isinstance(value, int | float):
                flat[label] = float(value)
        return make_frame({"statistic": list(flat), "value": list(flat.values())}, kind)

    def __str__(self) -> str:
        return text_table(self._rows())

    __repr__ = __str__  # an interpreter shows what a notebook does

    def _repr_html_(self) -> str:
        return html_of("", self._rows())


def stats(graph: ClickGraph, paper: bool = False) -> Statistics:
    """Describes a GRAPH: counts of queries, documents, clicks and words, density, connected components.

    Parameters
    ----------
    graph : ClickGraph
        The GRAPH to describe.
    paper : bool
        Print Table 1 of the papers, in their symbols, instead of plain words.

    Returns
    -------
    Statistics
        A dict of numbers by name. It prints as a table and has `to_frame`.

    Examples
    --------
    >>> from clickbridge import ClickGraph, PairCount, stats
    >>> found = stats(ClickGraph.build([PairCount("ny pizza", "d2", clicks=3)]))
    >>> found["clicks"], found["pairs"]
    (3, 1)
    """
    texts = {name: graph.field(name) for name in graph.field_names}
    query_words, doc_words = count_words(graph.query_texts, texts, graph.n_docs)
    return Statistics(table1(graph, responses(graph, **graph.defaults), query_words, doc_words), paper)
