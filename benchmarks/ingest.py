"""How much memory and time does `ingest` take for a log of many impressions?

Simulates a log of one week of web search, then ingests it in a process of its own. The peak of resident
memory is the kernel's own figure for that process; it counts pages of mapped files too, so the peak of
memory that is the process's alone is polled beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

CLICKBRIDGE = (sys.executable, "-m", "clickbridge")
ANONYMOUS = re.compile(r"RssAnon:\s+(\d+) kB")
TARGET_GIB = 4


@dataclass
class Cost:
    seconds: float
    peak_gib: float
    peak_own_gib: float
    cpu: float


def measured(*command: str) -> Cost:
    """Runs a clickbridge command; refuses to report on one that failed."""
    start = time.perf_counter()
    process = subprocess.Popen([*CLICKBRIDGE, *command], stdout=subprocess.DEVNULL)
    own, done = [0], threading.Event()
    poller = threading.Thread(target=_poll, args=(process.pid, own, done))
    poller.start()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    done.set()
    poller.join()
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(seconds, usage.ru_maxrss / 2**20, own[0] / 2**20, usage.ru_utime + usage.ru_stime)


def _poll(pid: int, peak: list[int], done: threading.Event) -> None:
    while not done.wait(0.1):
        with contextlib.suppress(OSError):
            if found := ANONYMOUS.search(Path(f"/proc/{pid}/status").read_text()):
                peak[0] = max(peak[0], int(found[1]))


def gib(path: Path) -> float:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(p.stat().st_size for p in files) / 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--impressions", type=int, default=20_000_000, help="log lines (default: 20000000)")
    parser.add_argument("--folder", type=Path, help="where the files go while it runs (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clickbridge-bench-", dir=options.folder) as name:
        data, graph = Path(name) / "data", Path(name) / "graph"
        n = options.impressions
        simulate = measured("simulate", "--scale", "one-week", "--impressions", str(n), "--out", str(data))
        log, docs = data / "log.jsonl.gz", data / "docs.jsonl.gz"
        ingest = measured("ingest", str(log), "--docs", str(docs), "--out", str(graph))
        sizes = {"simulate": gib(log), "ingest": gib(graph)}
    print(f"{n:,} impressions of ten results, scale one-week")
    print(f"{'step':<10}{'seconds':>9}{'CPU s':>8}{'lines/s':>12}{'peak GiB':>11}{'of it own':>11}{'written GiB':>13}")
    for step, cost in (("simulate", simulate), ("ingest", ingest)):
        print(
            f"{step:<10}{cost.seconds:>9.1f}{cost.cpu:>8.1f}{n / cost.seconds:>12,.0f}{cost.peak_gib:>11.2f}"
            f"{cost.peak_own_gib:>11.2f}{sizes[step]:>13.2f}"
        )
    verdict = "kept" if ingest.peak_gib < TARGET_GIB else "BROKEN"
    print(f"\nLimit for ingest, {TARGET_GIB} GiB at the peak: {verdict}.")


if __name__ == "__main__":
    main()
