"""Parts of a run that are done: what a key such as 13-2 gave, kept in a folder as JSON.

A run of hours that was killed goes on where it stood: the same run in the same folder reads its parts. What is part of
another run, of other data or dimensions, is made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from clickbridge.errors import InputError
from clickbridge.evaluate.reproduction.paper_table import Table, TableRow
from clickbridge.io.files import written_aside


@dataclass(frozen=True)
class Part:
    """The tables of one key, the claims that belong to it, and the processor time of both."""

    tables: list[Table]
    claims: list[TableRow]
    seconds: float


@dataclass
class Parts:
    """`run` is all that the figures depend on. Without a folder nothing is kept."""

    folder: Path | None = None
    run: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    """Of all parts of the run so far, those that were read too."""

    def read(self, key: str) -> Part | None:
        """None where there is none, or one of another run."""
        path = self._path(key)
        if path is None or not path.is_file():
            return None
        try:
            kept = orjson.loads(path.read_bytes())
            if kept["run"] != orjson.loads(orjson.dumps(self.run)):
                return None
            part = Part([_table(own) for own in kept["tables"]], [_row(own) for own in kept["claims"]], kept["seconds"])
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise InputError(f"{path} is not a part that reproduce wrote: remove it to make it again") from error
        self.seconds += part.seconds
        return part

    def add(self, key: str, part: Part) -> None:
        self.seconds += part.seconds
        path = self._path(key)
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_aside(path) as file:
            file.write(orjson.dumps({"run": self.run, **asdict(part)}, option=orjson.OPT_SERIALIZE_NUMPY))

    def _path(self, key: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{key}.json"


def _table(kept: dict[str, Any]) -> Table:
    return Table(**{**kept, "columns": tuple(kept["columns"]), "rows": [_row(own) for own in kept["rows"]]})


def _row(kept: dict[str, Any]) -> TableRow:
    return TableRow(kept["label"], tuple(kept["ours"]), tuple(kept["paper"]))
