"""One writer at a time: a lock next to an artifact's folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from clickbridge.errors import ArtifactError

_HELD: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())
"""Targets that this thread has locked over more than one write; other threads start with none."""


class Lock:
    """An advisory lock next to the target; the kernel drops it when the process dies."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f".{target.name}.lock")
        self._fd = -1

    def acquire(self) -> None:
        if self.target in _HELD.get():
            return
        while True:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                raise ArtifactError(
                    f"another process is writing {self.target}: wait for it, or write elsewhere"
                ) from None
            # The file may have been unlinked by the previous holder between open and flock.
            try:
                if os.path.samestat(os.fstat(fd), os.stat(self.path)):
                    self._fd = fd
                    return
            except FileNotFoundError:
                pass
            os.close(fd)

    def release(self) -> None:
        if self._fd >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


@contextmanager
def held(target: Path) -> Iterator[None]:
    """The lock of a target, in which writers of the same thread take part."""
    lock = Lock(target)
    lock.acquire()
    token = _HELD.set(_HELD.get() | {target})
    try:
        yield
    finally:
        _HELD.reset(token)
        lock.release()
