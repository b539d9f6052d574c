"""Reads OpenSearch User Behavior Insights 1.3: one raw query or event becomes a Search or an Action.

The schema is https://o19s.github.io/ubi (query.request and event). Real logs differ from it, and so does the sample in
the specification. These variants are accepted, too:

- `query_response_object_ids`, as OpenSearch 2.18 wrote it, for `query_response_hit_ids`;
- an empty `client_id`, no `timestamp` of a query, `position: {}`, offsets as `+0000`;
- a query inside of a search request: `ext.ubi` of OpenSearch, `params` of Solr.

An event without `user_query` gets it from the query of its `query_id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clickbridge.errors import shown
from clickbridge.log.clean import RecordError, clean_id, clean_ids, event_time, kind_of
from clickbridge.log.searches import Action, Search, first_of, kind_of_action, moment, text_of_query, token

HITS = ("query_response_hit_ids", "query_response_object_ids")
OWN = frozenset(
    (*HITS, "query_id", "client_id", "query_response_id", "query_attributes", "object_id_field", "application")
)
"""Names of a UBI query, one of which is beside `user_query`, a name that other logs use too."""


def read_ubi(record: Any) -> Search | Action | None:
    """Reads a query or an event; None for an event that does not concern a result (leaving a page, opening a
    filter)."""
    if type(record) is not dict:
        raise RecordError(f"a UBI record must be a JSON object, got {kind_of(record)}")
    if "action_name" in record:
        return ubi_event(record)
    return ubi_query(record)


def is_ubi(record: Mapping[str, Any]) -> bool:
    """Whether a record is a UBI query or event."""
    fields = _query_fields(record)
    return "action_name" in record or ("user_query" in fields and (fields is not record or not OWN.isdisjoint(record)))


def ubi_query(record: Mapping[str, Any]) -> Search:
    """A record of `ubi_queries`, or a search request with UBI in it."""
    fields = _query_fields(record)
    if "user_query" not in fields:
        raise RecordError("neither action_name (an event) nor user_query (a query)")
    hits = next((fields[name] for name in HITS if fields.get(name) is not None), None)
    return Search(
        token(fields.get("query_id"), "query_id"),
        text_of_query(fields["user_query"]),
        None if hits is None else clean_ids(hits, "query_response_hit_ids"),
        first_of(fields, "client_id", "user_id", "session_id"),
        event_time(fields.get("timestamp"), 1e-3),
        ids_named=bool(fields.get("object_id_field")),
    )


def ubi_event(record: Mapping[str, Any]) -> Action | None:
    """A record of `ubi_events`; None if its action does not concern a result."""
    kind = kind_of_action(record.get("action_name"))
    if kind is None:
        return None
    attributes = _table(record, "event_attributes")
    thing, position = _table(attributes, "object"), _table(attributes, "position")
    doc_id = token(thing.get("object_id"), "object_id")
    ordinal = position.get("ordinal")
    if ordinal is not None and (type(ordinal) is not int or not 0 <= ordinal < 2**31):
        raise RecordError(f"position.ordinal must be a whole number from 0 on, got {shown(ordinal)}")
    if doc_id is None and ordinal is None:
        raise RecordError(f"a {kind} without event_attributes.object.object_id and without a position")
    internal = thing.get("internal_id")
    return Action(
        kind,
        token(record.get("query_id"), "query_id"),
        doc_id,
        text_of_query(record.get("user_query")),
        first_of(record, "client_id", "user_id", "session_id"),
        moment(record.get("timestamp"), 1e-3),
        ordinal,
        None if internal in (None, "") else clean_id(internal, "internal_id"),
    )


def _query_fields(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a query, which are in the record or inside the search request."""
    ext, params = record.get("ext"), record.get("params")
    if type(ext) is dict and type(ext.get("ubi")) is dict:
        return ext["ubi"]
    if type(params) is dict and "ubi" in params:
        return params
    return record


def _table(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = record.get(name)
    if value is None:
        return {}
    if type(value) is not dict:
        raise RecordError(f"{name} must be a JSON object, got {kind_of(value)}")
    return value
