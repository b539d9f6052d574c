"""Recognises a file of records: its format, and the meaning of its columns. The same code is used for logs and
documents.

`ingest`, `split`, `update` and everything else that reads a log uses it. What the user specified is certain. What is
missing is guessed from names and first values, and reported as the options that would specify it. If something cannot
be guessed, the file is refused with one message that lists its columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from clickbridge.errors import InputError, SettingError, shown_names
from clickbridge.io.encodings import check_encoding
from clickbridge.log.clean import RecordError, is_pointed, time_scale
from clickbridge.log.column_names import doubt, folded, is_kind_name, nested_value, usual_columns, usual_names
from clickbridge.log.event_formats import event_format
from clickbridge.log.page_rows import (
    flag,
    id_list,
    is_count,
    is_flag,
    is_id,
    is_id_list,
    is_marked,
    is_number,
    mostly,
    page_row,
)
from clickbridge.log.query_counts import check_documents, page_column
from clickbridge.log.searches import event_kind
from clickbridge.log.source import Source
from clickbridge.log.tables import DELIMITERS, check_delimiter
from clickbridge.log.time_formats import check_time_format, check_times, guess_format, guess_unit

EVENT_LOGS = ("ubi", "metarank", "algolia", "meilisearch", "typesense")
"""Formats with readers of their own, told by their first records in `event_formats.py`."""
SOME = 0.5
"""The share of rows from which on a column of results has the clicked documents."""
FORMATS = ("auto", "sessions", "triples", "shown", "events", "trec-session", *EVENT_LOGS)
FIELDS = ("query", "query_id", "doc_id", "user", "session", "time", "results", "clicks", "impressions", "search_id",
          "position", "event")  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """What the user specified about files. What is None or missing is guessed."""

    format: str = "auto"
    columns: Mapping[str, str] = field(default_factory=dict)
    time_unit: str | None = None
    time_format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    dedupe: bool = False

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise SettingError(f"--format must be one of {', '.join(FORMATS)}; got {self.format!r}")
        if self.time_unit is not None:
            time_scale(self.time_unit)
        for check, value in (
            (check_time_format, self.time_format),
            (check_encoding, self.encoding),
            (check_delimiter, self.delimiter),
        ):
            if value is not None:
                check(value)


@dataclass(frozen=True)
class Layout:
    """How one file is read. `columns` maps our names to the file's."""

    path: str
    format: str
    columns: Mapping[str, str]
    time_unit: str = "s"
    time_format: str | None = None
    container: str = "json"
    guessed: Mapping[str, str] = field(default_factory=dict)
    """The options that say what was guessed, by name; none where nothing was."""
    pointed: tuple[str, ...] = ()
    """The counts of a table that have points between thousands."""
    above: tuple[str, ...] = ()
    """The lines above the header of a table, which are not read."""
    names: tuple[str, ...] = ()
    """Columns of the file, or keys; nested ones by their dotted names."""

    @property
    def unused(self) -> list[str]:
        """The columns that none of our fields is read from. Formats with readers of their own know theirs."""
        used = set(self.columns.values())
        inner = {name[:at] for name in self.names for at, char in enumerate(name) if char == "."}
        named = [name for name in self.names if name.strip() and name not in used | inner]
        return [name for name in named if self.columns and not _is_inside(name, used)]

    @property
    def renamed(self) -> dict[str, str]:
        """The columns whose name differs from ours."""
        return {ours: theirs for ours, theirs in self.columns.items() if ours != theirs}


def _is_inside(name: str, others: set[str]) -> bool:
    return any(name.startswith(f"{other}.") for other in others)


def recognise_log(source: Source, given: Reading) -> Layout:
    """The layout of a log."""
    return replace(_recognised(source, given), names=tuple(source.names))


