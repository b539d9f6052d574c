"""Click logs in every shape they come in, sound and damaged."""

from __future__ import annotations

import csv
import gzip
import io
import subprocess
import sys
import tempfile
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge import read_log
from clickbridge.errors import InputError, SettingError
from clickbridge.log.readers import LogReader
from clickbridge.log.rejects import RejectLog
from clickbridge.types import Impression, PairCount

SESSIONS = [
    {"query": "NY pizza", "results": ["01", "2"], "clicks": ["01"], "user": "u", "time": 5},
    {"query_id": "q7", "results": ["2", "3"], "clicks": []},
    {"query": "bagel", "clicks": ["9"]},
]
PAGES = [
    Impression("ny pizza", ["01", "2"], ["01"], None, "u", 5.0),
    Impression("", ["2", "3"], [], "q7"),
    Impression("bagel", None, ["9"]),
]
JSONL = b"".join(orjson.dumps(record) + b"\n" for record in SESSIONS)
TABLE = b"query,doc_id,clicks\nny pizza,01,3\nbagel,2,1\n"
ROWS = [PairCount("ny pizza", "01", 3), PairCount("bagel", "2", 1)]
XML = (
    b'<sessiontrack><session num="1"><interaction><query>NY pizza</query><results><result rank="1"><url>http://a</url>'
    b"</result></results></interaction></session></sessiontrack>"
)


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


