"""Preference pairs of result pages: which document was preferred to which, by rules about clicks and ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
SKIP_ABOVE, SKIP_NEXT, LAST_CLICK, CLICKED = 0, 1, 2, 3


@kernel
def _prefers(rule, i, j, last):  # type: ignore[no-untyped-def]
    """Whether the clicked position i was preferred to the unclicked position j. `last` is the last clicked position."""
    if rule == SKIP_ABOVE:
        return j < i
    if rule == SKIP_NEXT:
        return j == i + 1
    if rule == LAST_CLICK:
        return i == last and j < i
    return True


@kernel
def _pairs_of_pages(indptr, clicked, rule, better, worse):  # type: ignore[no-untyped-def]
    """Writes the positions of every pair to `better` and `worse`. If these are empty, only counts the pairs."""
    n = 0
    fill = len(better) > 0
    for page in range(len(indptr) - 1):
        start, stop = indptr[page], indptr[page + 1]
        last = -1
        for i in range(start, stop):
            if clicked[i]:
                last = i
        if last < 0:
            continue
        for i in range(start, stop):
            if not clicked[i]:
                continue
            for j in range(start, stop):
                if not clicked[j] and _prefers(rule, i, j, last):
                    if fill:
                        better[n], worse[n] = i, j
                    n += 1
    return n


def pairs_of_pages(indptr: Array, clicked: Array, rule: int) -> tuple[Array, Array]:
    """Positions in `clicked` of the preferred document and of the other one, for every pair, page by page."""
    none = np.empty(0, dtype=np.int64)
    n = _pairs_of_pages(indptr, clicked, rule, none, none)
    better, worse = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    if n:
        _pairs_of_pages(indptr, clicked, rule, better, worse)
    return better, worse