def _recognised(source: Source, given: Reading) -> Layout:
    for name in given.columns:
        if name not in FIELDS:
            raise SettingError(f"--columns renames {', '.join(FIELDS)}; got {name!r}")
    if given.format == "trec-session" or source.container == "xml":
        return Layout(source.path, "trec-session", {})
    named = bool(given.columns) and set(given.columns.values()) <= set(source.names)  # they say it is no such format
    own = event_format(source.first) if source.container == "json" and source.first and not named else None
    if given.format in EVENT_LOGS or (given.format == "auto" and own):
        return Layout(source.path, given.format if given.format != "auto" else str(own), {})
    _check_named(source, given.columns)
    values = _Values(source, of_log=True)
    found = usual_columns("log", source.names, given.columns, FIELDS, values.can_be, values.are_some)
    found = _without_numbers_of_hits(found, given, values)
    found = _with_single_clicks(source, given, _with_pages(source, found, values), values)
    kind = given.format if given.format != "auto" else _format(source, found, values)
    if given.format == "auto" and kind == "sessions" and not {"results", "doc_id"} & set(found) and "clicks" in found:
        option = "--columns doc_id=..." if source.container != "frame" else 'columns={"doc_id": ...}'
        check_documents(source.path, option, found["clicks"], values.of(found["clicks"]), source.names)
    columns = _needed(source, found, kind, values)
    if kind == "triples" and given.format == "auto":
        _check_marks(source, columns, values)
    _check_twins(source, columns, given.columns)
    pointed = _pointed(columns, values) if kind == "triples" and source.container == "table" else ()
    layout = Layout(source.path, kind, columns, given.time_unit or "s", given.time_format, pointed=pointed)
    return _with_guesses(_with_times(layout, given, values), source, given, "--columns")


def recognise_documents(source: Source, given: Reading, id_name: str | None = None) -> Layout:
    """The layout of a file of documents. `id_name` is the name of their id column in the log."""
    if source.container == "xml":
        raise InputError(f"{source.path} is XML: documents are read from JSON, CSV, TSV or Parquet")
    _check_named(source, given.columns)
    columns = dict(given.columns)
    if "doc_id" not in columns and "doc_id" not in source.names and id_name in source.names:
        columns["doc_id"] = str(id_name)
    values = _Values(source)
    columns = usual_columns("document", source.names, columns, ("doc_id", "title"), values.can_be, values.are_some)
    _check_twins(source, columns, given.columns)
    if "doc_id" not in columns and (source.names or source.container != "json"):
        word = "column" if source.container != "json" else "key"
        raise InputError(
            f"{source.path}: a {word} doc_id is needed; there are {shown_names(list(source.names))}: name it with "
            + ("--doc-columns doc_id=..." if source.container != "frame" else 'columns={"doc_id": ...}')
            + (_headless(source) if len(source.names) == 1 else "")
        )
    return _with_guesses(Layout(source.path, "documents", columns), source, given, "--doc-columns")


_DAY = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?!\d)|\d{8}$")
_CLOCK = re.compile(r"\d{1,2}[:h.]\d{2}([:.]\d{2})?( ?[aApP][mM])?")
_DOUBTS: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: not is_number(value),
    "date": lambda value: isinstance(value, date) or _DAY.match(str(value).strip()) is not None,
}


