"""VSM, BM25, BM25F and LMIR straight from Wu et al. 2011, Section 3.3, over lists of terms.

A collection is {doc_id: {field: [terms]}}; a query is a list of terms.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

Fields = Mapping[str, Sequence[str]]


class Collection:
    """Statistics of documents that hold a word; a term that no document has is unknown."""

    def __init__(self, docs: Mapping[str, Fields], weights: Mapping[str, float] | None = None) -> None:
        self.docs = {doc_id: fields for doc_id, fields in docs.items() if any(fields.values())}
        names = dict.fromkeys(name for fields in docs.values() for name in fields)
        self.weights = dict(weights) if weights is not None else dict.fromkeys(names, 1.0)
        self.n_docs = len(self.docs)
        self.df: Counter[str] = Counter()
        for fields in self.docs.values():
            self.df.update({term for name in self.weights for term in fields.get(name, ())})
        self.average = {
            name: sum(len(fields.get(name, ())) for fields in self.docs.values()) / max(self.n_docs, 1)
            for name in self.weights
        }
        mass: Counter[str] = Counter()
        for fields in self.docs.values():
            for term, count in self.tf(fields).items():
                mass[term] += count  # type: ignore[assignment]
        total = sum(mass.values())
        self.share = {term: count / total for term, count in mass.items()}

    def tf(self, fields: Fields) -> dict[str, float]:
        """Weighted term frequencies."""
        out: dict[str, float] = {}
        for name, weight in self.weights.items():
            for term in fields.get(name, ()):
                out[term] = out.get(term, 0.0) + weight
        return out

    def known(self, query: Iterable[str]) -> Counter[str]:
        return Counter(term for term in query if self.df[term])


def vsm(query: Sequence[str], fields: Fields, collection: Collection) -> float:
    """sum_t idf(t)^2 tf(t,q) tf(t,d), with idf = log(1 + N / df)."""
    tf = collection.tf(fields)
    total = 0.0
    for term, in_query in collection.known(query).items():
        idf = math.log(1 + collection.n_docs / collection.df[term])
        total += idf * in_query * idf * tf.get(term, 0.0)
    return total


def idf(variant: str, df: int, n_docs: int) -> float:
    if variant == "atire":
        return math.log(n_docs / df)
    odds = (n_docs - df + 0.5) / (df + 0.5)
    return math.log(1 + odds) if variant == "lucene" else max(math.log(odds), 0.0)


def bm25(
    query: Sequence[str], fields: Fields, collection: Collection, k1: float, b: float, k3: float, variant: str
) -> float:
    """BM25F; with one field of weight 1 it is eq. (1) of the paper."""
    total = 0.0
    for term, in_query in collection.known(query).items():
        frequency = 0.0
        for name, weight in collection.weights.items():
            terms = fields.get(name, ())
            count = Counter(terms)[term]
            if count:
                frequency += weight * count / (1 - b + b * len(terms) / collection.average[name])
        if frequency:
            saturated = (k1 + 1) * frequency / (k1 + frequency)
            total += (
                (k3 + 1) * in_query / (k3 + in_query) * idf(variant, collection.df[term], collection.n_docs) * saturated
            )
    return total


def plain_bm25(
    query: Sequence[str], terms: Sequence[str], collection: Collection, k1: float, b: float, k3: float
) -> float:
    """Eq. (1) for one field, as printed: the normalised length beside tf, not under it."""
    (name,) = collection.weights
    total, counts = 0.0, Counter(terms)
    for term, in_query in collection.known(query).items():
        tf, length = counts[term], len(terms) / collection.average[name]
        if tf:
            weight = idf("lucene", collection.df[term], collection.n_docs)
            total += (k3 + 1) * in_query / (k3 + in_query) * weight * (k1 + 1) * tf / (k1 * (1 - b + b * length) + tf)
    return total


def log_likelihood(
    query: Sequence[str], fields: Fields, collection: Collection, smoothing: str, parameter: float
) -> float:
    """log p(q|d) - log p(q|collection), term by term from the smoothed probabilities themselves."""
    tf = collection.tf(fields)
    length = sum(tf.values())
    total = 0.0
    for term, in_query in collection.known(query).items():
        share = collection.share[term]
        if smoothing == "dirichlet":
            probability = (tf.get(term, 0.0) + parameter * share) / (length + parameter)
        else:
            probability = (1 - parameter) * tf.get(term, 0.0) / length + parameter * share
        total += in_query * (math.log(probability) - math.log(share))
    return total
