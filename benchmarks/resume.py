"""A fit that is ended by `kill -9` and started again gives the model of one that was not: pls and rmls at a share of
half a year.

    python benchmarks/resume.py FOLDER [--fraction 0.01] [--memory 1GiB]

Each model is fitted twice with `--checkpoint`: once to its end, and once until the first step or pass is kept, where
its process is killed; the same command then goes on. All files of both models must have the same SHA-256. Only the
manifest may differ, which says how long fitting took.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

from half_year import fitting, size_steps
from ingest import CLICKBRIDGE, gib, measured


def killed(words: tuple[str, ...], state: Path) -> float:
    """CPU seconds of a process that is killed as soon as a checkpoint is whole."""
    process = subprocess.Popen([*CLICKBRIDGE, *words], stdout=subprocess.DEVNULL)
    while not list(state.glob("*/manifest.json")):
        if process.poll() is not None:
            sys.exit(f"{' '.join(words)} ended before it could be killed")
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == -signal.SIGKILL
    return usage.ru_utime + usage.ru_stime


def digests(model: Path) -> dict[str, str]:
    files = [path for path in model.rglob("*") if path.is_file() and path.name != "manifest.json"]
    return {str(path.relative_to(model)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where everything goes; an empty one")
    parser.add_argument("--fraction", type=float, default=0.01, help="of the half year")
    parser.add_argument("--memory", default="1GiB", help="for working arrays of a fit")
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    for step in islice(size_steps(options.folder, options.fraction, options.memory), 2):  # simulate, ingest
        measured(*step.words)
    graph = options.folder / "graph"
    print(f"{'model':<7}{'CPU s, whole':>14}{'until killed':>14}{'after it':>10}{'kept MiB':>10}{'files':>7}{'MiB':>7}")
    for spec in ("pls", "rmls"):
        whole, resumed = (
            fitting(options.folder, graph, spec, f"{spec}-{n}", "title,url", options.memory) for n in ("a", "b")
        )
        alone, state = measured(*whole), options.folder / f"{spec}-b.state"
        before = killed(resumed, state)
        kept, model = gib(state), options.folder / f"{spec}-b"
        assert not model.exists()
        after = measured(*resumed)
        one, two = digests(options.folder / f"{spec}-a"), digests(model)
        cells = f"{alone.cpu:>14.1f}{before:>14.1f}{after.cpu:>10.1f}{1024 * kept:>10.1f}{len(two):>7}"
        print(f"{spec:<7}{cells}{1024 * gib(model):>7.0f}  {'the same' if one == two else 'THEY DIFFER'}", flush=True)


if __name__ == "__main__":
    main()
