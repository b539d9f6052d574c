"""Click events of hosted search services: Algolia Insights, Meilisearch, Typesense.

The events of Algolia and Meilisearch have only the id of a search. Its text is in the search response, which therefore
has to be in the log, too: `{"query", "queryID", "hits": [{"objectID"}]}`, or
`{"query", "hits", "metadata": {"queryUid", "primaryKey"}}`. The events of Typesense have the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clickbridge.log.clean import RecordError, clean_id, clean_ids, event_time, kind_of
from clickbridge.log.searches import Action, Search, first_of, kind_of_action, text_of_query, token

MILLISECONDS = 1e-3
Events = list[Search | Action]


def is_algolia(record: Mapping[str, Any]) -> bool:
    events = record.get("events")
    inner = events[0] if type(events) is list and events and type(events[0]) is dict else record
    return "objectIDs" in inner or ("queryID" in record and "hits" in record)


def read_algolia(record: Any) -> Events:
    """Reads an event, a batch of them, or a search response. Positions start at 1."""
    _check(record)
    batch = _list(record, "events") if "events" in record else [record]
    return [event for inner in batch for event in _algolia(inner)]


def _algolia(record: Any) -> Events:
    _check(record)
    if "hits" in record:
        hits = [hit.get("objectID") if type(hit) is dict else hit for hit in _list(record, "hits")]
        return [
            Search(
                clean_id(record.get("queryID"), "queryID"), text_of_query(record.get("query")), clean_ids(hits, "hits")
            )
        ]
    kind = kind_of_action(record.get("eventSubtype") or record.get("eventType"))
    if kind is None:
        return []
    ids = clean_ids(_list(record, "objectIDs"), "objectIDs")
    places = [] if record.get("positions") is None else _list(record, "positions")
    return [
        Action(
            kind, token(record.get("queryID"), "queryID"), doc_id, user=first_of(record, "userToken"),
            time=event_time(record.get("timestamp"), MILLISECONDS),
            ordinal=_place(places[n] if n < len(places) else None),
        )
        for n, doc_id in enumerate(ids)
    ]  # fmt: skip


def is_meilisearch(record: Mapping[str, Any]) -> bool:
    about = record.get("metadata")
    searched = type(about) is dict and "queryUid" in about
    return searched or ("eventType" in record and ("indexUid" in record or "queryUid" in record))


def read_meilisearch(record: Any) -> Events:
    """Reads an event or a search response. Positions start at 0."""
    _check(record)
    about = record.get("metadata")
    if type(about) is dict and "hits" in record:
        key = about.get("primaryKey") or "id"
        if type(key) is not str:
            raise RecordError(f"primaryKey must be text, got {kind_of(key)}")
        hits = [hit.get(key) if type(hit) is dict else hit for hit in _list(record, "hits")]
        return [
            Search(
                clean_id(about.get("queryUid"), "queryUid"), text_of_query(record.get("query")), clean_ids(hits, "hits")
            )
        ]
    kind = kind_of_action(record.get("eventType"))
    if kind is None:
        return []
    place = _place(record.get("position"))
    return [
        Action(
            kind, token(record.get("queryUid"), "queryUid"), clean_id(record.get("objectId"), "objectId"),
            user=first_of(record, "userId"), time=event_time(record.get("timestamp"), MILLISECONDS),
            ordinal=None if place is None else place + 1,
        )
    ]  # fmt: skip


def is_typesense(record: Mapping[str, Any]) -> bool:
    data = record.get("data")
    return type(data) is dict and ("doc_id" in data or "doc_ids" in data) and ("name" in record or "type" in record)


def read_typesense(record: Any) -> Events:
    """Reads an analytics event. Each is a search of its own, with the text it contains."""
    _check(record)
    data = record.get("data")
    if type(data) is not dict:
        raise RecordError(f"data must be a JSON object, got {kind_of(data)}")
    if not data.get("q"):
        raise RecordError("data.q is missing: the event does not say what was searched")
    # An event has the name of its rule; its type, if it has one, tells what happened.
    kind = kind_of_action(record.get("type") or record.get("event_type") or "click")
    if kind is None:
        return []
    ids = [data["doc_id"]] if "doc_id" in data else _list(data, "doc_ids")
    return [
        Action(
            kind, None, doc_id, text_of_query(data["q"]), first_of(data, "user_id"),
            event_time(record.get("timestamp"), MILLISECONDS),
        )
        for doc_id in clean_ids(ids, "doc_ids")
    ]  # fmt: skip


def _check(record: Any) -> None:
    if type(record) is not dict:
        raise RecordError(f"an event must be a JSON object, got {kind_of(record)}")


def _list(record: Mapping[str, Any], name: str) -> list[Any]:
    value = record.get(name)
    if type(value) is not list:
        raise RecordError(f"{name} must be a list, got {kind_of(value)}")
    return value


def _place(value: Any) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not 0 <= value < 2**31:
        raise RecordError(f"a position must be a whole number, got {kind_of(value)}")
    return value
