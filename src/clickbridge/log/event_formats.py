"""The event logs that can be read, and how to recognise them by their first records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clickbridge.log.hosted_search import (
    is_algolia,
    is_meilisearch,
    is_typesense,
    read_algolia,
    read_meilisearch,
    read_typesense,
)
from clickbridge.log.metarank import is_metarank, read_metarank
from clickbridge.log.searches import Action, Search
from clickbridge.log.ubi import is_ubi, read_ubi
from clickbridge.types import Document

Event = Search | Action | Document | None
READ: dict[str, Callable[[Any], Event | list[Search | Action]]] = {
    "ubi": read_ubi, "metarank": read_metarank, "algolia": read_algolia, "meilisearch": read_meilisearch,
    "typesense": read_typesense,
}  # fmt: skip
_IS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "metarank": is_metarank, "ubi": is_ubi, "algolia": is_algolia, "meilisearch": is_meilisearch,
    "typesense": is_typesense,
}  # fmt: skip


def event_format(records: Sequence[Mapping[str, Any]]) -> str | None:
    """The format of most of the records; None if it is not an event log.

    >>> event_format([{"action_name": "click", "query_id": "7", "timestamp": "2026-01-31T10:00:00Z"}])
    'ubi'
    >>> event_format([{"query": "ny pizza", "clicks": ["d1"]}]) is None
    True
    """
    votes = {name: sum(is_one(record) for record in records) for name, is_one in _IS.items()}
    best = max(votes, key=lambda name: votes[name])
    return best if 2 * votes[best] > len(records) else None
