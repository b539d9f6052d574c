"""One raw record in, one clean record out: what is kept, what is folded, and every reason to refuse."""

from __future__ import annotations

import unicodedata
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clickbridge.errors import SettingError
from clickbridge.log.clean import (
    MAX_QUERY,
    RecordError,
    clean_ids,
    clean_session,
    clean_time,
    clean_triple,
    normalise_query,
    time_scale,
)
from clickbridge.types import Impression, PairCount

ids = st.text(st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc")), min_size=1, max_size=8)


@given(st.text())
@example("\x1f")
@example("İstanbul ǅ ﬁ ẞ")
@example("α\u0345Ω\u0301")
def test_normalised_text_stays_as_it_is(text: str) -> None:
    once = normalise_query(text)
    assert normalise_query(once) == once
    assert "\x1f" not in once
    assert once == " ".join(once.split())


@given(st.text())
def test_equivalent_forms_of_a_query_are_one(text: str) -> None:
    same = normalise_query(text)
    assert normalise_query(unicodedata.normalize("NFD", text)) == same
    assert normalise_query(unicodedata.normalize("NFKC", text)) == same
    assert normalise_query(f" \t{text}\n") == same


@given(st.text(st.characters(codec="ascii")))
def test_the_ascii_shortcut_takes_no_other_way(text: str) -> None:
    folded = unicodedata.normalize("NFKC", text).casefold()
    assert normalise_query(text) == " ".join(folded.split())


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("  New\tYORK \n Pizza ", "new york pizza"),
        ("ＮＹ　ｐｉｚｚａ", "ny pizza"),
        ("Straße", "strasse"),
        ("ﬁne", "fine"),
        ("caf\u0065\u0301", "café"),
        ("a\u00a0b\u2028c", "a b c"),
        ("a\x1cb\x1fc", "a b c"),
        ("", ""),
        (" \t ", ""),
    ],
)
def test_normalise_query_by_example(text: str, clean: str) -> None:
    assert normalise_query(text) == clean


@pytest.mark.parametrize(
    ("value", "scale", "seconds"),
    [
        (None, 1.0, None),
        ("", 1.0, None),
        (0, 1.0, 0.0),
        (1700000000, 1.0, 1700000000.0),
        ("1700000000.5", 1.0, 1700000000.5),
        (1700000000000, 1e-3, 1700000000.0),
        ("1700000000000000", 1e-6, 1700000000.0),
        (Decimal("1.5"), 1.0, 1.5),
        ("1970-01-02", 1.0, 86400.0),
        ("1970-01-01T00:00:01", 1e-3, 1.0),
        ("1970-01-01T01:00:00+01:00", 1.0, 0.0),
        ("1970-01-01 00:01:00Z", 1.0, 60.0),
        (datetime(1970, 1, 1, 0, 0, 5), 1.0, 5.0),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 1.0, 0.0),
        (date(1970, 1, 3), 1.0, 172800.0),
        ("19700103", 1.0, 172800.0),
        (" 19700103 ", 1e-3, 172800.0),
        ("20240131", 1.0, 1706659200.0),
        ("20240131", 1e-9, 1706659200.0),
        ("20240131T101500Z", 1.0, 1706696100.0),
        ("20241399", 1.0, 20241399.0),
        ("12345678", 1.0, 12345678.0),
        (20241399, 1.0, 20241399.0),
        (5, 1.0, 5.0),
        (1500, 1e-3, 1.5),
    ],
)
def test_times_are_read(value: Any, scale: float, seconds: float | None) -> None:
    assert clean_time(value, scale) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value",
    ["yesterday", "2026-13-01", "nan", "inf", -1, "-5", True, False, [], {}, [1], 10**400, "1e999", b"x", "1960-01-01",
     datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=23)))],
)  # fmt: skip
def test_what_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(RecordError, match="time"):
        clean_time(value, 1.0)


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(9000, 1, 1)))
def test_a_time_without_a_zone_is_utc(stamp: datetime) -> None:
    assert clean_time(stamp.isoformat(), 1.0) == clean_time(stamp.replace(tzinfo=UTC), 1.0)
    assert clean_time(stamp.isoformat() + "Z", 1.0) == clean_time(stamp, 1.0)


