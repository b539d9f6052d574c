"""Evaluates similar queries: the pos/com/neg protocol of 11M (Section 5.2) and 11R's precision of similarity measures.

A judgment tells which queries are similar. It comes from known intents, from a file of human judgments, or from clicks
that the model has not seen. For each sampled query, the first three answers of a model and of a baseline are compared
by their judgments: better (pos), comparable (com) or worse (neg).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from scipy import sparse
from scipy.stats import binomtest

from clickbridge.errors import InputError
from clickbridge.io.json_text import parse_json
from clickbridge.io.streams import lines, open_stream
from clickbridge.log.clean import normalise_query
from clickbridge.models.model import Model

Array = np.ndarray[Any, Any]
TOP, SAMPLE, TAIL = 3, 500, 10
"""11M: the top 3 of 500 queries; a tail query has fewer than 10 clicks."""
Answers = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class PairedPreference:
    """How often a model's similar queries were better than, comparable to, or worse than a baseline's."""

    model: str
    baseline: str
    pos: int
    com: int
    neg: int
    p_value: float


class Judgments:
    """Grades of pairs of queries. A pair without a grade has grade 0."""

    def __init__(self, grades: Mapping[str, Mapping[str, float]]) -> None:
        self.grades = grades

    def quality(self, query: str, answers: Sequence[str], k: int = TOP) -> float:
        """Mean grade of the first k answers; a missing answer counts 0."""
        known = self.grades.get(query, {})
        return sum(known.get(answer, 0.0) for answer in answers[:k]) / k

    @property
    def queries(self) -> list[str]:
        """The queries that have at least one similar query."""
        return [query for query, known in self.grades.items() if any(known.values())]

    @classmethod
    def of_groups(cls, group_of: Mapping[str, str]) -> Judgments:
        """Judgments from groups: queries of one group (an intent) are similar, all others are not."""
        members: dict[str, list[str]] = defaultdict(list)
        for query, group in group_of.items():
            members[group].append(query)
        return cls({q: {other: 1.0 for other in members[group] if other != q} for q, group in group_of.items()})

    @classmethod
    def of_clicks(cls, clicks: Iterable[tuple[str, str]]) -> Judgments:
        """Judgments from clicks: queries are similar if the same document was clicked for both. The (query, document)
        pairs must be ones that the model has not seen."""
        by_doc: dict[str, dict[str, None]] = defaultdict(dict)
        for query, doc_id in clicks:
            by_doc[doc_id][query] = None
        grades: dict[str, dict[str, float]] = defaultdict(dict)
        for queries in by_doc.values():
            for query in queries:
                grades[query] |= {other: 1.0 for other in queries if other != query}
        return cls(dict(grades))


def read_judgments(path: str) -> Judgments:
    """Reads judgments from a JSONL file. Lines are either `{"query", "intent"}`, where queries with the same intent are
    similar, or human judgments, `{"query", "similar": {query: grade}}`. Queries are normalised like those of a log."""
    groups: dict[str, str] = {}
    graded: dict[str, dict[str, float]] = {}
    with open_stream(path) as stream:
        for number, line in enumerate(lines(stream, path), 1):
            if not line:
                continue
            record = _record(path, number, line)
            query = normalise_query(record["query"])
            if "intent" in record:
                groups[query] = str(record["intent"])
            else:
                similar = record["similar"]
                graded.setdefault(query, {}).update({normalise_query(q): float(g) for q, g in similar.items()})
    if not groups and not graded:
        raise InputError(f"{path} holds no judgment: one JSON object per line with query, and intent or similar")
    merged = {query: dict(known) for query, known in Judgments.of_groups(groups).grades.items()}
    for query, known in graded.items():
        merged.setdefault(query, {}).update(known)
    return Judgments(merged)


def _record(path: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = parse_json(line)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}, line {number}: not JSON: {error.msg}") from None
    similar = record.get("similar") if type(record) is dict else None
    if type(record) is not dict or type(record.get("query")) is not str:
        raise InputError(f"{path}, line {number}: a judgment needs a query as text")
    good = type(similar) is dict and all(type(g) in (int, float) and g >= 0 for g in similar.values())
    if "intent" not in record and not good:
        raise InputError(
            f"{path}, line {number}: expected intent, or similar as an object of query: grade of at least 0"
        )
    return record


def sample_queries(candidates: Sequence[str], n: int = SAMPLE, seed: int = 0) -> list[str]:
    """A random sample of n queries, in the order given."""
    if len(candidates) <= n:
        return list(candidates)
    picked = np.random.default_rng(seed).choice(len(candidates), n, replace=False)
    return [candidates[i] for i in np.sort(picked)]


def answers_of(
    model: Model, queries: Sequence[str], k: int = TOP, among: Collection[str] | None = None
) -> dict[str, list[str]]:
    """The k most similar queries of each query. With `among`, only these queries count: models that know different
    queries of a log can be compared only on what all of them may answer."""
    return {query: _most_similar(model, query, k, among) for query in queries}


def _most_similar(model: Model, query: str, k: int, among: Collection[str] | None) -> list[str]:
    depth = k
    while True:
        found = [name for name, _ in model.similar_queries(query, depth)]
        kept = [name for name in found if among is None or name in among]
        if len(kept) >= k or len(found) < depth:
            return kept[:k]
        depth *= 8


def prefer(
    names: tuple[str, str], ours: Answers, theirs: Answers, judged: Judgments, queries: Iterable[str] | None = None
) -> PairedPreference:
    """Counts better, comparable and worse queries (by default all of `ours`), with a two-sided sign test without
    ties."""
    chosen = list(ours) if queries is None else list(queries)
    gains = [judged.quality(q, ours[q]) - judged.quality(q, theirs[q]) for q in chosen]
    pos, neg = sum(g > 1e-12 for g in gains), sum(g < -1e-12 for g in gains)
    p_value = float(binomtest(pos, pos + neg).pvalue) if pos + neg else 1.0
    return PairedPreference(*names, pos, len(gains) - pos - neg, neg, p_value)


def tail_of(model: Model, queries: Iterable[str], below: int = TAIL) -> list[str]:
    """Queries with fewer than `below` clicks."""
    known = model.fitted.queries
    clicks = dict(zip(known.keys, known.clicks.tolist(), strict=True))
    return [query for query in queries if clicks.get(query, 0) < below]


# --- measures of query similarity on clicks (11R, footnote 2) ------------------------------------------

Measure = Callable[[Array, Array, int], Array]
TINY = 1e-12
"""A share of the squared clicks under which a deviation is rounding."""


def _pearson(one: Array, many: Array, n_urls: int) -> Array:
    """Pearson correlation, centred over a fixed set of n URLs. Over only the URLs of the two queries it would be
    undefined for one shared URL, and -1 for two different ones."""
    means = one.sum() / n_urls, many.sum(axis=1) / n_urls
    covariance = many @ one / n_urls - means[0] * means[1]
    deviations = (one @ one / n_urls - means[0] ** 2) * ((many**2).sum(axis=1) / n_urls - means[1] ** 2)
    return covariance / np.sqrt(np.maximum(deviations, 1e-300))


def _pearson_of_union(one: Array, many: Array, _: int) -> Array:
    """Equation (9) of 11R as printed: over the URLs of the two queries; 0 where it is undefined."""
    either = (many > 0) | (one > 0)
    n = either.sum(axis=1)
    means = one.sum() / n, many.sum(axis=1) / n
    covariance = many @ one - n * means[0] * means[1]
    deviations = (one @ one - n * means[0] ** 2) * ((many**2).sum(axis=1) - n * means[1] ** 2)
    defined = deviations > TINY * (one @ one) * (many**2).sum(axis=1)
    return np.where(defined, covariance / np.sqrt(np.where(defined, deviations, 1.0)), 0.0)


def _jensen_shannon(one: Array, many: Array, _: int) -> Array:
    """One minus the divergence of the two distributions of clicks, in bits."""
    p, q = one / one.sum(), many / many.sum(axis=1, keepdims=True)
    middle = (p + q) / 2

    def against_middle(side: Array) -> Array:
        ratio = np.divide(side, middle, out=np.ones_like(middle), where=side > 0)
        total: Array = np.sum(np.where(side > 0, side, 0.0) * np.log2(ratio), axis=1)
        return total

    return 1 - (against_middle(np.broadcast_to(p, q.shape)) + against_middle(q)) / 2


def _jaccard(one: Array, many: Array, _: int) -> Array:
    a, b = one > 0, many > 0
    shared: Array = (a & b).sum(axis=1)
    return shared / (a | b).sum(axis=1)


def _cosine(one: Array, many: Array, _: int) -> Array:
    return many @ one / np.maximum(np.linalg.norm(one) * np.linalg.norm(many, axis=1), 1e-300)


MEASURES: dict[str, Measure] = {
    "Pearson": _pearson,
    "Pearson (9)": _pearson_of_union,
    "Jensen-Shannon": _jensen_shannon,
    "Jaccard": _jaccard,
    "cosine": _cosine,
}


def similar_by_clicks(
    measure: str, clicks: sparse.csr_array, keys: Sequence[str], queries: Sequence[str], k: int = TOP
) -> dict[str, list[str]]:
    """The k most similar queries by clicks only, among those that share a clicked document."""
    compute, numbers = MEASURES[measure], {key: number for number, key in enumerate(keys)}
    by_doc = clicks.tocsc()
    out: dict[str, list[str]] = {}
    for query in queries:
        number = numbers.get(query, -1)
        own = clicks[[number]] if number >= 0 else None
        near = np.unique(by_doc[:, own.indices].indices) if own is not None and own.nnz else np.empty(0, dtype=int)
        near = near[near != number]
        if own is None or not len(near):
            out[query] = []
            continue
        rows = sparse.csr_array(clicks[near])
        # Only URLs of one of the two matter. For Pearson, the number of all others is passed.
        urls = np.union1d(rows.indices, own.indices)
        one = own[:, urls].toarray().ravel().astype(np.float64)
        values = compute(one, rows[:, urls].toarray().astype(np.float64), clicks.shape[1])
        out[query] = [keys[near[i]] for i in np.argsort(-values, kind="stable")[:k]]
    return out


def precision(answers: Answers, judged: Judgments, k: int = TOP) -> float:
    """Mean grade of the first k answers; a missing answer counts 0."""
    return float(np.mean([judged.quality(query, found, k) for query, found in answers.items()]))
