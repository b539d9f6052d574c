"""Several views of one side, side by side, and how a list of views is written.

`word,char,d.word:title,q.click`: a term without prefix is a view of both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.views.view import KINDS, Source, View

Array = np.ndarray[Any, Any]
SIDES = {"q": "query", "d": "document"}


def parse_views(text: str) -> tuple[list[str], list[str]]:
    """Terms of the query side and of the document side."""
    sides: dict[str, list[str]] = {"q": [], "d": []}
    for term in (t.strip() for t in text.split(",")):
        prefix, dot, rest = term.partition(".")
        on = [prefix] if dot and prefix in SIDES else ["q", "d"]
        bare = rest if dot and prefix in SIDES else term
        kind, _, argument = bare.partition(":")
        if kind not in KINDS:
            raise SettingError(f"no view {term!r}; there are {', '.join(KINDS)}, as word:title or q.click")
        if kind == "dense" and not argument:
            raise SettingError("view dense needs the name of the vectors, as dense:minilm")
        if kind in ("click", "clicktext", "id") and argument:
            raise SettingError(f"view {kind} takes no field; got {term!r}")
        for side in on:
            # A field belongs to documents: the query's counterpart is its own text.
            own = kind if side == "q" and kind != "dense" else bare
            if own not in sides[side]:
                sides[side].append(own)
    for side, terms in sides.items():
        if not terms:
            raise SettingError(f"views {text!r} leave the {SIDES[side]} side without any")
    return sides["q"], sides["d"]


class ViewStack:
    """The views of one side; `spans` says which columns each one has."""

    def __init__(self, terms: Sequence[str], language: str = "english", stop_words: str = "keep") -> None:
        self.terms = list(terms)
        self.views: list[View] = []
        for term in terms:
            kind, _, argument = term.partition(":")
            self.views.append(KINDS[kind](argument, language, stop_words))

    @property
    def vector_names(self) -> list[str]:
        """Which dense vectors these views read."""
        return [view.argument for view in self.views if view.kind == "dense"]

    def fit(self, source: Source) -> sparse.csr_array:
        return _beside([view.fit(source) for view in self.views])

    def transform(self, source: Source) -> sparse.csr_array:
        return _beside([view.transform(source) for view in self.views])

    @property
    def spans(self) -> list[tuple[int, int]]:
        ends = np.cumsum([0, *(view.width for view in self.views)])
        return [(int(a), int(b)) for a, b in pairwise(ends)]

    @property
    def width(self) -> int:
        return sum(view.width for view in self.views)

    def feature(self, column: int) -> tuple[str, str]:
        """(view, feature) of a column."""
        for view, (start, stop) in zip(self.views, self.spans, strict=True):
            if start <= column < stop:
                return view.name, view.feature(column - start)
        raise IndexError(f"column {column} of {self.width}")

    def write(self, writer: PartWriter, prefix: str) -> None:
        writer.strings(prefix + ".terms", self.terms)
        for number, view in enumerate(self.views):
            view.write(writer, f"{prefix}.{number}")

    @classmethod
    def read(cls, artifact: Artifact, prefix: str, language: str, stop_words: str) -> ViewStack:
        stack = cls(artifact.strings(prefix + ".terms"), language, stop_words)
        for number, view in enumerate(stack.views):
            view.read(artifact, f"{prefix}.{number}")
        return stack


def _beside(matrices: list[sparse.csr_array]) -> sparse.csr_array:
    return matrices[0] if len(matrices) == 1 else sparse.csr_array(sparse.hstack(matrices, format="csr"))
