"""One event of the learner, normalised and checked: learn a page, undo a page, or forget all clicks.

Every input becomes an entry first. So everything that is written to disk can be learned, and nothing that was refused
is written. An entry has only what learning needs. Of a user it has a hash, and only if users have weights of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

import orjson

from clickbridge.errors import InputError
from clickbridge.io.secret import Secret
from clickbridge.log.clean import RecordError, clean_session
from clickbridge.models.catalogue import KnownQueries
from clickbridge.types import OPAQUE, Impression, edge_name, query_key, text_of_key

PAGE, UNDO, FORGET = "page", "undo", "forget"
PAGE_KEYS = ("query", "query_id", "results", "clicks", "user", "time")
MOST = 1e9
"""The largest amount: far more than any count of clicks, and far from where sums overflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    kind: str
    query: str = ""
    query_id: str | None = None
    results: tuple[str, ...] = ()
    clicks: tuple[str, ...] = ()
    """Of the results, those that were clicked."""
    user: int = 0
    """A hash; 0 where nobody is remembered."""
    time: float | None = None
    amount: float = 1.0
    since: int | None = None
    """The event from which on it fades; its own number where None."""
    of: int | None = None
    """The number of the event that an undo takes out, where it is known."""

    @property
    def key(self) -> str:
        return query_key(self.query, self.query_id)

    def to_json(self, number: int) -> bytes:
        """The entry as JSON, with its number. Fields with their default value are left out."""
        values = {name: value for name in NAMES if (value := getattr(self, name)) != DEFAULTS.get(name)}
        return orjson.dumps({"n": number, **values})


NAMES = [f.name for f in fields(Entry)]
DEFAULTS = {f.name: f.default for f in fields(Entry) if f.default is not MISSING}
KINDS: dict[str, tuple[type, ...]] = {
    "kind": (str,), "query": (str,), "query_id": (str,), "results": (list,), "clicks": (list,), "user": (int,),
    "time": (float, int), "amount": (float, int), "since": (int,), "of": (int,),
}  # fmt: skip


def from_json(text: bytes) -> tuple[int, Entry]:
    """The entry and its number; ValueError if the text is not an entry."""
    record = orjson.loads(text)
    if not isinstance(record, dict) or type(record.get("n")) is not int:
        raise ValueError("it has no number")
    number = record.pop("n")
    unknown = [name for name in record if name not in KINDS]
    if unknown:
        raise ValueError(f"it has {unknown[0]!r}, which this clickbridge does not know")
    for name, value in record.items():
        ids = isinstance(value, list) and not all(isinstance(doc_id, str) for doc_id in value)
        if type(value) not in KINDS[name] or ids:
            raise ValueError(f"its {name} is {value!r}")
        if isinstance(value, list):
            record[name] = tuple(value)
    if record.get("kind") not in (PAGE, UNDO, FORGET):
        raise ValueError(f"it is of the kind {record.get('kind')!r}")
    return number, Entry(**record)


def page_entry(
    page: Impression | Mapping[str, Any],
    amount: float = 1.0,
    *,
    known: KnownQueries,
    longest: int,
    secret: Secret | None = None,
    kind: str = PAGE,
    **more: Any,
) -> Entry:
    """A page in the form in which it is learned: the key of its query, ids as text, each once, the first `longest`
    results, and a hash of its user if there is a `secret`. Refuses what is not a page, and says why."""
    try:
        clean = clean_session(_record(page, known))
    except RecordError as error:
        raise InputError(f"a page cannot be learned: {error}") from None
    if clean.results is None:
        raise InputError("a page cannot be learned: it has no results; update takes clicks without a page")
    results = tuple(clean.results[:longest])
    there = set(results)
    try:
        "".join([clean.query, clean.query_id or "", *results]).encode()
    except UnicodeEncodeError:
        raise InputError("a page cannot be learned: its query or an id is not valid Unicode") from None
    return Entry(
        kind=kind,
        query=clean.query,
        # The text is the key; an id next to it would be stored without need.
        query_id=None if clean.query else clean.query_id,
        results=results,
        clicks=tuple(doc_id for doc_id in clean.clicks if doc_id in there),
        user=secret.user(clean.user) if secret is not None and clean.user else 0,
        time=clean.time,
        amount=check_amount(amount),
        **more,
    )


def _record(page: Any, known: KnownQueries) -> dict[str, Any]:
    if isinstance(page, Mapping):
        unknown = [str(name) for name in page if name not in PAGE_KEYS]
        if unknown:
            raise RecordError(f"it has {', '.join(map(repr, unknown))}; a page has {', '.join(PAGE_KEYS)}")
        record: dict[str, Any] = {name: page.get(name) for name in PAGE_KEYS}
    elif isinstance(page, Impression):
        record = {name: getattr(page, name) for name in PAGE_KEYS}
    else:
        raise RecordError(f"it is {page!r:.80}, not an Impression")
    for name in ("results", "clicks"):
        if isinstance(record[name], tuple):
            record[name] = list(record[name])
    query = record["query"]
    if isinstance(query, str) and query:
        # What was typed may be the id of a query without text; ids are compared exactly.
        key = known.key_of(query)
        record["query"] = text_of_key(key)
        if key.startswith(OPAQUE):
            record["query_id"] = edge_name(key)
    return record


def check_amount(amount: Any) -> float:
    # A NaN is not above 0 either.
    number = isinstance(amount, int | float) and not isinstance(amount, bool)
    if not number or not 0 < amount <= MOST:
        raise InputError(f"an amount is a number above 0 and up to {MOST:g}; got {amount!r}")
    return float(amount)


def check_number(number: Any, last: int) -> int:
    """Checks the number of an event."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= last:
        raise InputError(f"there is no event {number!r}: they are numbered from 1 to {last}")
    return number
