"""The folder of an export. It is written completely or not at all, and never replaces anything but an export."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from clickbridge.errors import InputError
from clickbridge.io.files import aside_name

MARK = "export.json"
"""The file that identifies a folder as an export, and tells of what."""
CHUNK_DOCUMENTS, CHUNK_BYTES = 5_000, 8 << 20
"""The largest size of one data file, since engines refuse bodies that are too long."""


def check_folder(out: Path) -> None:
    """Refuses an existing folder that is not an export."""
    if os.path.lexists(out) and (out.is_symlink() or not (out / MARK).is_file()):
        raise InputError(f"{out} exists and is not an export: choose another --out, or remove it")
    if not out.parent.is_dir():
        raise InputError(f"cannot write {out}: its folder does not exist")


@contextmanager
def export_folder(out: Path, about: dict[str, Any]) -> Iterator[Path]:
    """A folder that gets its name only when it is complete. An earlier export is replaced."""
    check_folder(out)
    fresh, old = aside_name(out, "new"), aside_name(out, "old")
    fresh.mkdir()
    try:
        yield fresh
        write_json(fresh / MARK, about)
        if out.exists():
            out.rename(old)
        fresh.rename(out)
    except BaseException:
        if old.exists() and not out.exists():
            old.rename(out)
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)


def packed(value: Any) -> bytes:
    """JSON, with arrays of 32-bit numbers in the fewest digits that keep their values."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def write_json(path: Path, value: Any) -> None:
    option = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    long = orjson.dumps(value, option=option)
    # One that a person may read has lines.
    path.write_bytes(long if len(long) > 20_000 else orjson.dumps(value, option=option | orjson.OPT_INDENT_2))


def write_chunks(folder: Path, stem: str, suffix: str, items: Iterable[bytes]) -> list[str]:
    """Writes lines to numbered files of limited size. The lines of one item stay together."""
    names: list[str] = []
    waiting: list[bytes] = []
    size = 0

    def flush() -> None:
        names.append(f"{stem}-{len(names) + 1:04d}{suffix}")
        (folder / names[-1]).write_bytes(b"\n".join(waiting) + b"\n")
        waiting.clear()

    for item in items:
        if waiting and (len(waiting) >= CHUNK_DOCUMENTS or size + len(item) > CHUNK_BYTES):
            flush()
            size = 0
        waiting.append(item)
        size += len(item)
    if waiting:
        flush()
    return names
