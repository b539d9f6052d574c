"""Where a learner writes its events before they count: a file (entry_file.py), or memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from clickbridge.online.entry import Entry

REMEMBERED = 1000
"""Events that can be undone by their number where no journal keeps them all."""


class Store(Protocol):
    """Where events are written before they count."""

    durable: bool

    def write(self, entries: Sequence[tuple[int, Entry]]) -> None:
        """Writes all events. If that fails, an error is raised and none is written."""
        ...

    def entry(self, number: int) -> Entry | None:
        """An event that was written, if it is still kept."""
        ...

    def give_up(self) -> None:
        """Called when the last events were written but may not have been learned. Nothing more may be written."""
        ...


class Recent:
    """Keeps the last events in memory."""

    durable = False

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}

    def write(self, entries: Sequence[tuple[int, Entry]]) -> None:
        self._entries.update(entries)
        while len(self._entries) > REMEMBERED:
            del self._entries[next(iter(self._entries))]

    def entry(self, number: int) -> Entry | None:
        return self._entries.get(number)

    def give_up(self) -> None:
        """Nothing to do: there is no file that could differ from what was learned."""
