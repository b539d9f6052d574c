"""Guesses the format of a log's times from the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product

from clickbridge.errors import InputError, SettingError, shown
from clickbridge.log.clean import END_OF_TIME, FIRST_LOGS, TIME_UNITS, RecordError, clean_time

_DATES = (
    "%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%Y.%m.%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d/%m/%y",
    "%m/%d/%y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%d/%b/%Y",
    "%a, %d %b %Y", "%a %b %d %Y", "%Y-%m-%d", "%Y%m%d",
)  # fmt: skip
_CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S,%f", "%I:%M %p", "%I:%M:%S %p", "%H%M%S", "%H.%M", "%Hh%M")
_ZONES = ("", "%z", " %z", " UTC", " GMT", "Z", " GMT%z")


def check_time_format(text: str) -> str:
    """Refuses a format without a day, such as `%H:%M`, or one that Python does not know."""
    try:
        days = {datetime.strptime(moment.strftime(text), text).date() for moment in _TRIAL}
    except ValueError:
        days = set()
    if days != {moment.date() for moment in _TRIAL}:
        raise SettingError(f'--time-format says how days are written, such as "%d.%m.%Y %H:%M"; got {text!r}')
    return text


_TRIAL = (datetime(2023, 1, 31, tzinfo=UTC), datetime(2024, 11, 5, tzinfo=UTC))


def read_time(value: object, form: str) -> float | None:
    """The seconds since 1970 of a time in this format. No time zone means UTC."""
    text = str(value).strip() if value is not None else ""
    if not text:
        return None
    try:
        moment = datetime.strptime(text, form)
    except ValueError:
        raise RecordError(f"time {shown(text)} is not of the form {form}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def guess_unit(values: Sequence[object]) -> str | None:
    """The unit of times that are numbers; None if they are not numbers, or are plausible as seconds."""
    numbers = [_number(value) for value in values]
    if not numbers or None in numbers:
        return None
    fits = [
        unit for unit, size in TIME_UNITS.items()
        if 2 * sum(FIRST_LOGS <= n * size < END_OF_TIME for n in numbers if n is not None) > len(numbers)
    ]  # fmt: skip
    return fits[0] if fits and "s" not in fits else None


def _number(value: object) -> float | None:
    try:
        return None if isinstance(value, bool) else float(str(value))
    except ValueError:
        return None


def guess_format(values: Sequence[object], path: str) -> str | None:
    """The format of times that are neither ISO 8601 nor seconds; None if they are, or if no format fits.

    Refuses times in which day and month cannot be told apart.
    """
    plain = all(_is_plain(value) for value in values)
    texts = list(dict.fromkeys(str(value).strip() for value in values if isinstance(value, str | int)))[:500]
    if plain or not texts:
        return None
    forms = [form for form in _forms(texts[0]) if all(_fits(text, form) for text in texts)]
    if len(forms) > 1 and any("%d" in a and a.replace("%d", "%m") == b.replace("%d", "%m") for a, b in [forms[:2]]):
        rising = [form for form in forms if _rises(values, form)]
        if len(rising) == 1:
            return rising[0]
        raise InputError(
            f"{path}: time {shown(texts[0])} may be a day and a month or a month and a day: "
            f'give --time-format "{forms[0]}" or "{forms[1]}"'
        )
    return forms[0] if forms else None


def check_times(values: Sequence[object], path: str) -> None:
    """Refuses times most of which cannot be read without being told how, before every line of them is a reject."""
    some = [value for value in values if value is not None and str(value).strip()]
    strange = [value for value in some if not _is_readable(value)]
    if 2 * len(strange) > len(some):
        raise InputError(
            f"{path}: time {shown(strange[0])} is neither ISO 8601 nor a number: say how days are written, as in "
            '--time-format "%d.%m.%Y %H:%M", or name another column with --columns time=...'
        )


def _is_readable(value: object) -> bool:
    try:
        clean_time(value, 1.0)
    except RecordError:
        return False
    return True


def _is_plain(value: object) -> bool:
    """Whether a time needs no format: ISO 8601, or a number that is not a date without dashes."""
    text = str(value).strip()
    if _number(text) is not None:
        days = ("%Y%m%d",) if isinstance(value, int) else ()
        return not (
            text.isdigit() and any(_fits(text, form) for form in (*days, "%Y%m%d%H%M%S") if len(text) in (8, 14))
        )
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return not isinstance(value, str)
    return True


def _forms(text: str) -> list[str]:
    """The formats that fit one text."""
    found = [day for day in (*_DATES, "%Y%m%d%H%M%S") if _fits(text, day)]
    joints = [joint for joint in (" ", "T", ", ", ":", " - ") if joint in text]
    for day, joint, clock, zone in product(_DATES, joints, _CLOCKS, _ZONES):
        if _looks_like(text, day) and _fits(text, form := day + joint + clock + zone):
            found.append(form)
    return found


def _looks_like(text: str, day: str) -> bool:
    """Whether the separators between the parts of the date are those of the text, to avoid trying most formats."""
    marks = [char for char in day if not char.isalpha() and char != "%"]
    return all(char in text for char in marks)


def _fits(text: str, form: str) -> bool:
    try:
        return 1970 <= datetime.strptime(text, form).year < 2200
    except ValueError:
        return False


def _rises(values: Sequence[object], form: str) -> bool:
    """Whether the times of the log never decrease with this format, as is usual for logs, and span more than one
    day."""
    times = [datetime.strptime(str(value).strip(), form).replace(tzinfo=None) for value in values if value]
    return len({time.date() for time in times}) > 1 and (times == sorted(times) or times == sorted(times)[::-1])
