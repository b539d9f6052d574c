"""Ctrl-C and SIGTERM end a verb wherever they find it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""The exit code after Ctrl-C, by which Typer ends the process itself."""
FAREWELL = "clickbridge: interrupted; nothing was left half-written"
SOON = 0.01
"""Seconds after which a stop that was lost comes again."""


@contextmanager
def stops_heard() -> Iterator[None]:
    """SIGTERM ends the process as Ctrl-C does, so that temporary folders, which may hold queries, go with it. Either
    may come while Python calls back on the removal of an object; it drops exceptions there, so the stop is repeated."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hook = sys.unraisablehook
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.unraisablehook = lambda lost: _repeat(lost) or hook(lost)
    try:
        yield
    finally:
        sys.unraisablehook = hook


@contextmanager
def ctrl_c_ends() -> Iterator[None]:
    """Ctrl-C ends the process at once, as long as libraries load: an exception halfway through compiled ones can
    crash Python."""
    usual = threading.current_thread() is threading.main_thread()
    if not usual or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        os.write(2, f"{FAREWELL}\n".encode())
        os._exit(INTERRUPTED)

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _repeat(lost: sys.UnraisableHookArgs) -> bool:
    """Whether what was dropped is a stop: then it is raised again in a moment, outside of the callback."""
    stop = lost.exc_value
    if not isinstance(stop, KeyboardInterrupt | SystemExit):
        return False

    def again(_number: int, _frame: FrameType | None) -> None:
        raise stop

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, SOON)
    return True
