"""The arrays of a GRAPH by part. Every part is a set of equally long columns; absent columns are None."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from clickbridge.numerics.ragged import Ragged

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Pairs:
    """Query-document pairs, sorted by query, then document."""

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

    @property
    def lists(self) -> Ragged:
        """The shape of the pages: a list for each page, a row for each shown document. It is not cached, since its
        arrays are as long as the log, and this part may be on disk."""
        return Ragged(self.indptr)

    def take(self, keep: Array) -> Impressions:
        """The pages where `keep` is true."""
        lists = self.lists
        shown = lists.kept_rows(keep)
        return Impressions(
            self.query[keep],
            lists.take(keep).indptr,
            self.doc[shown],
            self.clicked[shown],
            None if self.time is None else self.time[keep],
            None if self.user is None else self.user[keep],
        )

    def without_clicks(self, drop: Array) -> Impressions:
        """A copy without the clicks of the pages in `drop`."""
        clicked = np.where(self.lists.kept_rows(drop), 0, self.clicked).astype(np.uint8)
        return replace(self, clicked=clicked)


@dataclass(frozen=True)
class Clicks:
    """Clicks without a result page, with their time or user. `impressions` is how often the document was shown,
    according to a row of a table."""

    query: Array
    doc: Array
    clicks: Array
    time: Array | None = None
    user: Array | None = None
    impressions: Array | None = None

    def __len__(self) -> int:
        return len(self.query)

    def take(self, keep: Array) -> Clicks:
        return Clicks(**{name: None if v is None else v[keep] for name, v in columns(self).items()})  # type: ignore[arg-type]


def columns(part: Pairs | Impressions | Clicks) -> dict[str, Array | None]:
    return {f.name: getattr(part, f.name) for f in fields(part)}


def time_or_nan(part: Impressions | Clicks) -> Array:
    return np.full(len(part), np.nan) if part.time is None else part.time


def user_or_zero(part: Impressions | Clicks) -> Array:
    return np.zeros(len(part), dtype=np.uint64) if part.user is None else part.user
