"""Bytes in, whatever wraps them: plain, gzip or zstd files, or standard input, told apart by magic bytes.

A damaged container always stops with one line; a damaged line inside a sound one is a reject.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from clickbridge.errors import InputError

MAX_LINE, LINES_AT_ONCE = 1 << 26, 1 << 15
BOM = b"\xef\xbb\xbf"
GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"


def file_stem_suffix(path: str) -> str:
    """The extension that tells the format: `.jsonl` of `log.jsonl.gz`."""
    suffixes = [s.lower() for s in Path(path).suffixes]
    while suffixes and suffixes[-1] in (".gz", ".gzip", ".zst", ".zstd"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


@contextmanager
def open_stream(path: str, opened: Callable[[BinaryIO], None] | None = None) -> Iterator[BinaryIO]:
    """A buffered binary stream over the unpacked bytes; low-level faults become one InputError line. `opened` is given
    the file itself, whose position says how much of it was read."""
    try:
        raw = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise InputError(f"no file {path}: check the path") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    try:
        if opened is not None:
            opened(raw)
        buffered = io.BufferedReader(cast(io.RawIOBase, raw), 1 << 20)
        head = buffered.peek(4)[:4]
        if head.startswith(GZIP):
            yield cast(BinaryIO, io.BufferedReader(gzip.GzipFile(fileobj=buffered), 1 << 20))
        elif head == ZSTD:
            with _unpacked_zstd(path, buffered) as unpacked:
                yield unpacked
        else:
            yield cast(BinaryIO, buffered)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is damaged or cut short ({error}): fetch or write it again") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder: give the files in it") from None
    except OSError as error:
        if error.errno is None:  # Arrow's own, about the compressed data
            raise InputError(f"{path} is damaged or cut short ({error}): fetch or write it again") from None
        raise
    finally:
        if path != "-":
            raw.close()


@contextmanager
def _unpacked_zstd(path: str, packed: object) -> Iterator[BinaryIO]:
    import pyarrow as pa  # here alone: it takes long to load, and most files are not zstd

    try:
        unpacked = pa.CompressedInputStream(pa.PythonFile(packed, mode="r"), "zstd")
        yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, unpacked), 1 << 20))
    except pa.ArrowException as error:
        raise InputError(f"{path} is damaged or cut short ({error}): fetch or write it again") from None


def lines(stream: BinaryIO, path: str, ends: bool = False) -> Iterator[bytes]:
    """Lines, without end marks unless `ends`; a byte-order mark at the start is dropped."""
    first = True
    while line := _line(stream, path):
        if first:
            line, first = line.removeprefix(BOM), False
        yield line if ends else line.rstrip(b"\r\n")


def line_blocks(stream: BinaryIO, path: str) -> Iterator[list[bytes]]:
    """The same lines, without their ends, some hundred at a time: as many as make `LINES_AT_ONCE` bytes."""
    block = stream.read(LINES_AT_ONCE).removeprefix(BOM)
    while block:
        if not block.endswith(b"\n"):
            block += _line(stream, path)
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        yield lines
        block = stream.read(LINES_AT_ONCE)


def _line(stream: BinaryIO, path: str) -> bytes:
    line = stream.readline(MAX_LINE)
    if len(line) == MAX_LINE and not line.endswith(b"\n"):
        raise InputError(f"{path} has a line over {MAX_LINE >> 20} MiB: is it a text file, one record per line?")
    return line
