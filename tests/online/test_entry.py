"""What comes in is normalised and checked before anything else happens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from clickbridge.errors import InputError
from clickbridge.io.secret import Secret
from clickbridge.models.catalogue import KnownQueries
from clickbridge.online.entry import Entry, from_json, page_entry
from clickbridge.types import OPAQUE, Impression

KNOWN = KnownQueries([OPAQUE + "Q7", "apple pie"], np.ones(2))
SECRET = Secret.new()
PAGE = {"query": "a", "results": ["x", "y"], "clicks": ["y"]}


def entry(page: Any, amount: Any = 1.0, users: bool = False) -> Entry:
    return page_entry(page, amount, known=KNOWN, longest=4, secret=SECRET if users else None)


@pytest.mark.parametrize("query", ["Apple Pie", " apple\tPIE ", "apple pie"])
def test_a_query_is_its_normalised_text(query: str) -> None:
    assert entry(Impression(query, ["x"], [])).key == "apple pie"


def test_ids_are_not_folded() -> None:
    by_text, by_id = entry(Impression("Q7", ["X", "x"], ["X"])), entry(Impression("", ["X", "x"], ["X"], "Q7"))
    assert by_text == by_id
    assert by_id.key == OPAQUE + "Q7"
    assert by_id.results == ("X", "x")
    assert entry(Impression("", ["x"], [], "q7")).key == OPAQUE + "q7"
    assert entry(Impression(OPAQUE + "New", ["x"], [])).key == OPAQUE + "New"


def test_what_is_learned_is_what_counts() -> None:
    made = entry(Impression("a", ["x", 7, "x", "y", "z", "beyond"], ["z", "beyond", "elsewhere"], "id", "ann", 3.0))  # type: ignore[list-item]
    assert made == Entry(kind="page", query="a", results=("x", "7", "y", "z"), clicks=("z",), time=3.0)
    assert entry(Impression("a", ("x",), ())) == entry({"query": "a", "results": ["x"], "clicks": []})  # type: ignore[arg-type]
    assert entry(PAGE | {"user": "ann"}).user == 0
    assert entry(PAGE | {"user": "ann"}, users=True).user > 0


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (None, "it is None, not an Impression"),
        ("a page", "not an Impression"),
        (PAGE | {"clikcs": []}, "it has 'clikcs'; a page has query, query_id, results, clicks"),
        ({"query": "a", "results": ["x"]}, "clicks must be a list of ids, got null"),
        (PAGE | {"query": 5}, "query must be text, got a number"),
        (PAGE | {"query": "  "}, "neither query nor query_id"),
        (PAGE | {"results": None}, "it has no results; update takes clicks without a page"),
        (PAGE | {"results": "xy"}, "results must be a list of ids, got text"),
        (PAGE | {"clicks": "y"}, "clicks must be a list of ids, got text"),
        (PAGE | {"results": ["x", None]}, "an id in results must be text, got null"),
        (PAGE | {"results": ["x y"]}, "is empty or has white space"),
        (PAGE | {"results": ["\ud800"]}, "is not valid Unicode"),
        (PAGE | {"query": "\ud800"}, "is not valid Unicode"),
        (PAGE | {"time": "yesterday"}, "neither ISO 8601 nor a number"),
        (PAGE | {"time": math.nan}, "is not a time"),
        (PAGE | {"user": ["ann"]}, "user must be text"),
    ],
)
def test_what_is_no_page_is_refused(page: Any, why: str) -> None:
    with pytest.raises(InputError, match=f"^a page cannot be learned: .*{why}"):
        entry(page)


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf, 0, -1, 1e10, "1", None, True])
def test_amounts_that_are_none(amount: Any) -> None:
    with pytest.raises(InputError, match=r"an amount is a number above 0 and up to 1e\+09; got"):
        entry(PAGE, amount)


@pytest.mark.parametrize(
    "made",
    [
        entry(PAGE),
        entry(PAGE | {"user": "ann", "time": 1.5}, 2.5, users=True),
        Entry(kind="undo", query_id="Q7", results=("x",), since=3, of=4),
        Entry(kind="forget"),
    ],
)
def test_written_and_read(made: Entry) -> None:
    assert from_json(made.to_json(41)) == (41, made)


@pytest.mark.parametrize(
    "text",
    [b"[]", b"7", b'{"kind":"page"}', b'{"n":1}', b'{"n":1,"kind":"other"}', b'{"n":1,"kind":"page","what":1}',
     b'{"n":1,"kind":"page","results":"xy"}', b'{"n":1,"kind":"page","results":[1]}', b'{"n":"1","kind":"page"}',
     b'{"n":1,"kind":"page","amount":true}', b"{", b""],
)  # fmt: skip
def test_lines_that_are_none(text: bytes) -> None:
    with pytest.raises(ValueError):
        from_json(text)
