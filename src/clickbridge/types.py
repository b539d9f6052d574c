"""The records that cross layers. Ids are text at the edges; integers exist only inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(slots=True)
class Impression:
    """One result page: a query, what was shown (None: unknown), what was clicked.

    `query` is the normalised text; an empty one means the query is known by `query_id` alone.
    `clicks` names each clicked document once.
    """

    query: str
    results: list[str] | None
    clicks: list[str]
    query_id: str | None = None
    user: str | None = None
    time: float | None = None


@dataclass(slots=True)
class PairCount:
    """One row of a `triples` log: a query, a document, how often it was clicked (and shown)."""

    query: str
    doc_id: str
    clicks: int = 1
    impressions: int | None = None
    query_id: str | None = None
    user: str | None = None
    time: float | None = None


@dataclass(slots=True)
class Document:
    """A document: its id, its text by field, and dense vectors by name where it brings some."""

    doc_id: str
    fields: Mapping[str, str] = field(default_factory=dict)
    vectors: Mapping[str, Sequence[float]] | None = None


@dataclass(slots=True)
class Reject:
    """A line of the input that was left out, and why."""

    source: str
    line: int
    reason: str


class Hit(NamedTuple):
    doc_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Ranking(Sequence[Hit]):
    """Documents by falling score; may be empty. Behaves like a list of (doc_id, score)."""

    hits: tuple[Hit, ...] = ()

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        return self.hits[i]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @property
    def doc_ids(self) -> list[str]:
        return [hit.doc_id for hit in self.hits]


@dataclass(frozen=True, slots=True)
class FeaturePair:
    """A query feature and a document feature that met in the latent space, and what that was worth."""

    query_feature: str
    doc_feature: str
    contribution: float
    share: float
    taught_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """A score as a sum over feature pairs; `pairs` are the strongest, `rest` is all others together."""

    query: str
    doc_id: str
    score: float
    pairs: tuple[FeaturePair, ...]
    rest: float


@dataclass(slots=True)
class ResultList:
    """One line of a LISTS file: a query with the results to re-rank, their grades and their scores."""

    query_id: str
    query: str
    results: list[str]
    labels: list[float] | None = None
    scores: list[float] | None = None
    vectors: Mapping[str, Sequence[float]] | None = None


OPAQUE = "\x1f"
"""Prefix of the key of a query that has no text: normalised text can never contain it."""


def query_key(query: str, query_id: str | None) -> str:
    """A query's identity: its normalised text; where there is none, its id as one opaque token."""
    return query or OPAQUE + (query_id or "")


def text_of_key(key: str) -> str:
    """The text of a query; empty for one known by its id alone."""
    return "" if key.startswith(OPAQUE) else key


def edge_name(key: str) -> str:
    """How a query is called outside: by its text, or by its id where it has none."""
    return key.removeprefix(OPAQUE)
