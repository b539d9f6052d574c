"""Unwraps JSON records from what an engine, its export or a browser puts around them.

These are bulk bodies, with an action line before each record; index exports with `_source`; whole search responses; and
arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

ACTIONS = ("index", "create", "update", "delete")
BULK_NAMES = frozenset(("_index", "_id", "_type", "routing", "pipeline", "require_alias", "op_type", "version"))


def unwrapped(value: Any) -> Iterator[Any]:
    """The records inside a JSON value, at any depth."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if type(value) is list:
            waiting += reversed(value)
        elif type(value) is not dict:
            if value is not None:
                yield value
        elif type(value.get("_source")) is dict:
            yield value["_source"]
        elif type(value.get("hits")) is dict and type(value["hits"].get("hits")) is list:
            waiting.append(value["hits"]["hits"])
        elif not _is_bulk_action(value):
            yield value


def is_wrapped(value: Any) -> bool:
    """Whether a JSON object is something other than a record."""
    return type(value) is dict and next(unwrapped(value), None) is not value


def _is_bulk_action(value: Mapping[str, Any]) -> bool:
    if len(value) != 1:
        return False
    ((name, target),) = value.items()
    return name in ACTIONS and type(target) is dict and set(target) <= BULK_NAMES
