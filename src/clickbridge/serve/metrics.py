"""Metrics for Prometheus: traffic, and signs that a model no longer fits what people search for.

With several workers, the counts of all are added up, through files in a folder that the first process creates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    multiprocess,
)

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
POSITIONS = 10
"""Clicks are counted for ranks up to this one."""
FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = r = CollectorRegistry()
        prefix = "clickbridge_"

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(prefix + name, about, labels, registry=r)

        self.requests = counter("requests_total", "Requests", "route", "status")
        self.seconds = Histogram(
            prefix + "request_seconds", "Time of a request", ["route"], buckets=SECONDS, registry=r
        )
        self.queries = counter("queries_total", "Lists and searches answered", "model", "known")
        self.no_score = counter("queries_without_score_total", "Queries for which no document has a score", "model")
        self.documents = counter("documents_total", "Documents to rank", "model", "known")
        self.words = counter("query_words_total", "Words of queries, by whether the log has them", "model", "known")
        self.events = counter("events_total", "Events, by what became of them", "outcome")
        self.shown = counter("shown_total", "Results on pages with feedback, by rank", "position")
        self.clicks = counter("clicks_total", "Clicks, by rank", "position")
        self.swaps = counter("swaps_total", "Models put in place, or refused", "model", "outcome")
        self.waiting = Gauge(
            prefix + "events_waiting", "Events that wait to be written", registry=r, multiprocess_mode="sum"
        )
        self.promotions = counter("promotions_total", "Retrained models, by what became of them", "model", "outcome")
        self.store_failures = counter("store_failures_total", "Transactions that failed")
        self._shown = [self.shown.labels(str(i)) for i in range(1, POSITIONS + 1)]
        self._clicks = [self.clicks.labels(str(i)) for i in range(1, POSITIONS + 1)]

    def page(self, results: Sequence[str], clicks: Iterable[str]) -> None:
        """A page with feedback: what was shown and what was clicked, by rank."""
        chosen = set(clicks)
        for place, doc_id in enumerate(results[:POSITIONS]):
            self._shown[place].inc()
            if doc_id in chosen:
                self._clicks[place].inc()

    def text(self) -> bytes:
        if os.environ.get(FOLDER):
            everyone = CollectorRegistry()
            multiprocess.MultiProcessCollector(everyone)  # type: ignore[no-untyped-call]
            return generate_latest(everyone)
        return generate_latest(self.registry)


class Drift:
    """How much searches differ from what a model was fitted on: new queries, new words, unknown documents, lists
    without any score."""

    def __init__(self, metrics: Metrics, name: str, keys: Sequence[str]) -> None:
        self._words = {word for key in keys for word in key.split()}
        self._queries, self._typed, self._documents = (
            {known: family.labels(name, known) for known in ("yes", "no")}
            for family in (metrics.queries, metrics.words, metrics.documents)
        )
        self._no_score = metrics.no_score.labels(name)

    def query(self, key: str, known: bool, scored: bool) -> None:
        self._queries["yes" if known else "no"].inc()
        words = key.split()
        seen = sum(word in self._words for word in words)
        if seen:
            self._typed["yes"].inc(seen)
        if seen < len(words):
            self._typed["no"].inc(len(words) - seen)
        if not scored:
            self._no_score.inc()

    def documents(self, known: int, unknown: int) -> None:
        if known:
            self._documents["yes"].inc(known)
        if unknown:
            self._documents["no"].inc(unknown)
