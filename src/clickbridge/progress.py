"""Progress of long work: a function of the caller that gets one line of text for each step.

All of clickbridge calls it `progress`. A line that contains something like `3 of 10` shows as a bar on a terminal.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

Progress = Callable[[str], None]
"""Called with one line of text, for example `print`."""


def silent(line: str) -> None:
    """Ignores progress."""


class _Logged:
    """Sends progress to the standard logger "clickbridge" at level INFO. Signatures show it by its name."""

    __name__ = "logged"

    def __call__(self, line: str) -> None:
        logging.getLogger("clickbridge").info(line)

    def __repr__(self) -> str:
        return self.__name__

    def __reduce__(self) -> str:
        return self.__name__


logged = _Logged()
