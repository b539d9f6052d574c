"""Lists of different lengths in one flat array: the common form of result pages, candidate lists and events.

List i consists of rows `indptr[i]:indptr[i + 1]` of any column. Ranks, means and standard scores within lists are
computed here, for all lists at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Ragged:
    indptr: Array

    @classmethod
    def of_lengths(cls, lengths: Iterable[int] | Array) -> Ragged:
        values = np.fromiter(lengths, dtype=np.int64) if not isinstance(lengths, np.ndarray) else lengths
        return cls(np.concatenate([[0], np.cumsum(values, dtype=np.int64)]).astype(np.int64))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_rows(self) -> int:
        return int(self.indptr[-1])

    @cached_property
    def lengths(self) -> Array:
        return np.diff(self.indptr)

    @cached_property
    def owner(self) -> Array:
        """The list of each row."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def places(self) -> Array:
        """The position of each row in its list, from 0."""
        return np.arange(self.n_rows) - np.repeat(self.indptr[:-1], self.lengths)

    # --- some of the lists -----------------------------------------------------------------------

    def kept_rows(self, keep: Array) -> Array:
        """A mask of the rows that belong to the lists in the mask `keep`."""
        return np.repeat(keep, self.lengths)

    def take(self, keep: Array) -> Ragged:
        """The lists in the mask `keep`. Their rows are `kept_rows(keep)`."""
        return Ragged.of_lengths(self.lengths[keep])

    def rows_of(self, lists: Array, most: int | None = None) -> tuple[Ragged, Array]:
        """The lists with the given numbers, in that order, and the numbers of their rows: at most `most` per list."""
        lengths = self.lengths[lists] if most is None else np.minimum(self.lengths[lists], most)
        out = Ragged.of_lengths(lengths)
        return out, np.repeat(self.indptr[:-1][lists] - out.indptr[:-1], lengths) + np.arange(out.n_rows)

    # --- one number per list -----------------------------------------------------------------------

    def sums(self, values: Array) -> Array:
        # reduceat would give an empty list the value of the next one.
        return np.bincount(self.owner, weights=values, minlength=len(self))

    def reduce(self, ufunc: np.ufunc, values: Array) -> Array:
        """Applies `ufunc.reduce` to each list; NaN for an empty list."""
        out = np.full(len(self), np.nan)
        filled = self.lengths > 0
        if filled.any():
            out[filled] = ufunc.reduceat(values, self.indptr[:-1][filled])
        return out

    # --- one number per row ------------------------------------------------------------------------

    def ranks(self, values: Array) -> Array:
        """How many rows of the same list have a strictly larger value. NaN is the smallest."""
        filled = np.where(np.isnan(values), -np.inf, values)
        order = np.lexsort((-filled, self.owner))
        owner, sorted_values = self.owner[order], filled[order]
        new = np.ones(self.n_rows, dtype=bool)
        new[1:] = (owner[1:] != owner[:-1]) | (sorted_values[1:] != sorted_values[:-1])
        first = np.maximum.accumulate(np.where(new, np.arange(self.n_rows), 0))
        out = np.empty(self.n_rows)
        out[order] = (np.arange(self.n_rows) - self.indptr[owner])[first]
        return out

    def order(self, values: Array) -> Array:
        """Row numbers that sort each list by decreasing `values`. Ties keep their order."""
        return np.lexsort((-values, self.owner))

    def gaps(self, values: Array) -> Array:
        """The difference of each row from the largest value of its list."""
        return values - self.reduce(np.fmax, values)[self.owner]

    def standardised(self, values: Array) -> Array:
        """Standard scores: mean 0 and deviation 1 over the finite rows of a list. Other rows get 0."""
        known = np.isfinite(values)
        counts = np.maximum(self.sums(known.astype(float)), 1)
        clean = np.where(known, values, 0.0)
        centred = np.where(known, clean - (self.sums(clean) / counts)[self.owner], 0.0)
        deviation = np.sqrt(self.sums(centred**2) / counts)[self.owner]
        return centred / np.where(deviation > 1e-12, deviation, 1.0)

    def softmax(self, values: Array) -> Array:
        """The softmax of each list: weights that sum to 1."""
        raised = np.exp(self.gaps(values))
        return raised / self.sums(raised)[self.owner]
