"""Reports how much of some files has been read, since the number of lines is known only at the end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import BinaryIO

MEGABYTE = 1_000_000


class BytesRead:
    """Follows files that are opened one after the other."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._sizes = [os.path.getsize(path) if os.path.isfile(path) else None for path in paths]
        self._begun = 0
        self._file: BinaryIO | None = None

    def begin(self, file: BinaryIO) -> None:
        """Starts the next file."""
        self._file, self._begun = file, self._begun + 1

    @property
    def lines(self) -> str:
        """The text before the number of lines."""
        return f"log, {self.said}, lines" if self.said else "log lines"

    @property
    def said(self) -> str:
        """Text such as `3 of 12 MB`; empty if the size is unknown or small."""
        known = [size for size in self._sizes if size is not None]
        total = sum(known) // MEGABYTE
        if not known or len(known) < len(self._sizes) or self._file is None or self._file.closed or total < 2:
            return ""
        done = sum(known[: self._begun - 1]) + self._file.tell()
        return f"{done // MEGABYTE:,} of {total:,} MB"
