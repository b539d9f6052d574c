"""Verbs in forked children that can be killed, interrupted or starved of disk: a fork costs milliseconds, a start of
Python a second. The parent has imported everything and computed nothing."""

from __future__ import annotations

import importlib
import os
import pkgutil
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
    cpu: float
    """Seconds that it computed, which no other work on the machine makes longer."""


ROOMS = ("cli", "graph", "io", "log", "models", "numerics", "online", "search", "views")


def preload() -> None:
    """What every verb imports, so that children find it loaded; compiled loops are still theirs to load."""
    import numba
    import pyarrow.dataset  # noqa: F401
    import pydantic.type_adapter  # noqa: F401

    import clickbridge.engines.local
    from clickbridge.models.registry import MODELS, WRAPPERS, model_class

    home = Path(clickbridge.__file__).parent
    for room in ROOMS:
        for module in pkgutil.iter_modules([str(home / room)]):
            importlib.import_module(f"clickbridge.{room}.{module.name}")
    for name in (*MODELS, *WRAPPERS):
        model_class(name)
    numba.njit(lambda: 0)()  # its compiler is ready


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

    def signal_after(self, cpu: float, number: int) -> None:
        """Sends a signal once the child has computed so long: at the same place of its work on a machine that is busy
        and on one that is not. One that has ended before gets none."""
        clock = (~self.pid << 3) | 2  # the kernel's number of the CPU clock of a process
        while not self.ended() and time.clock_gettime(clock) < cpu:
            time.sleep(0.0005)
        self.signal(number)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def ended(self) -> bool:
        """Without reaping it, so that its number stays its own."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def wait(self) -> Ended:
        _, status, used = os.wait4(self.pid, 0)
        text = self._err.read_text(errors="replace") if self._err.exists() else ""
        return Ended(os.waitstatus_to_exitcode(status), text, used.ru_utime + used.ru_stime)
