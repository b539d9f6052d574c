"""Several views of one side, side by side, and how a list of views is written.

`word,char,d.word:title,q.click`: a term without prefix is a view of both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.io.values import stored
from clickbridge.numerics.csr import compact
from clickbridge.numerics.row import Row, side_by_side
from clickbridge.views.view import KINDS, Source, View, ViewTerm

Array = np.ndarray[Any, Any]
SIDES = {"q": "query", "d": "document"}


def parse_views(text: str) -> tuple[list[str], list[str]]:
    """The terms of the query side and of the document side."""
    sides: dict[str, list[str]] = {"q": [], "d": []}
    for term in (t.strip() for t in text.split(",")):
        prefix, dot, rest = term.partition(".")
        on = [prefix] if dot and prefix in SIDES else ["q", "d"]
        bare = rest if dot and prefix in SIDES else term
        kind, _, argument = bare.partition(":")
        if kind not in KINDS:
            raise SettingError(f"no view {term!r}; there are {', '.join(KINDS)}, such as word:title or q.click")
        if kind == "dense" and not argument:
            raise SettingError("view dense needs the name of the vectors, such as dense:minilm")
        if kind in ("click", "response", "clicktext", "id") and argument:
            raise SettingError(f"view {kind} takes no field; got {term!r}")
        for side in on:
            # Only documents have fields; the counterpart of a field on the query side is the query's text.
            own = kind if side == "q" and kind != "dense" else bare
            if own not in sides[side]:
                sides[side].append(own)
    for side, terms in sides.items():
        if not terms:
            raise SettingError(f"views {text!r} leave the {SIDES[side]} side without any")
    return sides["q"], sides["d"]


@stored
@dataclass(frozen=True, eq=False)
class ViewStack:
    """The views of one side. `spans` gives the columns of each."""

    terms: list[str]
    views: list[View]

    @classmethod
    def fit(
        cls, terms: Sequence[str], source: Source, language: str = "english", stop_words: str = "keep"
    ) -> tuple[ViewStack, sparse.csr_array]:
        """Fits the views named by the terms on a source. Returns them and the rows of the source."""
        asked = [ViewTerm(term, language, stop_words) for term in terms]
        found = [term.kind.fit(term, source) for term in asked]
        return cls(list(terms), [view for view, _ in found]), _beside([rows for _, rows in found])

    def transform(self, source: Source) -> sparse.csr_array:
        return _beside([view.transform(source) for view in self.views])

    def row(self, text: str, vectors: Mapping[str, Any]) -> Row:
        """The features of one query."""
        return side_by_side([view.row(text, vectors) for view in self.views], self._starts)

    @property
    def vector_names(self) -> list[str]:
        """The names of the dense vectors that these views use."""
        return [view.argument for view in self.views if view.kind == "dense"]

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        ends = np.cumsum([0, *(view.width for view in self.views)])
        return [(int(a), int(b)) for a, b in pairwise(ends)]

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _ in self.spans]

    @property
    def width(self) -> int:
        return sum(view.width for view in self.views)

    def feature(self, column: int) -> tuple[str, str]:
        """(view, feature) of a column."""
        for view, (start, stop) in zip(self.views, self.spans, strict=True):
            if start <= column < stop:
                return view.name, view.feature(column - start)
        raise IndexError(f"column {column} of {self.width}")


def _beside(matrices: list[sparse.csr_array]) -> sparse.csr_array:
    return matrices[0] if len(matrices) == 1 else compact(sparse.csr_array(sparse.hstack(matrices, format="csr")))
