"""One exception tree. A message is one line: what was expected, what came, what to do about it.

Errors are raised where data enters and translated once, at the edge: the command line prints the line
and exits with `exit_code`.
"""

import re
from typing import Any


def shown(value: Any, most: int = 80) -> str:
    """A value from outside as a message shows it: escaped, and cut off where it is long."""
    if isinstance(value, str | bytes) and len(value) > most:
        return f"{value[:most]!r}… ({len(value):,} characters)"
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


def shown_names(names: list[str], most: int = 20) -> str:
    """Names from outside, as of columns: not all where there are many, none of them long."""
    cut = [name if len(name) <= 40 else f"{name[:40]}…" for name in names[:most]]
    return ", ".join([*cut, f"… ({len(names):,} in all)"] if len(names) > most else cut)


class ClickbridgeError(Exception):
    """Anything clickbridge refuses to do.

    Options are written as on the command line. In Python they read as the arguments that they are there.

    Examples
    --------
    >>> print(ClickbridgeError("--time-unit must be one of s, ms; got 'h'"))
    time_unit must be one of s, ms; got 'h'
    """

    exit_code = 1
    on_command_line = False

    def __str__(self) -> str:
        return self.line if self.on_command_line else _OPTION.sub(_argument, self.line)

    @property
    def line(self) -> str:
        """The message with options as on the command line."""
        return super().__str__()


def _argument(option: re.Match[str]) -> str:
    return "" if option[1] == "set" else option[1].replace("-", "_") + option[2]


_OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)( ?)")


class InputError(ClickbridgeError):
    """Data that came in is not what its format promises."""


class ArtifactError(ClickbridgeError):
    """A GRAPH or MODEL folder is missing, damaged, locked, of a newer format, or something else."""


class MissingPart(ClickbridgeError):
    """A GRAPH lacks a part that was asked for."""


class NotFitted(ClickbridgeError, AttributeError):
    """A model was used before `fit`. Also an AttributeError, so that `hasattr` works."""


class NotSupported(ClickbridgeError):
    """A model cannot do what was asked of it."""


class EngineError(ClickbridgeError):
    """The engine that was asked for is not there (no cluster, no card, or not what it needs), or has too little memory
    for the work."""


class SettingError(ClickbridgeError):
    """A setting, option or spec has a value outside its documented range."""

    exit_code = 2
