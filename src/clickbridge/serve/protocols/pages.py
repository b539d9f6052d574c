"""Turns searches and actions of other systems into pages and events of the store.

These systems send them separately: first what was shown, later each action. A search is kept under its own id as long
as actions may refer to it. Every click on it becomes an event.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from clickbridge.io.secret import Secret
from clickbridge.log.searches import Action, Search
from clickbridge.serve.events import Event
from clickbridge.serve.service import Service
from clickbridge.serve.store import Shown


@dataclass
class Batch:
    """The content of one request: searches to keep, and clicks."""

    system: str
    """The name of the system. It keeps ids of different systems, and of our own answers, separate."""
    pages: dict[str, Shown] = field(default_factory=dict)
    clicks: list[tuple[str, Action]] = field(default_factory=list)
    """Clicks with their ids."""
    received: int = 0

    def key(self, search_id: str) -> str:
        return f"{self.system}:{search_id}"

    def add(self, record: Mapping[str, Any], event: Search | Action | None) -> None:
        self.received += 1
        if isinstance(event, Search) and event.search_id is not None and event.query:
            key = self.key(event.search_id)
            self.pages[key] = Shown(key, event.query, tuple(event.results or ()))
        elif isinstance(event, Action) and event.kind == "click":
            self.clicks.append((self.event_id(record), event))

    def event_id(self, record: Mapping[str, Any]) -> str:
        """The id of a record, or one computed from its content, so that a repeated record has the same id."""
        own = record.get("id")
        if isinstance(own, str | int) and not isinstance(own, bool) and 0 < len(str(own)) <= 200:
            return self.key(str(own))
        digest = hashlib.sha256(orjson.dumps(record, option=orjson.OPT_SORT_KEYS)).hexdigest()
        return self.key(f"#{digest[:32]}")

    def events(self, known: Mapping[str, Shown], secret: Secret) -> list[Event]:
        """Events of the clicks, with their pages. A click without a known page and without a query is ignored."""
        found = [self._event(event_id, action, known, secret) for event_id, action in self.clicks]
        return [event for event in found if event is not None]

    def _event(self, event_id: str, action: Action, known: Mapping[str, Shown], secret: Secret) -> Event | None:
        key = None if action.search_id is None else self.key(action.search_id)
        page = None if key is None else self.pages.get(key) or known.get(key)
        query = page.query if page is not None else action.query
        doc_id = action.doc_id or (_at(page.results, action.ordinal) if page is not None else None)
        if not query or doc_id is None:
            return None
        return Event(
            event_id=event_id,
            query=query,
            results=page.results if page is not None and page.results else None,
            clicks=(doc_id,),
            user=secret.user(action.user) if action.user else 0,
            time=action.time,
            page=key if page is not None else None,
        )

    def asked_for(self) -> list[str]:
        """Pages that clicks refer to and that are not in this request."""
        named = {self.key(action.search_id) for _, action in self.clicks if action.search_id is not None}
        return sorted(named - set(self.pages))


def _at(results: Sequence[str], ordinal: int | None) -> str | None:
    """The document at a position, from 1."""
    return results[ordinal - 1] if ordinal is not None and 1 <= ordinal <= len(results) else None


async def keep_batch(service: Service, batch: Batch) -> tuple[int, int]:
    """Stores a batch. Returns how many events are new, and how many were already stored."""
    events = batch.events(await service.shown_pages(batch.asked_for()), service.store.secret)
    kept = await service.keep(events, list(batch.pages.values()))
    return kept.accepted, kept.duplicates
