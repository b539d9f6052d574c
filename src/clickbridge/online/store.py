"""Where a learner writes its events down before they count: a file (entry_file.py), or memory alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from clickbridge.online.entry import Entry

REMEMBERED = 1000
"""Events that can be undone by their number where no journal keeps them all."""


class Store(Protocol):
    """Where events are written down before they count."""

    durable: bool

    def write(self, entries: Sequence[tuple[int, Entry]]) -> None:
        """All of them, or an error and none."""
        ...

    def entry(self, number: int) -> Entry | None:
        """An event that was written down, as long as it is kept."""
        ...

    def give_up(self) -> None:
        """What was written last may not have been learned: nothing more may be written."""
        ...


class Recent:
    """The last events, in memory alone."""

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
        """There is no record that memory could disagree with."""
