"""Reads Metarank events: one raw event becomes a Search, an Action or a Document.

A `ranking` is a search with its results; its field `query` is the query. An `interaction` names its ranking, and counts
within thirty minutes of it, as in Metarank. An `item` has the text of a document. A `user` event is not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from clickbridge.log.clean import RecordError, clean_id, clean_ids, kind_of
from clickbridge.log.plain_text import BREAK, field_text, without_html
from clickbridge.log.searches import Action, Search, first_of, kind_of_action, moment, text_of_query, token
from clickbridge.types import Document

EVENTS = ("item", "user", "ranking", "interaction")
WINDOW = 30 * 60.0
MILLISECONDS = 1e-3


def read_metarank(record: Any) -> Search | Action | Document | None:
    """Reads one event; None for a user, and for an interaction that does not concern a result."""
    if type(record) is not dict:
        raise RecordError(f"an event must be a JSON object, got {kind_of(record)}")
    event = record.get("event")
    if event == "ranking":
        return metarank_ranking(record)
    if event == "interaction":
        return metarank_interaction(record)
    if event == "item":
        return metarank_item(record)
    if event == "user":
        return None
    raise RecordError(f"event must be one of {', '.join(EVENTS)}; got {kind_of(event)}")


def is_metarank(record: Mapping[str, Any]) -> bool:
    """Whether a record is a Metarank event."""
    return record.get("event") in EVENTS and "timestamp" in record


def metarank_ranking(record: Mapping[str, Any]) -> Search:
    """A `ranking` event, which is also the body of a rank request."""
    time = moment(record.get("timestamp"), MILLISECONDS)
    items = record.get("items")
    if type(items) is not list:
        raise RecordError(f"items must be a list, got {kind_of(items)}")
    query = next((value for name, value in _fields(record) if name == "query"), None)
    return Search(
        clean_id(record.get("id"), "id"),
        text_of_query(" ".join(query) if is_texts(query) else query),
        clean_ids([item.get("id") if type(item) is dict else item for item in items], "items"),
        first_of(record, "user", "session"),
        time,
        until=time + WINDOW,
    )


def metarank_interaction(record: Mapping[str, Any]) -> Action | None:
    """An `interaction` event; None if its type does not concern a result."""
    kind = kind_of_action(record.get("type"))
    if kind is None:
        return None
    return Action(
        kind,
        token(record.get("ranking"), "ranking"),
        clean_id(record.get("item"), "item"),
        user=first_of(record, "user", "session"),
        time=moment(record.get("timestamp"), MILLISECONDS),
    )


def metarank_item(record: Mapping[str, Any]) -> Document:
    """An `item` event: its text fields."""
    fields: dict[str, str] = {}
    for name, value in _fields(record):
        text, field = field_text(name, value), name.lower()
        text = None if text is None else without_html(text)
        if text and field not in ("", "doc_id"):
            fields[field] = fields[field] + BREAK + text if field in fields else text
    return Document(clean_id(record.get("item"), "item"), fields)


def _fields(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    fields = record.get("fields")
    if fields is None:
        return
    if type(fields) is not list:
        raise RecordError(f"fields must be a list of names and values, got {kind_of(fields)}")
    for field in fields:
        if type(field) is not dict or type(field.get("name")) is not str:
            raise RecordError("a field must be an object with name and value")
        yield field["name"], field.get("value")


def is_texts(value: Any) -> TypeGuard[list[str]]:
    return type(value) is list and all(type(item) is str for item in value)
