"""Ctrl-C and SIGTERM end a verb wherever they find it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

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