class _Values:
    """The first values of a file's columns, and what they can be."""

    def __init__(self, source: Source, of_log: bool = False) -> None:
        self._first, self._of_log = source.first, of_log
        self._nested = source.container != "table"

    def _value(self, row: dict[str, Any], name: str) -> Any:
        return nested_value(row, name) if self._nested else row.get(name)

    def of(self, name: str) -> list[Any]:
        """The values that are not missing."""
        found = [self._value(row, name) for row in self._first]
        return [value for value in found if value is not None and value != ""]

    def are_some(self, name: str) -> bool:
        return bool(self.of(name))

    def has_gaps(self, name: str) -> bool:
        """Whether some rows have no value: where the others are marked, it means no."""
        return len(self.of(name)) < len(self._first)

    def are_unique(self, name: str) -> bool:
        """Whether no value of a column is repeated."""
        values = self.of(name)
        return len(set(map(str, values))) == len(values)

    def are_among(self, one: str, many: str) -> bool:
        """Whether the values of a column are ids, each in the list that another column has in the same record. In a
        table, where all is text, a number is no id."""
        rows = [(self._value(row, one), self._value(row, many)) for row in self._first]
        rows = [(value, others) for value, others in rows if value is not None and value != ""]
        if not rows or any(not isinstance(value, str | int) or not is_id(value) for value, _ in rows):
            return False
        if not self._nested and any(is_number(value) for value, _ in rows):
            return False
        try:
            shown = [page_row({"results": others}, not self._nested).get("results") for _, others in rows]
        except RecordError:
            return False  # results without ids, which reading the log will say
        return sum(_is_among(value, ids) for (value, _), ids in zip(rows, shown, strict=True)) >= 0.9 * len(rows)

    def shares(self, one: str, many: str) -> float:
        """The share of rows whose value in a column is in the list that another column has, all as text."""
        rows = [(self._value(row, one), self._value(row, many)) for row in self._first]
        known = [(str(value).strip(), others) for value, others in rows if value not in (None, "")]
        return sum(value in map(str, id_list(others)) for value, others in known) / max(len(known), 1)

    def can_be(self, ours: str, theirs: str) -> bool:
        """Whether the values of a column fit a field. A column without values fits any."""
        checks: dict[str, Callable[[Any], bool]] = {
            "doc_id": is_id,
            "results": is_id_list,
            "clicks": lambda value: is_count(value) or is_flag(value) or is_id_list(value),
            "impressions": is_count,
            "position": is_number,
            "time": lambda value: not isinstance(value, dict | list) and any(map(str.isdigit, str(value))),
            "query": lambda value: type(value) is str,
            "title": lambda value: type(value) is str,
        }
        values = self.of(theirs)
        if ours == "time" and values and all(_CLOCK.fullmatch(str(value).strip()) for value in values):
            return False  # of the day that another column has
        if ours == theirs:
            return sum(isinstance(value, dict) for value in values) <= 0.1 * len(values)
        if ours == "doc_id" and self._of_log and folded(theirs) == "id" and self.are_unique(theirs):
            return False  # of the record, as far as anyone can tell
        if ours == "event":
            return any(event_kind(name) == "click" for name in set(map(str, values)))
        if ours == "clicks" and theirs != "clicks" and any(type(value) is str and is_id(value) for value in values):
            # A column `clicked` may name the document; a flag or a count does not.
            return all(is_count(value) or is_flag(value) or is_id_list(value) for value in values)
        if ours == "doc_id" and not self._of_log and is_kind_name(theirs) and not self.are_unique(theirs):
            return False
        if (needed := doubt(ours, theirs)) is not None and not mostly(_DOUBTS[needed], values):
            return False
        return mostly(checks.get(ours, lambda value: not isinstance(value, dict | list)), values)


def _with_single_clicks(source: Source, given: Reading, found: dict[str, str], values: _Values) -> dict[str, str]:
    """Takes a column of clicks for that of the clicked document, where a page has at most one click: its values are
    ids that their own page shows. Numbers may be counts or positions, and stay what they are."""
    if "results" not in found or {"doc_id", "event"} & set(found) or "clicks" in given.columns:
        return found
    taken = set(found.values()) - {found.get("clicks", "")}
    for name in usual_names("clicks", source.names):
        if name != "clicks" and name not in taken and values.are_among(name, found["results"]):
            return {ours: theirs for ours, theirs in found.items() if ours != "clicks"} | {"doc_id": name}
    return found


def _without_numbers_of_hits(found: dict[str, str], given: Reading, values: _Values) -> dict[str, str]:
    """Leaves out a column of results that counts them, as 1,204: the clicked document is not among such results."""
    name = found.get("results")
    if name is None or "results" in given.columns or not (counts := values.of(name)) or not all(map(is_count, counts)):
        return found
    clicked = [values.shares(found[ours], name) for ours in ("doc_id", "clicks") if ours in found]
    if not clicked or max(clicked) >= SOME:
        return found
    return {ours: theirs for ours, theirs in found.items() if ours != "results"}


