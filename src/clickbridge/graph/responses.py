"""How much a pair's clicks count for a model: thresholds, robots, recency, and the response.

The GRAPH keeps everything; these are settings of `fit`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from clickbridge.errors import InputError, MissingPart
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.parts import Array, Pairs, time_or_nan
from clickbridge.graph.rank_effect import longest_page, position_model, shown_pairs
from clickbridge.graph.sums import pair_keys
from clickbridge.log.bias import LEAST_EXAMINED, expected_clicks, ranks
from clickbridge.wording import count_of

DAY = 86400.0
UNBIASED = ("coec", "pbm", "ips")
"""Responses that take the rank's part out of clicks."""


@dataclass(frozen=True)
class Responses:
    """`matrix` has a row for each query and a column for each document. `notes` are lines for the user."""

    matrix: sparse.csr_array
    notes: list[str] = field(default_factory=list)


def responses(
    graph: ClickGraph,
    *,
    min_clicks: int = 1,
    min_users: int = 1,
    response: str = "clicks",
    half_life: float = 0.0,
    max_clicks_per_user: int = 0,
) -> Responses:
    notes: list[str] = []
    if max_clicks_per_user:
        graph, note = without_robots(graph, max_clicks_per_user)
        notes.append(note)
    pairs = graph.pairs
    keep, dropped = kept_pairs(pairs, min_clicks, min_users)
    notes += dropped
    response = "pbm" if response == "debiased" else response
    if response in UNBIASED and graph.impressions is None:
        cannot = f"response {response} needs result pages"
        notes.append(f"{cannot}, and the log has none: plain clicks are used")
        response = "clicks"
    if response in UNBIASED:
        values, said = unbiased_clicks(graph, response, half_life)
        notes.append(said)
    else:
        values = weighed_clicks(graph, half_life) if half_life else pairs.clicks.astype(np.float64)
    # log(1 + t), not log t: a single click must count.
    values = np.log1p(values) if response == "log" else values
    # 11M, eq. (1), to the letter: log 1 = 0, so a pair of one click drops out.
    values = np.log(np.maximum(values, 1.0)) if response == "log-t" else values
    if response == "log-t" and not values[keep].any():
        raise InputError("response log-t is 0 for a pair of one click, and no pair has more; use response=log")
    return Responses(graph.matrix(rows="queries", values=np.where(keep, values, 0.0)), notes)


def kept_pairs(pairs: Pairs, min_clicks: int = 1, min_users: int = 1) -> tuple[Array, list[str]]:
    """Which pairs the thresholds keep, and a line for the user if they drop over half of the clicks."""
    keep = pairs.clicks >= min_clicks
    limits = [f"min_clicks {min_clicks}"]
    if min_users > 1:
        if pairs.users is None:
            raise MissingPart(
                "min_users needs users in the log: ingest one with a user or session, or use --min-users 1"
            )
        keep &= pairs.users >= min_users
        limits.append(f"min_users {min_users}")
    total, kept = int(pairs.clicks.sum()), int(pairs.clicks[keep].sum())
    clicked = int(np.count_nonzero(pairs.clicks))
    if not kept:
        if not clicked:
            raise InputError(
                "no click is left to learn from: build the GRAPH from a log with clicks, raise max_clicks_per_user if "
                "it is set, or use a model of text such as bm25"
            )
        remedy = "--min-clicks 1" + (" --min-users 1" if min_users > 1 else "")
        raise InputError(f"{' and '.join(limits)} keeps 0 of {count_of(clicked, 'pair')}; try {remedy}")
    dropped = f"{' and '.join(limits)} drops {count_of(total - kept, 'click', of=total)}"
    return keep, [dropped] if kept < total / 2 else []


def without_robots(graph: ClickGraph, max_clicks: int) -> tuple[ClickGraph, str]:
    """The GRAPH without the clicks of users who clicked more than `max_clicks` times in all."""
    pages, singles = graph.impressions, graph.clicks
    has_users = any(part is not None and part.user is not None for part in (pages, singles))
    if not has_users:
        raise MissingPart("max_clicks_per_user needs users in the log: ingest one with a user or session")
    users: list[Array] = []
    clicks: list[Array] = []
    if pages is not None and pages.user is not None:
        users.append(pages.user)
        clicks.append(pages.lists.sums(pages.clicked))
    if singles is not None and singles.user is not None:
        users.append(singles.user)
        clicks.append(singles.clicks)
    who, number = np.unique(np.concatenate(users), return_inverse=True)
    counts = np.bincount(number, weights=np.concatenate(clicks))
    robots = who[(counts > max_clicks) & (who != 0)]
    if pages is not None and pages.user is not None:
        pages = pages.without_clicks(np.isin(pages.user, robots))
    if singles is not None and singles.user is not None:
        singles = singles.take(~np.isin(singles.user, robots))
    left_out = f"left out as robots: {count_of(len(robots), 'user')} with more than {count_of(max_clicks, 'click')}"
    return graph.with_events(pages, singles), left_out


