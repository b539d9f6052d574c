"""Reads values of messy rows: lists of ids in any notation, and flags."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

from clickbridge.io.json_text import parse_json
from clickbridge.log.clean import RecordError
from clickbridge.log.column_names import usual_columns

_YES, _NO = ("1", "1.0", "true", "t", "yes", "y"), ("0", "0.0", "false", "f", "no", "n", "")


def is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def is_flag(value: Any) -> bool:
    """Whether a value is a flag, such as yes or no."""
    return not isinstance(value, list | dict) and str(value).strip().lower() in (*_YES, *_NO)


def flag(value: Any) -> bool:
    """The value of a flag as a bool."""
    text = "" if value is None else str(value).strip().lower()
    if text in _YES:
        return True
    if text in _NO:
        return False
    raise RecordError(f"clicks must be 0 or 1 in a row for a shown result, got {value!r:.80}")


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
    """Whether results are objects, which say themselves whether they were clicked."""
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
    """A row of `sessions` with its lists parsed. If results are objects, their ids and clicks are taken from them."""
    out = dict(row)
    if lists_as_text:
        for name in ("results", "clicks"):
            if name in out:
                out[name] = id_list(out[name])
    results: Any = out.get("results")
    if is_marked(results) and all(type(item) is dict for item in results):
        shown, clicked = _from_objects(results)
        out["results"] = shown
        out.setdefault("clicks", clicked)
    if "clicks" not in out and "doc_id" in out:
        out["clicks"] = [] if out["doc_id"] in (None, "") else [out["doc_id"]]
    return out


def _from_objects(results: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """The ids of shown results, and of those marked as clicked."""
    names = list(dict.fromkeys(name for item in results for name in item))
    columns = usual_columns("result", names, {}, ("doc_id", "clicks", "position"), lambda ours, theirs: True)
    if "doc_id" not in columns:
        raise RecordError(f"results have no doc_id: they have {', '.join(names[:10])}")
    if "position" in columns and all(is_number(item.get(columns["position"])) for item in results):
        results = sorted(results, key=lambda item: float(item[columns["position"]]))
    shown = [item.get(columns["doc_id"]) for item in results]
    clicked = [item.get(columns["doc_id"]) for item in results if flag(item.get(columns.get("clicks", ""), 0))]
    return shown, clicked


def has_pages(columns: Mapping[str, str]) -> bool:
    """Whether rows of shown results tell which of them belong to one page."""
    return bool({"search_id", "position", "time", "session", "user"} & set(columns))