def _with_pages(source: Source, found: dict[str, str], values: _Values) -> dict[str, str]:
    """Takes addresses of pages for the documents of a table that counts clicks, if it has no others."""
    if {"doc_id", "results", "event"} & set(found) or not {"query", "query_id"} & set(found) or "clicks" not in found:
        return found
    page = page_column(source.names, found, values.of)
    return found if page is None or not all(map(is_count, values.of(found["clicks"]))) else found | {"doc_id": page}


def _format(source: Source, found: Mapping[str, str], values: _Values) -> str:
    """sessions: a row is a page; shown: a shown result; events: an event; triples: a click, or a count of clicks."""
    if "event" in found and ("doc_id" in found or "results" in found):
        return "events"
    if "results" in found:
        return "sessions"
    if "doc_id" not in found:
        return "sessions" if source.container == "json" or "clicks" in found else "triples"
    clicks = values.of(found["clicks"]) if "clicks" in found else []
    if clicks and any(type(value) is list for value in clicks):
        return "sessions"
    flags = all(map(is_flag, clicks)) and (values.has_gaps(found.get("clicks", "")) or not all(map(flag, clicks)))
    tells = found["clicks"] != "clicks" or "position" in found or "search_id" in found if clicks else False
    return "shown" if flags and tells and "impressions" not in found and not _are_means(found, values) else "triples"


def _are_means(found: Mapping[str, str], values: _Values) -> bool:
    """Whether positions are means over several pages."""
    places = [float(value) for value in values.of(found["position"]) if is_number(value)] if "position" in found else []
    return not all(map(float.is_integer, places))


def _needed(source: Source, found: Mapping[str, str], kind: str, values: _Values) -> dict[str, str]:
    """The columns that the format uses; refuses a file without those that it needs."""
    used = {
        "sessions": ("query", "query_id", "results", "clicks", "doc_id", "user", "session", "time"),
        "triples": ("query", "query_id", "doc_id", "clicks", "impressions", "user", "session", "time"),
        "shown": ("query", "query_id", "doc_id", "clicks", "user", "session", "time", "search_id", "position"),
        "events": FIELDS,
    }[kind]
    columns = {ours: theirs for ours, theirs in found.items() if ours in used}
    if kind == "sessions" and "clicks" in columns:
        columns.pop("doc_id", None)
    known = set(columns)
    third = {"sessions": {"clicks", "doc_id"}, "events": {"doc_id", "results"}}.get(kind, {"doc_id"})
    if kind == "sessions" and any(is_marked(value) for value in values.of(found.get("results", ""))):
        third.add("results")
    if (known & {"query", "query_id"} and known & third) or (source.container == "json" and not source.names):
        return columns
    bare = next((name for name in source.names if folded(name) == "id" and values.are_unique(name)), None)
    second = "clicks" if kind == "sessions" and bare is None else "doc_id"
    word = "columns" if source.container != "json" else "keys"
    option = f"--columns query=...,{second}=..."
    raise InputError(
        f"{source.path} needs {word} query and {second}; it has {shown_names(list(source.names))}: name them with "
        + (option if source.container != "frame" else f'columns={{"query": ..., "{second}": ...}}')
        + (_headless(source) if not found else "")
        + (f"; {bare} differs in every record, so it may be the record's own" if bare is not None else "")
        + _within_lists(source, values)
    )


def _check_named(source: Source, columns: Mapping[str, str]) -> None:
    if source.container == "json" and not source.names:
        return  # no record could be read: every line is a reject
    word = "key" if source.container == "json" else "column"
    for ours, theirs in columns.items():
        if theirs not in source.names:
            has = shown_names(list(source.names))
            raise InputError(f"{source.path} has no {word} {theirs!r} for {ours}; it has {has}")


def _check_marks(source: Source, columns: Mapping[str, str], values: _Values) -> None:
    """Refuses a column that seems to say what was clicked, in words unknown here: each row would count as a click."""
    for name in usual_names("clicks", source.names) if "clicks" not in columns else ():
        marks = [value for value in values.of(name) if not isinstance(value, dict | list)]
        if "cli" in folded(name) and name not in columns.values() and marks:
            option = "--format triples" if source.container != "frame" else 'read_log(frame, format="triples")'
            raise InputError(
                f"{source.path}: {name} may say what was clicked, but {marks[0]!r:.40} is no number, yes or no: "
                f"write 1 and 0, or give {option} if each row is a click"
            )


