"""Reads JSON with a limited nesting depth. Python cannot compare or print values nested deeper than its stack, so any
use of such a value could raise an unexpected error."""

from __future__ import annotations

from typing import Any

import orjson

MOST_NESTED = 100


def parse_json(text: bytes | str) -> Any:
    """A JSON value. Raises `orjson.JSONDecodeError` if it is not JSON, or nested too deeply.

    >>> parse_json('{"query": "ny pizza"}')
    {'query': 'ny pizza'}
    """
    value = orjson.loads(text)
    brackets = text.count(b"[") + text.count(b"{") if isinstance(text, bytes) else text.count("[") + text.count("{")
    if brackets > MOST_NESTED and _is_deep(value):
        raise orjson.JSONDecodeError(f"nested more than {MOST_NESTED} deep", "", 0)
    return value


def _is_deep(value: Any) -> bool:
    level: list[Any] = [[value]]
    for _ in range(MOST_NESTED + 1):
        inside = (item.values() if type(item) is dict else item for item in level)
        level = [item for items in inside for item in items if type(item) in (dict, list)]
    return bool(level)
