"""Turns tables of shown results, and plain event logs, into searches and actions. `event_join.py` makes result pages of
them.

If a row does not name its search, rows of the same person, session and query form one page, until a document is
repeated, a position does not increase or, without positions, the time changes. An event without a query text belongs to
the latest search with its `query_id`, or to the latest search of its session or user, which results shown with a query
can stand for. What people do before they search says nothing about a query: it is counted, and no reason to refuse a
log. A log in which time mostly goes backwards within sessions is refused where events depend on their order.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from clickbridge.errors import InputError
from clickbridge.log.clean import RecordError, clean_id, clean_ids, clean_query, clean_user, event_time, time_scale
from clickbridge.log.page_rows import flag, page_row
from clickbridge.log.recognise import Layout
from clickbridge.log.searches import Action, Search, event_kind, tells_of_search
from clickbridge.log.time_formats import read_time
from clickbridge.types import OPAQUE
from clickbridge.wording import agree, count_of

MOST_OPEN = 100_000
"""Pages that may go on: of rows that are further apart, a page becomes two."""
OUT_OF_ORDER = "is the log in the order of time?"


@dataclass
class _Page:
    """A page that may get more rows."""

    key: str
    query: str
    time: float | None
    searched: bool = False
    """Whether an event of its own told of the search, and not its results alone."""
    place: float = float("-inf")
    documents: set[str] = field(default_factory=set)


class RowEvents:
    """Makes searches and actions from rows, in the order of the log. Events that are neither are counted."""

    def __init__(self, layout: Layout, lists_as_text: bool) -> None:
        self._path, self._events = layout.path, layout.format == "events"
        self._scale, self._form = time_scale(layout.time_unit), layout.time_format
        self._lists_as_text = lists_as_text
        self._has_places = "position" in layout.columns
        self._open: OrderedDict[tuple[str, str, str], _Page] = OrderedDict()
        self._last: OrderedDict[str, _Page] = OrderedDict()
        self._by_id: OrderedDict[str, _Page] = OrderedDict()
        self._by_name: OrderedDict[str, _Page] = OrderedDict()
        self._pages = 0
        self._others: Counter[str] = Counter()
        """Events of kinds that do not concern a result."""
        self._bare: Counter[str] = Counter()
        """Events that name no document."""
        self._early: Counter[str] = Counter()
        """Events of people who have not searched yet."""
        self._clicks = Counter[str]()
        """Clicks that belong to a query, and clicks that came too early."""
        self._times: OrderedDict[str, float] = OrderedDict()
        """When the last event of a session or user was."""
        self._order = Counter[str]()
        """Events that are later, or earlier, than the one before them in their session; and those that neither name
        their search nor have a query, so that their order decides."""

    def notes(self) -> list[str]:
        """Lines about the events that were left out. Refuses a log that begins with the newest events."""
        if self._order["by order"] and self._order["earlier"] > self._order["later"]:
            earlier, cases = self._order["earlier"], self._order["earlier"] + self._order["later"]
            raise InputError(
                f"{self._path} is not in the order of time: in {earlier:,} of {cases:,} cases an event is earlier than "
                "the one before it of its session, and a click belongs to the search before it: sort it, oldest first"
            )
        told = (
            (self._others, "of other kinds", "say", "nothing about a result"),
            (self._bare, "without a document", "say", "nothing about a result"),
            (self._early, "before the first search of their session or user", "belong", "to no query"),
        )
        lines = [
            f"{count_of(kinds.total(), 'event')} {which} {agree(kinds.total(), verb)} {what}: "
            + ", ".join(f"{name} {count:,}" for name, count in kinds.most_common(5))
            for kinds, which, verb, what in told
            if kinds
        ]
        if self._clicks["early"] > self._clicks["joined"]:
            early, joined = self._clicks["early"], self._clicks["joined"]
            lines.append(
                f"{count_of(early, 'click')} {agree(early, 'come')} before the first search of their session or user, "
                f"{joined:,} after it: {OUT_OF_ORDER}"
            )
        return lines

    def read(self, row: dict[str, Any]) -> Iterator[Search | Action]:
        """The events of a row: none, one, or a shown result and a click on it."""
        bare = row.get("doc_id") in (None, "")
        if not self._events and bare and not flag(row.get("clicks")):
            self._bare["shown"] += 1  # of a search without results
            return
        if not self._events:
            action = self._action(row, "shown")
            yield action
            if flag(row.get("clicks")):
                yield Action(**{**_fields(action), "kind": "click"})
            return
        name = str(row.get("event"))[:40]
        kind = event_kind(row.get("event"))
        if kind == "shown" and bare and tells_of_search(row.get("event")) and self._is_new(row):
            kind = "search"  # `view_search_results`, whose results are events of their own
        if kind is not None and _named(row) is None:
            self._follow(row, kind)
        if kind is None:
            self._others[name] += 1
        elif kind == "search":
            yield self._search(row)
        elif bare:
            self._bare[name] += 1
        elif self._is_early(row):
            self._early[name] += 1
            self._clicks["early"] += kind == "click"
        else:
            self._clicks["joined"] += kind == "click"
            yield self._action(row, "click" if kind == "click" else "shown")

    def _is_early(self, row: dict[str, Any]) -> bool:
        """Whether a row has no query, and its session or user has not searched yet."""
        who = _who(row)
        if who is None or who in self._last or _named(row) is not None:
            return False
        return all(row.get(name) in (None, "") for name in ("query", "query_id"))

    def _is_new(self, row: dict[str, Any]) -> bool:
        """Whether a row has a query that its session or user is not searching for already."""
        if not row.get("query") or (named := _named(row)) in self._by_name:
            return False
        last = self._last.get(_who(row) or "")
        return named is not None or last is None or last.query != _query(row)

    def _follow(self, row: dict[str, Any], kind: str) -> None:
        """Counts how times go on in a session."""
        who, time = _who(row), self._time(row)
        if kind != "search" and all(row.get(name) in (None, "") for name in ("query", "query_id")):
            self._order["by order"] += 1
        if who is None or time is None:
            return
        before = self._times.get(who, time)
        self._order["later"] += time > before
        self._order["earlier"] += time < before
        self._times[who] = time
        _bound(self._times)

    def _search(self, row: dict[str, Any]) -> Search:
        query, user, time = _query(row), clean_user(row), self._time(row)
        results = page_row(row, self._lists_as_text).get("results")
        page = self._new_page(query, time)
        page.searched = True
        named = _named(row)
        if named:
            page.key = named
            self._by_name[named] = page
        if row.get("query") and (query_id := clean_query(row)[1]) is not None:
            self._by_id[query_id] = page
        if who := _who(row):
            self._last[who] = page
            self._open[query, str(row.get("user")), str(row.get("session"))] = page
        self._forget()
        return Search(page.key, query, None if results is None else clean_ids(results, "results"), user, time)

    def _action(self, row: dict[str, Any], kind: str) -> Action:
        doc_id, user, time = clean_id(row.get("doc_id"), "doc_id"), clean_user(row), self._time(row)
        place = _place(row.get("position"))
        key, query = _named(row), _query(row, needed=False)
        if key is None:
            page = self._page(row, query, doc_id, place, time, kind)
            key, query = page.key, page.query if query.startswith(OPAQUE) else query or page.query
        ordinal = None if place is None else int(place)
        return Action("click" if kind == "click" else "shown", key, doc_id, query, user, time, ordinal)

    def _page(
        self, row: dict[str, Any], query: str, doc_id: str, place: float | None, time: float | None, kind: str
    ) -> _Page:
        """The page of a row that does not have a search id."""
        if query.startswith(OPAQUE) and (found := self._by_id.get(query.removeprefix(OPAQUE))) is not None:
            return found
        who = _who(row)
        last = self._last.get(who) if who else None
        if last is not None and (not query or (last.searched and last.query == query)):
            return last
        if not query:
            raise RecordError("an event without a query, and without a session or user whose search it may belong to")
        name = (query, str(row.get("user")), str(row.get("session")))
        page = self._open.get(name)
        if page is None or (kind == "shown" and self._begins(page, doc_id, place, time)):
            page = self._open[name] = self._new_page(query, time)
            self._forget()
        self._open.move_to_end(name)
        if who and self._events and (last is None or not last.searched):
            self._last[who] = page
            _bound(self._last)
        if kind == "shown":
            page.documents.add(doc_id)
            page.place = page.place if place is None else place
        return page

    def _begins(self, page: _Page, doc_id: str, place: float | None, time: float | None) -> bool:
        """Whether a shown result is the first of a new page."""
        if doc_id in page.documents or (place is not None and place <= page.place):
            return True
        return not self._has_places and time != page.time

    def _new_page(self, query: str, time: float | None) -> _Page:
        self._pages += 1
        return _Page(f"\x1f{self._pages}", query, time)

    def _forget(self) -> None:
        for pages in (self._open, self._last, self._by_id, self._by_name):
            _bound(pages)

    def _time(self, row: dict[str, Any]) -> float | None:
        value = row.get("time")
        return event_time(value, self._scale) if self._form is None else event_time(read_time(value, self._form), 1.0)


def _bound(kept: OrderedDict[Any, Any]) -> None:
    """Forgets the oldest where there are too many."""
    if len(kept) > MOST_OPEN:
        kept.popitem(last=False)


def _query(row: dict[str, Any], needed: bool = True) -> str:
    """The text of a query or, if it has none, its id, marked as such."""
    if not needed and not row.get("query") and not row.get("query_id"):
        return ""
    text, query_id = clean_query(row)
    return text or OPAQUE + str(query_id)


def _named(row: dict[str, Any]) -> str | None:
    value = row.get("search_id")
    return None if value is None or value == "" else clean_id(value, "search_id")


def _who(row: dict[str, Any]) -> str | None:
    value = next((row[name] for name in ("session", "user") if row.get(name) not in (None, "")), None)
    return None if value is None else str(value)


def _place(value: Any) -> float | None:
    if value is None or value == "":
        return None
    try:
        place = float(value)
    except (TypeError, ValueError):
        place = -1.0
    if not 0 <= place < 2**31:
        raise RecordError(f"position must be a number from 0 on, got {value!r:.80}")
    return place


def _fields(action: Action) -> dict[str, Any]:
    return {name: getattr(action, name) for name in Action.__slots__}
