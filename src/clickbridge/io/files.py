"""Writes plain files, completely or not at all."""

from __future__ import annotations

import gzip
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from clickbridge.errors import InputError


def check_output(path: str | Path) -> None:
    """Refuses a path that must not be replaced by a file: a folder, a device, a pipe, a link."""
    target = Path(path)
    try:
        mode = os.lstat(target).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write {target}: {getattr(error, 'strerror', None) or error}") from None
    if stat.S_ISDIR(mode) or not target.parent.is_dir():
        raise InputError(f"cannot write {target}: it is a folder, or its folder does not exist")
    if not stat.S_ISREG(mode):
        kind = "a link" if stat.S_ISLNK(mode) else "a device or a pipe"
        raise InputError(f"cannot write {target}: it is {kind}, not a file: choose another name")


def check_new(path: str | Path, option: str) -> None:
    """Refuses a file that exists, where an option names a file to read in other verbs: it may be the only copy."""
    check_output(path)
    if os.path.lexists(path):
        raise InputError(f"{path} exists, and {option} names a file to write here: choose another name, or remove it")


def aside_name(target: Path, mark: str) -> Path:
    """A new name next to `target`. A file with this name gets the usual permissions of the umask, which those of the
    tempfile module do not."""
    return target.with_name(f".{target.name}.{mark}-{secrets.token_hex(8)}")


Waiting = list[tuple[Path, Path]]
"""Complete files that do not have their names yet, with these names."""


@contextmanager
def named_together() -> Iterator[Waiting]:
    """Gives files that `written_aside` is told to leave waiting their names, when the last of them is complete."""
    waiting: Waiting = []
    try:
        yield waiting
        for aside, target in waiting:
            os.replace(aside, target)
    except BaseException:
        for aside, _ in waiting:
            aside.unlink(missing_ok=True)
        raise


@contextmanager
def written_aside(path: str | Path, waiting: Waiting | None = None) -> Iterator[BinaryIO]:
    """A binary file that gets its name only when it is complete, and not before the others in `waiting`; gzip if the
    name ends in .gz."""
    target = Path(path)
    check_output(target)
    aside = aside_name(target, "new")
    try:
        with aside.open("xb") as raw:
            if target.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=5, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        if waiting is None:
            os.replace(aside, target)
        else:
            waiting.append((aside, target))
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def plain_cell(text: str) -> str:
    """Text for a table that may be opened in a spreadsheet, escaped so that it is not taken for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
