"""The two kinds of record in event logs: a search with its results, and an action on one of them.

Systems write them as separate events, often in separate files, with the same search id. `ubi.py`, `metarank.py` and
others turn a raw event into one of these; `event_join.py` makes result pages of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from clickbridge.log.clean import MAX_QUERY, RecordError, clean_id, event_time, kind_of, normalise_query
from clickbridge.log.column_names import without_accents

CLICKS = frozenset(
    ("click", "select", "add_to_cart", "cart", "purchase", "order", "buy", "checkout", "conversion", "watch", "play",
     "download", "like", "bookmark", "addtocart")
)  # fmt: skip
"""Actions that say a person wanted the document. A document counts once for each search, whatever was done to it."""
SHOWN = frozenset(("impression", "view"))
"""Actions that say a document was on the page. `view` is here because it may mean either: a view of the result makes it
no better than the others, and who opens the document clicks as well."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ALSO_CLICKS = {"clicked", "clicks", "selected", "clickthrough", "opened", "open", "klick", "klicks", "geklickt",
                "klik", "kliks", "geklikt", "clic", "clics", "clique", "cliques", "clicou", "clicado", "cliccato",
                "achat"}  # fmt: skip
_ALSO_SHOWN = {"impressions", "shown", "show", "display", "displayed", "exposure", "viewed", "list"}
_SEARCHES = {"search", "searched", "query", "queried", "request", "ranking", "suche", "suchanfrage", "recherche",
             "busqueda", "ricerca", "pesquisa", "busca", "zoekopdracht"}  # fmt: skip
_NOTHING = {"remove", "removed", "filter", "sort", "error"}


@dataclass(slots=True)
class Search:
    """A search as the engine saw it. Later actions refer to it by `search_id`."""

    search_id: str | None
    query: str
    """Normalised; empty where people browse without words."""
    results: list[str] | None
    user: str | None = None
    time: float | None = None
    ids_named: bool = True
    """Whether the log says which field the ids of the results are from."""
    until: float | None = None
    """Actions after this time do not belong to the search any more."""


@dataclass(slots=True)
class Action:
    """Something that happened to a result of a search."""

    kind: Literal["click", "shown"]
    search_id: str | None
    doc_id: str | None
    """None where the log tells the place alone."""
    query: str = ""
    user: str | None = None
    time: float | None = None
    ordinal: int | None = None
    """The place of the document on the page, from 1, or from 0 in some logs."""
    engine_id: str | None = None
    """What the engine itself calls the document."""


def kind_of_action(name: Any) -> Literal["click", "shown"] | None:
    """What an action means for a ranking; None if it does not concern a result."""
    if type(name) is not str or not name:
        raise RecordError(f"the name of an action must be text, got {kind_of(name)}")
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    return "click" if plain in CLICKS else "shown" if plain in SHOWN else None


def event_kind(name: Any) -> str | None:
    """The kind of an event by its name, such as `product_click` or `viewItemList`: click, shown or search; else None.

    >>> [event_kind(name) for name in ("searchResultClick", "view_item_list", "Search", "remove_from_cart")]
    ['click', 'shown', 'search', None]
    """
    words = _words_of(name)
    if words & _NOTHING:
        return None
    kinds = (("click", CLICKS | _ALSO_CLICKS), ("shown", SHOWN | _ALSO_SHOWN), ("search", _SEARCHES))
    return next((kind for kind, known in kinds if words & known), None)


def tells_of_search(name: Any) -> bool:
    """Whether the name of an event has a word for searching, such as `view_search_results`."""
    return bool(_words_of(name) & _SEARCHES)


def _words_of(name: Any) -> set[str]:
    return {word.lower() for word in _WORDS.findall(without_accents(str(name)))}


def text_of_query(value: Any) -> str:
    """The normalised text of a query; empty if there is none."""
    if value is None:
        return ""
    if type(value) is not str:
        raise RecordError(f"a query must be text, got {kind_of(value)}")
    if len(value) > MAX_QUERY:
        raise RecordError(f"a query has {len(value)} characters, at most {MAX_QUERY} are taken")
    return normalise_query(value)


def token(value: Any, what: str) -> str | None:
    """An id that may be missing or empty."""
    return None if value is None or value == "" else clean_id(value, what)


def first_of(record: Mapping[str, Any], *names: str) -> str | None:
    """The first of several fields that has a value, for example user, client or session."""
    for name in names:
        value = record.get(name)
        if type(value) is int or (type(value) is str and value.strip()):
            return str(value).strip()
    return None


def moment(value: Any, scale: float = 1.0) -> float:
    """A time that is required."""
    seconds = event_time(value, scale)
    if seconds is None:
        raise RecordError("no timestamp")
    return seconds
