"""JSON from outside: as it stands, or refused, and never deeper than Python can follow."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from clickbridge.io.json_text import MOST_NESTED, parse_json


@pytest.mark.parametrize("value", [None, 1.5, "[" * 500, [], {}, [[1], {"a": [2]}], [{"a": [1]}] * 300])
def test_values_come_as_they_stand(value: Any) -> None:
    text = orjson.dumps(value)
    assert parse_json(text) == parse_json(text.decode()) == value


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
@pytest.mark.parametrize("kind", [str, str.encode])
def test_nesting_has_a_limit(opening: str, closing: str, kind: Any) -> None:
    times = MOST_NESTED // (opening.count("[") + opening.count("{"))
    deep = opening * times + "1" + closing * times
    parse_json(kind(deep))
    with pytest.raises(orjson.JSONDecodeError, match="nested more than 100 deep"):
        parse_json(kind(f"[{deep}]"))
    with pytest.raises(orjson.JSONDecodeError, match="nested more than 100 deep"):
        parse_json(kind(f'[1, "x", {{"b": {deep}}}]'))


@pytest.mark.parametrize("text", [b"", b"{", b"NaN", b'"\xff"', b"[1,]"])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        parse_json(text)
