"""Mutation testing: small changes to a source file, one at a time, that some test must notice.

    make campaign NAME=mutants [COUNT=600]            a sample of each room, by the seed
    PYTHONPATH=tests python -P -m campaigns.mutants graph log --count 150 --seed 1

Compilation is off. Coverage says first which tests come to a line; a change is then tried on those alone, the quickest
first, in a forked process over a copy of the sources. A change that makes them compute or wait for ever is noticed.
What survives is a test that is missing, or a change that means the same.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import gc
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from campaigns.children import Child, Ended
from campaigns.mutations import mutant, places
from campaigns.tally import Tally

SHORT, LONG = 4, 600
ROOMS = {
    "measures": ("measures",),
    "graph": (
        "graph",
        "cli/test_privacy.py::test_forget_in_a_graph",
        "cli/test_privacy.py::test_what_cannot_be_forgotten",
        "cli/test_trust.py::test_a_forged_graph_is_refused",
        "frames/test_frames.py",
    ),
    "log": ("log", "graph/test_build.py", "graph/test_build_cases.py"),
    "evaluate": ("evaluate",),
}
"""Sources, and the tests that are theirs."""
LEFT_OUT = ("reproduction", "browser")
"""Minutes each without compiled loops: the papers' tables, and reports in a browser."""
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""A plugin that the parent has imported stays as it is."""
SPARE_CPU = 30
"""Seconds of computing beyond three times those of the sound tests, after which a change does not end."""
MOST_IDLE = 300.0
"""Seconds in which a change computes nothing, after which it does not end: a machine may be busy with other work."""
MOST_MEMORY = 8 << 30
NOTICED, SURVIVED, ENDLESS = "noticed", "survived", "does not end"


class Room(NamedTuple):
    """Which tests come to which line, and how long each computes."""

    name: str
    tests: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def most_cpu(self, tests: Iterable[str]) -> int:
        return SPARE_CPU + int(3 * sum(self.seconds.get(test, 0.0) for test in tests))

    def of(self, file: Path, node: ast.AST) -> list[str]:
        """Tests that come to a node, the quickest first. Of what runs on import they are all that come to the file."""
        lines = self.tests.get(str(file), {})
        end = getattr(node, "end_lineno", None) or node.lineno  # type: ignore[attr-defined]
        found = {test for line in range(node.lineno, end + 1) for test in lines.get(line, ())}  # type: ignore[attr-defined]
        names = {test for tests in lines.values() for test in tests} if "" in found else found
        return sorted(names & self.seconds.keys(), key=lambda test: (self.seconds[test], test))


PLUGIN = """
import json, os, pytest
from campaigns.mutants import as_always
as_always()
seconds = {}
def pytest_runtest_logreport(report):
    if report.skipped or report.failed:
        seconds[report.nodeid] = None
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    import coverage
    coverage.Coverage.current().switch_context(item.nodeid)
    start = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        seconds.setdefault(item.nodeid, sum(os.times()[:4]) - start)
        coverage.Coverage.current().switch_context("")
def pytest_sessionfinish():
    with open(os.environ["SECONDS"], "w") as out:
        json.dump({test: value for test, value in seconds.items() if value is not None}, out)
