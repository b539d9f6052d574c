"""Evaluates similar queries: the pos/com/neg protocol of 11M (Section 5.2) and 11R's precision of similarity measures.

A judgment tells which queries are similar. It comes from known intents, from a file of human judgments, or from clicks
that the model has not seen. For each sampled query, the first three answers of a model and of a baseline are compared
by their judgments: better (pos), comparable (com) or worse (neg).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from clickbridge.skernel.click_kernel import ClickKernel

Array = np.ndarray[Any, Any]
TOP, SAMPLE, TAIL = 3, 500, 10
"""11M: the top 3 of 500 queries; a tail query has fewer than 10 clicks."""
DEPTH = 64
"""The first look for answers among given queries: so deep that hardly any query needs another."""
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
    # A sum looks at more candidates the deeper it is asked, so all queries are asked equally deep as far as possible.
    depth = k if among is None else max(DEPTH, k)
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

CLICK_KERNELS = {
    "Pearson": "pearson",
    "Pearson (9)": "pearson-union",
    "Jensen-Shannon": "jensen-shannon",
    "Jaccard": "jaccard",
    "cosine": "cosine",
}
"""Measures by the names of 11R, and the kernels that compute them. `Pearson` is over all URLs, `Pearson (9)` as printed
over those of the two queries."""
DIGITS = 12
"""Values that are equal in so many digits are equal but for rounding."""


def similar_by_clicks(
    measure: str, clicks: sparse.csr_array, keys: Sequence[str], queries: Sequence[str], k: int = TOP
) -> dict[str, list[str]]:
    """The k most similar queries by clicks only, among those that share a clicked document."""
    kernel, numbers = ClickKernel.of(CLICK_KERNELS[measure], clicks), {key: number for number, key in enumerate(keys)}
    by_doc = clicks.tocsc()
    out: dict[str, list[str]] = {}
    for query in queries:
        number = numbers.get(query, -1)
        own = clicks[[number]].indices if number >= 0 else np.empty(0, dtype=np.int64)
        near = np.setdiff1d(by_doc[:, own].indices, [number])
        values = kernel.block(np.array([number]), near)[0] if len(near) else np.empty(0)
        out[query] = [keys[near[i]] for i in np.argsort(-values.round(DIGITS), kind="stable")[:k]]
    return out


def precision(answers: Answers, judged: Judgments, k: int = TOP) -> float:
    """Mean grade of the first k answers; a missing answer counts 0."""
    return float(np.mean([judged.quality(query, found, k) for query, found in answers.items()]))
