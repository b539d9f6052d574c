"""Verbs in forked children that can be killed, interrupted or starved of disk: a fork costs milliseconds, a start of
Python a second. The parent has imported everything and computed nothing."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Ended(NamedTuple):
    code: int
    """Exit code, or minus the signal."""
    err: str


def preload() -> None:
    """What every verb needs, so that children find it loaded."""
    import duckdb  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import clickbridge.cli.main
    import clickbridge.graph.build
    import clickbridge.models.model_folder
    import clickbridge.online.journal  # noqa: F401
    from clickbridge.models.registry import MODELS, WRAPPERS, model_class

    for name in (*MODELS, *WRAPPERS):
        model_class(name)


def verb(*words: object) -> Callable[[], None]:
    """A verb of the command line, as `main` runs it."""

    def run() -> None:
        from clickbridge.cli.main import main

        sys.argv = ["clickbridge", *map(str, words)]
        main()

    return run


class Child:
    """Runs `work` in a forked process."""

    def __init__(self, work: Callable[[], None], err: Path, largest_file: int | None = None) -> None:
        self._err = err
        self.pid = os.fork()
        if self.pid == 0:
            self._be(work, largest_file)

    def _be(self, work: Callable[[], None], largest_file: int | None) -> None:
        code = 70
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            out = os.open(os.devnull, os.O_WRONLY)
            err = os.open(self._err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(out, 1)
            os.dup2(err, 2)
            if largest_file is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
            work()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            import traceback

            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(code)

    def signal_after(self, seconds: float, number: int) -> None:
        time.sleep(seconds)
        os.kill(self.pid, number)

    def wait(self) -> Ended:
        _, status = os.waitpid(self.pid, 0)
        text = self._err.read_text(errors="replace") if self._err.exists() else ""
        return Ended(os.waitstatus_to_exitcode(status), text)
