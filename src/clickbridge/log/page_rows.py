"""Reads values of messy rows: lists of ids in any notation, and flags."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from typing import Any, TypeGuard

import orjson

from clickbridge.io.json_text import parse_json
from clickbridge.log.clean import RecordError, ungrouped, without_points
from clickbridge.log.column_names import dotted_names, nested_value, usual_columns, without_accents
from clickbridge.log.translated_names import NO, YES

_YES = frozenset(("1", "1.0", "true", "t", "yes", "y", "x", "✓", "✔", *YES))
_NO = frozenset(("0", "0.0", "false", "f", "no", "n", "", "-", *NO))


def mostly(check: Callable[[Any], bool], values: Sequence[Any]) -> bool:
    """Whether nearly all values, nine in ten, pass a check: files have a few that are wrong or missing."""
    return sum(map(check, values)) >= 0.9 * len(values)


def is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def is_count(value: Any) -> bool:
    """Whether a value is a number, which may have marks between its thousands."""
    return is_number(ungrouped(without_points(value)))


def is_flag(value: Any) -> bool:
    """Whether a value is a flag, such as yes or no."""
    return not isinstance(value, list | dict) and _plain(value) in _YES | _NO


def flag(value: Any) -> bool:
    """The value of a flag as a bool."""
    text = "" if value is None else _plain(value)
    if text in _YES:
        return True
    if text in _NO:
        return False
    raise RecordError(f"clicks must be 0 or 1 in a row for a shown result, got {value!r:.80}")


def _plain(value: Any) -> str:
    return without_accents(str(value).strip().lower())


def is_id(value: Any) -> bool:
    """Whether a value can be an id: text without white space, or a whole number."""
    if isinstance(value, bool | list | dict):
        return False
    return not isinstance(value, float) or value.is_integer() if not isinstance(value, str) else len(value.split()) == 1


def is_id_list(value: Any) -> bool:
    """A list, or text that holds several ids or a list in JSON."""
    if isinstance(value, list):
        return True
    return isinstance(value, str) and (value.lstrip().startswith("[") or bool(re.search(r"[|,;\s]", value.strip())))


def is_marked(results: Any) -> bool:
    """Whether results or clicks are objects. Objects of results may say themselves whether they were clicked."""
    return isinstance(results, list) and bool(results) and isinstance(results[0], dict)


def id_list(value: Any) -> Any:
    """The ids in a cell: a JSON list, or ids separated by `|`, `;`, commas or spaces."""
    if not isinstance(value, str):
        return [] if value is None else value
    text = value.strip()
    if text.startswith("["):
        try:
            return parse_json(text)
        except orjson.JSONDecodeError:
            return re.findall(r"[^\s,'\"\[\]]+", text)  # as Python and NumPy print lists
    mark = next((mark for mark in "|;," if mark in text), None)
    return [part.strip() for part in text.split(mark) if part.strip()] if mark else text.split()


def page_row(row: dict[str, Any], lists_as_text: bool) -> dict[str, Any]:
    """A row of `sessions` with its lists parsed. If results or clicks are objects, their ids are taken from them, and
    clicks from results that say whether they were clicked. A click that is one object is a list of one."""
    out = dict(row)
    if lists_as_text:
        for name in ("results", "clicks"):
            if name in out:
                out[name] = id_list(out[name])
    results, clicks = out.get("results"), out.get("clicks")
    if _are_objects(results):
        columns = _columns_of(results, "results")
        shown = _in_order(results, columns)
        out["results"] = [nested_value(item, columns["doc_id"]) for item in shown]
        if "clicks" not in out and ("clicks" in columns or "doc_id" not in out):
            marked = [flag(nested_value(item, columns.get("clicks", ""))) for item in shown]
            out["clicks"] = list(compress(out["results"], marked))
    if _are_objects(clicks := [clicks] if type(clicks) is dict else clicks):
        columns = _columns_of(clicks, "clicks")
        out["clicks"] = [nested_value(item, columns["doc_id"]) for item in clicks]
    if "clicks" not in out and "doc_id" in out:
        out["clicks"] = [] if out["doc_id"] in (None, "") else [out["doc_id"]]
    return out


def _are_objects(items: Any) -> TypeGuard[list[dict[str, Any]]]:
    return is_marked(items) and all(type(item) is dict for item in items)


def _columns_of(items: list[dict[str, Any]], what: str) -> dict[str, str]:
    """What the keys of objects mean that stand for documents."""
    values = {name: nested_value(item, name) for item in items for name in dotted_names(item)}
    names = tuple(name for name, value in values.items() if not isinstance(value, dict | list))
    columns = _usual_columns(names)
    if "doc_id" not in columns:
        raise RecordError(f"{what} have no doc_id: they have {', '.join(list(values)[:10])}")
    return columns


@lru_cache(1000)
def _usual_columns(names: tuple[str, ...]) -> dict[str, str]:
    return usual_columns("result", names, {}, ("doc_id", "clicks", "position"), lambda ours, theirs: True)


def _in_order(results: list[dict[str, Any]], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """Results by their positions, if they have some."""
    places: list[Any] = [nested_value(item, columns.get("position", "")) for item in results]
    if not all(map(is_number, places)):
        return results
    return [results[i] for i in sorted(range(len(results)), key=lambda i: float(places[i]))]


def has_pages(columns: Mapping[str, str]) -> bool:
    """Whether rows of shown results tell which of them belong to one page."""
    return bool({"search_id", "position", "time", "session", "user"} & set(columns))
