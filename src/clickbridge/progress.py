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


def logged(line: str) -> None:
    """Sends progress to the standard logger "clickbridge" at level INFO."""
    logging.getLogger("clickbridge").info(line)
