"""Processes many lists, a few at a time."""

from __future__ import annotations

from collections.abc import Callable

from clickbridge.engines.base import Engine
from clickbridge.models.candidates import Candidates
from clickbridge.numerics.threads import over_rows

LISTS_AT_ONCE = 64


def over_lists(lists: Candidates, engine: Engine | None, work: Callable[[int, int], None]) -> None:
    """Calls `work(start, stop)` for a few lists at a time, in order. The numbers of all lists at once would not fit
    into the processor's cache or, for a long log, into memory."""

    def run(start: int, stop: int) -> None:
        for first in range(start, stop, LISTS_AT_ONCE):
            work(first, min(first + LISTS_AT_ONCE, stop))

    over_rows(len(lists), engine, run, smallest=LISTS_AT_ONCE)
