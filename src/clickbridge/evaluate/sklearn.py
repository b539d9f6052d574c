"""Models in scikit-learn's parameter search: `GridSearchCV` over result pages, with splits that do not leak.

pages = [page for page in clickbridge.read_log("log.jsonl") if isinstance(page, Impression)]
search = GridSearchCV(PageRanker(PLS(), docs), {"model__dim": [50, 100]}, cv=PageSplit(3)).fit(pages)
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from clickbridge.errors import InputError, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.measures.ranking import parse_measure
from clickbridge.types import Document, Impression, query_key

Array = np.ndarray[Any, Any]


class PageRanker(BaseEstimator):  # type: ignore[misc]
    """A model as a scikit-learn estimator over result pages. `score` re-ranks the pages that have clicked and unclicked
    results, and returns the mean of a measure."""

    def __init__(self, model: Any, docs: Sequence[Document] = (), measure: str = "nDCG@5") -> None:
        self.model, self.docs, self.measure = model, docs, measure

    def fit(self, pages: Sequence[Impression], y: Any = None) -> Self:
        self.model_ = clone(self.model).fit(ClickGraph.build(list(pages), self.docs))
        return self

    def predict(self, pages: Sequence[Impression]) -> list[list[str]]:
        """The results of each page in the model's order."""
        return [self.model_.rerank(_asked(page), page.results or []).doc_ids for page in pages]

    def score(self, pages: Sequence[Impression], y: Any = None) -> float:
        usable = [page for page in pages if 0 < len({*page.clicks} & {*(page.results or ())}) < len(page.results or ())]
        if not usable:
            raise InputError("no page has a clicked and an unclicked result to score by: give pages with results")
        measure = parse_measure(self.measure)
        values = []
        for page, ranked in zip(usable, self.predict(usable), strict=True):
            grades = [float(doc_id in page.clicks) for doc_id in ranked]
            values.append(measure(grades, grades))
        return float(np.mean(values))


class PageSplit:
    """A cross-validation splitter for result pages. `by="query"` keeps all pages of a query in one fold, chosen by a
    hash of its text. `by="time"` always trains on earlier pages than it tests on."""

    def __init__(self, n_splits: int = 5, by: str = "query", seed: int = 0) -> None:
        if n_splits < 2 or by not in ("query", "time"):
            raise SettingError(f"a split has at least 2 parts, by query or time; got {n_splits} by {by!r}")
        self.n_splits, self.by, self.seed = n_splits, by, seed

    def get_n_splits(self, pages: Any = None, y: Any = None, groups: Any = None) -> int:
        return self.n_splits

    def split(self, pages: Sequence[Impression], y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        fold = self._by_time(pages) if self.by == "time" else self._by_query(pages)
        for number in range(self.n_splits):
            # By time there is one more part, since the first one is only used for training.
            own = number + 1 if self.by == "time" else number
            train = fold < own if self.by == "time" else fold != own
            yield np.flatnonzero(train), np.flatnonzero(fold == own)

    def _by_query(self, pages: Sequence[Impression]) -> Array:
        """Sorts queries by a hash and deals them out in turn: folds with equally many queries, always the same."""
        salt = self.seed.to_bytes(4, "little")
        keys = [query_key(page.query, page.query_id) for page in pages]
        ordered = sorted(set(keys), key=lambda key: (zlib.crc32(salt + key.encode()), key))
        fold = {key: number % self.n_splits for number, key in enumerate(ordered)}
        return np.array([fold[key] for key in keys], dtype=np.int64)

    def _by_time(self, pages: Sequence[Impression]) -> Array:
        times = np.array([np.nan if page.time is None else page.time for page in pages])
        if np.isnan(times).any():
            raise InputError("a page has no time: split by query")
        place = np.empty(len(times), dtype=np.int64)
        place[np.argsort(times, kind="stable")] = np.arange(len(times))
        return place * (self.n_splits + 1) // max(len(times), 1)


def _asked(page: Impression) -> str:
    return page.query or page.query_id or ""
