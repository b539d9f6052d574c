"""Events in a file, one per line, each with its number and a checksum.

    9a3f00c1 {"n":41,"kind":"page","query":"ny pizza",…}

When `write` returns, its events are on disk. If writing fails, the file is cut back to its last acknowledged line
before anything else is written, so the file never has an unacknowledged line before an acknowledged one. A crash can
leave an incomplete line at the end of the file. That line was never acknowledged, and is cut off. A complete line with
a wrong checksum means that the file is damaged.
"""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from clickbridge.errors import ArtifactError
from clickbridge.online.entry import Entry, from_json


class EntryFile:
    """A file of events. Read it to the end with `entries` before the first `write`."""

    durable = True

    def __init__(self, path: Path) -> None:
        self.path = path
        new = not path.exists()
        self._file = path.open("ab+", buffering=0)
        if new:
            # The name of the file must be on disk before a line is acknowledged.
            _sync_folder(path.parent)
        self._first = 0
        """The number of the first event in the file."""
        self._ends = array("q", [0])
        """Where the first line begins, and where each one ends."""
        self._uncut = False
        """Whether the file may go on behind the last end."""
        self._given_up = False

    def __len__(self) -> int:
        return len(self._ends) - 1

    # --- reading ---------------------------------------------------------------------------------

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """All events with their numbers. A line that was incomplete when the process died is cut off."""
        with self.path.open("rb") as stream:
            for line in stream:
                if not line.endswith(b"\n"):
                    # Whole but for its last byte, which is another one: that is not cut short.
                    if _body(line[:-1]) is not None:
                        raise self._damaged("its line does not end where it should")
                    break
                number, entry = self._parsed(line)
                if not len(self):
                    self._first = number
                elif number != self._first + len(self):
                    raise ArtifactError(f"{self.path}: event {self._first + len(self)} is missing: restore the file")
                self._ends.append(self._ends[-1] + len(line))
                yield number, entry
        self._cut()

    def entry(self, number: int) -> Entry | None:
        place = number - self._first
        if not 0 <= place < len(self):
            return None
        begin, end = self._ends[place], self._ends[place + 1]
        return self._parsed(os.pread(self._file.fileno(), end - begin, begin))[1]

    def kept(self) -> Iterator[tuple[int, Entry]]:
        """Events that were read or written, with their numbers."""
        for number in range(self._first, self._first + len(self)):
            entry = self.entry(number)
            assert entry is not None
            yield number, entry

    def _parsed(self, line: bytes) -> tuple[int, Entry]:
        body = _body(line[:-1])
        if body is None:
            raise self._damaged("its checksum does not match")
        try:
            return from_json(body)
        except ValueError as error:
            raise self._damaged(str(error)) from None

    def _damaged(self, why: str) -> ArtifactError:
        at = self._ends[-1]
        return ArtifactError(f"{self.path} is damaged at byte {at}: restore it, or start a new folder ({why})")

    # --- writing ---------------------------------------------------------------------------------

    def write(self, entries: Sequence[tuple[int, Entry]]) -> None:
        """Writes all events to disk with one fsync. If that fails, none of them is written, and an error is raised."""
        if self._file.closed:
            raise ArtifactError(f"the journal of {self.path.parent} is closed: open it with `with`")
        if self._given_up:
            raise ArtifactError(f"learning into {self.path.parent} was interrupted: open the journal again")
        if self._uncut:
            self._cut()
        lines = [_line(entry.to_json(number)) for number, entry in entries]
        try:
            self._uncut = True
            rest = memoryview(b"".join(lines))
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
            if not len(self):
                self._first = entries[0][0]
            self._ends.extend(accumulate(map(len, lines[1:]), initial=self._ends[-1] + len(lines[0])))
        except BaseException:
            # If this fails too, it is done before the next line.
            with suppress(OSError):
                self._cut()
            raise
        self._uncut = False

    def _cut(self) -> None:
        """Cuts the file back to the last acknowledged line."""
        os.ftruncate(self._file.fileno(), self._ends[-1])
        self._uncut = False

    def empty(self) -> None:
        """Removes all events, once a snapshot has them."""
        os.ftruncate(self._file.fileno(), 0)
        self._ends = array("q", [0])
        os.fsync(self._file.fileno())

    def give_up(self) -> None:
        self._given_up = True

    def close(self) -> None:
        if self._uncut:
            with suppress(OSError):
                self._cut()
        self._file.close()


def _line(body: bytes) -> bytes:
    return b"%08x " % zlib.crc32(body) + body + b"\n"


def _body(text: bytes) -> bytes | None:
    """The text after the checksum; None if the checksum is wrong."""
    mark, _, body = text.partition(b" ")
    return body if mark == b"%08x" % zlib.crc32(body) else None


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
