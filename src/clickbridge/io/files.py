"""Plain text files out: whole or not at all."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from clickbridge.errors import InputError


@contextmanager
def written_aside(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file that takes its name only when all of it is written; gzip where the name ends in .gz."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise InputError(f"cannot write {target}: it is a folder, or its folder does not exist")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.fchmod(handle, 0o644)
    try:
        with os.fdopen(handle, "wb") as raw:
            if target.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=5, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
