"""A log counted in dicts, and what a GRAPH says of itself in the same words."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from clickbridge import ClickGraph
from clickbridge.io.secret import Secret
from clickbridge.log.clean import clean_session, clean_triple
from clickbridge.types import Impression, PairCount

Raw = dict[str, Any]


Raw = dict[str, Any]


def records(raws: list[Raw]) -> list[Impression | PairCount]:
    return [clean_triple(raw) if raw.get("doc_id") else clean_session(raw) for raw in raws]


def key_of(raw: Raw) -> str:
    return " ".join(raw["query"].casefold().split()) or "\x1f" + raw["query_id"]


def oracle(raws: list[Raw]) -> dict[str, Any]:
    """The GRAPH by counting, one thing at a time."""
    clicks: dict[Any, int] = defaultdict(int)
    shown: dict[Any, int] = defaultdict(int)
    users: dict[Any, set[str]] = defaultdict(set)
    times: dict[Any, list[float]] = defaultdict(list)
    stated, queries, docs, pages = set(), set(), set(), []
    has_users = has_times = False
    for raw in raws:
        key = key_of(raw)
        if raw.get("doc_id"):
            results, events = [], [(raw["doc_id"], raw["clicks"])]
            stated.add((key, raw["doc_id"]))
            shown[key, raw["doc_id"]] += raw["impressions"] or 0
        else:
            results = list(dict.fromkeys(raw["results"] or []))
            events = [(doc, 1) for doc in dict.fromkeys(raw["clicks"])]
            if results:
                clicked = [int(doc in raw["clicks"]) for doc in results]
                pages.append((key, results, clicked, raw["time"], raw["user"]))
        if not results and not events:
            continue
        has_users |= raw["user"] is not None
        has_times |= raw["time"] is not None
        queries.add(key)
        docs.update(results)
        for doc in results:
            shown[key, doc] += 1
        for doc, count in events:
            docs.add(doc)
            clicks[key, doc] += count
            if count and raw["user"] is not None:
                users[key, doc].add(raw["user"])
            if count and raw["time"] is not None:
                times[key, doc].append(raw["time"])
    pairs = {}
    for pair in {p for p, n in clicks.items() if n} | stated:
        first, last = (min(times[pair]), max(times[pair])) if times[pair] else (None, None)
        pairs[pair] = (clicks[pair], shown[pair], len(users[pair]) if has_users else None, first, last)
    return {
        "pairs": pairs,
        "pages": pages,
        "queries": sorted(queries, key=str.encode),
        "docs": sorted(docs, key=str.encode),
        "has": (has_users, has_times),
    }


def described(graph: ClickGraph) -> dict[str, Any]:
    """The GRAPH in the oracle's words."""

    def time(value: float) -> float | None:
        return None if math.isnan(value) else float(value)

    p, keys, ids = graph.pairs, graph.query_keys, graph.doc_ids
    pairs = {}
    order = []
    for i in range(len(p)):
        order.append((int(p.query[i]), int(p.doc[i])))
        pairs[keys[p.query[i]], ids[p.doc[i]]] = (
            int(p.clicks[i]),
            int(p.impressions[i]),
            None if p.users is None else int(p.users[i]),
            None if p.first is None else time(p.first[i]),
            None if p.last is None else time(p.last[i]),
        )
    assert order == sorted(set(order)), "pairs are by query, then document, each once"
    pages = []
    if (shown := graph.impressions) is not None:
        for i in range(len(shown)):
            here = slice(shown.indptr[i], shown.indptr[i + 1])
            pages.append(
                (
                    keys[shown.query[i]],
                    [ids[doc] for doc in shown.doc[here]],
                    shown.clicked[here].tolist(),
                    None if shown.time is None else time(shown.time[i]),
                    0 if shown.user is None else int(shown.user[i]),
                )
            )
    return {
        "pairs": pairs,
        "pages": pages,
        "queries": list(keys),
        "docs": ids,
        "has": (p.users is not None, p.first is not None),
    }


def hashed(wanted: dict[str, Any], secret: Secret) -> dict[str, Any]:
    pages = [(*page[:4], 0 if page[4] is None else secret.user(page[4])) for page in wanted["pages"]]
    return wanted | {"pages": pages}