def weighed_clicks(graph: ClickGraph, half_life: float, worth: Array | None = None) -> Array:
    """For each pair, the sum over its clicks of 2^-(age in days / half_life), where the newest event has age 0. `worth`
    gives the value of each shown result instead of its click."""
    events: list[tuple[Array, Array, Array]] = []
    pages, singles = graph.impressions, graph.clicks
    if half_life and not graph.has_times:
        raise MissingPart("half_life needs times in the log: ingest one that has them, or leave --half-life out")
    if pages is not None:
        counts = pages.clicked.astype(np.float64) if worth is None else worth
        on = counts > 0
        length = pages.lists.lengths
        key = pair_keys(np.repeat(pages.query, length), pages.doc)
        events.append((key[on], np.repeat(time_or_nan(pages), length)[on], counts[on]))
    if singles is not None:
        events.append((pair_keys(singles.query, singles.doc), time_or_nan(singles), singles.clicks.astype(np.float64)))
    keys, times, counts = (np.concatenate(column) for column in zip(*events, strict=True))
    place, n_pairs = np.searchsorted(pair_keys(graph.pairs.query, graph.pairs.doc), keys), len(graph.pairs)
    if not half_life:
        return np.bincount(place, weights=counts, minlength=n_pairs)
    newest = np.max(times, where=np.isfinite(times), initial=-np.inf)
    # A click of unknown time counts in full.
    age = np.where(np.isfinite(times), newest - times, 0.0) / DAY
    return np.bincount(place, weights=counts * np.exp2(-age / half_life), minlength=n_pairs)


def unbiased_clicks(graph: ClickGraph, response: str, half_life: float) -> tuple[Array, str]:
    """The clicks of each pair, corrected for position bias, and a line for the user that shows the effect of the rank.

    - `coec`: clicks divided by expected clicks, which are the mean click rates of the pair's ranks. One expected click
      is added, so that a pair with one lucky click does not count much.
    - `pbm`: the number of pages on which the document attracted the user, by the position-based model: its clicks, and
      the pages on which it may have been attractive but was not looked at.
    - `ips`: every click divided by P(examined | rank), but counted ten times at most.

    Each is scaled so that the total stays the number of clicks.
    """
    pages = graph.impressions
    assert pages is not None
    clicked, indptr = pages.clicked.astype(bool), pages.indptr
    key, longest = shown_pairs(pages), longest_page(pages)
    model = position_model(pages, key)
    if response == "ips":
        worth = np.where(clicked, 1.0 / np.maximum(model.examined, LEAST_EXAMINED)[ranks(indptr)], 0.0)
    elif response == "pbm":
        known = np.isin(key, key[clicked])
        worth = np.where(known, model.attracted, 0.0)
    else:
        worth = clicked.astype(np.float64)
    total = float(worth.sum())
    values = weighed_clicks(graph, half_life, worth * (np.count_nonzero(clicked) / total) if total else worth)
    if response == "coec":
        expected = expected_clicks(indptr, clicked, longest)
        place = np.searchsorted(pair_keys(graph.pairs.query, graph.pairs.doc), key)
        place = np.minimum(place, len(graph.pairs) - 1)
        mine = pair_keys(graph.pairs.query, graph.pairs.doc)[place] == key
        due = np.bincount(place[mine], expected[mine], minlength=len(graph.pairs))
        values = values / (due + 1.0)
        values *= float(graph.pairs.clicks.sum()) / (float(values.sum()) or 1.0)
    curve = " ".join(f"{share:.2f}" for share in model.examined[:10])
    first = min(longest, 10)
    return values, f"response {response}: chance that ranks 1 to {first} are looked at, relative to rank 1: {curve}"


@dataclass(frozen=True)
class ClickedQueries:
    """The queries with a response: their numbers in the GRAPH, keys, clicks and rows."""

    numbers: Array
    keys: list[str]
    clicks: Array
    matrix: sparse.csr_array


def clicked_queries(graph: ClickGraph, matrix: sparse.csr_array) -> ClickedQueries:
    numbers = np.flatnonzero(np.diff(matrix.indptr))
    clicks = np.bincount(graph.pairs.query, graph.pairs.clicks, minlength=graph.n_queries)
    keys = [graph.query_keys[int(i)] for i in numbers]
    return ClickedQueries(numbers, keys, clicks[numbers], sparse.csr_array(matrix[numbers], dtype=np.float32))
