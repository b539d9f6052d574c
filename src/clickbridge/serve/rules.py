"""Pins and blocks: the documents that an editor wants first for a query, or never. They are in a file with one rule per
line, which is read again when it changes:

    {"query": "ny pizza", "pin": ["d2", "d7"], "block": ["d9"]}
    {"query": "*", "block": ["d13"]}
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from clickbridge.errors import InputError
from clickbridge.io.json_text import parse_json
from clickbridge.log.clean import RecordError, clean_ids, normalise_query
from clickbridge.serve.answers import Ordered

EVERY = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    pin: tuple[str, ...] = ()
    block: frozenset[str] = frozenset()


class Rules:
    """The rules of a file. If the file cannot be read, the earlier rules stay."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self._stamp: tuple[int, int] | None = None
        self._rules: dict[str, Rule] = {}
        if self._path is not None:
            self.reload()

    def __bool__(self) -> bool:
        return bool(self._rules)

    def reload(self) -> None:
        """Reads the file again if it has changed."""
        if self._path is None:
            return
        try:
            found = self._path.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            self._rules = read_rules(self._path)
        except OSError as error:
            raise InputError(f"{self._path} cannot be read: {error.strerror}") from None

    def apply(self, query: str, ordered: Ordered, available: Container[str] | None = None) -> Ordered:
        """Removes blocked documents and puts pinned ones first. A pinned document that is not in the list is added if
        it is `available`."""
        if not self._rules:
            return ordered
        own, every = self._rules.get(normalise_query(query), Rule()), self._rules.get(EVERY, Rule())
        blocked = own.block | every.block
        scores = {doc_id: score for doc_id, score in ordered if doc_id not in blocked}
        there = (d for d in own.pin if d in scores or (available is not None and d in available and d not in blocked))
        first = dict.fromkeys(there)
        rest = [(doc_id, score) for doc_id, score in scores.items() if doc_id not in first]
        return [*((doc_id, scores.get(doc_id)) for doc_id in first), *rest]


def read_rules(path: Path) -> dict[str, Rule]:
    out: dict[str, Rule] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            query, rule = _rule(parse_json(line))
        except (orjson.JSONDecodeError, RecordError) as error:
            raise InputError(f"{path}, line {number}: {error}; a rule is {{query, pin, block}}") from None
        before = out.get(query, Rule())
        out[query] = Rule((*before.pin, *rule.pin), before.block | rule.block)
    return out


def _rule(record: Any) -> tuple[str, Rule]:
    if type(record) is not dict or type(record.get("query")) is not str or not record["query"].strip():
        raise RecordError("no query")
    pin, block = (tuple(clean_ids(record.get(name, []), name)) for name in ("pin", "block"))
    query = record["query"].strip()
    if query == EVERY and pin:
        raise RecordError("a pin is for one query")
    return query if query == EVERY else normalise_query(query), Rule(pin, frozenset(block))
