"""Cleans one raw record, or raises a RecordError with the reason why it is left out."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from clickbridge.errors import SettingError, shown
from clickbridge.types import OPAQUE, Impression, PairCount

MAX_QUERY = 4096
YEAR = 365.2425 * 86400
FIRST_LOGS, END_OF_TIME = (1995 - 1970) * YEAR, (2200 - 1970) * YEAR
"""A log was written between these years. A number that means a later time, or one that only another unit puts between
them, has another unit than was said."""
TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class RecordError(ValueError):
    """Why a record is rejected."""


def normalise_query(text: str) -> str:
    """Normalises a query's text: Unicode NFKC, case folded, white space reduced to single spaces.

    Two queries with the same normal form are the same query.

    Parameters
    ----------
    text : str
        What was typed.

    Returns
    -------
    str
        Empty if there is nothing but white space.

    Examples
    --------
    >>> from clickbridge import normalise_query
    >>> normalise_query("  New\\tYORK  Pizza ")
    'new york pizza'
    """
    if text.isascii():
        return " ".join(text.lower().split())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


def find_query(numbers: Mapping[str, int], query: str) -> int | None:
    """The number of a query in a mapping of keys: by its normalised text or, if no query has that text, by its id,
    exactly as given. Ids are case-sensitive: "Q7" and "q7" differ. A key is used as it is."""
    if query.startswith(OPAQUE):
        return numbers.get(query)
    found = numbers.get(normalise_query(query))
    return numbers.get(OPAQUE + query.strip()) if found is None else found


def time_scale(unit: str) -> float:
    if unit not in TIME_UNITS:
        raise SettingError(f"--time-unit must be one of {', '.join(TIME_UNITS)}; got {unit!r}")
    return TIME_UNITS[unit]


def clean_time(value: Any, scale: float) -> float | None:
    """Seconds since 1970: from ISO 8601 (no zone means UTC) or from epoch units."""
    value = value.strip() if type(value) is str else value
    if value is None or value == "":
        return None
    number = None
    try:
        if isinstance(value, date) or _is_day(value):
            seconds = _seconds(value if isinstance(value, date) else datetime.fromisoformat(value))
        else:
            number = float(value)
            seconds = number * scale
    except (TypeError, ValueError, OverflowError):
        try:
            seconds = _seconds(datetime.fromisoformat(value))
        except (TypeError, ValueError, OverflowError):
            raise RecordError(f"time {shown(value)} is neither ISO 8601 nor a number") from None
    if isinstance(value, bool) or not math.isfinite(seconds) or seconds < 0:
        raise RecordError(f"time {shown(value)} is not a time since 1970")
    if number is not None and not FIRST_LOGS <= seconds < END_OF_TIME:
        _check_unit(value, number, scale)
    return seconds


def _is_day(value: Any) -> bool:
    """Whether a text is a date like 20240131, ISO 8601 without dashes. As seconds it would be a day in 1970."""
    if type(value) is not str or len(value) != 8 or not ("1970" <= value[:4] < "2200"):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _check_unit(value: Any, number: float, scale: float) -> None:
    """Refuses a number that would be a plausible time in another unit, or a date. Other numbers are accepted, since
    times may count from the start of the log."""
    seconds = number * scale
    fits = [unit for unit, size in TIME_UNITS.items() if FIRST_LOGS <= number * size < END_OF_TIME]
    if seconds >= END_OF_TIME:
        hint = f"is the unit {fits[0]}?" if fits else "check it"
        raise RecordError(f"time {shown(value)} is in the year {1970 + seconds / YEAR:.0f}: {hint}")
    if fits and TIME_UNITS[fits[0]] > scale:
        raise RecordError(f"time {shown(value)} is in the year 1970: is the unit {fits[0]}?")
    day = f"{number:.0f}"
    if number.is_integer() and _is_day(day):
        dashed = f"{day[:4]}-{day[4:6]}-{day[6:]}"
        raise RecordError(f"time {shown(value)} is in the year 1970: write a date as text, {dashed}")


def _seconds(stamp: date) -> float:
    """Seconds since 1970. A date means its midnight; no time zone means UTC."""
    moment = stamp if isinstance(stamp, datetime) else datetime(stamp.year, stamp.month, stamp.day)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def clean_id(value: Any, what: str) -> str:
    """An id: text without white space. Integers become their digits."""
    if type(value) is int:
        return str(value)
    if type(value) is float and value.is_integer() and abs(value) < 2**53:
        return str(int(value))  # what a missing value beside it makes of whole numbers
    if type(value) is not str:
        raise RecordError(f"{what} must be text, got {kind_of(value)}")
    if not value or value.split() != [value]:
        raise RecordError(f"{what} {shown(value)} is empty or has white space")
    return value


def clean_ids(values: Any, what: str) -> list[str]:
    """A list of ids, each kept once, in order."""
    if type(values) is not list:
        raise RecordError(f"{what} must be a list of ids, got {kind_of(values)}")
    try:
        # Fast path: joined by blanks and split again, sound ids come back one for one.
        if " ".join(values).split() == values:
            return values if len(set(values)) == len(values) else list(dict.fromkeys(values))
    except TypeError:
        pass
    return list(dict.fromkeys(clean_id(value, f"an id in {what}") for value in values))


def clean_query(record: Mapping[str, Any]) -> tuple[str, str | None]:
    text, query_id = record.get("query"), record.get("query_id")
    if text is not None and type(text) is not str:
        raise RecordError(f"query must be text, got {kind_of(text)}")
    if text and len(text) > MAX_QUERY:
        raise RecordError(f"query has {len(text)} characters, at most {MAX_QUERY} are taken")
    query = normalise_query(text) if text else ""
    clean = clean_id(query_id, "query_id") if query_id not in (None, "") else None
    if not query and clean is None:
        raise RecordError("neither query nor query_id")
    return query, clean


def clean_session(record: Any, scale: float = 1.0) -> Impression:
    """One line of a `sessions` log."""
    if type(record) is not dict:
        raise RecordError(f"a line must be a JSON object, got {kind_of(record)}")
    query, query_id = clean_query(record)
    if "clicks" not in record:
        raise RecordError("no clicks")
    clicks = clean_ids(record["clicks"], "clicks")
    results = record.get("results")
    if results is not None:
        results = clean_ids(results, "results")
    return Impression(query, results, clicks, query_id, clean_user(record), event_time(record.get("time"), scale))


def clean_triple(record: Mapping[str, Any], scale: float = 1.0) -> PairCount:
    """One row of a `triples` log."""
    query, query_id = clean_query(record)
    return PairCount(
        query,
        clean_id(record.get("doc_id"), "doc_id"),
        whole_number(record.get("clicks"), "clicks", 1) or 0,
        whole_number(record.get("impressions"), "impressions", None),
        query_id,
        clean_user(record),
        event_time(record.get("time"), scale),
    )


def event_time(value: Any, scale: float) -> float | None:
    """Refuses times far in the future: one such event would make all others look too old to count."""
    seconds = clean_time(value, scale)
    if seconds is not None and seconds >= END_OF_TIME:
        raise RecordError(f"time {shown(value)} is in the year {1970 + seconds / YEAR:.0f}: check it")
    return seconds


def clean_user(record: Mapping[str, Any]) -> str | None:
    """The user, or the session if the log has no user."""
    value = record.get("user")
    if value in (None, ""):
        value = record.get("session")
    if value in (None, ""):
        return None
    if type(value) not in (str, int):
        raise RecordError(f"user must be text, got {kind_of(value)}")
    return str(value)


def whole_number(value: Any, what: str, default: int | None) -> int | None:
    """A count that may be missing."""
    if value is None or value == "":
        return default
    try:
        number = float(ungrouped(value))
        count = int(number)
    except (TypeError, ValueError, OverflowError):
        raise RecordError(f"{what} must be a whole number, got {shown(value)}") from None
    if isinstance(value, bool) or count != number or not 0 <= count < 2**31:
        raise RecordError(f"{what} must be a whole number from 0 to 2147483647, got {shown(value)}")
    return count


def ungrouped(value: Any) -> Any:
    """A number without what stands between its thousands: `1,204`, `1 204` or `1'204`. A point may begin decimals."""
    if type(value) is not str or value.isdigit() or not _GROUPED.fullmatch(value.strip()):
        return value
    return "".join(filter(str.isdigit, value))


def is_pointed(values: Sequence[Any]) -> bool:
    """Whether points stand between the thousands of these counts, as in `1.204`, and begin no decimals. There must be a
    number below 1000 without a point, or one that would not be whole: all of `12.000` and `3.000` may be either."""
    texts = [str(value).strip() for value in values]
    pointed = [text for text in texts if _POINTED.fullmatch(text)]
    rest = [text for text in texts if not _POINTED.fullmatch(text)]
    if not pointed or not all(text.isdigit() and len(text) <= 3 for text in rest):
        return False
    return bool(rest) or any(text.count(".") > 1 or not text.endswith(".000") for text in pointed)


def without_points(value: Any) -> Any:
    return value.replace(".", "") if type(value) is str and _POINTED.fullmatch(value.strip()) else value


_GROUPED = re.compile(r"[1-9]\d{0,2}([,'’ \u00a0\u2009\u202f])\d{3}(\1\d{3})*")
_POINTED = re.compile(r"[1-9]\d{0,2}(\.\d{3})+")


def kind_of(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true/false", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)
