"""Records of every reader, mutated: a reader gives clean records or one of our errors, and nothing else leaves it.

Bytes are changed, and values inside of JSON are put in the place of others. Of line formats a file holds several
mutated records, since a reader goes on after a bad one. Parquet files get columns of random types, and bytes changed
anywhere. Now and then what was read is built into a GRAPH.
"""

from __future__ import annotations

import copy
import gzip
from pathlib import Path
from random import Random
from typing import Any

import orjson

from campaigns.tally import Tally
from campaigns.targets import TARGETS, Target, temporary_home
from clickbridge import ClickGraph
from clickbridge.errors import ClickbridgeError
from clickbridge.log.readers import read_log
from clickbridge.log.rejects import RejectLog

SHORT, LONG = 4_000, 1_000_000
BUILT_EVERY, PARQUET_SHARE, PACKED_SHARE, RESHAPED_SHARE = 400, 0.02, 0.02, 0.3
TOKENS = [
    b'"', b"{", b"}", b"[", b"]", b",", b":", b"null", b"true", b"NaN", b"1e999", b"-1", b"0", b"9" * 40, b"\\u0000",
    b"\\ud800", b"\xff\xfe", b"\xef\xbb\xbf", b"\x00", b"\r", b"\t", b"\n", b" ", b"\xe2\x80\xa8", b"<", b">", b"&lt;",
    b"<!DOCTYPE", b"]]>", b"9999-12-31", b"0001-01-01T00:00:00+23:59", b"1e308", b"-0.0", b"0x10", b"query", b"clicks",
    b"qid:", b"#", b"\x1f", b"\x1b[2J", b"d1", b"a" * 300, b'{"a":' * 50, "é́ﬁ".encode(),
]  # fmt: skip
VALUES: list[Any] = [
    None, True, 5, -1, 0.5, 2**40, "", "x", [], {}, [5], ["x", None], {"a": 1}, [{}],
    orjson.Fragment(b"[" * 999 + b"]" * 999), orjson.Fragment(b'{"a":' * 99 + b"1" + b"}" * 99),
]  # fmt: skip


def run(count: int, seed: int = 0) -> Tally:
    tally, rng, names = Tally(), Random(seed), list(TARGETS)
    with temporary_home() as place:
        home, number = Path(place), 0
        while tally.tried < count:
            number += 1
            if rng.random() < PARQUET_SHARE:
                _parquet(tally, home, rng)
            else:
                name = rng.choice(names)
                _text(tally, home, name, TARGETS[name], rng, build=number % BUILT_EVERY == 0)
    return tally


def reshaped(record: bytes, rng: Random) -> bytes:
    """A JSON record with one value of another kind, or one that was elsewhere."""
    value = orjson.loads(record)
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    for item in waiting:
        inside = list(item.items() if type(item) is dict else enumerate(item) if type(item) is list else ())
        places += [(item, key) for key, _ in inside]
        waiting += [below for _, below in inside]
    holder, key = rng.choice(places)
    holder[key] = rng.choice([*VALUES, copy.deepcopy(rng.choice(waiting))])
    return orjson.dumps(value)


def mutated(record: bytes, rng: Random) -> bytes:
    """One to four small changes; of a JSON record, often to its values instead."""
    if record.startswith(b"{") and record.endswith(b"}") and rng.random() < RESHAPED_SHARE:
        return reshaped(record, rng)
    out = bytearray(record)
    for _ in range(rng.randint(1, 4)):
        a = rng.randint(0, len(out))
        b = min(len(out), a + rng.choice((1, 1, 2, 5, 20)))
        how = rng.randrange(6)
        if how == 0 and out:
            out[min(a, len(out) - 1)] ^= 1 << rng.randrange(8)
        elif how == 1:
            del out[a:b]
        elif how == 2:
            out[a:a] = out[a:b] * rng.choice((1, 2, 30))
        elif how == 3:
            out[a:b] = rng.choice(TOKENS)
        elif how == 4:
            out[a:a] = rng.choice(TOKENS)
        else:
            c = rng.randint(0, len(out))
            out[a:a] = out[c : c + rng.choice((1, 8, 40))]
    return bytes(out)


def _text(tally: Tally, home: Path, name: str, target: Target, rng: Random, build: bool) -> None:
    records = [mutated(rng.choice(target.records), rng) for _ in range(target.together)]
    head = mutated(target.head, rng) if target.head and rng.random() < 0.05 else target.head
    data = b"\n".join([*([head] if head else []), *records, target.tail]) + b"\n"
    suffix = target.suffix
    if rng.random() < PACKED_SHARE:
        data, suffix = mutated(gzip.compress(data, 1), rng), f"{suffix}.gz"
    file = home / f"input{suffix}"
    file.write_bytes(data)
    tally.tried += len(records)
    _read(tally, name, target.read, file, data)
    if build and name in ("sessions", "triples.csv", "ubi", "metarank"):
        _read(tally, f"build of {name}", _built, file, data)


def _read(tally: Tally, name: str, read: Any, file: Path, data: bytes) -> None:
    try:
        read(str(file))
    except ClickbridgeError:
        tally.hit += 1
    except Exception as error:
        tally.error(f"{name} {data[:300]!r}", error)


def _built(path: str) -> None:
    ClickGraph.build(read_log(path, rejects=RejectLog("100%")))


# --- Parquet -----------------------------------------------------------------------------------------


def _parquet(tally: Tally, home: Path, rng: Random) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = home / "input.parquet"
    names = rng.sample(["query", "doc_id", "clicks", "impressions", "user", "time", "title", "query_id"], 5)
    columns = {name: _column(rng) for name in {"query", "doc_id", *names}}
    try:
        pq.write_table(pa.table(columns), file)
    except (pa.ArrowException, NotImplementedError):
        return
    if rng.random() < 0.6:
        data = bytearray(file.read_bytes())
        for _ in range(rng.choice((1, 1, 3))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
    tally.tried += 1
    read = TARGETS["documents" if rng.random() < 0.3 else "triples.csv"].read
    _read(tally, "parquet", read, file, file.read_bytes())


def _column(rng: Random) -> Any:
    import pyarrow as pa

    whole = [rng.choice((0, 1, 5, -1, 2**31, 2**40, None)) for _ in range(3)]
    texts = [rng.choice(("a", "b c", "", None, "\x00", "1700000000")) for _ in range(3)]
    kinds = [
        lambda: pa.array(texts), lambda: pa.array(texts), lambda: pa.array(texts, pa.large_string()),
        lambda: pa.array(texts).dictionary_encode(), lambda: pa.array([b"\xff", b"a", None], pa.binary()),
        lambda: pa.array(whole, pa.int64()), lambda: pa.array([0.5, float("nan"), float("inf")]),
        lambda: pa.array(whole, pa.int64()).cast(pa.timestamp(rng.choice(("s", "ms", "us", "ns"))), safe=False),
        lambda: pa.array([1, 2, 3], pa.duration("ns")), lambda: pa.array([1, 2, 3], pa.time64("ns")),
        lambda: pa.array([1, 2, 3], pa.date32()), lambda: pa.array([[1], [], None]),
        lambda: pa.array([["a"], ["b c"], []]),
        lambda: pa.array([{"a": 1}, None, {"a": 2}]), lambda: pa.nulls(3), lambda: pa.array([True, False, None]),
        lambda: pa.array([1, 2, None], pa.decimal128(5, 2)), lambda: pa.array([2**62, 0, 1], pa.timestamp("us", "UTC")),
    ]  # fmt: skip
    return rng.choice(kinds)()
