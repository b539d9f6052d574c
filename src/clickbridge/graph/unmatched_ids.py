"""Finds clicks on ids that no document has: a common error in a log or its documents that nothing else would show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clickbridge.graph.parts import Array
from clickbridge.wording import count_of

if TYPE_CHECKING:
    from clickbridge.graph.clickgraph import ClickGraph

TRIED = 1000


@dataclass(frozen=True)
class UnmatchedIds:
    """The numbers of clicks and of clicked ids without a document. `example` is such an id; `meant` is the id of a
    document that differs from it only in case, leading zeros or `.0`."""

    clicks: int
    all_clicks: int
    documents: int
    all_documents: int
    example: str = ""
    meant: str = ""

    def __str__(self) -> str:
        share = count_of(self.clicks, "click", "are", of=self.all_clicks)
        line = f"{share} on ids that no document has, such as {self.example!r}"
        return f"{line}; the documents have {self.meant!r}" if self.meant else line


def unmatched_ids(graph: ClickGraph) -> UnmatchedIds | None:
    """Compares clicked ids with the documents that have text; None if no document has text."""
    has_text = np.zeros(graph.n_docs, dtype=bool)
    for name in graph.field_names:
        has_text |= np.asarray(graph.docs[name].is_valid())
    if not has_text.any():
        return None
    clicks = np.bincount(graph.pairs.doc, weights=graph.pairs.clicks, minlength=graph.n_docs)
    clicked, missing = clicks > 0, (clicks > 0) & ~has_text
    strange = np.flatnonzero(missing)
    strange = strange[np.argsort(-clicks[strange], kind="stable")][:TRIED]
    example, meant = _likely_meant(graph.doc_ids, strange.tolist(), has_text) if len(strange) else ("", "")
    counts = int(clicks[missing].sum()), int(clicks.sum()), int(missing.sum()), int(clicked.sum())
    return UnmatchedIds(*counts, example, meant)


def _likely_meant(ids: list[str], strange: list[int], has_text: Array) -> tuple[str, str]:
    """An id without a document and, if there is one, the document whose id differs from it in a way typical of
    exports."""
    known = {_folded(ids[number]): ids[number] for number in np.flatnonzero(has_text).tolist()}
    pairs = ((ids[number], known.get(_folded(ids[number]), "")) for number in strange)
    return next((pair for pair in pairs if pair[1]), (ids[strange[0]], ""))


def _folded(doc_id: str) -> str:
    return doc_id.casefold().removesuffix(".0").lstrip("0")
