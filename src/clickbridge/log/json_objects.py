"""Reads JSON that is not one object per line: an array of objects, objects over several lines, or inside one object."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from clickbridge.errors import InputError
from clickbridge.io.streams import MAX_LINE

CHUNK = 1 << 18
_MARK = re.compile(rb'["{}\[\]]')
_TEXT_END = re.compile(rb'["\\]')
_ARRAY = re.compile(rb"\s*\[\s*(\{|\]\s*$)")
_WRAPPED = re.compile(rb'\s*\{\s*"[^"\\]{1,60}"\s*:\s*\[\s*\{')
_SPREAD = re.compile(rb'\s*\{\s*\n\s*"')


def nesting(head: bytes, first_is_whole: bool) -> int | None:
    """The nesting depth of the records: 1 in an array, 2 in an array inside an object, 0 if each spans several lines.
    None if each line is one record. `first_is_whole` tells that the first line is a record."""
    if _ARRAY.match(head):
        return 1
    if first_is_whole:
        return None
    if _WRAPPED.match(head):
        return 2
    return 0 if _SPREAD.match(head) else None


def json_objects(stream: BinaryIO, path: str, depth: int) -> Iterator[bytes]:
    """The objects at this nesting depth, each as bytes. The memory is that of one object."""
    data, at, level, start, in_text = b"", 0, 0, -1, False
    while True:
        found = (_TEXT_END if in_text else _MARK).search(data, at)
        if found is None or found.end() == len(data):
            # What is needed of the old chunk is the object that is open; a mark at its very end is read again.
            keep = start if start >= 0 else (found.start() if found else len(data))
            at = (found.start() if found else len(data)) - keep
            more = stream.read(CHUNK)
            if not more and found is None:
                break
            data, start = data[keep:] + more, 0 if start >= 0 else -1
            if len(data) > MAX_LINE + CHUNK:
                raise InputError(f"{path} has a record over {MAX_LINE >> 20} MiB: is a bracket left open?")
            if more:
                continue
            found = (_TEXT_END if in_text else _MARK).search(data, at)
            if found is None:
                break
        mark, at = found.group(), found.end()
        if in_text:
            if mark == b"\\":
                at += 1
            else:
                in_text = False
        elif mark == b'"':
            in_text = True
        elif mark in b"{[":
            if level == depth and mark == b"{":
                start = found.start()
            level += 1
        else:
            level -= 1
            if level == depth and start >= 0:
                yield data[start:at]
                start = -1
    if level > 0 or in_text:
        raise InputError(f"{path} is cut short: its last bracket is never closed")
