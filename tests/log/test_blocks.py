"""Records cleaned many at once are what they are one by one, down to rejects and repeats."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge.io import streams
from clickbridge.log import source
from clickbridge.log.blocks import PageBlock, PairBlock, in_blocks, pages_in, pairs_in, without_names
from clickbridge.log.readers import LogReader, read_log
from clickbridge.log.record_cleaner import BY_THEMSELVES
from clickbridge.log.rejects import RejectLog
from clickbridge.types import Document, Impression, PairCount, query_key

MESSY: list[Any] = ["", " ", None, 0, 1.5, -3, True, 10**400, [], {}, "a b", "\x1f", " x"]
TEXTS = st.one_of(
    st.sampled_from(["ny pizza", "Big  Apple", " tea", "ÄPFEL", "a\tb", "a\nb", "x\x1fy", "q" * 4097, "q" * 4096]),
    st.text(max_size=6),
)
IDS = st.one_of(st.sampled_from(["d1", "d2", "d3", "é", "a-b_c"]), st.text(min_size=1, max_size=3))
TIMES = st.one_of(
    st.none(),
    st.integers(1_600_000_000, 1_600_000_003),
    st.floats(8e8, 7e9, allow_nan=False),
    st.sampled_from(["2024-01-31", "1700000000", "soon", 20240131, 5, float(2**60)]),
)
USERS = st.one_of(st.none(), st.sampled_from(["", "u1", "u2", 7]))


def messy(clean: st.SearchStrategy[Any], share: int) -> st.SearchStrategy[Any]:
    """Mostly clean values; `share` of a hundred are anything."""
    return st.integers(0, 99).flatmap(lambda n: st.sampled_from(MESSY) if n < share else clean)


def rows_of(share: int, **columns: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries({}, optional={name: messy(values, share) for name, values in columns.items()})
    whole = st.fixed_dictionaries({name: messy(values, share) for name, values in columns.items()})
    return st.lists(st.one_of(whole, whole, whole, row), min_size=1, max_size=60)


COMMON = {"query": TEXTS, "user": USERS, "session": USERS, "time": TIMES}
LISTS = st.lists(IDS, max_size=4)
PAGES = {**COMMON, "results": st.one_of(LISTS, LISTS, st.none()), "clicks": st.one_of(LISTS, st.just([]))}
COUNTS = st.one_of(st.none(), st.integers(0, 9), st.sampled_from(["3", "", 2.0, 2**31]))
PAIRS = {**COMMON, "doc_id": IDS, "clicks": COUNTS, "impressions": COUNTS}


def as_tuples(parts: Any) -> list[tuple[Any, ...]]:
    """The cells of records, or of blocks, one record after the other."""
    found: list[tuple[Any, ...]] = []
    for part in parts:
        blocks = [part] if isinstance(part, PageBlock | PairBlock) else list(in_blocks([part]))
        found += [block[i] for block in blocks for i in range(len(block))]
    return found


def both_ways(path: Path, **reading: Any) -> tuple[LogReader, LogReader]:
    one, many = (
        read_log(str(path), rejects=RejectLog(1.0, path.with_suffix(f".{n}"), append=True), **reading) for n in (1, 2)
    )
    assert as_tuples(one) == as_tuples(many.blocks())
    assert (one.rejects.count, one.rejects.lines, one.repeated) == (
        many.rejects.count,
        many.rejects.lines,
        many.repeated,
    )
    left_out = [path.with_suffix(f".{n}") for n in (1, 2)]
    assert len({file.read_bytes() if file.is_file() else b"" for file in left_out}) == 1
    for file in left_out:
        file.unlink(missing_ok=True)
    return one, many


@settings(max_examples=150, deadline=None)
@given(data=st.data(), share=st.sampled_from([0, 0, 2, 20]), scale=st.sampled_from(["s", "ms"]))
def test_pages_in_a_block_are_the_pages_one_by_one(
    data: st.DataObject, share: int, scale: str, tmp_path_factory: Any
) -> None:
    rows = data.draw(rows_of(share, **PAGES))
    rows = [{"query": "tea", "results": ["d1"], "clicks": []}, *rows, rows[-1]]  # the last is repeated
    path = tmp_path_factory.mktemp("pages") / "log.jsonl"
    lines = [_json(row) for row in rows]
    path.write_bytes(b"\n".join(lines) + data.draw(st.sampled_from([b"", b"\n", b"\n\n", b"\nnull\n", b"\n{\n"])))
    both_ways(path, format="sessions", time_unit=scale)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), share=st.sampled_from([0, 0, 2, 20]))
def test_rows_of_clicks_in_a_block_are_the_rows_one_by_one(
    data: st.DataObject, share: int, tmp_path_factory: Any
) -> None:
    rows = [{"query": "tea", "doc_id": "d1"}, *data.draw(rows_of(share, **PAIRS))]
    path = tmp_path_factory.mktemp("pairs") / "log.jsonl"
    path.write_bytes(b"\r\n".join(map(_json, rows)))
    both_ways(path, format="triples", time_unit="s")


def _json(row: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(row)
    except TypeError:  # a whole number beyond 64 bits
        import json

        return json.dumps(row).encode()


def test_columns_under_other_names(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [{"q": f"tea {n}", "shown": {"ids": [f"d{n}", "d"]}, "hit": ["d"], "other": "x" * n} for n in range(500)]
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    one, _ = both_ways(path, columns={"query": "q", "results": "shown.ids", "clicks": "hit"})
    assert len(as_tuples(one)) == 500


@pytest.mark.parametrize("ids", [["d1", "d2"], [1, 2]])
def test_a_table_and_a_parquet_file(tmp_path: Path, ids: list[Any]) -> None:
    cycle = itertools.cycle(ids)
    rows = [{"query": f"Tea {n % 7}", "doc_id": next(cycle), "clicks": n % 3, "time": 1.7e9} for n in range(700)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    lines = ["query,doc_id,clicks,time", *(",".join(map(str, row.values())) for row in rows)]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    seen = [as_tuples(both_ways(tmp_path / name)[0]) for name in ("log.parquet", "log.csv")]
    assert seen[0] == seen[1]
    assert len(seen[0]) == 700


def test_one_bad_line_spoils_its_neighbours_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = [orjson.dumps({"query": f"q{n}", "results": ["a", "b"], "clicks": ["b"]}) for n in range(1000)]
    lines[500] = orjson.dumps({"query": "", "results": ["a"], "clicks": []})
    path.write_bytes(b"\n".join(lines))
    log = read_log(str(path), rejects=RejectLog(1.0))
    cleaned = list(log._all(by_block=True))
    alone = [part for part in cleaned if not isinstance(part, PageBlock)]
    assert len(alone) < BY_THEMSELVES
    assert sum(len(part) for part in cleaned if isinstance(part, PageBlock)) + len(alone) == 999


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("at_once", [1, 7, 1 << 15])
def test_lines_in_blocks_are_the_lines(monkeypatch: pytest.MonkeyPatch, end: bytes, at_once: int) -> None:
    import io

    monkeypatch.setattr(streams, "LINES_AT_ONCE", at_once)
    text = b"\xef\xbb\xbf" * (at_once >= 7) + b"one\n\ntwo\r\nthree words" + end
    blocks = list(streams.line_blocks(io.BytesIO(text), "log"))
    assert [line.rstrip(b"\r") for block in blocks for line in block] == list(streams.lines(io.BytesIO(text), "log"))


def test_a_json_array_comes_one_by_one(tmp_path: Path) -> None:
    """An object may have 64 MiB: of objects that are no lines, a block would hold too much."""
    path = tmp_path / "log.json"
    path.write_bytes(orjson.dumps([{"query": f"q{n}", "results": ["a"], "clicks": []} for n in range(50)]))
    log = read_log(str(path))
    with streams.open_stream(str(path)) as stream:
        found, _ = log._recognised(str(path), stream)
        assert {len(rows) for _, rows in found.pieces(RejectLog())} == {1}
    both_ways(path)
    assert source.ROWS_AT_ONCE > 1


def test_blocks_hold_nothing_that_names_a_person() -> None:
    block = PageBlock.of(
        [Impression("jo@example.org", ["a"], []), Impression("", ["a"], [], query_id="jo@example.org")]
    )
    assert without_names(block).queries == ["[e-mail]", query_key("", "jo@example.org")]


def test_what_is_given_in_turn_stays_in_turn() -> None:
    parts = [PairCount("a", "d"), PairCount("b", "d"), Document("d"), Impression("c", None, ["d"]), PairCount("e", "d")]
    found = list(in_blocks(parts))
    assert [type(part).__name__ for part in found] == ["PairBlock", "Document", "PageBlock", "PairBlock"]
    assert [cells[0] for cells in as_tuples([p for p in found if not isinstance(p, Document)])] == ["a", "b", "c", "e"]


def test_a_block_refuses_what_needs_a_look() -> None:
    row = {"query": "q", "results": ["a"], "clicks": []}
    assert pages_in([row], 1.0) is not None
    for bad in (
        {"query": ""},
        {"query_id": "7"},
        {"clicks": None},
        {"results": ["a b"]},
        {"results": [""]},
        {"time": "x"},
    ):
        assert pages_in([row, row | bad], 1.0) is None
    pair = {"query": "q", "doc_id": "d"}
    assert pairs_in([pair], 1.0) is not None
    for bad in ({"doc_id": 5}, {"clicks": -1}, {"impressions": 2.5}, {"user": ["u"]}):
        assert pairs_in([pair, pair | bad], 1.0) is None
