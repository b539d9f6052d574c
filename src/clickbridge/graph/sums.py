"""Sums the pairs of a set of events in memory.

`hold_back`, the removal of robots and `merge` sum repeatedly, over arrays that are already in memory, by a sort and a
few reductions. Ingest computes the same sums out of core (`log/pair_sums.py`); a test compares the two.
"""

from __future__ import annotations

import numpy as np

from clickbridge.graph.parts import Array, Clicks, Impressions, Pairs, time_or_nan, user_or_zero

DOC_BITS = 32
"""A pair is one number: the query in the upper bits, the document in the lower ones. Sorted, it is by query, then
document."""


def sum_pairs(impressions: Impressions | None, clicks: Clicks | None) -> Pairs:
    """The pairs that have a click or occur in a row of `clicks`, sorted by query, then document. Times are those of
    clicks; users are the different known users who clicked. Columns without any value are None."""
    parts = [part for part in (impressions, clicks) if part is not None]
    has_users = any(part.user is not None for part in parts)
    has_times = any(part.time is not None for part in parts)
    key, count, shown, time, user = _rows(impressions, clicks)
    order = np.lexsort((user, key)) if has_users else np.argsort(key, kind="stable")
    key, count, shown, time, user = (column[order] for column in (key, count, shown, time, user))
    new = np.diff(key, prepend=-1) != 0
    starts, pair = np.flatnonzero(new), np.cumsum(new) - 1
    keys = key[starts]
    n_shown = np.add.reduceat(shown, starts) if len(starts) else shown[:0]
    if impressions is not None:
        pages = np.sort(pair_keys(np.repeat(impressions.query, impressions.lists.lengths), impressions.doc))
        n_shown = n_shown + np.searchsorted(pages, keys, "right") - np.searchsorted(pages, keys, "left")
    clicked_at = np.where(count > 0, time, np.nan)
    return Pairs(
        (keys >> DOC_BITS).astype(np.int32),
        (keys & (2**DOC_BITS - 1)).astype(np.int32),
        np.add.reduceat(count, starts) if len(starts) else count[:0],
        n_shown,
        _distinct_users(pair, user, count, len(starts)) if has_users else None,
        _reduced(np.fmin, clicked_at, starts) if has_times else None,
        _reduced(np.fmax, clicked_at, starts) if has_times else None,
    )


def pair_keys(query: Array, doc: Array) -> Array:
    return (query.astype(np.int64) << DOC_BITS) | doc


def _rows(impressions: Impressions | None, clicks: Clicks | None) -> tuple[Array, ...]:
    """One row for everything that can make a pair: key, clicks, impressions of a table row, time and user. From pages
    only the clicked results are used: a result that was shown and never clicked makes no pair."""
    no_rows = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0, np.uint64))
    parts: list[tuple[Array, ...]] = [no_rows]
    if impressions is not None:
        rows = np.flatnonzero(impressions.clicked)
        page = np.searchsorted(impressions.indptr, rows, side="right") - 1
        parts.append(
            (
                pair_keys(impressions.query[page], impressions.doc[rows]),
                impressions.clicked[rows].astype(np.int64),
                np.zeros(len(rows), np.int64),
                time_or_nan(impressions)[page],
                user_or_zero(impressions)[page],
            )
        )
    if clicks is not None:
        stated = np.zeros(len(clicks)) if clicks.impressions is None else clicks.impressions
        parts.append(
            (
                pair_keys(clicks.query, clicks.doc),
                clicks.clicks.astype(np.int64),
                stated.astype(np.int64),
                time_or_nan(clicks),
                user_or_zero(clicks),
            )
        )
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _distinct_users(pair: Array, user: Array, count: Array, n_pairs: int) -> Array:
    """Rows are by pair, then user: a user counts where a new one begins. 0 stands for an unknown one."""
    known = (count > 0) & (user != 0)
    pair, user = pair[known], user[known]
    new = np.ones(len(pair), dtype=bool)
    new[1:] = (pair[1:] != pair[:-1]) | (user[1:] != user[:-1])
    return np.bincount(pair[new], minlength=n_pairs).astype(np.int32)


def _reduced(ufunc: np.ufunc, values: Array, starts: Array) -> Array:
    # fmin and fmax pass over NaN, the unknown time, and give it only where there is nothing else.
    out: Array = ufunc.reduceat(values, starts) if len(starts) else values[:0]
    return out
