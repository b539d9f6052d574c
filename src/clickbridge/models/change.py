"""What an update changes, computed once for all parts of a model: clicks, and documents added, changed and removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from clickbridge.errors import InputError
from clickbridge.log.given import check_record, check_records, checked_document
from clickbridge.models.catalogue import Catalogue, KnownQueries
from clickbridge.types import Document, Impression, LogRecord, PairCount, as_id, check_ids, query_key

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Change:
    """`before` and `after` are the catalogues. `after` has the documents that were kept, in the same order, and then
    the new ones. `documents` are those with new text. `clicks` are by (query key, document id); clicks on removed
    documents are left out."""

    before: Catalogue
    after: Catalogue
    kept: Array
    documents: Sequence[Document]
    clicks: Counter[tuple[str, str]]
    records: Sequence[LogRecord]

    @classmethod
    def of(
        cls,
        before: Catalogue,
        known: KnownQueries,
        log: Iterable[LogRecord] = (),
        docs: Iterable[Document] = (),
        remove: Iterable[str] = (),
    ) -> Change:
        """A document in `remove` is removed even if the log or `docs` has it. If a document is given twice, the last
        one counts; `docs` count as later than the log."""
        check_records(log, docs)
        check_ids("remove", remove)
        gone = {as_id(doc_id) for doc_id in remove}
        records = [normalised(record, known) for record in log]
        given = [*(r for r in records if isinstance(r, Document)), *map(checked_document, docs)]
        documents = {d.doc_id: d for d in given if d.doc_id not in gone}
        clicks = Counter({p: n for p, n in count_clicks(records).items() if p[1] not in gone})
        kept = np.array([doc_id not in gone for doc_id in before.doc_ids], dtype=bool)
        if not (kept.any() or documents or clicks):
            raise InputError("the update removes every document: a model needs at least one")
        # A document that is only clicked on is one without text.
        named = (d for _, d in clicks if d not in before.numbers and d not in documents)
        bare = {d: Document(d) for d in named}
        arriving = [*documents.values(), *bare.values()]
        return cls(before, before.changed(kept, arriving), kept, arriving, clicks, records)

    @cached_property
    def new(self) -> list[Document]:
        """Documents that the model did not have."""
        numbers = self.before.numbers
        return [d for d in self.documents if d.doc_id not in numbers]

    @cached_property
    def changed(self) -> tuple[Array, list[Document]]:
        """Documents that the model had and that now have new text: their new numbers, and the documents."""
        found = [d for d in self.documents if d.doc_id in self.before.numbers]
        return self.after.items([d.doc_id for d in found]), found

    def merged(self, known: KnownQueries, lost: Array | None = None) -> KnownQueries:
        """Known queries with the new clicks counted. `lost` are clicks on documents that were removed."""
        clicks = known.clicks if lost is None else np.maximum(known.clicks - lost, 0)
        counts = dict(zip(known.keys, clicks.tolist(), strict=True))
        for (key, _), count in self.clicks.items():
            counts[key] = counts.get(key, 0) + count
        return replace(known, keys=list(counts), clicks=np.array(list(counts.values()), dtype=np.float64))


def normalised(record: LogRecord, known: KnownQueries) -> LogRecord:
    """Normalises the query of a record. `read_log` has done that already, but records made by hand may need it."""
    check_record(record)
    if isinstance(record, Document):
        return record
    query = known.key_of(record.query) if record.query else ""
    if query == record.query:
        return record
    if query[:1] == "\x1f":  # the id of a query without text
        return replace(record, query="", query_id=query[1:])
    return replace(record, query=query)


def count_clicks(records: Iterable[LogRecord]) -> Counter[tuple[str, str]]:
    """Clicks by (query key, document id)."""
    clicks: Counter[tuple[str, str]] = Counter()
    for record in records:
        if isinstance(record, PairCount):
            clicks[query_key(record.query, record.query_id), record.doc_id] += record.clicks
        elif isinstance(record, Impression):
            clicks.update((query_key(record.query, record.query_id), doc_id) for doc_id in record.clicks)
    return Counter({pair: count for pair, count in clicks.items() if count > 0})
