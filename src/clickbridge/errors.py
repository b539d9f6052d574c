"""The exceptions of clickbridge. A message is one line: what was expected, what was found, what to do about it.

Errors are raised where data enters and translated once, at the edge: the command line prints the line
and exits with `exit_code`.
"""

import re
from typing import Any


def shown(value: Any, most: int = 80) -> str:
    """An input value as shown in a message: escaped, and shortened if it is long."""
    if isinstance(value, str | bytes) and len(value) > most:
        return f"{value[:most]!r}… ({len(value):,} characters)"
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


def shown_names(names: list[str], most: int = 20) -> str:
    """Names from the input, such as columns, as shown in a message: shortened, and only the first if there are many."""
    cut = [name if len(name) <= 40 else f"{name[:40]}…" for name in names[:most]]
    return ", ".join([*cut, f"… ({len(names):,} in all)"] if len(names) > most else cut)


class ClickbridgeError(Exception):
    """The base class of all errors that clickbridge raises on purpose.

    Messages name options as on the command line. In Python they are shown as the names of arguments.

    Examples
    --------
    >>> from clickbridge import ClickbridgeError
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
    """Input data does not have the expected format."""


class ArtifactError(ClickbridgeError):
    """A GRAPH or MODEL folder is missing, damaged, locked, of a newer format, or not such a folder."""


class MissingPart(ClickbridgeError):
    """A GRAPH lacks a part that a model or function needs, such as result pages."""


class NotFitted(ClickbridgeError, AttributeError):
    """A model was used before `fit`. This is also an AttributeError, so that `hasattr` works."""


class NotSupported(ClickbridgeError):
    """A model does not support this operation."""


class EngineError(ClickbridgeError):
    """The requested engine is not available (there is no cluster, no GPU, or a library is missing), or has too little
    memory for the work."""


class NoRoom(EngineError):
    """The work needs more memory than the engine may use."""


class SettingError(ClickbridgeError):
    """A setting, option or spec has an invalid value."""

    exit_code = 2
