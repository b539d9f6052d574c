"""A folder of JSON files of one run. Files of another run, with other data or dimensions, are ignored.

If a long run is killed, the same run in the same folder finds its finished parts and continues from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from clickbridge.errors import InputError
from clickbridge.io.files import written_aside


@dataclass(frozen=True)
class Shelf:
    """`run` is everything that the figures depend on. Without a folder nothing is kept."""

    folder: Path | None = None
    run: Mapping[str, Any] = field(default_factory=dict)

    def read(self, name: str) -> dict[str, Any] | None:
        """The stored content; None if there is none, or if it belongs to another run."""
        path = self._path(name)
        if path is None or not path.is_file():
            return None
        try:
            kept: dict[str, Any] = orjson.loads(path.read_bytes())
            return kept if kept["run"] == orjson.loads(orjson.dumps(self.run)) else None
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise self.unreadable(name) from error

    def add(self, name: str, content: Mapping[str, Any]) -> None:
        path = self._path(name)
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_aside(path) as file:
            file.write(orjson.dumps({"run": self.run, **content}, option=orjson.OPT_SERIALIZE_NUMPY))

    def unreadable(self, name: str) -> InputError:
        return InputError(f"{self._path(name)} is not a part that reproduce wrote: remove it to make it again")

    def _path(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{name}.json"
