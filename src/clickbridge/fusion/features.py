"""The features of a list for trees: scores of the parts, what text and clicks say, and how each stands within
its list. Generic: which there are follows from the parts and from what the GRAPH holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy import sparse

from clickbridge.fusion.clicks import ClickSignals
from clickbridge.fusion.flat import FlatLists
from clickbridge.fusion.signals import Columns, NumberSignals, TextSignals
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import Array, Model
from clickbridge.models.sfunction import SFunction


class ListFeatures:
    """`text` and `numbers` come from the documents and are shared by all folds; `clicks` are a fold's own."""

    def __init__(self, text: TextSignals, numbers: NumberSignals, clicks: ClickSignals) -> None:
        self.text, self.numbers, self.clicks = text, numbers, clicks

    @classmethod
    def fit(cls, graph: ClickGraph, language: str, stop_words: str) -> Self:
        text = TextSignals(language, stop_words).fit(graph)
        return cls(text, NumberSignals().fit(graph), ClickSignals(text).fit(graph))

    def with_clicks(self, graph: ClickGraph) -> ListFeatures:
        """The same documents with the clicks of another GRAPH over them."""
        return ListFeatures(self.text, self.numbers, ClickSignals(self.text).fit(graph))

    def columns(self, flat: FlatLists, parts: Sequence[Model]) -> Columns:
        """One column a feature, one row a document of a list; NaN where something has no value."""
        own, whole = part_columns(flat, parts)
        scores = own | whole | self.text.scores(flat) | self.clicks.scores(flat)
        out = dict(scores)
        for name, column in scores.items():
            if name in whole:
                continue  # the same order as the part's own score, on another scale
            out[f"{name}: rank"] = flat.ranks(column)
            out[f"{name}: below best"] = flat.gaps(column)
            out[f"{name}: standardised"] = flat.standardised(column)
        out |= self._consensus(flat, own)
        out |= self.text.plain(flat) | self.clicks.plain(flat) | self.numbers.plain(flat)
        out["list length"] = flat.lengths[flat.owner].astype(np.float64)
        return out

    def _consensus(self, flat: FlatLists, scores: Columns) -> Columns:
        """How like a document is to the others of its list, those that the parts rank high above all: sequels
        stand together."""
        votes = np.mean([flat.standardised(column) for column in scores.values()], axis=0)
        trust = np.where(flat.items >= 0, flat.softmax(votes), 0.0)
        best = np.where((flat.ranks(votes) == 0) & (flat.items >= 0), 1.0, 0.0)
        even = np.where(flat.items >= 0, 1 / flat.lengths[flat.owner], 0.0)
        spaces = {f"words of {name}": rows for name, rows in self.text.unit_words.items()}
        spaces["chosen together"] = self.clicks.together
        out = {}
        for name, rows in spaces.items():
            itself = squares(flat, rows)
            for how, weights in (("trusted", trust), ("best", best), ("list", even)):
                out[f"like the {how} by {name}"] = likeness(flat, rows, weights, itself)
        return out

    def write(self, writer: PartWriter) -> None:
        for signals in (self.text, self.numbers, self.clicks):
            signals.write(writer)

    @classmethod
    def read(cls, artifact: Artifact, language: str, stop_words: str) -> Self:
        text = TextSignals(language, stop_words).read(artifact)
        return cls(text, NumberSignals().read(artifact), ClickSignals(text).read(artifact))


def part_columns(flat: FlatLists, parts: Sequence[Model]) -> tuple[Columns, Columns]:
    """Scores of the parts, and those of S-functions over the query's normaliser, comparable between queries."""
    own: Columns = {}
    whole: Columns = {}
    for part in parts:
        scored = part.score_lists(flat.lists)
        column = np.concatenate(scored) if scored else np.empty(0)
        own[part.spec] = np.where(np.isfinite(column), column, np.nan)
        if isinstance(part, SFunction):
            whole[f"{part.spec} over the query"] = (
                own[part.spec] / part.normaliser(part.map_lists(flat.lists))[flat.owner]
            )
    return own, whole


def squares(flat: FlatLists, rows: sparse.csr_array) -> Array:
    """|d_i|^2 of each listed document; 0 for unknown ones."""
    out, known = np.zeros(flat.n_rows), flat.items >= 0
    own = rows[flat.items[known]]
    out[known] = np.asarray(own.multiply(own).sum(axis=1), dtype=np.float64).ravel()
    return out


def likeness(flat: FlatLists, rows: sparse.csr_array, weights: Array, itself: Array) -> Array:
    """Similarity of each document to the weighted others of its list: d_i · sum_{j != i} w_j d_j."""
    known = flat.items >= 0
    parts = (weights[known].astype(np.float32), (flat.owner[known], flat.items[known]))
    shape = (len(flat.lists), rows.shape[0])
    centres = sparse.csr_array(sparse.csr_array(sparse.coo_array(parts, shape=shape)) @ rows)
    return flat.dots(centres, rows) - weights * itself
