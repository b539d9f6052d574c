"""Events in the store: a result page with its clicks, or an undo of one.

An event has only a hash of the user. A page is checked and normalised before it becomes an event, so that everything in
the store can be learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from clickbridge.errors import InputError
from clickbridge.io.secret import Secret
from clickbridge.log.clean import RecordError, clean_session
from clickbridge.types import Impression

UNDO = "\x1fundo "
"""Prefix of the id of an undo. No id from outside can begin with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    event_id: str
    query: str = ""
    query_id: str | None = None
    """The id of a query without text."""
    results: tuple[str, ...] | None = None
    clicks: tuple[str, ...] = ()
    user: int = 0
    """A hash; 0 if the user is unknown."""
    time: float | None = None
    undoes: str | None = None
    """The id of the event that this one undoes."""
    page: str | None = None
    """The id of the answer that was shown, if it came from this service."""
    seq: int = 0
    """Its number among all events, from 1. It gets one when it is stored."""

    def to_json(self) -> bytes:
        """The fields without a column of their own."""
        values = {"r": self.results, "c": self.clicks, "t": self.time, "i": self.query_id, "p": self.page}
        return orjson.dumps({name: value for name, value in values.items() if value is not None})

    @classmethod
    def from_row(cls, seq: int, event_id: str, query: str, user: int, body: bytes) -> Event:
        values = orjson.loads(body)
        results = values.get("r")
        return cls(
            event_id=event_id,
            query=query,
            query_id=values.get("i"),
            results=None if results is None else tuple(results),
            clicks=tuple(values.get("c", ())),
            user=user % (1 << 64),
            time=values.get("t"),
            undoes=event_id.removeprefix(UNDO) if event_id.startswith(UNDO) else None,
            page=values.get("p"),
            seq=seq,
        )

    @property
    def impression(self) -> Impression:
        """The page as a record of a log."""
        results = None if self.results is None else list(self.results)
        return Impression(self.query, results, list(self.clicks), self.query_id, time=self.time)


def page_event(event_id: str, record: dict[str, Any], secret: Secret, page: str | None = None) -> Event:
    """An event from a page, cleaned by the same rules as logs, with its user hashed. Raises InputError if it is not a
    page."""
    try:
        clean = clean_session(record)
    except RecordError as error:
        raise InputError(str(error)) from None
    return Event(
        event_id=event_id,
        query=clean.query,
        query_id=None if clean.query else clean.query_id,
        results=None if clean.results is None else tuple(clean.results),
        clicks=tuple(clean.clicks),
        user=secret.user(clean.user) if clean.user else 0,
        time=clean.time,
        page=page,
    )


def undo_event(event_id: str) -> Event:
    return Event(event_id=UNDO + event_id, undoes=event_id)
