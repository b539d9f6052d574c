"""The similarity of two documents: k_D, the cosine of rows of features (Wu et al. 2011, Section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.models.sfunction import NOISE
from clickbridge.models.study import Study
from clickbridge.numerics.gram import dense_kernel, rows_kernel, square_kernel
from clickbridge.views.view import KINDS, Source, ViewTerm, unit_rows

Array = np.ndarray[Any, Any]
TITLES = ("title", "name", "heading", "url")


@dataclass(frozen=True, eq=False)
class DocumentKernel:
    """k_D: the cosine of documents' rows, from one or more matrices side by side. Rows need not have length 1, so a
    model's own images can be used without a copy."""

    blocks: tuple[Any, ...]
    scale: Array
    """One over the length of each row; 0 for a document without a row."""
    present: Array

    @classmethod
    def of(cls, *blocks: Any) -> DocumentKernel:
        """Each block is a sparse matrix or a dense array."""
        lengths = np.sqrt(sum(squares(block) for block in blocks))
        present = lengths > (0.0 if any(sparse.issparse(block) for block in blocks) else NOISE)
        return cls(blocks, np.where(present, 1 / np.where(present, lengths, 1.0), 0.0), present)

    def square(self, docs: Array, items: Array) -> tuple[Array, Array]:
        """Kernel values of documents with themselves, and of each of `items` with these documents."""
        own, beside = np.zeros((len(docs), len(docs))), np.zeros((len(items), len(docs)))
        for rows in self.blocks:
            if sparse.issparse(rows):
                found = square_kernel(rows, docs, items)
            else:
                found = dense_kernel(rows[docs], rows[docs]), dense_kernel(rows[items], rows[docs])
            own += found[0]
            beside += found[1]
        return self._scaled(own, docs, docs), self._scaled(beside, items, docs)

    def block(self, one: Array, two: Array) -> Array:
        """Kernel values between the documents `one` and the documents `two`; faster if `one` has fewer documents."""
        out = np.zeros((len(one), len(two)))
        for rows in self.blocks:
            out += rows_kernel(rows, one, rows, two) if sparse.issparse(rows) else dense_kernel(rows[one], rows[two])
        return self._scaled(out, one, two)

    def _scaled(self, dots: Array, one: Array, two: Array) -> Array:
        dots *= self.scale[one][:, None]
        dots *= self.scale[two]
        return dots


def squares(rows: Any) -> Array:
    """The squared length of each row."""
    if not sparse.issparse(rows):
        return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    sums = np.add.reduceat(np.append(rows.data.astype(np.float64) ** 2, 0.0), rows.indptr[:-1])
    # reduceat gives an empty row the value that follows it.
    return np.where(np.diff(rows.indptr) > 0, sums, 0.0)


def view_rows(terms: Sequence[str], source: Source, language: str) -> sparse.csr_array:
    """Unit rows of several views of documents side by side. k_D is the mean of the views' cosines, over the views that
    each document has."""
    blocks = []
    for term in terms:
        if term.partition(":")[0] not in KINDS:
            raise SettingError(f"no view {term!r}; there are {', '.join(KINDS)}, such as word:title")
        asked = ViewTerm(term, language, "keep")
        blocks.append(asked.kind.fit(asked, source)[1])
    return unit_rows(sparse.csr_array(sparse.hstack(blocks, format="csr")))


def document_rows(study: Study, name: str, language: str) -> sparse.csr_array:
    """Unit rows of a study's documents: by `titles`, by `words`, or by views such as `word:title,char`."""
    graph = study.graph

    def made() -> sparse.csr_array:
        if name == "titles":
            shown = [field for field in TITLES if field in graph.field_names] or graph.field_names
            terms = [f"word:{field}" for field in shown]
        else:
            terms = ["word"] if name == "words" else [term.strip() for term in name.split(",")]
        source = study.documents(
            clicks=sparse.csr_array(graph.matrix(rows="queries").T),
            other_texts={"query": graph.query_texts},
            other_names=graph.query_keys,
        )
        return view_rows(terms, source, language)

    return study.once(("document rows", name, language), made)