def written(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def parquet(path: Path, columns: dict[str, Any]) -> str:
    pq.write_table(pa.table(columns), path)
    return str(path)


def lenient(path: str, **options: Any) -> LogReader:
    return read_log(path, rejects=RejectLog(1.0), **options)


def reasons(log: LogReader) -> list[tuple[int, str]]:
    return [(reject.line, reject.reason) for reject in log.rejects.first]


# --- containers and formats ----------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd], ids=["plain", "gzip", "zstd"])
@pytest.mark.parametrize("suffix", ["", ".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_sessions_whatever_wraps_them(tmp_path: Path, pack: Any, suffix: str) -> None:
    """The bytes tell the container, whatever the name says."""
    assert list(read_log(written(tmp_path / f"log{suffix}", pack(JSONL)))) == PAGES


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_members_end_to_end_are_one_file(tmp_path: Path, pack: Any) -> None:
    assert list(read_log(written(tmp_path / "log.jsonl", pack(JSONL) + pack(JSONL)))) == PAGES * 2


@pytest.mark.parametrize(
    ("data", "count"),
    [(JSONL, 3), (gzip.compress(JSONL), 3), (zstd(JSONL), 3), (TABLE, 2), (XML, 2), (b"", None)],
    ids=["plain", "gzip", "zstd", "csv", "xml", "empty"],
)
def test_standard_input(data: bytes, count: int | None) -> None:
    code = (
        "from clickbridge import read_log\nfrom clickbridge.errors import InputError\n"
        "try: print(len(list(read_log('-'))))\nexcept InputError: print(None)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True)
    assert done.stdout.decode().strip() == str(count), done.stderr.decode()


def test_parquet_from_standard_input(tmp_path: Path) -> None:
    data = Path(parquet(tmp_path / "log.parquet", {"query": ["a"], "doc_id": ["1"]})).read_bytes()
    code = "from clickbridge import read_log; print(list(read_log('-'))[0].doc_id)"
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True)
    assert done.stdout.strip() == b"1", done.stderr.decode()


def test_several_files_are_one_log_and_may_be_read_again(tmp_path: Path) -> None:
    log = read_log(written(tmp_path / "a.jsonl", JSONL), written(tmp_path / "b.csv", TABLE))
    assert list(log) == PAGES + ROWS
    assert list(log) == PAGES + ROWS


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["", "bom"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("name", ["log", "log.txt", "own"])
@pytest.mark.parametrize(
    ("data", "suffix", "records"),
    [(JSONL, ".jsonl", PAGES), (TABLE, ".csv", ROWS), (TABLE.replace(b",", b"\t"), ".tsv", ROWS)],
    ids=["sessions", "csv", "tsv"],
)
def test_formats_by_extension_and_by_first_line(
    tmp_path: Path, data: bytes, suffix: str, records: list[Any], name: str, end: bytes, bom: bytes
) -> None:
    name = name.replace("own", "log" + suffix)
    blanks = data.replace(b"\n", end + end)
    assert list(read_log(written(tmp_path / name, bom + blanks))) == records


def test_the_content_goes_before_the_extension(tmp_path: Path) -> None:
    assert list(read_log(written(tmp_path / "log.csv", JSONL))) == PAGES
    assert list(read_log(written(tmp_path / "log.tsv", TABLE))) == ROWS


def test_a_last_line_without_an_end_counts(tmp_path: Path) -> None:
    assert list(read_log(written(tmp_path / "log.jsonl", JSONL.rstrip()))) == PAGES
    assert list(read_log(written(tmp_path / "log.csv", TABLE.rstrip()))) == ROWS


@pytest.mark.parametrize("data", [b"", b"hello\nworld\n", b"\x00\x01\x02"])
def test_a_format_that_cannot_be_told(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError, match=r"cannot recognise the format of .*is it the right file"):
        list(read_log(written(tmp_path / "log", data)))


def test_refused_settings() -> None:
    with pytest.raises(SettingError, match="format must be one of auto, sessions"):
        read_log("x", format="ubi9")
    with pytest.raises(SettingError, match=r"columns renames query, .*got 'title'"):
        read_log("x", columns={"title": "t"})
    with pytest.raises(SettingError, match="time_unit"):
        read_log("x", time_unit="days")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file .*: check the path"):
        list(read_log(tmp_path / "nothing.jsonl"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"Is a directory|is a folder"):
        list(read_log(str(tmp_path)))


# --- tables --------------------------------------------------------------------------------------

cells = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from('",;\n\r\t'), min_size=1, max_size=12)
texts = cells.filter(lambda text: text.split())


@given(st.lists(texts, min_size=1, max_size=6))
@settings(max_examples=40)
def test_csv_is_rfc_4180(queries: list[str]) -> None:
    """What the csv library writes with any quotes, commas and line ends comes back."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerow(["query", "doc_id"])
    writer.writerows([query, "1"] for query in queries)
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(out.getvalue().encode())
        file.flush()
        found = [record.query for record in read_log(file.name)]  # type: ignore[union-attr]
        oracle = [record.query for record in map(_clean_query, queries)]
    assert found == oracle


def _clean_query(text: str) -> PairCount:
    from clickbridge import normalise_query

    return PairCount(normalise_query(text), "1")


def test_csv_quotes_and_line_ends_inside_a_cell(tmp_path: Path) -> None:
    data = b'doc_id,query\n007,"say ""cheese"",\nplease"\n8,plain\n'
    assert list(read_log(written(tmp_path / "log.csv", data))) == [
        PairCount('say "cheese", please', "007"),
        PairCount("plain", "8"),
    ]


def test_tsv_has_no_quoting(tmp_path: Path) -> None:
    data = b'query\tdoc_id\n"12 inch" tv\t"a"\n15" tv, black\tb\n'
    assert list(read_log(written(tmp_path / "log.tsv", data))) == [
        PairCount('"12 inch" tv', '"a"'),
        PairCount('15" tv, black', "b"),
    ]


def test_wrong_column_counts_are_rejects(tmp_path: Path) -> None:
    hint = "; a {} within a text needs quotes"
    for name, cut, more in (
        ("log.csv", ",", hint.format(",")),
        ("s.csv", ";", hint.format(";")),
        ("log.tsv", "\t", "; a tab within a text ends its column: write CSV with quotes"),
    ):
        rows = ["query,doc_id,clicks", "a,1,1", "a,1", "a,1,1,1", "b,2,2"]
        log = lenient(written(tmp_path / name, "\n".join(rows).replace(",", cut).encode()))
        assert list(log) == [PairCount("a", "1", 1), PairCount("b", "2", 2)]
        assert reasons(log) == [(3, "2 columns, the header has 3"), (4, f"4 columns, the header has 3{more}")]
        assert log.rejects.lines == 4


def test_bytes_that_are_not_utf8_are_rejects(tmp_path: Path) -> None:
    for name, cut in (("log.csv", b","), ("log.tsv", b"\t")):
        data = b"query,doc_id\ncaf\xe9,1\ncaf\xc3\xa9,2\n".replace(b",", cut)
        log = lenient(written(tmp_path / name, data))
        assert list(log) == [PairCount("café", "2")]
        assert reasons(log) == [(2, "not UTF-8: give --encoding")]
    data = b'{"query":"caf\xe9","clicks":["1"]}\n' + JSONL.replace(b"bagel", "b\u00e4gel \u00fc".encode())
    log = lenient(written(tmp_path / "log.jsonl", data))
    assert list(log) == [*PAGES[:2], Impression("bägel ü", None, ["9"])]
    assert reasons(log)[0][1].startswith("not JSON")


def test_a_quote_left_open_costs_every_line_it_swallows(tmp_path: Path) -> None:
    data = b"query,doc_id\n" + b"a,1\n" * 500 + b'b,"1\n' + b"a,1\n" * 300
    with pytest.raises(InputError, match=r"301 of 801 lines are unusable.*line 502: not CSV: a quote is not closed"):
        list(read_log(written(tmp_path / "log.csv", data)))


def test_text_after_a_closing_quote_is_a_reject(tmp_path: Path) -> None:
    log = lenient(written(tmp_path / "log.csv", b'query,doc_id\n"a"b,1\nc,2\n'))
    assert list(log) == [PairCount("c", "2")]
    assert reasons(log) == [(2, "not CSV: a quote is not closed, or not doubled within a text")]


def test_columns_are_renamed(tmp_path: Path) -> None:
    columns = {"query": "q", "doc_id": "sku", "time": "click_time"}
    data = b"q,sku,time,click_time\nA,01,yesterday,5000\n"
    wanted = [PairCount("a", "01", time=5.0)]
    assert list(read_log(written(tmp_path / "log.csv", data), columns=columns, time_unit="ms")) == wanted
    path = parquet(tmp_path / "log.parquet", {"q": ["A"], "sku": ["01"], "time": ["x"], "click_time": [5000]})
    assert list(read_log(path, columns=columns, time_unit="ms")) == wanted
    line = orjson.dumps({"q": "A", "results": ["1"], "picked": ["1"], "clicks": "not a list"})
    renamed = read_log(written(tmp_path / "log.jsonl", line), columns={"query": "q", "clicks": "picked"})
    assert list(renamed) == [Impression("a", ["1"], ["1"])]


def test_columns_can_change_places(tmp_path: Path) -> None:
    swap = {"query": "doc_id", "doc_id": "query"}
    assert list(read_log(written(tmp_path / "log.csv", b"query,doc_id\n1,a\n"), columns=swap)) == [PairCount("a", "1")]


@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log.parquet"])
def test_missing_columns_stop(tmp_path: Path, name: str) -> None:
    def table(*columns: str) -> str:
        if name == "log.parquet":
            return parquet(tmp_path / name, {column: ["1"] for column in columns})
        cut = "," if name == "log.csv" else "\t"
        return written(tmp_path / name, (cut.join(columns) + "\n" + cut.join("1" for _ in columns) + "\n").encode())

    with pytest.raises(InputError, match="needs columns query and doc_id; it has query, weight: name them with"):
        list(read_log(table("query", "weight")))
    with pytest.raises(InputError, match="needs columns query and doc_id"):
        list(read_log(table("weight", "doc_id")))
    with pytest.raises(InputError, match="has no column 'when' for time; it has query, doc_id"):
        list(read_log(table("query", "doc_id"), columns={"time": "when"}))
    assert list(read_log(table("query_id", "doc_id"))) == [PairCount("", "1", query_id="1")]


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n\r\n"])
@pytest.mark.parametrize("name", ["log.csv", "log.tsv"])
def test_a_table_without_a_header_stops(tmp_path: Path, name: str, data: bytes) -> None:
    with pytest.raises(InputError, match="is empty, or its first line is: a header line"):
        list(read_log(written(tmp_path / name, data)))


def test_a_table_of_a_header_alone_is_an_empty_log(tmp_path: Path) -> None:
    assert list(read_log(written(tmp_path / "log.csv", b"query,doc_id\n"))) == []


def test_parquet_types(tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "log.parquet",
        {
            "query": pa.array(["A", "B", None]).dictionary_encode(),
            "query_id": ["x", None, "007"],
            "doc_id": pa.array([1, 2, 3], pa.int64()),
            "clicks": pa.array([1.0, 2.0, None]),
            "impressions": pa.array([None, 9, 1], pa.int32()),
            "user": [None, "u", "v"],
            "time": pa.array(
                [datetime(1970, 1, 1, 0, 0, 7), None, datetime(1970, 1, 2, tzinfo=UTC)], pa.timestamp("ms")
            ),
        },
    )
    assert list(read_log(path)) == [
        PairCount("a", "1", 1, None, "x", None, 7.0),
        PairCount("b", "2", 2, 9, None, "u", None),
        PairCount("", "3", 1, 1, "007", "v", 86400.0),
    ]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Rome"])
def test_parquet_times(tmp_path: Path, unit: str, zone: str | None) -> None:
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    stamps = pa.array([1_500_000_000 * ticks + (123 if unit == "ns" else 0)], pa.timestamp(unit, zone))
    path = parquet(tmp_path / "log.parquet", {"query": ["a"], "doc_id": ["1"], "time": stamps})
    (record,) = read_log(path)
    assert record.time == 1_500_000_000.0  # type: ignore[union-attr]


def test_parquet_rejects_have_row_numbers(tmp_path: Path) -> None:
    log = lenient(parquet(tmp_path / "log.parquet", {"query": ["a", "b"], "doc_id": ["1", "two words"]}))
    assert len(list(log)) == 1
    assert reasons(log) == [(2, "doc_id 'two words' is empty or has white space")]
    assert log.rejects.lines == 2


# --- damage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.99])
@pytest.mark.parametrize("name", ["log.jsonl.gz", "log.csv.gz", "log.tsv.gz", "log.xml.gz", "log.gz"])
def test_a_gzip_file_cut_short_always_stops(tmp_path: Path, name: str, share: float) -> None:
    rng = np.random.default_rng(0)
    body = {"csv": TABLE, "tsv": TABLE.replace(b",", b"\t"), "xml": XML}.get(name.split(".")[1], JSONL)
    if "xml" not in name:
        lines = body.splitlines(keepends=True)
        body = lines[0] + b"".join(lines[1 + i] for i in rng.integers(0, len(lines) - 1, 5000))
    packed = gzip.compress(body)
    with pytest.raises(InputError, match=r"damaged or cut short.*fetch or write it again"):
        list(lenient(written(tmp_path / name, packed[: max(3, int(len(packed) * share))])))


@pytest.mark.parametrize("kept", [5, 10, 40, -1])
def test_a_zstd_file_cut_short_always_stops(tmp_path: Path, kept: int) -> None:
    with pytest.raises(InputError, match="damaged or cut short"):
        list(lenient(written(tmp_path / "log.jsonl.zst", zstd(JSONL * 100)[:kept])))


def test_a_damaged_packed_file_stops(tmp_path: Path) -> None:
    one, two = gzip.compress(JSONL * 100), zstd(JSONL)
    damaged = [("gz", data) for data in (one[:-8] + b"\0" * 8, one + b"junk", one[:20] + b"\xff" * 30 + one[50:])]
    for name, data in [*damaged, ("zst", two + b"junk"), ("zst", two[:4] + b"\xff" * 50)]:
        with pytest.raises(InputError, match="damaged or cut short"):
            list(lenient(written(tmp_path / f"log.jsonl.{name}", data)))


def test_a_damaged_parquet_file_stops(tmp_path: Path) -> None:
    whole = Path(parquet(tmp_path / "sound.parquet", {"query": ["a"] * 99, "doc_id": ["1"] * 99})).read_bytes()
    half = len(whole) // 2
    for data in (b"", b"PAR1", whole[:-1], whole[:half], whole[:8] + b"\0" * 30 + whole[38:], b"RAP1" + whole[4:]):
        with pytest.raises(InputError, match="is not a valid Parquet file") as refusal:
            list(lenient(written(tmp_path / "log.parquet", data)))
        assert "\n" not in str(refusal.value)


def test_parquet_text_that_is_not_utf8_stops(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 2], dtype=np.int32).tobytes())
    bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    with pytest.raises(InputError, match="is not a valid Parquet file"):
        list(lenient(parquet(tmp_path / "log.parquet", {"query": bad, "doc_id": ["1"]})))


@pytest.mark.parametrize(
    "data",
    [b"", b"<", XML[:-20], b"<a>\x01</a>", b"<a>\xff</a>", b"<a></b>", b"{}", b"<a/><b/>",
     b'<?xml version="1.0" encoding="foo"?><a/>', b'<?xml version="1.0" encoding="shift_jis"?><a/>'],
)  # fmt: skip
def test_damaged_xml_stops(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError, match="is not valid XML"):
        list(lenient(written(tmp_path / "log.xml", data)))


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"query":"x","clicks":['])
def test_deep_nesting_is_a_reject(tmp_path: Path, opening: str) -> None:
    log = lenient(written(tmp_path / "log.jsonl", opening.encode() * 50_000 + b"\n" + JSONL))
    assert list(log) == PAGES
    assert reasons(log)[0][0] == 1
    assert reasons(log)[0][1].startswith("not JSON")


@pytest.mark.parametrize(
    "record",
    ['{"query":"x","clicks":["a"],"time":%s}', '{"query":"x","clicks":["a"],"user":%s}', '{"hits":{"hits":%s}}',
     '{"query_id":"1","action_name":%s}', '{"query":"x","results":[{"doc_id":%s,"clicked":1}]}'],
)  # fmt: skip
def test_no_value_is_too_deep_to_be_shown(tmp_path: Path, record: str) -> None:
    """Python's own `repr` ends on values that its parser of JSON still reads."""
    deep = record % ("[" * 1000 + "]" * 1000)
    log = lenient(written(tmp_path / "log.jsonl", deep.encode() + b"\n" + JSONL))
    assert list(log) == PAGES
    assert reasons(log) == [(1, "not JSON: nested more than 100 deep")]


@given(st.binary(max_size=200), st.sampled_from(["log", "log.jsonl", "log.csv", "log.tsv", "log.parquet", "log.xml"]))
@settings(max_examples=150)
def test_any_bytes_give_records_or_an_input_error(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            records = list(lenient(written(Path(folder) / name, data)))
        except InputError:
            return
    assert all(isinstance(record, Impression | PairCount) for record in records)


# --- memory --------------------------------------------------------------------------------------


def _peak(path: str) -> int:
    for _ in read_log(path):  # caches filled before the measurement
        break
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_log(path))
        assert count in (5_000, 25_000)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "csv", "tsv", "xml"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, kind: str) -> None:
    line = (
        orjson.dumps({"query": "some words " * 10, "results": [f"d{i}" for i in range(10)], "clicks": ["d1"]}) + b"\n"
    )
    row = b"some words," + b"d" * 300 + b"\n"
    session = b"<session><interaction><query>" + b"some words " * 20 + b"</query></interaction></session>\n"
    peaks = []
    for n in (5_000, 25_000):
        data = {
            "jsonl": line * n,
            "jsonl.gz": line * n,
            "csv": b"query,doc_id\n" + row * n,
            "tsv": b"query\tdoc_id\n" + row.replace(b",", b"\t") * n,
            "xml": b"<a>" + session * n + b"</a>",
        }[kind]
        packed = gzip.compress(data, 1) if kind == "jsonl.gz" else data
        peaks.append(_peak(written(tmp_path / f"log-{n}.{kind}", packed)))
    assert peaks[1] < peaks[0] + 1_500_000, peaks
