"""The arrays of a GRAPH by part. Every part is a set of equally long columns; absent columns are None."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from clickbridge.io.artifact import Artifact, PartWriter

Array = np.ndarray[Any, Any]
Part = TypeVar("Part", "Pairs", "Impressions", "Clicks")


@dataclass(frozen=True)
class Pairs:
    """Query-document pairs by query, then document."""

    query: Array
    doc: Array
    clicks: Array
    impressions: Array
    users: Array | None = None
    first: Array | None = None
    last: Array | None = None

    def __len__(self) -> int:
        return len(self.query)


@dataclass(frozen=True)
class Impressions:
    """Result pages: page i showed `doc[indptr[i]:indptr[i + 1]]`, in that order."""

    query: Array
    indptr: Array
    doc: Array
    clicked: Array
    time: Array | None = None
    user: Array | None = None

    def __len__(self) -> int:
        return len(self.query)

    def take(self, keep: Array) -> Impressions:
        """The pages where `keep` is true."""
        length = np.diff(self.indptr)
        shown = np.repeat(keep, length)
        return Impressions(
            self.query[keep],
            np.concatenate([[0], np.cumsum(length[keep], dtype=np.int64)]),
            self.doc[shown],
            self.clicked[shown],
            None if self.time is None else self.time[keep],
            None if self.user is None else self.user[keep],
        )

    def without_clicks(self, drop: Array) -> Impressions:
        """The same pages with the clicks of the pages in `drop` removed."""
        clicked = np.where(np.repeat(drop, np.diff(self.indptr)), 0, self.clicked).astype(np.uint8)
        return Impressions(self.query, self.indptr, self.doc, clicked, self.time, self.user)


@dataclass(frozen=True)
class Clicks:
    """Clicks that no result page in the log accounts for, with their time or user; `impressions` is how often
    a row of a table says the document was shown."""

    query: Array
    doc: Array
    clicks: Array
    time: Array | None = None
    user: Array | None = None
    impressions: Array | None = None

    def __len__(self) -> int:
        return len(self.query)

    def take(self, keep: Array) -> Clicks:
        return Clicks(*(None if v is None else v[keep] for v in columns(self).values()))  # type: ignore[arg-type]


def columns(part: Pairs | Impressions | Clicks) -> dict[str, Array | None]:
    return {f.name: getattr(part, f.name) for f in fields(part)}


def write_part(writer: PartWriter, name: str, part: Pairs | Impressions | Clicks) -> None:
    for column, values in columns(part).items():
        if values is not None:
            writer.array(f"{name}.{column}", values)


def read_part(artifact: Artifact, name: str, kind: type[Part]) -> Part | None:
    if f"{name}.query" not in artifact:
        return None
    present = (f.name for f in fields(kind) if f"{name}.{f.name}" in artifact)
    return kind(**{column: artifact.array(f"{name}.{column}") for column in present})
