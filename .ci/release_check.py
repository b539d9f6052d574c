"""Is this checkout fit to be released? `make release-check`.

Builds the sdist and the wheel, and looks at their size and contents. Then, for each Python that we support, makes a
clean environment, installs the wheel into it and runs the tests that the sdist carries. A Python that is not on this
machine is named and left out; with REQUIRE_ALL=1 that is a failure. Only the standard library is needed to start.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST, WORK = ROOT / "dist", ROOT / "build" / "release"
VERSIONS = ("3.11", "3.12", "3.13")
LIMIT = 2_000_000
"""Bytes that the wheel, and the sdist, must stay under."""


def run(*command: str | Path, cwd: Path = ROOT, quiet: bool = False, needed: bool = True) -> str:
    """Runs a program to its end; its output, which is also shown unless it is long and dull."""
    process = subprocess.Popen(
        [str(word) for word in command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if not quiet:
            print(line, end="", flush=True)
    if process.wait() and needed:
        sys.exit(f"{''.join(lines[-30:]) if quiet else ''}release-check: {' '.join(map(str, command))} failed")
    return "".join(lines)


def environment(python: Path, name: str) -> Path:
    """A new virtual environment; the path of its Python."""
    place = WORK / name
    shutil.rmtree(place, ignore_errors=True)
    run(python, "-m", "venv", place)
    return place / "bin" / "python"


def install(python: Path, *what: str) -> None:
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "-c", ROOT / "constraints.txt", *what, quiet=True)  # fmt: skip


def build() -> tuple[Path, Path]:
    """The sdist and the wheel made from it, in an empty `dist`, with their checksums."""
    shutil.rmtree(DIST, ignore_errors=True)
    python = environment(Path(sys.executable), "tools")
    install(python, "build")
    run(python, "-m", "build", "--outdir", DIST, quiet=True)
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in (sdist, wheel)]
    (DIST / "SHA256SUMS").write_text("".join(sums), encoding="utf8")
    return sdist, wheel


def look_at(sdist: Path, wheel: Path) -> None:
    """Size, version and contents of what was built."""
    declared = re.search(r'^__version__ = "(.+)"', (ROOT / "src/clickbridge/__init__.py").read_text(), re.MULTILINE)
    assert declared is not None
    for path in (sdist, wheel):
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")
        if path.stat().st_size >= LIMIT:
            sys.exit(f"release-check: {path.name} is over {LIMIT / 1e6:g} MB")
        if f"clickbridge-{declared[1]}" not in path.name:
            sys.exit(f"release-check: {path.name} is not version {declared[1]}")
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    wanted = {str(p.relative_to(source)) for p in (source / "clickbridge").rglob("*") if p.is_file()}
    missing = sorted(name for name in wanted - names if "__pycache__" not in name)
    strange = sorted(name for name in names - wanted if ".dist-info/" not in name)
    if missing or strange:
        sys.exit(f"release-check: the wheel lacks {missing or 'nothing'} and has {strange or 'nothing'} too much")


def interpreter(version: str) -> Path | None:
    """A Python of that version: on the PATH, or where uv and pyenv keep theirs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]
    if shutil.which("uv"):
        found = subprocess.run(["uv", "python", "find", version], capture_output=True, text=True)
        candidates.append(found.stdout.strip() or None)
    show = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in filter(None, candidates):  # pyenv's shims are on the PATH and may not run
        said = subprocess.run([str(candidate), "-c", show], capture_output=True, text=True)
        if said.stdout.strip() == version:
            return Path(candidate)
    return None


def check(version: str, python: Path, sdist: Path, wheel: Path, tests: list[str]) -> str:
    """Installs the wheel into a clean environment and runs the sdist's tests against it."""
    started, name = time.monotonic(), f"python{version}"
    fresh = environment(python, name)
    install(fresh, f"clickbridge[test] @ {wheel.as_uri()}")
    run(fresh, "-m", "pip", "check")
    run(fresh.with_name("clickbridge"), "--version")
    run(fresh, "-m", "clickbridge", "models", quiet=True)
    unpacked = WORK / f"{name}-sdist"
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    home = next(unpacked.iterdir())
    shutil.rmtree(home / "src")  # what the tests import is the wheel
    options = tests or ["-n", "2", "--dist", "loadscope"]
    said = run(fresh, "-P", "-m", "pytest", *options, cwd=home, needed=False).strip().splitlines()[-1].strip("= ")
    exact = run(fresh, "-c", "import platform; print(platform.python_version())", quiet=True).strip()
    return f"Python {exact}: {said}; {time.monotonic() - started:.0f} s in all"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", choices=VERSIONS, help="only these; may be repeated")
    parser.add_argument("tests", nargs="*", help="arguments for pytest; all tests without any")
    wanted = parser.parse_args()
    data = ROOT.parent / "shared" / "data"
    if data.is_dir():  # where the tests look beside a checkout
        os.environ.setdefault("CLICKBRIDGE_DATA", str(data))
    os.environ.pop("PYTHONPATH", None)
    sdist, wheel = build()
    look_at(sdist, wheel)
    lines, absent = [], []
    for version in wanted.python or VERSIONS:
        python = interpreter(version)
        if python is None:
            absent.append(version)
        else:
            print(f"\nPython {version}: {python}", flush=True)
            lines.append(check(version, python, sdist, wheel, wanted.tests))
    print("\n" + "\n".join(lines + [f"Python {version}: NOT RUN, no such Python here" for version in absent]))
    if any(not re.search(r"\d+ passed", line) or re.search(r"failed|error", line) for line in lines):
        sys.exit("release-check: tests failed")
    if not lines or (absent and os.environ.get("REQUIRE_ALL") == "1"):
        sys.exit("release-check: not every supported Python was run")


if __name__ == "__main__":
    main()
