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
MOST_TRIES = 3
"""Tries for each full disk: a verb may write less than before."""


def run(count: int, seed: int = 0) -> Tally:
    """Until so many have met a full disk."""
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
            needed = {name: _written(home, name, mounted) for name in VERBS}
            while tally.hit < count and tally.tried < MOST_TRIES * count:
                name = VERBS[tally.tried % 3]
                _one(tally, home, small, name, rng.randrange(needed[name]), mounted)
        finally:
            if mounted:
                subprocess.run(["umount", str(small)], check=True)
    if tally.hit < count:
        tally.fault(f"only {tally.hit} of {tally.tried} disks were full: the verbs write less than they left")
    return tally


def _written(home: Path, name: str, mounted: bool) -> int:
    """Bytes of disk that a verb fills, or, where files are limited, those of its largest."""
    _in_child(_work(home, name), home.parent.parent)
    written = [file.stat() for file in (home / ("graph" if name == "ingest" else "model")).rglob("*") if file.is_file()]
    return sum(file.st_blocks * 512 for file in written) if mounted else max(file.st_size for file in written)


def _mounted(folder: Path) -> bool:
    line = ["mount", "-t", "tmpfs", "-o", "size=64m", "campaign", str(folder)]
    return subprocess.run(line, capture_output=True, check=False).returncode == 0


def _one(tally: Tally, home: Path, small: Path, name: str, room: int, mounted: bool) -> None:
    filler = small / "filler"
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
