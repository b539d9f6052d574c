"""Lists end to end, as the features of trees need them: one row for each document of each list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.models.base import Array, query_of
from clickbridge.numerics.topk import paired_dots
from clickbridge.types import ResultList, text_of_key


@dataclass(frozen=True)
class FlatLists:
    """Rows `indptr[i]:indptr[i + 1]` belong to list i; `items` are document numbers, -1 for unknown ones."""

    lists: Sequence[ResultList]
    indptr: Array
    items: Array

    @classmethod
    def of(cls, lists: Sequence[ResultList], doc_numbers: Mapping[str, int]) -> FlatLists:
        indptr = np.concatenate([[0], np.cumsum([len(r.results) for r in lists], dtype=np.int64)]).astype(np.int64)
        items = (doc_numbers.get(d, -1) for r in lists for d in r.results)
        return cls(lists, indptr, np.fromiter(items, dtype=np.int64, count=int(indptr[-1])))

    @property
    def n_rows(self) -> int:
        return len(self.items)

    @cached_property
    def lengths(self) -> Array:
        return np.diff(self.indptr)

    @cached_property
    def owner(self) -> Array:
        """The list of each row."""
        return np.repeat(np.arange(len(self.lists)), self.lengths)

    @cached_property
    def keys(self) -> list[str]:
        return [query_of(result) for result in self.lists]

    @cached_property
    def texts(self) -> list[str]:
        """Query texts; empty for a query known by its id alone."""
        return [text_of_key(key) for key in self.keys]

    def dots(self, queries: sparse.csr_array, documents: sparse.csr_array) -> Array:
        """The dot product of each list's query row with each of its documents' rows; 0 for unknown ones."""
        if not documents.shape[0]:
            return np.zeros(self.n_rows)
        values = paired_dots(queries, documents, self.indptr, np.maximum(self.items, 0))
        return np.where(self.items >= 0, values, 0.0)

    def of_documents(self, values: Array) -> Array:
        """A number for each document, row by row; NaN for unknown ones."""
        if not len(values):
            return np.full(self.n_rows, np.nan)
        return np.where(self.items >= 0, values[np.maximum(self.items, 0)], np.nan)

    # --- a column within its list ----------------------------------------------------------------

    def best(self, column: Array) -> Array:
        """The largest value of each list, row by row; NaN where a list has none."""
        return self._reduced(np.fmax, column)[self.owner]

    def gaps(self, column: Array) -> Array:
        """How far each row is below the best of its list."""
        return column - self.best(column)

    def ranks(self, column: Array) -> Array:
        """How many rows of the list stand strictly above; what has no value stands below all."""
        order = np.lexsort((-np.where(np.isnan(column), -np.inf, column), self.owner))
        owner, values = self.owner[order], np.where(np.isnan(column), -np.inf, column)[order]
        place = np.arange(self.n_rows) - self.indptr[owner]
        new = np.ones(self.n_rows, dtype=bool)
        new[1:] = (owner[1:] != owner[:-1]) | (values[1:] != values[:-1])
        first = np.maximum.accumulate(np.where(new, np.arange(self.n_rows), 0))
        out = np.empty(self.n_rows)
        out[order] = place[first]
        return out

    def standardised(self, column: Array) -> Array:
        """Mean 0 and deviation 1 over the list's rows that have a value; 0 for the rest."""
        known = np.isfinite(column)
        counts = np.maximum(self._sums(known.astype(float)), 1)
        values = np.where(known, column, 0.0)
        mean = (self._sums(values) / counts)[self.owner]
        centred = np.where(known, values - mean, 0.0)
        deviation = np.sqrt(self._sums(centred**2) / counts)[self.owner]
        return centred / np.where(deviation > 1e-12, deviation, 1.0)

    def softmax(self, column: Array) -> Array:
        """Weights of the rows of each list, summing to 1."""
        raised = np.exp(column - self.best(column))
        return raised / self._sums(raised)[self.owner]

    def _sums(self, values: Array) -> Array:
        return np.bincount(self.owner, weights=values, minlength=len(self.lists))

    def _reduced(self, ufunc: Any, column: Array) -> Array:
        out = np.full(len(self.lists), np.nan)
        filled = self.lengths > 0
        if filled.any():
            out[filled] = ufunc.reduceat(column, self.indptr[:-1][filled])
        return out
