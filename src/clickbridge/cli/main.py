"""The command `clickbridge`, and the one place where errors become a line and an exit code.

The verbs and the libraries they need are imported inside `main`: Ctrl-C may come while they load.
"""

from __future__ import annotations

import os
import sys

from clickbridge.cli.stops import FAREWELL, INTERRUPTED, ctrl_c_ends, stops_heard
from clickbridge.errors import ClickbridgeError


def main() -> None:
    ClickbridgeError.on_command_line = True
    try:
        try:
            with ctrl_c_ends():
                from clickbridge.cli.app import app

            with stops_heard():
                app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a reader that has gone is no fault
    except ClickbridgeError as error:
        _say(f"clickbridge: {error}")
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, SystemExit) as stop:
        if getattr(stop, "code", INTERRUPTED) != INTERRUPTED:
            raise
        # After an interrupt inside exec, which dataclasses use, Python would end by the signal; this takes that back.
        eval("0")
        _say(FAREWELL)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Python flushes once more at its end: into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _say(f"clickbridge: {where}{error.strerror or error}")
        sys.exit(1)
    except MemoryError:
        _say("clickbridge: out of memory: use a smaller log, or a machine with more")
        sys.exit(1)
    finally:
        ClickbridgeError.on_command_line = False


def _say(line: str) -> None:
    from clickbridge.cli.console import say

    say(line)
