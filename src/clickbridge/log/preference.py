"""Preference pairs from clicks: for a query, one document was preferred to another (Joachims 2002).

From result pages, by rule:

    skip-above   a clicked document over every unclicked one above it
    skip-next    a clicked document over the unclicked one right below it
    last-click   the last clicked document over every unclicked one above it
    clicked      a clicked document over every unclicked one: for pages in a meaningless order
    counts       no pages needed: the more clicked of two documents of a query over the other

`auto` uses `counts` if there are no pages, `clicked` if clicks do not depend on the rank, and otherwise `skip-above`.
Pages are read in blocks and equal pairs are counted. Of two opposite pairs the more frequent one is kept, with the
difference as its count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from clickbridge.errors import MissingPart, SettingError
from clickbridge.numerics.preference import CLICKED, LAST_CLICK, SKIP_ABOVE, SKIP_NEXT, pairs_of_pages
from clickbridge.numerics.ragged import Ragged

Array = np.ndarray[Any, Any]
PAGE_RULES = {"skip-above": SKIP_ABOVE, "skip-next": SKIP_NEXT, "last-click": LAST_CLICK, "clicked": CLICKED}
RULES = ("auto", *PAGE_RULES, "counts")
BLOCK_PAGES = 50_000
ORDERED = 1.5
"""Pages are taken for ordered when their upper half draws this many times the clicks of their lower half."""


class Pages(Protocol):
    """Result pages: page i showed `doc[indptr[i]:indptr[i + 1]]` for `query[i]`."""

    @property
    def query(self) -> Array: ...
    @property
    def indptr(self) -> Array: ...
    @property
    def doc(self) -> Array: ...
    @property
    def clicked(self) -> Array: ...


class PairClicks(Protocol):
    """Query-document pairs with clicks, by query."""

    @property
    def query(self) -> Array: ...
    @property
    def doc(self) -> Array: ...
    @property
    def clicks(self) -> Array: ...


@dataclass(frozen=True)
class Preferences:
    """`better[i]` was preferred to `worse[i]` for `query[i]`, `count[i]` times more often than the other way round.
    They are sorted by query. `rule` is the rule by which they were found, `opposed` the number of observations that
    cancelled out."""

    query: Array
    better: Array
    worse: Array
    count: Array
    rule: str
    opposed: int = 0

    def __len__(self) -> int:
        return len(self.query)

    def at_least(self, count: int) -> Preferences:
        """Only the preferences that were seen at least this many times."""
        return self.only(self.count >= count)

    def only(self, keep: Array) -> Preferences:
        """Some of them."""
        columns = (self.query[keep], self.better[keep], self.worse[keep], self.count[keep])
        return Preferences(*columns, self.rule, self.opposed)


def preferences(pages: Pages | None, counts: PairClicks | None = None, rule: str = "auto") -> Preferences:
    """The preference pairs of a log."""
    if rule not in RULES:
        raise SettingError(f"preference must be one of {', '.join(RULES)}; got {rule!r}")
    if rule == "auto":
        rule = choose_rule(pages)
    if rule == "counts":
        if counts is None:
            raise MissingPart("preferences by counts need clicked pairs: build the GRAPH from a log with clicks")
        return _settled(*_count_pairs(counts), rule)
    if pages is None:
        raise MissingPart(
            f"preference {rule} needs result pages: build the GRAPH from a log with results, or use counts"
        )
    code, n_pages = PAGE_RULES[rule], len(pages.query)
    blocks = [_distinct(*_block_pairs(pages, start, min(start + BLOCK_PAGES, n_pages), code))
              for start in range(0, n_pages, BLOCK_PAGES)]  # fmt: skip
    empty = tuple(np.empty(0, dtype=np.int64) for _ in range(4))
    query, better, worse, count = (np.concatenate(column) for column in zip(empty, *blocks, strict=True))
    return _settled(query, better, worse, count, rule)


def choose_rule(pages: Pages | None) -> str:
    """The rule that `auto` chooses."""
    if pages is None or not len(pages.query):
        return "counts"
    return "skip-above" if order_effect(pages) >= ORDERED else "clicked"


def order_effect(pages: Pages) -> float:
    """The clicks on the upper half of the pages divided by those on the lower half. Shuffled pages give about 1."""
    lists = Ragged(pages.indptr)
    length, place = lists.lengths, lists.places
    half = np.repeat(length // 2, length)
    on = pages.clicked.astype(bool)
    # The middle place of an odd page belongs to neither half.
    upper = np.count_nonzero(on & (place < half))
    lower = np.count_nonzero(on & (place >= np.repeat(length, length) - half))
    return (upper + 1) / (lower + 1)


def contradicted(found: Preferences, grades: Mapping[tuple[int, int], float]) -> dict[str, float]:
    """Compares the preferences with judgments (grades by query and document number): of the pairs whose documents are
    both judged for the query, how many agree, tie and contradict. Each pair counts once."""
    agree = tie = against = 0
    for query, better, worse in zip(found.query.tolist(), found.better.tolist(), found.worse.tolist(), strict=True):
        one, two = grades.get((query, better)), grades.get((query, worse))
        if one is not None and two is not None:
            agree, tie, against = agree + (one > two), tie + (one == two), against + (one < two)
    decided = agree + against
    share = against / decided if decided else float("nan")
    return {"judged": agree + tie + against, "agree": agree, "tie": tie, "contradict": against, "share": share}


def _block_pairs(pages: Pages, start: int, stop: int, rule: int) -> tuple[Array, Array, Array, Array]:
    first, last = int(pages.indptr[start]), int(pages.indptr[stop])
    indptr = np.asarray(pages.indptr[start : stop + 1]) - first
    better, worse = pairs_of_pages(indptr, np.asarray(pages.clicked[first:last]), rule)
    page = np.searchsorted(indptr, better, side="right") - 1
    doc = np.asarray(pages.doc[first:last], dtype=np.int64)
    query = np.asarray(pages.query[start:stop], dtype=np.int64)
    return query[page], doc[better], doc[worse], np.ones(len(better), dtype=np.int64)


def _count_pairs(counts: PairClicks) -> tuple[Array, Array, Array, Array]:
    """For each query, every document over every less clicked one. The count is the difference of their clicks."""
    columns: list[tuple[Array, Array, Array, Array]] = []
    starts = np.flatnonzero(np.diff(counts.query, prepend=-1))
    for start, stop in pairwise([*starts.tolist(), len(counts.query)]):
        clicks = counts.clicks[start:stop].astype(np.int64)
        more, less = np.nonzero(clicks[:, None] > clicks[None, :])
        doc = counts.doc[start:stop].astype(np.int64)
        query = np.full(len(more), counts.query[start], dtype=np.int64)
        columns.append((query, doc[more], doc[less], clicks[more] - clicks[less]))
    empty = tuple(np.empty(0, dtype=np.int64) for _ in range(4))
    query, better, worse, count = (np.concatenate(column) for column in zip(empty, *columns, strict=True))
    return query, better, worse, count


def _distinct(query: Array, better: Array, worse: Array, count: Array) -> tuple[Array, Array, Array, Array]:
    """Adds up equal pairs. They are sorted by query, better, worse."""
    order = np.lexsort((worse, better, query))
    query, better, worse, count = query[order], better[order], worse[order], count[order]
    new = np.ones(len(query), dtype=bool)
    new[1:] = (np.diff(query) != 0) | (np.diff(better) != 0) | (np.diff(worse) != 0)
    starts = np.flatnonzero(new)
    return query[starts], better[starts], worse[starts], np.add.reduceat(count, starts) if len(starts) else count[:0]


def _settled(query: Array, better: Array, worse: Array, count: Array, rule: str) -> Preferences:
    """Subtracts opposite pairs from each other. What is left is a preference."""
    low, high = np.minimum(better, worse), np.maximum(better, worse)
    signed = np.where(better == low, count, -count)
    seen = int(count.sum())
    query, low, high, signed = _distinct(query, low, high, signed)
    left = signed != 0
    query, low, high, signed = query[left], low[left], high[left], signed[left]
    better, worse = np.where(signed > 0, low, high), np.where(signed > 0, high, low)
    order = np.lexsort((worse, better, query))
    columns = (query[order], better[order], worse[order], np.abs(signed)[order])
    return Preferences(*columns, rule, seen - int(np.abs(signed).sum()))
