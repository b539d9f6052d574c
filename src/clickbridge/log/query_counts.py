"""Exports of search analytics: a row counts the clicks of a query and, at best, of a page.

With pages they are `triples`, whose documents are addresses. Without pages they say nothing about documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clickbridge.errors import InputError, shown_names
from clickbridge.log.column_names import folded
from clickbridge.log.page_rows import is_count, is_id, mostly

_PAGES = (
    "page", "pages", "toppages", "landingpage", "landingpages", "landingpageurl",
    "destinationpage", "destinationurl", "clickedpage", "targetpage", "targeturl", "seite", "seiten",
    "topseiten", "zielseite", "adresse", "pagededestination", "pagina", "paginas", "paginadedestino",
    "paginadidestinazione",
)  # fmt: skip
"""Names of columns. Those of the page where people searched, as `page_path` is in many reports, are no documents."""


def page_column(names: Sequence[str], taken: Mapping[str, str], of: Callable[[str], Sequence[Any]]) -> str | None:
    """The column of pages: one whose values, given by `of`, are addresses. A number of a page is none."""
    for name in names:
        values = of(name) if folded(name) in _PAGES and name not in taken.values() else ()
        if values and mostly(lambda value: is_id(value) and "/" in str(value), values):
            return name
    return None


def check_documents(path: str, option: str, column: str, clicks: Sequence[Any], names: Sequence[str]) -> None:
    """Refuses counts of clicks that stand where ids of clicked documents would be. `names` are all columns."""
    if clicks and all(is_count(value) for value in clicks):
        raise InputError(
            f"{path}: {column} counts the clicks of queries, and no column says on which documents; it has "
            f"{shown_names(list(names))}: name the documents with {option}, or export queries with their pages; if the "
            "numbers are ids, give --format sessions"
        )
