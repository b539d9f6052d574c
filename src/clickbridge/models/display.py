"""What a MODEL stores for showing its results: a snippet of each document, fields to filter by, and which
queries several people typed. No model learns from it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from clickbridge.errors import InputError, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.people import has_users, users_by_query
from clickbridge.io.values import stored
from clickbridge.log.plain_text import BREAK
from clickbridge.models.change import Change
from clickbridge.types import Document
from clickbridge.views.fields import HEADINGS

Array = np.ndarray[Any, Any]
SNIPPET = 200
"""Characters of a snippet."""
SEVERAL = 2
"""A query that fewer people typed is not counted: nobody else is to see it."""
Filter = Mapping[str, frozenset[str]]
"""Values by field: a document matches if of every field it has one of the values."""
_TERM = re.compile(r'\s*([^\s:,|"]+)\s*:\s*((?:"[^"]*"|[^,|"]+)(?:\|(?:"[^"]*"|[^,|"]+))*)\s*(?:,|$)')


@stored
@dataclass(frozen=True, eq=False)
class Display:
    """Snippets and fields have one entry for each document of the catalogue. Each may be empty."""

    snippets: list[str] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)
    """Values to filter by; several of one document have line breaks between them."""
    queries: list[str] = field(default_factory=list)
    """Keys of queries that several people typed."""
    people: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """How many did."""
    knows_people: bool = False
    """Whether the log told one person from another."""

    @classmethod
    def of(cls, graph: ClickGraph) -> Display:
        text = next((name for name in graph.field_names if name not in HEADINGS), None)
        snippets = [] if text is None else [snippet(value) for value in graph.field(text)]
        queries, people = typed_by(graph)
        return cls(snippets, {}, queries, people, has_users(graph))

    def with_fields(self, graph: ClickGraph, names: Sequence[str]) -> Display:
        """A copy with fields of the documents to filter by."""
        check_fields(graph, names)
        return replace(self, fields={name: list(graph.field(name)) for name in names})

    def check(self, n_docs: int) -> None:
        """Raises ValueError if this does not have exactly this many documents."""
        columns = [self.snippets, *self.fields.values()]
        if any(len(column) not in (0, n_docs) for column in columns) or len(self.queries) != len(self.people):
            raise ValueError("what is shown of documents does not fit their number")

    def hides(self, min_users: int) -> Callable[[str], bool]:
        """Whether fewer people than required typed a query. Always False if the log has no users."""
        if min_users <= 1 or not self.knows_people:
            return lambda key: False
        people = dict(zip(self.queries, self.people.tolist(), strict=True))
        return lambda key: people.get(key, 1) < min_users

    def snippet(self, number: int) -> str:
        return self.snippets[number] if number < len(self.snippets) else ""

    def changed(self, change: Change) -> Display:
        """A copy after an update, with documents added, changed and removed."""

        def column(values: list[str], of: Any) -> list[str]:
            if not values:
                return values
            out = [v for v, kept in zip(values, change.kept, strict=True) if kept]
            out += [""] * (len(change.after) - len(out))
            for document in change.documents:
                out[change.after.numbers[document.doc_id]] = of(document)
            return out

        fields = {name: column(values, lambda d, n=name: d.fields.get(n, "")) for name, values in self.fields.items()}
        return replace(self, snippets=column(self.snippets, document_snippet), fields=fields)

    # --- filters ---------------------------------------------------------------------------------

    @cached_property
    def _numbers(self) -> dict[str, dict[str, Array]]:
        """The numbers of documents by field and value."""
        out: dict[str, dict[str, Array]] = {}
        for name, values in self.fields.items():
            lists: dict[str, list[int]] = defaultdict(list)
            for number, text in enumerate(values):
                for value in values_of(text):
                    lists[value].append(number)
            out[name] = {value: np.array(numbers, dtype=np.int64) for value, numbers in lists.items()}
        return out

    def matching(self, asked: Filter, n_docs: int) -> Array:
        """Which documents match a filter: a mask with one entry per document."""
        out = np.ones(n_docs, dtype=bool)
        for name, values in asked.items():
            if name not in self._numbers:
                kept = ", ".join(self.fields) or "none"
                raise InputError(
                    f"the model keeps no field {name!r} (it has {kept}): fit it with --filter-fields {name}"
                )
            own = np.zeros(n_docs, dtype=bool)
            for value in values:
                own[self._numbers[name].get(value, [])] = True
            out &= own
        return out


def check_fields(graph: ClickGraph, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in graph.field_names]
    if missing:
        there = ", ".join(graph.field_names) or "none"
        raise SettingError(f"no field {missing[0]!r} to filter by; the documents have {there}")


def typed_by(graph: ClickGraph) -> tuple[list[str], Array]:
    """Queries that several people typed, and by how many; empty if the log has no users."""
    people = users_by_query(graph)
    several = np.flatnonzero(people >= SEVERAL)
    return [graph.query_keys[i] for i in several.tolist()], people[several]


def parse_filter(text: str) -> dict[str, frozenset[str]]:
    """Parses a filter such as `category:games|toys,stock:yes`. A document must match every term, and for each term one
    of its values. Values in quotes may contain any character.

    >>> sorted(parse_filter('category:Games|"board, games"')["category"])
    ['board, games', 'games']
    """
    out: dict[str, frozenset[str]] = {}
    place = 0
    while place < len(text):
        found = _TERM.match(text, place)
        if found is None:
            raise InputError(f"a filter is field:value, such as category:games|toys,stock:yes; got {text[:100]!r}")
        words = re.findall(r'"([^"]*)"|([^|"]+)', found[2])
        values = frozenset((quoted or plain).strip().lower() for quoted, plain in words)
        name = found[1].lower()
        out[name] = out[name] & values if name in out else values
        place = found.end()
    return out


def values_of(text: str) -> Iterable[str]:
    """The values of a field, as filters compare them."""
    return (value.strip().lower() for value in text.split(BREAK))


def matches(fields: Mapping[str, str], asked: Filter) -> bool:
    """Whether a document matches a filter by the fields given with it."""
    return all(name in fields and not values.isdisjoint(values_of(fields[name])) for name, values in asked.items())


def document_snippet(document: Document) -> str:
    return snippet(next((text for name, text in document.fields.items() if name not in HEADINGS), ""))


def snippet(text: str) -> str:
    """The beginning of a text, cut at a word."""
    flat = " ".join(text[: 2 * SNIPPET].split())
    if len(flat) <= SNIPPET:
        return flat
    return flat[:SNIPPET].rsplit(" ", 1)[0] + " …"
