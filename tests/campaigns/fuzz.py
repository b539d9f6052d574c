"""Coverage-guided fuzzing of every reader with atheris, in a process each: `pip install atheris` (Linux, CPython 3.11
to 3.13). Where a try ends in anything but an error of ours, the process says so and stops. Readers that join events in
a database get a tenth of the tries of the others, since each takes some fifty times as long."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from campaigns.tally import Tally

SHORT, LONG = 1_400, 28_000
MAX_LENGTH = 4096


def run(count: int, seed: int = 0) -> Tally:
    from campaigns.targets import TARGETS

    tally = Tally()
    shares = {name: 1 if target.joined else 10 for name, target in TARGETS.items()}
    for name, share in shares.items():
        tries = max(1, count * share // sum(shares.values()))
        line = [sys.executable, "-m", "campaigns.fuzz", name, str(tries), str(seed + 1)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        found = re.findall(r"^#(\d+)\s+DONE", done.stderr, re.MULTILINE)
        tally.tried += int(found[-1]) if found else 0
        if done.returncode or not found:
            tally.fault(f"{name}: {done.stderr[-600:]}")
        print(f"{name}: {tally.line('so far')}", file=sys.stderr, flush=True)
    return tally


def fuzz(name: str, runs: int, seed: int) -> None:
    import atheris

    with atheris.instrument_imports(include=["clickbridge"]):
        import clickbridge.io.letor
        import clickbridge.io.lists
        import clickbridge.io.svdfeature
        import clickbridge.io.trec
        import clickbridge.log.documents
        import clickbridge.log.event_formats
        import clickbridge.log.event_join
        import clickbridge.log.readers  # noqa: F401
        from campaigns.targets import TARGETS, temporary_home
        from clickbridge.errors import ClickbridgeError
    target, home = TARGETS[name], Path(temporary_home().name)
    home.mkdir(exist_ok=True)
    file = home / f"input{target.suffix}"

    def once(data: bytes) -> None:
        file.write_bytes(data)
        with suppress(ClickbridgeError):
            target.read(str(file))

    with tempfile.TemporaryDirectory(prefix="campaign-") as corpus:
        for number, record in enumerate(target.records):
            lines = [part for part in (target.head, record, target.tail) if part]
            (Path(corpus) / str(number)).write_bytes(b"\n".join(lines) + b"\n")
        options = [f"-runs={runs}", f"-seed={seed}", f"-max_len={MAX_LENGTH}", corpus]
        atheris.Setup([sys.argv[0], *options], once)
        atheris.Fuzz()


if __name__ == "__main__":
    fuzz(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
