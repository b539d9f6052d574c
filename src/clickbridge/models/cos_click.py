"""Cosine of clicks: what people clicked before for exactly the same query. The baseline Cos_B of 11M.

A query is mapped to its clicks, and a document to an indicator vector of itself. Similar queries are found by
comparing their clicks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clickbridge.errors import MissingPart
from clickbridge.io.values import stored
from clickbridge.models.candidates import Query
from clickbridge.models.click_memory import ClickMemory, FittedClickMemory
from clickbridge.models.explain import Contributions, Feature, Part, contributions
from clickbridge.models.fitted import Array, Fitted
from clickbridge.models.sfunction import S_FUNCTION, FittedSFunction, unit_images
from clickbridge.numerics.row import EMPTY, Row, as_matrix, row_of
from clickbridge.search.index import Index, SparseIndex, make_index
from clickbridge.settings import Counting, Printed, settings
from clickbridge.types import Document
from clickbridge.views.view import unit_rows


@stored
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedCosClick(FittedClickMemory, FittedSFunction):
    can: ClassVar[frozenset[str]] = S_FUNCTION - {"new queries"}

    clicks: sparse.csr_array = field(init=False, repr=False)
    """The responses, rows of unit length."""
    images: sparse.csr_array = field(init=False, repr=False)
    scorable: Array = field(init=False, repr=False)
    index: SparseIndex = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n_docs = len(self.catalogue)
        images = sparse.csr_array(sparse.eye_array(n_docs, dtype=np.float32, format="csr"))
        self._derive(clicks=unit_rows(self.responses), images=images, scorable=np.ones(n_docs, dtype=bool))
        self._derive(index=SparseIndex(images))

    # --- maps ------------------------------------------------------------------------------------

    def image(self, query: Query) -> Row:
        number = self.queries.number(query.key)
        return row_of(self.clicks, number) if number >= 0 else EMPTY

    def map_keys(self, queries: Sequence[Query]) -> sparse.csr_array:
        return as_matrix([self.image(query) for query in queries], len(self.catalogue))

    def map_new(self, documents: Sequence[Document]) -> sparse.csr_array:
        """A new document has no clicks yet."""
        return sparse.csr_array((len(documents), len(self.catalogue)), dtype=np.float32)

    # --- similar queries and documents -----------------------------------------------------------

    @cached_property
    def _query_index(self) -> Index:
        return SparseIndex(self.clicks)

    @cached_property
    def _by_document(self) -> sparse.csr_array:
        """Each document as its clicks by query. Documents are similar if they were clicked for the same queries."""
        return unit_images(sparse.csr_array(self.clicks.T))

    @cached_property
    def _doc_index(self) -> Index:
        return make_index(self._by_document, np.diff(self._by_document.indptr) > 0)

    def document_image(self, number: int) -> Row:
        return row_of(self._by_document, number)

    # --- the rest --------------------------------------------------------------------------------

    def contributions(self, query: str, doc_id: str, k: int) -> Contributions:
        number, (clicked, values) = self.catalogue.number(doc_id), self.image(self.query(query))
        here = np.flatnonzero(clicked == number)
        if not len(here) or not values[here[0]]:
            raise MissingPart(f"{query!r} was never clicked on {doc_id}: cos-click has nothing to explain")
        clicked_on = Feature("click", self.catalogue.named(number))
        return contributions([Part(Feature("query", query), clicked_on, float(values[here[0]]))], k)


@settings
class CosClickSettings(Printed, Counting):
    printed: ClassVar[Mapping[str, Any]] = {"response": "log-t"}


class CosClick(ClickMemory):
    """Ranks by what people clicked before when they typed exactly the same query.

    Hard to beat where queries repeat. A query without clicks in the log has no score. The baseline Cos_B of 11M.

    Examples
    --------
    >>> from clickbridge import CosClick, example_graph
    >>> model = CosClick().fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['rooms', 'hotels', 'slice']
    """

    name = "cos-click"
    about = "clicks of the same query: its memory"
    paper = "11M (Cos_B)"
    Settings = CosClickSettings
    fitted_type: ClassVar[type[Fitted]] = FittedCosClick
