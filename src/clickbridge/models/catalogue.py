"""Numbers of documents and of known queries. All parts of a model share one catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from clickbridge.errors import InputError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.values import stored
from clickbridge.log.clean import MAX_QUERY, normalise_query
from clickbridge.log.personal import looks_personal, redacted
from clickbridge.types import OPAQUE, Document, as_id, edge_name
from clickbridge.views.fields import HEADINGS

Array = np.ndarray[Any, Any]
LONGEST_TITLE = 120


@stored
@dataclass(frozen=True, eq=False)
class Catalogue:
    """Ids and titles of documents. A document's number is its position."""

    doc_ids: list[str]
    titles: list[str]

    @classmethod
    def of(cls, graph: ClickGraph) -> Catalogue:
        return cls(graph.doc_ids, titles_of(graph))

    def __len__(self) -> int:
        return len(self.doc_ids)

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {doc_id: number for number, doc_id in enumerate(self.doc_ids)}

    def items(self, doc_ids: Sequence[str]) -> Array:
        """Numbers of documents; -1 for an unknown one."""
        number = self.numbers.get
        return np.fromiter((number(doc_id, -1) for doc_id in doc_ids), dtype=np.int64, count=len(doc_ids))

    def number(self, doc_id: str) -> int:
        found = self.numbers.get(as_id(doc_id))
        if found is None:
            raise InputError(f"no document {doc_id!r} in the model: check the id, or give a Document with its text")
        return found

    def title(self, doc_id: str) -> str:
        number = self.numbers.get(as_id(doc_id))
        return "" if number is None else self.titles[number]

    def named(self, number: int) -> str:
        """The name to show for a document: its title, or its id if it has none."""
        return self.titles[number] or self.doc_ids[number]

    def changed(self, keep: Array, documents: Iterable[Document]) -> Catalogue:
        """A copy without the documents that `keep` leaves out. New ones in `documents` are added at the end; the others
        get their new titles."""
        ids = [d for d, kept in zip(self.doc_ids, keep, strict=True) if kept]
        titles = [t for t, kept in zip(self.titles, keep, strict=True) if kept]
        place = {doc_id: number for number, doc_id in enumerate(ids)}
        for document in documents:
            if document.doc_id in place:
                titles[place[document.doc_id]] = title_of(document)
            else:
                place[document.doc_id] = len(ids)
                ids.append(document.doc_id)
                titles.append(title_of(document))
        return Catalogue(ids, titles)


@stored
@dataclass(frozen=True, eq=False)
class KnownQueries:
    """The queries of the log by their keys, and how many clicks each has."""

    keys: list[str]
    clicks: Array
    redact: bool = True
    """Whether a query that names a person is hidden from others."""

    @classmethod
    def none(cls) -> KnownQueries:
        return cls([], np.zeros(0))

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self.keys)}

    def number(self, key: str) -> int:
        """A query's number by its key; -1 for an unknown one."""
        return self.numbers.get(key, -1)

    def key_of(self, query: str) -> str:
        """A query's key from what was typed: its normalised text. If no query has that text, but a query without text
        has it as its id, the key is that id. Ids are compared exactly."""
        if not isinstance(query, str):
            raise InputError(f"a query must be text; got {query!r}")
        if query.startswith(OPAQUE):
            return query
        # No log holds a longer one, and a page of words must not take seconds.
        query = query[:MAX_QUERY]
        key = normalise_query(query)
        by_id = OPAQUE + query.strip()
        return by_id if key not in self.numbers and by_id in self.numbers else key

    def joined(self, others: Sequence[KnownQueries]) -> KnownQueries:
        """The queries of all arguments together; the same object if all are equal."""
        if all(other is self or other.keys == self.keys for other in others):
            return self
        clicks: dict[str, float] = {}
        for known in (self, *others):
            clicks.update(zip(known.keys, known.clicks.tolist(), strict=True))
        redact = any(known.redact for known in (self, *others))
        return KnownQueries(list(clicks), np.array(list(clicks.values())), redact)

    @cached_property
    def _personal(self) -> Array:
        return np.fromiter(map(looks_personal, self.keys), dtype=bool, count=len(self))

    def may_be_shown(self, min_clicks: int = 1) -> Array:
        """Which queries of the log may be shown to other people."""
        enough: Array = self.clicks >= min_clicks
        return enough & ~self._personal if self.redact else enough

    def shown(self, number: int) -> str:
        """A query as it may be shown to other people."""
        name = edge_name(self.keys[number])
        return redacted(name) if self.redact else name

    def nearest(self, found: Iterable[tuple[int, float]], k: int, min_clicks: int = 1) -> list[tuple[str, float]]:
        """The names of the first k queries found that may be shown."""
        allowed = self.may_be_shown(min_clicks)
        return [(edge_name(self.keys[i]), value) for i, value in islice(((i, v) for i, v in found if allowed[i]), k)]


def heading_of(names: Iterable[str]) -> str | None:
    """The name of the field that serves as a document's title."""
    available = set(names)
    return next((name for name in HEADINGS if name in available), None)


def shown(text: str) -> str:
    return text[:LONGEST_TITLE].split("\n")[0]


def title_of(document: Document) -> str:
    """The title to show next to a document's id."""
    return shown(_first_text(document.fields))


def _first_text(fields: Mapping[str, str]) -> str:
    named = (fields.get(name) for name in HEADINGS)
    return next((text for text in named if text), next(iter(fields.values()), ""))


def titles_of(graph: ClickGraph) -> list[str]:
    """The title to show next to each document's id: its title, name or heading, or else its first field."""
    names: list[str] = [name for name in HEADINGS if name in graph.field_names]
    names += [name for name in graph.field_names if name not in names]
    out = [""] * graph.n_docs
    for name in names[:4]:
        if all(out):
            break
        out = [have or shown(text) for have, text in zip(out, graph.field(name), strict=True)]
    return out
