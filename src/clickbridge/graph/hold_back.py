"""Holds back part of the clicks. All tuning, early stopping and cross-fitting uses this one function.

If the log has times, its last part is held back. Otherwise, if most queries occur once, whole queries are held back,
chosen by a hash of their text. (If the log has only counts, this applies if most clicks belong to queries without a
document that was clicked five times.) Otherwise single clicks are held back at random, and for a share of them whole
queries: a log of repeated queries would otherwise only measure queries that are known already. The rest is a GRAPH over
the same queries and documents. The held-back part becomes lists with labels (`held_lists.py`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Literal

import numpy as np

from clickbridge.errors import InputError, MissingPart, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.held_lists import POOL as POOL
from clickbridge.graph.held_lists import HoldBack as HoldBack
from clickbridge.graph.held_lists import Ranker as Ranker
from clickbridge.graph.notes import Note
from clickbridge.graph.parts import Array, Clicks, Impressions, Pairs
from clickbridge.graph.sums import sum_pairs
from clickbridge.wording import count_of

MIN_USABLE = 50
"""Lists with a click that a choice takes; with fewer the defaults stay."""
FEW_HELD = "few held back"
"""The reason of notes that say so."""
NEW_QUERIES = 0.5
"""Of what is held back by click, the share that are whole queries; measured in docs/hold_back.md."""
SURELY_REPEATED = 5
"""Clicks on one document from which on a query known by counts alone is taken for a repeated one."""
FORWARD_FROM = 0.25
"""Share of the log that only ever teaches when folds are cut by time."""


def few_held(n: int, noun: str = "query", aim: str = "", follows: str = "") -> Note:
    """The note of a tuner that has too few lists, such as "1 query can be held back, 50 are needed". Each tuner counts
    its own lists, and the numbers differ a little: the reason is the same."""
    head = f"{count_of(n, noun)} can be held back, {MIN_USABLE} are needed{aim and f' {aim}'}"
    return Note(f"{head}; {follows}" if follows else head, FEW_HELD, follows)


def hold_back(
    graph: ClickGraph, fraction: float = 0.1, by: str = "auto", seed: int = 0, *, new_queries: float = NEW_QUERIES
) -> HoldBack:
    """Holds back part of a GRAPH. `new_queries`, only for `by="click"`, is the share of whole queries in that part."""
    if not 0 < fraction < 1:
        raise SettingError(f"fraction must be between 0 and 1; got {fraction}")
    if not 0 <= new_queries <= 1:
        raise SettingError(f"new_queries must be from 0 to 1; got {new_queries}")
    if by == "auto":
        by = choose(graph)
    if by == "time":
        return _by_time(graph, fraction)
    if by == "query":
        drop = _some_queries(graph, fraction, seed, "linear")
        return _split_events(graph, by, _of_queries(drop), _of_queries(drop))
    if by == "click":
        return _by_click(graph, fraction, seed, new_queries)
    raise SettingError(f"by must be auto, time, query or click; got {by!r}")


def folds(graph: ClickGraph, n: int = 5, by: str = "auto", seed: int = 0) -> Iterator[HoldBack]:
    """Cross-fitting: `n` hold-backs by the same rules, one after the other.

    By query or by click, every event is held back once, and the rest of a fold is all other folds. By time, the log
    after its first quarter is cut into `n` slices, and the rest of a slice is everything before it, so that nothing is
    learned from later events.
    """
    if n < 2:
        raise SettingError(f"folds must be at least 2; got {n}")
    by = choose(graph) if by == "auto" else by
    if by == "time":
        times = _known_times(graph)
        newest = times.max()
        edges = np.quantile(times, np.linspace(FORWARD_FROM, 1, n + 1))
        edges[-1] = np.inf
        for start, stop in pairwise(edges):
            if start < min(stop, newest):
                yield _split_events(graph, by, _between(start, stop), None, _between(-np.inf, start))
    elif by == "query":
        fold = _query_folds(graph, n, seed)
        for number in range(n):
            drop = fold == number
            yield _split_events(graph, by, _of_queries(drop), _of_queries(drop))
    elif by == "click":
        yield from _click_folds(graph, n, seed)
    else:
        raise SettingError(f"by must be auto, time, query or click; got {by!r}")


def _query_folds(graph: ClickGraph, n: int, seed: int) -> Array:
    """The fold of each query, with equally many queries in each fold; -1 for a query without events."""
    present = _present(graph)
    by_hash = present[np.argsort(query_hash(graph, seed)[present], kind="stable")]
    fold = np.full(graph.n_queries, -1)
    fold[by_hash] = np.arange(len(present)) * n // len(present)
    return fold


def _of_queries(chosen: Array) -> Callable[[Impressions | Clicks | Pairs], Array]:
    return lambda part: chosen[part.query]


def _between(start: float, stop: float) -> Callable[[Impressions | Clicks], Array]:
    """Events after `start` and not after `stop`. Events without a time count as the oldest."""

    def within(part: Impressions | Clicks) -> Array:
        times = np.full(len(part), -np.inf) if part.time is None else np.nan_to_num(part.time, nan=-np.inf)
        return ((times > start) | (start == -np.inf)) & (times <= stop)

    return within


def _click_folds(graph: ClickGraph, n: int, seed: int) -> Iterator[HoldBack]:
    rng = np.random.default_rng(seed)
    if graph.impressions is None and graph.clicks is None:
        pairs = graph.pairs
        shares = rng.multinomial(pairs.clicks, np.full(n, 1 / n))
        for number in range(n):
            rest = graph.with_pairs(_with_clicks(pairs, pairs.clicks - shares[:, number]))
            yield HoldBack(rest, "click", None, _with_clicks(pairs, shares[:, number]))
        return
    parts = [part for part in (graph.impressions, graph.clicks) if part is not None]
    fold = {id(part): rng.integers(n, size=len(part)) for part in parts}
    for number in range(n):
        yield _split_events(graph, "click", _in_fold(fold, number), None)


def _in_fold(fold: dict[int, Array], number: int) -> Callable[[Impressions | Clicks], Array]:
    return lambda part: fold[id(part)] == number


def choose(graph: ClickGraph) -> str:
    """Which way of holding back `auto` chooses."""
    times = _event_times(graph)
    if len(times) and np.ptp(times) > 0:
        return "time"
    times_seen = np.zeros(graph.n_queries)
    if graph.impressions is not None:
        np.add.at(times_seen, graph.impressions.query, 1)
    elif graph.clicks is not None:
        np.add.at(times_seen, graph.pairs.query, graph.pairs.clicks)
    else:
        return _by_counts(graph.pairs)
    seen = times_seen[times_seen > 0]
    return "query" if len(seen) and np.mean(seen == 1) > 0.5 else "click"


def _by_counts(pairs: Pairs) -> str:
    """The choice for a log with only counts. One search may lead to several clicks, so a query was certainly repeated
    only as often as its most clicked document was clicked. If that is rare for most clicks, later queries are assumed
    to be new."""
    most, clicks = np.zeros(pairs.query.max(initial=-1) + 1), np.zeros(pairs.query.max(initial=-1) + 1)
    np.maximum.at(most, pairs.query, pairs.clicks)
    np.add.at(clicks, pairs.query, pairs.clicks)
    return "click" if clicks[most >= SURELY_REPEATED].sum() >= clicks.sum() / 2 else "query"


def _present(graph: ClickGraph) -> Array:
    """Queries with an event or a pair."""
    parts = [part.query for part in (graph.impressions, graph.clicks) if part is not None]
    present = np.unique(np.concatenate([*parts, graph.pairs.query]))
    if not len(present):
        raise InputError("hold_back needs at least one query: the GRAPH has none")
    return present


def _some_queries(graph: ClickGraph, share: float, seed: int, method: Literal["linear", "lower"]) -> Array:
    """Which queries are held back completely: those with the smallest hashes. The share is that of the queries with
    events here, so that part of a rest can be held back again."""
    hashes = query_hash(graph, seed)
    drop: Array = hashes < np.quantile(hashes[_present(graph)], share, method=method)
    return drop


def query_hash(graph: ClickGraph, seed: int) -> Array:
    """A number in [0, 1) for each query that depends only on its text and the seed."""
    salt = zlib.crc32(seed.to_bytes(4, "little"))
    return np.array([zlib.crc32(key.encode(), salt) for key in graph.query_keys], dtype=np.float64) / 2**32


def _event_times(graph: ClickGraph) -> Array:
    parts = [p.time for p in (graph.impressions, graph.clicks) if p is not None and p.time is not None]
    times = np.concatenate(parts) if parts else np.empty(0)
    return times[np.isfinite(times)]


def _known_times(graph: ClickGraph) -> Array:
    times = _event_times(graph)
    if not len(times):
        raise MissingPart("hold_back by time needs times in the log: ingest one that has them, or use by='query'")
    return times


def _by_time(graph: ClickGraph, fraction: float) -> HoldBack:
    times = _known_times(graph)
    cut = np.quantile(times, 1 - fraction)
    if cut == times.max():
        # Coarse times (whole days): the last one may hold more than the fraction, and is then held back whole.
        cut = np.max(times[times < cut], initial=-np.inf)

    def late(part: Impressions | Clicks) -> Array:
        return np.zeros(len(part), dtype=bool) if part.time is None else part.time > cut

    return _split_events(graph, "time", late, None)


def _by_click(graph: ClickGraph, fraction: float, seed: int, new_queries: float) -> HoldBack:
    """Holds back whole queries for the share `new_queries`, and single events of the others for the rest."""
    rng = np.random.default_rng(seed)
    whole = np.zeros(graph.n_queries, dtype=bool)
    if new_queries and len(graph.pairs):
        # "lower": of a few queries, none rather than one that is most of the log.
        whole = _some_queries(graph, fraction * new_queries, seed, "lower")
    thinned = fraction * (1 - new_queries) / (1 - fraction * new_queries)
    if graph.impressions is None and graph.clicks is None:
        pairs = graph.pairs
        taken = np.where(whole[pairs.query], pairs.clicks, rng.binomial(pairs.clicks, thinned))
        return HoldBack(
            graph.with_pairs(_with_clicks(pairs, pairs.clicks - taken)),
            "click",
            None,
            _with_clicks(pairs, taken),
        )
    return _split_events(graph, "click", lambda part: whole[part.query] | (rng.random(len(part)) < thinned), None)


def _split_events(
    graph: ClickGraph,
    by: str,
    drop: Callable[[Impressions | Clicks], Array],
    drop_pairs: Callable[[Pairs], Array] | None,
    keep: Callable[[Impressions | Clicks], Array] | None = None,
) -> HoldBack:
    """Holds back the events marked in `drop`. The rest is all other events, or those marked in `keep`."""
    impressions, clicks = graph.impressions, graph.clicks
    if impressions is None and clicks is None:
        assert drop_pairs is not None
        held = drop_pairs(graph.pairs)
        none = np.zeros(len(graph.pairs), dtype=np.int32)
        rest = _with_clicks(graph.pairs, np.where(held, none, graph.pairs.clicks))
        return HoldBack(
            graph.with_pairs(rest),
            by,
            None,
            _with_clicks(graph.pairs, np.where(held, graph.pairs.clicks, none)),
        )
    held_pages = None if impressions is None else drop(impressions)
    held_clicks = None if clicks is None else drop(clicks)

    def left(part: Impressions | Clicks, held: Array) -> Array:
        return ~held if keep is None else keep(part)

    rest_graph = graph.with_events(
        None if impressions is None or held_pages is None else impressions.take(left(impressions, held_pages)),
        None if clicks is None or held_clicks is None else clicks.take(left(clicks, held_clicks)),
    )
    return HoldBack(
        rest_graph,
        by,
        None if impressions is None or held_pages is None else impressions.take(held_pages),
        None if clicks is None or held_clicks is None else sum_pairs(None, clicks.take(held_clicks)),
    )


def _with_clicks(pairs: Pairs, clicks: Array) -> Pairs:
    """The pairs that still have a click, with their counts."""
    keep = clicks > 0
    return Pairs(pairs.query[keep], pairs.doc[keep], clicks[keep], np.zeros(int(keep.sum()), dtype=np.int32))
