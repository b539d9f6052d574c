"""Groups of queries, since a mean hides where a model helps: by clicks, by length, seen or unseen, head and tail.

Clicks are those of the query in the GRAPH that the models learned from. A query without clicks is unseen: models know
only its words. The tail is that of 11M: fewer than ten clicks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clickbridge.evaluate.significance import interval
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.log.personal import redacted
from clickbridge.types import ResultList

TAIL = 10
LONGEST = 5


@dataclass(frozen=True)
class QueryFacts:
    """What is known about one judged query. `shown` is its text as it may be shown to others."""

    query_id: str
    text: str
    clicks: int
    words: int
    shown: str = ""


@dataclass(frozen=True)
class Grouping:
    """A way to group queries. `of` gives the group of a query; `groups` are all names in order."""

    name: str
    title: str
    about: str
    groups: tuple[str, ...]
    of: Callable[[QueryFacts], str]


def _click_bin(query: QueryFacts) -> str:
    if not query.clicks:
        return "unseen"
    return next((f"≤{limit:,}" for limit in (10, 100, 1000) if query.clicks <= limit), ">1,000")


def _length(query: QueryFacts) -> str:
    if not query.words:
        return "no text"
    return f"{query.words}" if query.words < LONGEST else f"{LONGEST}+"


GROUPINGS = (
    Grouping(
        "clicks",
        "By clicks of the query in the GRAPH",
        "Unseen queries have no click.",
        ("unseen", "≤10", "≤100", "≤1,000", ">1,000"),
        _click_bin,
    ),
    Grouping(
        "words",
        "By length of the query",
        "The number of words.",
        ("no text", *map(str, range(1, LONGEST)), f"{LONGEST}+"),
        _length,
    ),
    Grouping(
        "seen",
        "Seen and unseen",
        "A seen query has at least one click in the GRAPH.",
        ("seen", "unseen"),
        lambda query: "seen" if query.clicks else "unseen",
    ),
    Grouping(
        "tail",
        "Head and tail",
        f"Tail queries have fewer than {TAIL} clicks in the GRAPH, or none.",
        ("head", "tail"),
        lambda query: "tail" if query.clicks < TAIL else "head",
    ),
)


@dataclass(frozen=True)
class Cell:
    """The mean of one model over one group of queries, and its 95% interval. The mean is None if the model has no score
    for any of them."""

    n: int
    mean: float | None
    low: float = math.nan
    high: float = math.nan


def describe(graph: ClickGraph, lists: Iterable[ResultList], min_users: int = 1) -> dict[str, QueryFacts]:
    """The clicks and length of every list's query. With `min_users`, only queries that at least this many users typed
    are shown."""
    clicks = np.bincount(graph.pairs.query, weights=graph.pairs.clicks, minlength=graph.n_queries)
    common, out = graph.of_several(min_users), {}
    for result in lists:
        number = graph.query_idx(result.query, result.query_id)
        found = 0 if number is None else int(clicks[number])
        name = result.query or result.query_id
        if min_users > 1 and common.query_idx(result.query, result.query_id) is None:
            name = f"(typed by fewer than {min_users} users)"
        elif graph.redact != "off":
            name = redacted(name)
        out[result.query_id] = QueryFacts(result.query_id, result.query, found, len(result.query.split()), name)
    return out


def group(grouping: Grouping, queries: Iterable[QueryFacts]) -> dict[str, list[str]]:
    """Query ids by group. Empty groups are left out."""
    members: dict[str, list[str]] = {name: [] for name in grouping.groups}
    for query in queries:
        members[grouping.of(query)].append(query.query_id)
    return {name: ids for name, ids in members.items() if ids}


def cell(values: Mapping[str, float], ids: Sequence[str], no_score: frozenset[str] = frozenset()) -> Cell:
    if no_score.issuperset(ids):
        return Cell(len(ids), None)
    own = np.array([values[query_id] for query_id in ids])
    return Cell(len(ids), float(own.mean()), *interval(own))
