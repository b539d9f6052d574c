"""The features of a list for trees: the scores of the parts, features of text and clicks, and their positions in the
list. Which features there are depends on the parts and on the GRAPH.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.fusion.click_signals import ClickSignals
from clickbridge.fusion.fixed_arrays import Array, check
from clickbridge.fusion.lists_at_once import over_lists
from clickbridge.fusion.numbers import NumberSignals
from clickbridge.fusion.signals import TextSignals
from clickbridge.fusion.terms import QueryTerms
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.values import stored
from clickbridge.models.candidates import Candidates
from clickbridge.numerics.list_places import places, trust

Columns = Mapping[str, Array]
"""Numbers by name, one for each document of each list."""
PLACES = ("rank", "below best", "standardised")
WEIGHTINGS = ("trusted", "best", "list")


@stored
@dataclass(frozen=True, eq=False, repr=False)
class ListFeatures:
    """Computes the features of lists. It never changes, so any number of threads may use it."""

    text: TextSignals
    numbers: NumberSignals
    clicks: ClickSignals

    def __post_init__(self) -> None:
        text, clicks = self.text, self.clicks
        sizes = (text.n_docs, len(text.weights), len(text.char_idf))
        check(sizes == (len(clicks.documents) - 1, len(clicks.weights), len(clicks.char_idf)), "texts or clicks")
        check(len(self.numbers.values) == text.n_docs + 1, "numbers")

    @classmethod
    def of(cls, graph: ClickGraph, language: str = "english", stop_words: str = "keep") -> Self:
        """Computes everything from a GRAPH."""
        text, queries = TextSignals.of(graph, language, stop_words)
        return cls(text, NumberSignals.of(graph), ClickSignals.of(graph, text, queries))

    def names(self, own: Columns, whole: Columns) -> list[str]:
        """The names of all features, in the order of `matrix`."""
        scores = [*self.text.score_names, *self.clicks.score_names]
        spaces = [*self.text.space_names, "chosen together"]
        return [
            *own, *whole, *scores,
            *(f"{name}: {place}" for name in (*own, *scores) for place in PLACES),
            *(f"like the {how} by {space}" for space in spaces for how in WEIGHTINGS),
            *self.text.plain_names, *self.clicks.plain_names, *self.numbers.plain_names, "list length",
        ]  # fmt: skip

    def matrix(
        self, lists: Candidates, own: Columns, whole: Columns, engine: Engine | None = None
    ) -> tuple[list[str], Array]:
        """The names of the features, and one row for each document of each list; NaN for a missing value.

        `own` are the parts' scores; they also weight the documents in features of similarity. `whole` are scores that
        give the same order as one of `own`, on another scale, so their positions in the list are not features.
        """
        names = self.names(own, whole)
        parts = [_stacked(columns, lists.lists.n_rows) for columns in (own, whole)]
        out = np.empty((lists.lists.n_rows, len(names)), dtype=np.float32)

        def fill(start: int, stop: int) -> None:
            first, last = lists.lists.indptr[start], lists.lists.indptr[stop]
            block = self._block(lists.some(start, stop), *(part[:, first:last] for part in parts))
            out[first:last] = np.concatenate(block).T

        over_lists(lists, engine, fill)
        return names, out

    def _block(self, lists: Candidates, own: Array, whole: Array) -> list[Array]:
        """The columns of a few lists, as rows."""
        terms = self.text.reader.read(lists.texts)
        matches = self.text.match(lists, terms.words, self.clicks.weights)
        said = self.text.scores(lists, terms, matches), self.clicks.scores(lists, terms, matches, self.text)
        placed = places(lists.lists.indptr, np.concatenate([own, *said]))
        # How like a document is to the others of its list, those that the parts rank high above all: sequels stand
        # together.
        weights = trust(lists.lists.indptr, lists.items, placed[2 : 3 * len(own) : 3])
        return [
            own, whole, *said, placed, self.text.alike(lists, weights), self.clicks.alike(lists, weights),
            self.text.plain(lists, terms, matches), self.clicks.plain(lists), self.numbers.plain(lists),
            lists.lists.lengths[lists.lists.owner][None],
        ]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class GraphTexts:
    """What the features of all folds share: the documents, and the terms of the log's queries."""

    text: TextSignals
    numbers: NumberSignals
    queries: QueryTerms

    @classmethod
    def of(cls, graph: ClickGraph, language: str = "english", stop_words: str = "keep") -> Self:
        text, queries = TextSignals.of(graph, language, stop_words)
        return cls(text, NumberSignals.of(graph), queries)

    def with_clicks(self, graph: ClickGraph) -> ListFeatures:
        """The features with the clicks of a GRAPH that has the same queries and documents."""
        return ListFeatures(self.text, self.numbers, ClickSignals.of(graph, self.text, self.queries))


def _stacked(columns: Columns, n_rows: int) -> Array:
    """Rows of numbers; NaN for a missing value."""
    values = np.stack(list(columns.values())) if columns else np.empty((0, n_rows))
    return np.where(np.isfinite(values), values, np.nan)