"""
"""Writes down how long each test computes, its children included; what is skipped notices nothing."""


def surveyed(name: str, home: Path, root: Path) -> Room:
    """Runs the tests of a room once, with coverage."""
    import coverage

    (home / "recording.py").write_text(PLUGIN)
    (home / "coveragerc").write_text("")  # the project's own measures children too, in files of their own
    env = {**_environment(home, root), "SECONDS": str(home / "seconds.json"), "COVERAGE_FILE": str(home / ".coverage")}
    line = [
        sys.executable,
        "-P",
        "-m",
        "coverage",
        "run",
        f"--rcfile={home / 'coveragerc'}",
        f"--source={home / 'src/clickbridge' / name}",
        "-m",
        "pytest",
    ]
    line += ["-q", "-p", "no:cacheprovider", "-p", "recording", *_tests(name, root)]
    done = subprocess.run(line, env=env, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the tests of {name} fail without any change: {done.stdout[-800:]}")
    data = coverage.CoverageData(str(home / ".coverage"))
    data.read()
    tests = {file: data.contexts_by_lineno(file) for file in data.measured_files()}
    return Room(name, tests, json.loads((home / "seconds.json").read_text()))


def _tests(name: str, root: Path) -> list[str]:
    found = [root / "tests" / place for place in ROOMS[name]]
    files = [file for place in found for file in (sorted(place.glob("test_*.py")) if place.is_dir() else [place])]
    return [str(file.relative_to(root)) for file in files if not any(word in file.name for word in LEFT_OUT)]


def _environment(home: Path, root: Path) -> dict[str, str]:
    paths = os.pathsep.join([str(home / "src"), str(home), str(root / "tests")])
    own = {"PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1"}
    # Plugins that are installed and not used here take most of a second to import.
    return {**os.environ, **own, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def as_always() -> None:
    """Examples that hypothesis draws are the same each time, and one that fails is not made smaller, which would take
    minutes."""
    from hypothesis import Phase, settings

    settings.register_profile("mutants", phases=(Phase.explicit, Phase.generate), derandomize=True, database=None)
    settings.load_profile("mutants")


def _tried(home: Path, root: Path, tests: Sequence[str], most_cpu: int) -> None:
    """In the child: the tests over the copy, which holds the change. It writes no bytecode, which the next change of
    the same size in the same second would be taken for."""
    os.setpgrp()
    os.dup2(2, 1)
    gc.freeze()  # what the parent has imported is not gone through again
    resource.setrlimit(resource.RLIMIT_CPU, (most_cpu, most_cpu))
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    os.environ.update(_environment(home, root), PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    os.chdir(root)
    sys.path[:0] = [str(home / "src"), str(root / "tests")]
    for module in [name for name in sys.modules if name.partition(".")[0] in ("clickbridge", "campaigns", "conftest")]:
        del sys.modules[module]
    import pytest

    as_always()
    raise SystemExit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *QUIET, *tests])))


def ended(child: Child, most_idle: float = MOST_IDLE) -> Ended:
    """Waits for a child, and ends it with its own children where all of them wait for something that never comes."""
    computed, since = -1.0, time.monotonic()
    while not child.ended():
        time.sleep(0.02)
        if time.monotonic() - since > most_idle:
            before, computed = computed, _computed(child.pid)
            if computed == before:
                break
            since = time.monotonic()
    with suppress(ProcessLookupError):  # it ended before it had a group
        os.killpg(child.pid, signal.SIGKILL)
    return child.wait()


def _computed(group: int) -> float:
    """Ticks that the processes of a group have computed; one that somebody has stopped is not at rest."""
    ticks = 0.0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, number, *rest = file.read_text().rpartition(")")[2].split()
            if int(number) == group:
                ticks += time.monotonic() if state in "Tt" else sum(map(int, rest[8:12]))
    return ticks


def tried(room: Room, home: Path, root: Path, file: Path, number: int) -> tuple[str, str]:
    """The change, and how it ended: noticed, survived, or does not end, which is noticed too."""
    target = home / "src" / file.relative_to(root / "src")
    tree = ast.parse(file.read_text())
    changed, what = mutant(tree, number)
    what = f"{room.name}/{file.name} {what}"
    tests = room.of(target, places(tree)[number][0])
    if not tests:
        return f"{what}: no test comes here", SURVIVED
    sound = target.read_bytes()
    try:
        target.write_text(ast.unparse(changed))
        end = ended(Child(lambda: _tried(home, root, tests, room.most_cpu(tests)), home / "err"))
    finally:
        target.write_bytes(sound)
    return f"{what} ({len(tests)} tests, {end.cpu:.1f} s)", how(end)


def how(end: Ended) -> str:
    return SURVIVED if end.code == 0 else ENDLESS if end.code in (-signal.SIGKILL, -signal.SIGXCPU) else NOTICED


def strike(name: str, count: int, seed: int, tally: Tally, only: Sequence[str] = ()) -> None:
    """`only` names source files, where not all of the room are meant."""
    root = Path(__file__).parents[2]
    folder = root / "src" / "clickbridge" / name
    files = [file for file in sorted(folder.rglob("*.py")) if not any(word in str(file) for word in LEFT_OUT)]
    files = [file for file in files if not only or file.name in only]
    chosen = [(file, n) for file in files for n in range(len(places(ast.parse(file.read_text()))))]
    total = len(chosen)
    Random(f"{name} {seed}").shuffle(chosen)
    with tempfile.TemporaryDirectory(prefix="campaign-") as place:
        home = Path(place)
        shutil.copytree(root / "src", home / "src")
        compileall.compile_dir(str(home / "src"), quiet=2)
        room = surveyed(name, home, root)
        every = sorted(room.seconds)
        sound = ended(Child(lambda: _tried(home, root, every, room.most_cpu(every)), home / "err"))
        if sound.code:
            raise RuntimeError(f"the tests of {name} fail in a fork without any change: {sound.err[-500:]}")
        for file, number in chosen[:count]:
            what, outcome = tried(room, home, root, file, number)
            tally.tried += 1
            tally.hit += outcome != SURVIVED
            if outcome == SURVIVED:
                tally.fault(what)
            if outcome != NOTICED:
                print(f"{outcome}: {what}", flush=True)
            if tally.tried % 10 == 0:
                print(tally.line("so far"), file=sys.stderr, flush=True)
    print(f"{name}: {min(count, total)} of {total} places", flush=True)


def preload() -> None:
    """What tests import, but nothing of ours: that is imported anew, changed."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    for name in (
        "numba",
        "pytest",
        "hypothesis",
        "ir_measures",
        "matplotlib",
        "scipy.sparse.linalg",
        "duckdb",
        "pyarrow.dataset",
        "pandas",
    ):
        with suppress(ImportError):
            __import__(name)


def run(count: int, seed: int = 0, rooms: Sequence[str] = tuple(ROOMS), only: Sequence[str] = ()) -> Tally:
    """As many of each room, and what one has too few of from the next."""
    tally = Tally()
    preload()
    for place, name in enumerate(rooms):
        strike(name, (count - tally.tried) // (len(rooms) - place), seed, tally, only)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(prog="campaigns.mutants", description=__doc__)
    parser.add_argument("rooms", nargs="+", choices=list(ROOMS))
    parser.add_argument("--count", type=int, default=LONG)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", nargs="*", default=[], help="source files, as sums.py; all of a room without it")
    given = parser.parse_args()
    print(run(given.count, given.seed, given.rooms, given.files).line("mutants"))


if __name__ == "__main__":
    main()
