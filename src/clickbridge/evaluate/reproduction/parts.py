"""The finished parts of a run, such as that of key 13-2, kept on a shelf."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from clickbridge.evaluate.reproduction.paper_table import Table, TableRow
from clickbridge.evaluate.reproduction.shelf import Shelf


@dataclass(frozen=True)
class Part:
    """The tables of one key, the claims that belong to it, and the processor time of both."""

    tables: list[Table]
    claims: list[TableRow]
    seconds: float


@dataclass
class Parts:
    """The parts on a shelf, by key."""

    shelf: Shelf = field(default_factory=Shelf)
    seconds: dict[str, float] = field(default_factory=dict)
    """Processor time by key, for all parts of the run so far, including those that were read from the shelf."""

    def read(self, key: str) -> Part | None:
        """A finished part; None if there is none, or if it belongs to another run."""
        kept = self.shelf.read(key)
        if kept is None:
            return None
        try:
            part = Part([_table(own) for own in kept["tables"]], [_row(own) for own in kept["claims"]], kept["seconds"])
        except (KeyError, TypeError) as error:
            raise self.shelf.unreadable(key) from error
        self.seconds[key] = part.seconds
        return part

    def add(self, key: str, part: Part) -> None:
        self.seconds[key] = part.seconds
        self.shelf.add(key, asdict(part))


def _table(kept: dict[str, Any]) -> Table:
    return Table(**{**kept, "columns": tuple(kept["columns"]), "rows": [_row(own) for own in kept["rows"]]})


def _row(kept: dict[str, Any]) -> TableRow:
    return TableRow(kept["label"], tuple(kept["ours"]), tuple(kept["paper"]))
