"""Click logs of the published sizes, for measuring time and memory where the real logs are private.

Reproduces the statistics of one week and half a year of web search in Table 1 of Wu, Lu, Li, "Learning
Bilinear Model for Matching Queries and Documents" (JMLR 2013), and of the enterprise log in Wu, Li, Xu,
"Learning Query and Document Similarities from Click-through Bipartite Graph with Metadata" (2011): sizes,
mean degrees, words per query and document, and for one week the density of W = X' R Y.

With constant degrees nnz(W) <= sum over links of c_x c_y = links * 4.0 * 5.9, a fourth less than
published.  A link sees a query of degree k with probability proportional to k, so heavy-tailed degrees
raise that sum at the same means; the cap of the tail is set to meet the published W.

Memory: the graph and all word ids are flat NumPy arrays; text exists for one chunk at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.optimize import brentq

from clickbridge.errors import SettingError
from clickbridge.progress import Progress, silent
from clickbridge.simulate import truth, words
from clickbridge.simulate.calibration import DRAWS, Draws
from clickbridge.simulate.clicks import draw_clicks
from clickbridge.simulate.words import Ids, Ints, JsonLines, TopicText, pasted, quoted

DEGREE_CAP = 20  # sets how heavy the tail of the degrees is: 20 gives the published W of one week
LINKS_PER_TOPIC = 200
OFF_TOPIC_LINKS = 0.05
MIN_CLICKS = 4  # the papers drop pairs with 3 clicks or fewer
CLICK_EXPONENT = 2.2
RESULTS = 10
FILLERS = 2 * RESULTS  # even if all linked documents are among them, RESULTS others remain
LINKED_BOOST = 2.0  # log-odds by which a linked document outranks another one
ATTRACTION = (0.2, 0.6)  # click probability of an examined linked document: least, and added at most
EPOCH = 1_325_376_000  # 2012-01-01
DAY = 86_400
CHUNK = 100_000
COLUMNS: dict[str, pa.DataType] = {"query": pa.string(), "doc_id": pa.string(), "clicks": pa.int32()}


@dataclass(frozen=True)
class Scale:
    """Published statistics of one log; n~y is clicked_docs_per_query, n~x clicking_queries_per_doc."""

    n_queries: int
    n_docs: int
    n_words: int
    clicked_docs_per_query: float
    clicking_queries_per_doc: float
    words_per_query: float
    words_per_doc: float
    days: int
    w_x: float | None = None
    w_y: float | None = None

    def shrunk(self, fraction: float) -> Scale:
        """Fewer queries, documents and words, in proportion, so that every average stays."""
        if not fraction > 0:
            raise SettingError(f"fraction must be positive, got {fraction}")
        sizes = {name: getattr(self, name) for name in ("n_queries", "n_docs", "n_words")}
        return replace(self, **{name: max(100, round(n * fraction)) for name, n in sizes.items()})


# Words per query = c_x - n~y and words per document = c_y - n~x of Table 1.  The enterprise paper gives
# neither: 2.3 and 4 are assumed; its n~x follows from the number of links.
SCALES: dict[str, Scale] = {
    "one-week": Scale(94_022, 111_631, 101_904, 1.74, 1.46, 2.26, 4.44, 7, 24.82, 27.05),
    "half-year": Scale(6_372_254, 4_599_849, 271_561, 2.92, 4.04, 2.58, 4.56, 182),
    "enterprise": Scale(51_699, 81_186, 9_958, 2.44, 1.55, 2.3, 4.0, 365),
}


@dataclass(frozen=True)
class _Graph:
    """Queries and documents in topic order; query i has the links indptr[i]:indptr[i + 1]."""

    indptr: Ints
    docs: Ids
    clicks: Ids
    query_topics: Ids
    doc_topics: Ids


@dataclass(frozen=True)
class _Log:
    """What the writers share."""

    rng: np.random.Generator
    graph: _Graph
    queries: TopicText
    doc_ids: pa.StringArray
    progress: Progress


def write_log(
    scale: str,
    out: Path,
    *,
    fraction: float = 1.0,
    impressions: int | None = None,
    clicks: str | None = None,
    results: int = RESULTS,
    seed: int = 0,
    progress: Progress = silent,
) -> dict[str, int]:
    """Write docs.jsonl.gz and log.parquet (or, given impressions, log.jsonl.gz) into the folder out.

    Returns the numbers of queries, docs, pairs, clicks and lines of the written log. Given a click model, the log is
    one with known truth (truth.py), whose size is the published one after the threshold (calibration.py).
    """
    if scale not in SCALES:
        raise SettingError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}")
    if impressions is not None and impressions < 1:
        raise SettingError(f"impressions must be at least 1, got {impressions}")
    size = SCALES[scale].shrunk(fraction)
    if clicks is not None:
        return _write_truth(size, DRAWS[scale], out, impressions, clicks, results, seed)
    graph_rng, text_rng, log_rng = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
    graph = _draw_graph(graph_rng, size)
    words_per_row = (size.words_per_query, size.words_per_doc)
    topics, links = (graph.query_topics, graph.doc_topics), (graph.indptr, graph.docs)
    queries, docs = words.draw_text(text_rng, size.n_words, words_per_row, topics, links)
    # Internal ids run in topic order; public numbers are shuffled, so that they tell nothing.
    numbers = log_rng.permutation(size.n_docs)
    doc_ids = pasted("d", numbers)
    out.mkdir(parents=True, exist_ok=True)
    _write_docs(out / "docs.jsonl.gz", docs, doc_ids, np.argsort(numbers))
    log = _Log(log_rng, graph, queries, doc_ids, progress)
    if impressions is None:
        counts = _write_triples(out / "log.parquet", log)
    else:
        counts = _write_impressions(out / "log.jsonl.gz", log, impressions, size.days)
    return {**counts, "docs": size.n_docs}


def _write_truth(
    size: Scale, draws: Draws, out: Path, searches: int | None, clicks: str, n_results: int, seed: int
) -> dict[str, int]:
    rng = np.random.default_rng(seed)
    world = truth.draw_world(
        round(draws.queries * size.n_queries),
        round(draws.docs * size.n_docs),
        round(draws.words * size.n_words),
        (size.words_per_query, size.words_per_doc),
        rng,
        queries_per_intent=draws.queries_per_intent,
    )
    n = searches or round(draws.searches * size.n_queries)
    return truth.write_world(world, out, searches=n, days=size.days, clicks=clicks, n_results=n_results, rng=rng)


def _draw_graph(rng: np.random.Generator, size: Scale) -> _Graph:
    """Configuration model within topics.

    Link ends of queries and of documents are laid side by side, both in topic order, and cut into topics
    at the same places, so both sides of a topic have equally many ends to be matched at random.
    """
    n_links = round(size.n_queries * size.clicked_docs_per_query)
    query_degrees = _degrees(rng, size.n_queries, n_links)
    doc_degrees = _degrees(rng, size.n_docs, n_links)
    n_topics = max(1, n_links // LINKS_PER_TOPIC)
    cuts = np.cumsum(rng.lognormal(0.0, 1.0, n_topics))
    cuts = (cuts / cuts[-1] * n_links).astype(np.int64)
    topic = np.repeat(np.arange(n_topics, dtype=np.int32), np.diff(cuts, prepend=0))
    query_topics = topic[words.offsets(query_degrees)[:-1]]
    doc_topics = topic[words.offsets(doc_degrees)[:-1]]

    queries = np.repeat(np.arange(size.n_queries, dtype=np.int64), query_degrees)
    docs = np.repeat(np.arange(size.n_docs, dtype=np.int32), doc_degrees)
    docs = docs[np.argsort(topic + rng.random(n_links))]
    strays = np.flatnonzero(rng.random(n_links) < OFF_TOPIC_LINKS)
    docs[strays] = docs[rng.permutation(strays)]
    for _ in range(20):
        twice = words.repeated(queries * size.n_docs + docs)
        if not len(twice):
            break
        # Exchange document ends with nearby links, each at most once, which keeps all degrees.
        near = (twice + rng.integers(-LINKS_PER_TOPIC, LINKS_PER_TOPIC, len(twice))) % n_links
        _, first = np.unique(near, return_index=True)
        first = first[~np.isin(near[first], twice)]
        a, b = twice[first], near[first]
        docs[a], docs[b] = docs[b], docs[a]
    # A pair that still occurs twice loses one copy; both its ends keep the other.
    kept = np.ones(n_links, dtype=bool)
    kept[words.repeated(queries * size.n_docs + docs)] = False
    indptr = words.offsets(np.bincount(queries[kept], minlength=size.n_queries))
    docs = docs[kept]
    tail = MIN_CLICKS * np.power(1.0 - rng.random(len(docs)), -1.0 / (CLICK_EXPONENT - 1.0))
    clicks = np.minimum(tail, 1e6).astype(np.int32)
    return _Graph(indptr, docs, clicks, query_topics, doc_topics)


def _degrees(rng: np.random.Generator, n: int, total: int) -> Ints:
    """n degrees in 1..DEGREE_CAP that sum to total, P(k) proportional to k ** -a with a set by the mean."""
    k = np.arange(1, DEGREE_CAP + 1, dtype=np.float64)

    def excess(a: float) -> float:
        return float((k ** (1 - a)).sum() / (k**-a).sum()) - total / n

    p = k ** -brentq(excess, -5.0, 20.0)
    # One draw per stratum keeps the sample mean next to the exact one even in small samples.
    u = (np.arange(n) + rng.random(n)) / n
    degrees = 1 + np.minimum(np.searchsorted(np.cumsum(p / p.sum()), u), DEGREE_CAP - 1)
    rng.shuffle(degrees)
    while gap := total - int(degrees.sum()):
        able = np.arange(n) if gap > 0 else np.flatnonzero(degrees > 1)
        chosen = rng.choice(able, min(abs(gap), len(able)), replace=False)
        degrees[chosen] += np.sign(gap)
    return degrees


def _chunks(n: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + CHUNK, n)) for start in range(0, n, CHUNK))


def _write_docs(path: Path, docs: TopicText, doc_ids: pa.StringArray, order: Ints) -> None:
    """Title: all words.  URL: first and last word of the title, so that it adds no feature of its own."""
    with JsonLines(path) as file:
        for start, stop in _chunks(len(order)):
            rows = order[start:stop]
            first, last = docs.at(docs.indptr[rows]), docs.at(docs.indptr[rows + 1] - 1)
            ids, title, url = quoted(doc_ids.take(rows)), quoted(docs.of(rows)), quoted(first, "/", last)
            file.add(doc_id=ids, title=title, url=url)


def _write_triples(path: Path, log: _Log) -> dict[str, int]:
    """The rows of a query together, queries in random order."""
    graph = log.graph
    schema = pa.schema(COLUMNS)
    order, done = log.rng.permutation(len(graph.indptr) - 1), 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start, stop in _chunks(len(order)):
            rows = order[start:stop]
            links, _ = words.slots_of(graph.indptr, rows)
            line = np.repeat(np.arange(len(rows)), graph.indptr[rows + 1] - graph.indptr[rows])
            text, ids = log.queries.of(rows).take(line), log.doc_ids.take(graph.docs[links])
            writer.write_table(pa.table([text, ids, pa.array(graph.clicks[links])], schema=schema))
            done += len(links)
            log.progress(f"simulating pairs, {done:,} of {len(graph.docs):,}")
    return {"queries": len(order), "pairs": done, "clicks": int(graph.clicks.sum()), "lines": done}


def _write_impressions(path: Path, log: _Log, n: int, days: int) -> dict[str, int]:
    """Sessions of two queries on average; a query is as popular as its clicks in the graph are many."""
    rng, graph = log.rng, log.graph
    names = quoted(log.doc_ids)
    popularity = np.cumsum(graph.clicks, dtype=np.int64)
    seen_queries = np.zeros(len(graph.indptr) - 1, dtype=bool)
    seen_links = np.zeros(len(graph.docs), dtype=bool)
    n_clicks = n_sessions = 0
    with JsonLines(path) as file:
        for start, stop in _chunks(n):
            m = stop - start
            drawn = np.searchsorted(popularity, rng.integers(0, popularity[-1], m), side="right")
            rows = np.searchsorted(graph.indptr, drawn, side="right") - 1
            shown, links, clicked = _result_pages(rng, graph, rows)
            seen_queries[rows] = True
            seen_links[links[clicked]] = True
            n_clicks += int(clicked.sum())

            # A chunk has its own part of the period, so times also rise from chunk to chunk.
            session = np.cumsum(rng.random(m) < 0.5)
            begin, end = (EPOCH + days * DAY * i // n for i in (start, stop))
            time = rng.integers(begin, max(end, begin + 1), m + 1)[session]
            time = np.minimum(time + rng.exponential(60.0, m).astype(np.int64), max(end - 1, begin))
            user = rng.integers(0, max(1, n // 5), m + 1)[session]
            by_time = np.argsort(time, kind="stable")
            file.add(
                query=quoted(log.queries.of(rows)),
                user=quoted("u", user[by_time]),
                session=quoted("s", session[by_time] + n_sessions),
                time=pasted(time[by_time]),
                results=pasted("[", words.joined(names.take(shown.ravel()), RESULTS * np.arange(m + 1), ","), "]"),
                clicks=pasted("[", words.joined(names.take(shown[clicked]), words.offsets(clicked.sum(1)), ","), "]"),
            )
            n_sessions += int(session[-1]) + 1
            log.progress(f"simulating searches, {stop:,} of {n:,}")
    counts = {"queries": int(seen_queries.sum()), "pairs": int(seen_links.sum())}
    return {**counts, "clicks": n_clicks, "lines": n}


def _result_pages(rng: np.random.Generator, graph: _Graph, rows: Ints) -> tuple[Ids, Ints, NDArray[np.bool_]]:
    """Results of one search per row, the link behind each (-1: none), and which were clicked.

    Position-based model: P(click at rank r) = P(examine r) * attraction, P(examine r) = 1 / r; only linked
    documents attract, by the share of clicks they have in the graph.
    """
    column = np.arange(RESULTS)
    degree = (graph.indptr[rows + 1] - graph.indptr[rows])[:, None]
    # Of a query with many links a random run of them is shown, wrapping round at the end.
    shift = (rng.random((len(rows), 1)) * degree).astype(np.int64)
    links = np.where(column < degree, graph.indptr[rows][:, None] + (shift + column) % degree, -1)
    linked = np.where(links >= 0, graph.docs[links], -1)
    strength = np.where(links >= 0, graph.clicks[links], 0) + 0.0
    strength /= strength.max(axis=1, keepdims=True)
    # Neighbours in topic order compete with the linked documents.
    near = linked[:, :1] - rng.integers(0, FILLERS, (len(rows), 1))
    others = ((near + np.arange(FILLERS)) % len(graph.doc_topics)).astype(np.int32)
    taken = (others[:, :, None] == linked[:, None, :]).any(axis=2)

    score = rng.gumbel(size=(len(rows), RESULTS + FILLERS)).astype(np.float32)
    score[:, :RESULTS] += np.where(links >= 0, LINKED_BOOST + np.log(np.maximum(strength, 1e-6)), -np.inf)
    score[:, RESULTS:][taken] = -np.inf
    top = np.argsort(-score, axis=1)[:, :RESULTS]
    shown = np.take_along_axis(np.concatenate([linked, others], axis=1), top, axis=1)
    link = np.where(top < RESULTS, np.take_along_axis(links, np.minimum(top, RESULTS - 1), axis=1), -1)
    attraction = ATTRACTION[0] + ATTRACTION[1] * np.take_along_axis(strength, top % RESULTS, axis=1)
    clicked = draw_clicks("pbm", np.where(link >= 0, attraction, 0.0), rng, fading=1.0)
    return shown, link, clicked
