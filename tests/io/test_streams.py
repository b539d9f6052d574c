"""Streams: plain, gzip and zstd alike; a damaged container stops with one line."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from clickbridge.errors import InputError
from clickbridge.io import streams
from clickbridge.io.streams import file_stem_suffix, lines, open_stream

TEXT = b"\xef\xbb\xbffirst\r\nsecond\n\nlast without end"
LINES = [b"first", b"second", b"", b"last without end"]


def packed(how: str, data: bytes) -> bytes:
    if how == "gzip":
        return gzip.compress(data)
    return pa.compress(data, codec="zstd", asbytes=True) if how == "zstd" else data


def read(path: Path | str) -> list[bytes]:
    with open_stream(str(path)) as stream:
        return list(lines(stream, str(path)))


@pytest.mark.parametrize("how", ["plain", "gzip", "zstd"])
def test_wrapping_is_told_by_its_first_bytes(tmp_path: Path, how: str) -> None:
    (tmp_path / "file.dat").write_bytes(packed(how, TEXT))
    assert read(tmp_path / "file.dat") == LINES


@pytest.mark.parametrize("how", ["plain", "gzip", "zstd"])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed(how, TEXT))))
    assert read("-") == LINES


def test_several_gzip_members_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert read(tmp_path / "a.gz") == [b"one", b"two"]


def test_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    assert read(tmp_path / "a") == []


@pytest.mark.parametrize("how", ["gzip", "zstd"])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_cut_container(tmp_path: Path, how: str, share: float) -> None:
    data = packed(how, bytes(i * i % 251 for i in range(100_000)) * 3)
    (tmp_path / "a").write_bytes(data[: int(len(data) * share)])
    with pytest.raises(InputError, match=r"a is damaged or cut short \(.*\): fetch or write it again"):
        read(tmp_path / "a")


def test_changed_byte_in_gzip(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(b"some text " * 1000))
    data[-6] ^= 1
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(InputError, match="a is damaged or cut short"):
        read(tmp_path / "a")


def test_not_a_readable_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file .*nowhere: check the path"):
        read(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"cannot read .*: Is a directory"):
        read(tmp_path)


def test_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_LINE", 1 << 20)
    (tmp_path / "a").write_bytes(b"x" * (1 << 21))
    with pytest.raises(InputError, match="has a line over 1 MiB: is it a text file, one record per line"):
        read(tmp_path / "a")


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.jsonl", ".jsonl"),
        ("a.JSONL.GZ", ".jsonl"),
        ("x/b.tar/a.tsv.zst", ".tsv"),
        ("a.gz", ""),
        ("a", ""),
        ("-", ""),
    ],
)
def test_suffix(name: str, suffix: str) -> None:
    assert file_stem_suffix(name) == suffix
