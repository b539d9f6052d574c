"""JSON records out of whatever an engine, its export or a browser wraps them in.

One record a line (NDJSON); bulk bodies, where a line that says what to do stands before each record; index exports with
`_source`; whole search responses; and one JSON value over many lines, an object or an array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import orjson

from clickbridge.errors import InputError
from clickbridge.io.streams import MAX_LINE, lines
from clickbridge.log.rejects import RejectLog

ACTIONS = ("index", "create", "update", "delete")
BULK_NAMES = frozenset(("_index", "_id", "_type", "routing", "pipeline", "require_alias", "op_type", "version"))


def event_records(path: str, stream: BinaryIO, rejects: RejectLog) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of a file, each with its line; what is not JSON is a reject."""
    for number, value in _values(path, stream, rejects):
        for record in _unwrapped(value):
            rejects.lines += 1
            if type(record) is dict:
                yield number, record
            else:
                rejects.add(path, number, "an event must be a JSON object")


def first_records(head: bytes, most: int = 20) -> list[dict[str, Any]]:
    """The records at the start of a file, as far as they are whole."""
    text = head.removeprefix(b"\xef\xbb\xbf").strip()
    found: list[dict[str, Any]] = []
    whole = _loaded(text)
    for value in [whole] if whole is not None else map(_loaded, text.splitlines()[:most]):
        found += [record for record in _unwrapped(value) if type(record) is dict][: most - len(found)]
    return found


def _values(path: str, stream: BinaryIO, rejects: RejectLog) -> Iterator[tuple[int, Any]]:
    """JSON values: one a line or, where the first line is not one by itself, one over all lines."""
    numbered = ((number, line.strip()) for number, line in enumerate(lines(stream, path), 1))
    numbered = ((number, line) for number, line in numbered if line)
    for number, line in numbered:
        value = _loaded(line)
        if value is not None:
            yield number, value
        elif _begins_more(line):
            yield from _whole(path, number, line, numbered, rejects)
        else:
            rejects.lines += 1
            rejects.add(path, number, "not JSON")


def _begins_more(line: bytes) -> bool:
    """Whether a line that is no JSON by itself begins a value over many lines."""
    return line in (b"{", b"[", b"[{")


def _whole(
    path: str, first: int, head: bytes, rest: Iterator[tuple[int, bytes]], rejects: RejectLog
) -> Iterator[tuple[int, Any]]:
    parts, size = [head], len(head)
    for _, line in rest:
        parts.append(line)
        size += len(line)
        if size > MAX_LINE:
            raise InputError(f"{path} is one JSON value over {MAX_LINE >> 20} MiB: write one record a line (NDJSON)")
    try:
        yield first, orjson.loads(b"\n".join(parts))
    except orjson.JSONDecodeError as error:
        rejects.lines += 1
        rejects.add(path, first, f"not JSON: {error.msg}")


def _unwrapped(value: Any) -> Iterator[Any]:
    """The records inside of a JSON value."""
    if type(value) is list:
        for item in value:
            yield from _unwrapped(item)
    elif type(value) is not dict:
        if value is not None:
            yield value
    elif type(value.get("_source")) is dict:
        yield value["_source"]
    elif type(value.get("hits")) is dict and type(value["hits"].get("hits")) is list:
        yield from _unwrapped(value["hits"]["hits"])
    elif not _is_bulk_action(value):
        yield value


def _is_bulk_action(value: Mapping[str, Any]) -> bool:
    if len(value) != 1:
        return False
    ((name, target),) = value.items()
    return name in ACTIONS and type(target) is dict and set(target) <= BULK_NAMES


def _loaded(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
