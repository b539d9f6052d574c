"""Lines that were left out: their number, the first reasons and, up to a limit, a file of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, cast

import orjson

from clickbridge.errors import InputError, SettingError
from clickbridge.io.files import check_output
from clickbridge.types import Reject
from clickbridge.wording import count_of

LONGEST, MOST_KEPT = 300, 100_000
"""Of a reason, in characters, and of the reasons of one input that are written down: a small packed file may hold
bad lines without end. All of them are counted."""


def parse_share(text: str) -> float:
    """Parses a share such as `1%` or `0.01`."""
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise SettingError(f"a share is a number from 0 to 1 or 0% to 100%; got {text!r}")
    return share


def file_name(path: str) -> str:
    return "standard input" if path == "-" else path


class RejectLog:
    """Counts the records of one input that cannot be used. `limit` is the share that may be left out, such as `1%` or
    0.01. With `append`, the file may already contain rejects of another input."""

    def __init__(self, limit: str | float = "1%", path: Path | None = None, append: bool = False) -> None:
        self.limit = str(limit)
        self.max_share = parse_share(self.limit)
        self.path = path
        self.append = append
        self._file: BinaryIO | None = None
        self.reset()

    def reset(self) -> None:
        """Starts counting again, before the same input is read again."""
        self.first: list[Reject] = []
        self.count = 0
        self.lines = 0

    def add(self, source: str, line: int, reason: str) -> None:
        self.count += 1
        reject = Reject(source, line, reason if len(reason) <= LONGEST else f"{reason[:LONGEST]}…")
        if len(self.first) < 3:
            self.first.append(reject)
        if self.path is not None and self.count <= MOST_KEPT:
            self._file = self._file or self._open(self.path, "ab" if self.append else "wb")
            self._file.write(orjson.dumps(reject, option=orjson.OPT_APPEND_NEWLINE))

    @staticmethod
    def _open(path: Path, mode: str) -> BinaryIO:
        if os.path.lexists(path):
            check_output(path)
        try:
            return cast(BinaryIO, path.open(mode))
        except OSError as error:
            raise InputError(f"cannot write the rejects to {path}: {error.strerror}") from None

    def end_file(self) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Closes the file. Refuses the input if more than the allowed share of lines was left out."""
        self.end_file()
        if self.count > self.max_share * max(self.lines, 1):
            reasons = "; ".join(f"{file_name(r.source)} line {r.line}: {r.reason}" for r in self.first)
            raise InputError(
                f"{count_of(self.count, 'line', 'are', of=self.lines)} unusable, at most {self.limit} of them may be "
                f"({reasons}): fix the input, or raise --max-rejects"
            )