@pytest.mark.parametrize(("unit", "ticks"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_time_units(unit: str, ticks: int) -> None:
    assert clean_time(1_700_000_003 * ticks, time_scale(unit)) == pytest.approx(1_700_000_003.0)
    assert clean_time(ticks // 1000, time_scale(unit)) == pytest.approx(ticks // 1000 / ticks)


@pytest.mark.parametrize(
    ("value", "unit", "says"),
    [
        (1700000000000, "s", "time 1700000000000 is in the year 55841: is the unit ms?"),
        ("1700000000000", "s", "time '1700000000000' is in the year 55841: is the unit ms?"),
        (1700000000000000, "s", "is the unit us?"),
        (1700000000000000, "ms", "is the unit us?"),
        (1700000000000000000, "ms", "is the unit ns?"),
        (20240131101500, "s", "check it"),
        (1e30, "ns", "check it"),
        (1700000000, "ms", "time 1700000000 is in the year 1970: is the unit s?"),
        ("1700000000.5", "ms", "time '1700000000.5' is in the year 1970: is the unit s?"),
        (1700000000, "us", "is the unit s?"),
        (1700000000000, "us", "is the unit ms?"),
        (1700000000000, "ns", "is the unit ms?"),
        (1700000000000000, "ns", "is the unit us?"),
        (20240131, "s", "time 20240131 is in the year 1970: write a date as text, 2024-01-31"),
        (20240131.0, "ms", "time 20240131.0 is in the year 1970: write a date as text, 2024-01-31"),
    ],
)
def test_a_time_of_another_unit_names_the_unit_it_may_have(value: Any, unit: str, says: str) -> None:
    with pytest.raises(RecordError) as refusal:
        clean_time(value, time_scale(unit))
    assert str(refusal.value).endswith(says)


def test_a_date_far_ahead_is_taken() -> None:
    assert clean_time("2999-01-01", 1.0) == datetime(2999, 1, 1, tzinfo=UTC).timestamp()
    assert clean_time(1700000000000, time_scale("ms")) == 1.7e9


def test_an_unknown_time_unit_is_refused() -> None:
    with pytest.raises(SettingError, match="time_unit must be one of s, ms, us, ns; got 'h'"):
        time_scale("h")


@given(st.lists(ids))
def test_ids_are_kept_once_in_order(values: list[str]) -> None:
    assert clean_ids(list(values), "clicks") == list(dict.fromkeys(values))


def test_whole_numbers_are_ids_and_leading_zeros_survive() -> None:
    assert clean_ids([7, "007", "7", 7], "clicks") == ["7", "007"]


SOUND: dict[str, Any] = {"query": "NY  Pizza", "results": ["a", "b"], "clicks": ["b", "b"]}


def test_a_session_line() -> None:
    record = SOUND | {"query_id": 12, "user": 7, "time": "1970-01-01T00:00:09Z", "extra": {"kept": "out"}}
    assert clean_session(record) == Impression("ny pizza", ["a", "b"], ["b"], "12", "7", 9.0)


def test_a_session_line_may_leave_almost_everything_out() -> None:
    assert clean_session({"query_id": "q", "clicks": []}) == Impression("", None, [], "q")
    assert clean_session(
        {"query": None, "query_id": "q", "results": None, "clicks": ["1"], "user": "", "time": ""}
    ) == (Impression("", None, ["1"], "q"))
    assert clean_session({"query": "  ", "query_id": "q", "clicks": []}).query == ""


@pytest.mark.parametrize(("user", "session", "who"), [("u", "s", "u"), (None, "s", "s"), ("", 3, "3"), (0, "s", "0")])
def test_the_session_stands_in_for_the_user(user: Any, session: Any, who: str) -> None:
    assert clean_session(SOUND | {"user": user, "session": session}).user == who


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ([1], "a line must be a JSON object, got a list"),
        ("x", "a line must be a JSON object, got text"),
        (None, "a line must be a JSON object, got null"),
        (1.5, "a line must be a JSON object, got a number"),
        ({"clicks": []}, "neither query nor query_id"),
        ({"query": " ", "query_id": "", "clicks": []}, "neither query nor query_id"),
        (SOUND | {"query": ["x"]}, "query must be text, got a list"),
        (SOUND | {"query": "x" * (MAX_QUERY + 1)}, "query has 4097 characters, at most 4096"),
        (SOUND | {"query_id": "a b"}, "query_id 'a b' is empty or has white space"),
        (SOUND | {"query_id": True}, "query_id must be text, got true/false"),
        ({"query": "x", "results": ["a"]}, "no clicks"),
        (SOUND | {"clicks": None}, "clicks must be a list of ids, got null"),
        (SOUND | {"clicks": "a"}, "clicks must be a list of ids, got text"),
        (SOUND | {"clicks": [""]}, "an id in clicks '' is empty or has white space"),
        (SOUND | {"clicks": [None]}, "an id in clicks must be text, got null"),
        (SOUND | {"clicks": [1.5]}, "an id in clicks must be text, got a number"),
        (SOUND | {"results": {"a": 1}}, "results must be a list of ids, got an object"),
        (SOUND | {"results": ["a", "b c"]}, "an id in results 'b c' is empty or has white space"),
        (SOUND | {"results": ["a", "b\u2003"]}, "is empty or has white space"),
        (SOUND | {"user": {"id": 1}}, "user must be text, got an object"),
        (SOUND | {"user": 1.5}, "user must be text, got a number"),
        (SOUND | {"time": "noon"}, "time 'noon' is neither ISO 8601 nor a number"),
        (SOUND | {"time": -1}, "time -1 is not a time since 1970"),
    ],
)
def test_each_reason_to_refuse_a_session_line(record: Any, reason: str) -> None:
    with pytest.raises(RecordError) as refusal:
        clean_session(record)
    assert reason in str(refusal.value)


def test_the_longest_query_is_taken() -> None:
    assert len(clean_session(SOUND | {"query": "x" * MAX_QUERY}).query) == MAX_QUERY


@pytest.mark.parametrize(
    ("row", "clean"),
    [
        ({"query": "A", "doc_id": "01"}, PairCount("a", "01")),
        ({"query": "A", "doc_id": 1, "clicks": "", "impressions": ""}, PairCount("a", "1")),
        ({"query": "A", "doc_id": "1", "clicks": "3.0", "impressions": 9}, PairCount("a", "1", 3, 9)),
        ({"query": "A", "doc_id": "1", "clicks": 0}, PairCount("a", "1", 0)),
        ({"query": "A", "doc_id": "1", "clicks": 2**31 - 1}, PairCount("a", "1", 2**31 - 1)),
        ({"query_id": "q", "doc_id": "1", "user": "u", "time": "5"}, PairCount("", "1", 1, None, "q", "u", 5.0)),
    ],
)
def test_a_triple(row: dict[str, Any], clean: PairCount) -> None:
    assert clean_triple(row) == clean


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"query": ""}, "neither query nor query_id"),
        ({"doc_id": None}, "doc_id must be text, got null"),
        ({"doc_id": ""}, "doc_id '' is empty or has white space"),
        ({"doc_id": "a b"}, "doc_id 'a b' is empty or has white space"),
        ({"doc_id": b"a"}, "doc_id must be text, got bytes"),
        ({"clicks": "many"}, "clicks must be a whole number, got 'many'"),
        ({"clicks": "1.5"}, "clicks must be a whole number from 0"),
        ({"clicks": -1}, "clicks must be a whole number from 0"),
        ({"clicks": 2**31}, "clicks must be a whole number from 0"),
        ({"clicks": "nan"}, "clicks must be a whole number, got 'nan'"),
        ({"clicks": "inf"}, "clicks must be a whole number, got 'inf'"),
        ({"clicks": True}, "clicks must be a whole number from 0"),
        ({"clicks": [1]}, "clicks must be a whole number, got [1]"),
        ({"impressions": "-3"}, "impressions must be a whole number from 0"),
        ({"time": "noon"}, "neither ISO 8601 nor a number"),
    ],
)
def test_each_reason_to_refuse_a_triple(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecordError) as refusal:
        clean_triple({"query": "a", "doc_id": "1"} | change)
    assert reason in str(refusal.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("query", "query_id", "user", "time", "clicks"), json_values)))
def test_any_json_is_either_clean_or_refused(record: dict[str, Any]) -> None:
    for clean, more in ((clean_session, {"results": record.get("clicks")}), (clean_triple, {"doc_id": "1"})):
        try:
            out = clean(record | more)
        except RecordError:
            continue
        assert isinstance(out, Impression | PairCount)
        assert out.time is None or out.time >= 0
