"""The formulas of lexical models, as pure functions of word counts. They give the images of both sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from clickbridge.io.values import stored
from clickbridge.numerics import bm25
from clickbridge.numerics.row import Row
from clickbridge.views.fields import FieldCounts
from clickbridge.views.view import unit_rows

Array = np.ndarray[Any, Any]


@stored
@dataclass(frozen=True, eq=False)
class TermStatistics:
    """The statistics of the collection that both maps need."""

    idf: Array
    average_lengths: Array
    """Of each field, over documents with text."""
    shares: Array
    """P(t), the share of each term in the weighted texts."""

    @classmethod
    def of(cls, counts: FieldCounts, formula: Formula) -> TermStatistics:
        has_text = counts.lengths.sum(axis=1) > 0
        average = counts.lengths[has_text].mean(axis=0, dtype=np.float64)
        idf = formula.idf_of(counts.document_frequency(), int(has_text.sum()))
        return cls(idf, average, np.empty(0)).weighed(counts, np.ones(len(counts.names)))

    def weighed(self, counts: FieldCounts, weights: Array) -> TermStatistics:
        """The same statistics, with word shares computed from weighted fields."""
        mass = np.bincount(counts.pattern.indices, counts.values @ weights, minlength=counts.pattern.shape[1])
        return replace(self, shares=mass / max(mass.sum(), 1e-300))


class Formula(Protocol):
    extra_columns: int
    """Coordinates beyond the vocabulary."""

    def idf_of(self, frequency: Array, n_docs: int) -> Array: ...

    def query(self, words: Row, statistics: TermStatistics) -> Row:
        """The image of one counted query."""
        ...

    def queries(self, counts: sparse.csr_array, statistics: TermStatistics) -> sparse.csr_array: ...

    def documents(self, counts: FieldCounts, statistics: TermStatistics, weights: Array) -> sparse.csr_array:
        """Images of counted documents."""
        ...

    def weigher(self, counts: FieldCounts, statistics: TermStatistics) -> Callable[[Array], sparse.csr_array]:
        """The document images as a function of the field weights, for trying many weights."""
        ...


class _Rows:
    """Maps many queries with the formula for one."""

    extra_columns = 0

    def idf_of(self, frequency: Array, n_docs: int) -> Array:
        """log(1 + N / df): positive for every term, as a weight in both maps must be."""
        return np.log1p(n_docs / np.maximum(frequency, 1))

    def query_values(self, columns: Array, counts: Array, statistics: TermStatistics) -> Array:
        raise NotImplementedError

    def documents(self, counts: FieldCounts, statistics: TermStatistics, weights: Array) -> sparse.csr_array:
        raise NotImplementedError

    def weigher(self, counts: FieldCounts, statistics: TermStatistics) -> Callable[[Array], sparse.csr_array]:
        return lambda weights: self.documents(counts, statistics, weights)

    def query(self, words: Row, statistics: TermStatistics) -> Row:
        return Row(words.columns, self.query_values(words.columns, words.values, statistics).astype(np.float32))

    def queries(self, counts: sparse.csr_array, statistics: TermStatistics) -> sparse.csr_array:
        out = counts.copy()
        out.data = self.query_values(out.indices, out.data, statistics).astype(np.float32)
        return out


@stored
@dataclass(frozen=True)
class VSMFormula(_Rows):
    """tf idf on both sides."""

    def query_values(self, columns: Array, counts: Array, statistics: TermStatistics) -> Array:
        return counts * statistics.idf[columns]

    def documents(self, counts: FieldCounts, statistics: TermStatistics, weights: Array) -> sparse.csr_array:
        return scaled_columns(counts.with_values(counts.values @ weights), statistics.idf)


@stored
@dataclass(frozen=True)
class CosineFormula(VSMFormula):
    """tf idf at unit length."""

    def query(self, words: Row, statistics: TermStatistics) -> Row:
        return super().query(words, statistics).unit()

    def queries(self, counts: sparse.csr_array, statistics: TermStatistics) -> sparse.csr_array:
        return unit_rows(super().queries(counts, statistics))

    def documents(self, counts: FieldCounts, statistics: TermStatistics, weights: Array) -> sparse.csr_array:
        return unit_rows(super().documents(counts, statistics, weights))


@stored
@dataclass(frozen=True)
class BM25Formula(_Rows):
    """tf = sum_f w_f tf_f / (1 - b + b len_f / avglen_f);  image = idf (k1 + 1) tf / (k1 + tf).

    `whole` takes the fields for one text: every tf_f over 1 - b + b len / avglen, with len = sum_f w_f len_f. With
    weights of 1 that is equation (1) of 11R."""

    k1: float = bm25.K1
    b: float = bm25.B
    k3: float = 8.0
    idf: str = "lucene"
    whole: bool = False

    def idf_of(self, frequency: Array, n_docs: int) -> Array:
        if self.idf == "atire":
            return np.log(n_docs / np.maximum(frequency, 1))
        if self.idf == "lucene":
            return bm25.idf_of(frequency, n_docs)
        # Robertson's idf is negative for words in over half of the documents. Here, as in bm25s, it is at least 0.
        return np.log(np.maximum((n_docs - frequency + 0.5) / (frequency + 0.5), 1))

    def query_values(self, columns: Array, counts: Array, statistics: TermStatistics) -> Array:
        return (self.k3 + 1) * counts / (self.k3 + counts)

    def weigher(self, counts: FieldCounts, statistics: TermStatistics) -> Callable[[Array], sparse.csr_array]:
        """Computes once what does not depend on the field weights: by field, everything before the sum over fields."""
        average, rows = statistics.average_lengths, counts.rows
        by_field = counts.values if self.whole else counts.values / self._norms(counts.lengths, average)[rows]
        idf = statistics.idf[counts.pattern.indices]

        def images(weights: Array) -> sparse.csr_array:
            frequency = by_field @ weights
            if self.whole:
                frequency = frequency / self._norms(counts.lengths @ weights, average @ weights)[rows]
            saturated = (self.k1 + 1) * frequency / np.maximum(self.k1 + frequency, 1e-300)
            return counts.with_values(saturated * idf)

        return images

    def _norms(self, lengths: Array, average: Array) -> Array:
        norms: Array = np.maximum(1 - self.b + self.b * lengths / np.maximum(average, 1e-9), 1e-9)
        return norms

    def documents(self, counts: FieldCounts, statistics: TermStatistics, weights: Array) -> sparse.csr_array:
        return self.weigher(counts, statistics)(weights)


@stored
@dataclass(frozen=True)
class LMIRFormula(_Rows):
    """With a_d the weight of the collection in document d (Dirichlet: mu / (len + mu); Jelinek-Mercer: lam),
    log p(q|d) = sum_t tf(t,q) log(1 + (1 - a_d) p(t|d) / (a_d P(t))) + len(q) log a_d + const(q):
    one coordinate per term and one more for log a_d. len(q) counts known terms only."""

    smoothing: str = "dirichlet"
    mu: float = 200.0
    lam: float = 0.5

    extra_columns = 1

    def query(self, words: Row, statistics: TermStatistics) -> Row:
        last = np.int32(len(statistics.idf))
        return Row(np.append(words.columns, last), np.append(words.values, words.values.sum(dtype=np.float32)))

    def queries(self, counts: sparse.csr_array, statistics: TermStatistics) -> sparse.csr_array:
        lengths = sparse.csr_array(np.asarray(counts.sum(axis=1)).reshape(-1, 1))
        return sparse.csr_array(sparse.hstack([counts, lengths], format="csr"))

    def documents(self, counts: FieldCounts, statistics: TermStatistics, weights: Array) -> sparse.csr_array:
        frequency, length = counts.values @ weights, counts.lengths @ weights
        if self.smoothing == "dirichlet":
            # (1 - a_d) p(t|d) / a_d = tf / mu
            ratio, collection_weight = frequency / self.mu, self.mu / (length + self.mu)
        else:
            share = frequency / np.maximum(length, 1e-300)[counts.rows]
            ratio, collection_weight = share * (1 - self.lam) / self.lam, np.full(len(length), self.lam)
        shares = statistics.shares[counts.pattern.indices]
        words = counts.with_values(np.log1p(ratio / np.maximum(shares, 1e-300)))
        last = np.where(length > 0, np.log(collection_weight), 0.0).astype(np.float32)
        return sparse.csr_array(sparse.hstack([words, sparse.csr_array(last.reshape(-1, 1))], format="csr"))


def scaled_columns(matrix: sparse.csr_array, scale: Array) -> sparse.csr_array:
    out = matrix.copy()
    out.data = (out.data * scale[out.indices]).astype(np.float32)
    return out