def _check_twins(source: Source, columns: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Refuses a table that has two columns of the same name, or of one that differs only in case and punctuation, where
    only one of them would be read."""
    if source.container == "json":
        return
    for ours, theirs in columns.items():
        if list(source.names).count(theirs) > 1:
            raise InputError(f"{source.path} has several columns {theirs!r}, one of which is {ours}: rename the others")
        twins = [name for name in source.names if folded(name) == folded(theirs)]
        if len(twins) > 1 and ours not in given and theirs != ours and ours != "title":  # a title is text like the rest
            raise InputError(
                f"{source.path}: {ours} may be any of {shown_names(twins)}: say which, as in "
                + (f"--columns {ours}={twins[0]}" if source.container != "frame" else f'{{"{ours}": "{twins[0]}"}}')
            )


def _with_times(layout: Layout, given: Reading, values: _Values) -> Layout:
    """The layout with the format of times, if the user did not specify it."""
    if "time" not in layout.columns or given.time_unit or given.time_format:
        return layout
    times = values.of(layout.columns["time"])
    unit = guess_unit(times)
    form = None if unit else guess_format(times, layout.path)
    if unit is None and form is None:
        check_times(times, layout.path)
    return replace(layout, time_unit=unit or "s", time_format=form)


def _with_guesses(layout: Layout, source: Source, given: Reading, option: str) -> Layout:
    """The layout with the options that would specify what was guessed."""
    guessed: dict[str, str] = {}
    usual = {"json": ("sessions",), "table": ("triples",)}.get(source.container, ("sessions", "triples"))
    if layout.format not in ("documents", *usual) and given.format == "auto":
        guessed["--format"] = layout.format
    if source.encoding not in ("utf-8", "ascii") and given.encoding is None:
        guessed["--encoding"] = source.encoding
    mark = source.dialect.delimiter
    if source.container == "table" and mark not in ",\t" and given.delimiter is None:
        guessed["--delimiter"] = next(name for name, sign in DELIMITERS.items() if sign == mark)
    said = {ours: theirs for ours, theirs in layout.renamed.items() if given.columns.get(ours) != theirs}
    if said:
        # The user's own go in too: the line is to be copied.
        guessed[option] = column_option({**given.columns, **said})
    if layout.time_unit != "s" and given.time_unit is None:
        guessed["--time-unit"] = layout.time_unit
    if layout.time_format and given.time_format is None:
        guessed["--time-format"] = layout.time_format
    return replace(layout, container=source.container, above=source.dialect.above, guessed=guessed)


def column_option(columns: Mapping[str, str]) -> str:
    """The option `--columns` as text. A name that contains a comma or a quote is quoted."""
    return ",".join(f"{ours}={_quoted(theirs)}" for ours, theirs in columns.items())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(char in name for char in ',"') else name


def _headless(source: Source) -> str:
    """What may be wrong with a table whose first line has no name that is known."""
    if source.container != "table":
        return ""
    return (
        "; is there a header line?" if len(source.names) > 1 else "; the header line is the first: remove what is above"
    )


def _within_lists(source: Source, values: _Values) -> str:
    """What to do where the keys that are missing may be those of records within a record."""
    inner = [name for name in source.names if any(is_marked(value) for value in values.of(name))]
    said = (
        f"; keys within the lists of {shown_names(inner)} cannot be named: write what they hold as records or as keys"
    )
    return said if inner else ""


def _pointed(columns: Mapping[str, str], values: _Values) -> tuple[str, ...]:
    """The counts that have points between their thousands. What one of them leaves open another may tell."""
    counts = {ours: values.of(columns[ours]) for ours in ("clicks", "impressions") if ours in columns}
    together = is_pointed([value for own in counts.values() for value in own])
    return tuple(ours for ours, own in counts.items() if together or is_pointed(own))


def _is_among(one: Any, results: Any) -> bool:
    """Whether a value is one of the results, and not a count or a position that only looks alike."""
    return type(results) is list and any(type(other) is type(one) and other == one for other in results)
