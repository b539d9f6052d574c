"""A disk that is full after n bytes: ingest, fit, update and the journal refuse with one line, and what was there
before is whole.

A small file system is mounted where that is allowed; elsewhere a limit on the size of files stands for it.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from random import Random

from campaigns.children import Child, preload
from campaigns.kills import _check, _in_child, _prepare, _work
from campaigns.tally import Tally

SHORT, LONG = 9, 300
VERBS = ("ingest", "fit", "update")


def run(count: int, seed: int = 0) -> Tally:
    tally, rng = Tally(), Random(seed)
    preload()
    with tempfile.TemporaryDirectory(prefix="campaign-") as place:
        small = Path(place) / "small"
        small.mkdir()
        mounted = _mounted(small)
        try:
            home = small / "home"
            home.mkdir()
            _in_child(lambda: _prepare(home), Path(place))
            for number in range(count):
                _one(tally, home, small, VERBS[number % 3], rng, mounted)
        finally:
            if mounted:
                subprocess.run(["umount", str(small)], check=True)
    return tally


def _mounted(folder: Path) -> bool:
    line = ["mount", "-t", "tmpfs", "-o", "size=64m", "campaign", str(folder)]
    return subprocess.run(line, capture_output=True, check=False).returncode == 0


def _one(tally: Tally, home: Path, small: Path, name: str, rng: Random, mounted: bool) -> None:
    filler = small / "filler"
    room = int(10 ** rng.uniform(2.5, 6.0))
    if mounted:
        filler.unlink(missing_ok=True)
        free = shutil.disk_usage(small).free
        with filler.open("wb") as file:
            file.write(b"x" * max(0, free - room))
    ended = Child(_work(home, name), small.parent / "err", None if mounted else room).wait()
    filler.unlink(missing_ok=True)
    tally.tried += 1
    if ended.code == 1:
        tally.hit += 1
        if ended.err.count("\n") != 1:
            tally.fault(f"{name} with {room} bytes: not one line: {ended.err[-300:]}")
    elif ended.code:
        tally.fault(f"{name} with {room} bytes ended with {ended.code}: {ended.err[-300:]}")
    if "Traceback" in ended.err:
        tally.fault(f"{name} with {room} bytes: a traceback: {ended.err[-300:]}")
    found = Child(lambda: _check(home, name), small.parent / "check").wait()
    if found.code:
        tally.fault(f"{name} with {room} bytes: {found.err[-300:]}")
