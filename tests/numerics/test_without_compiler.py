"""Numba is silent about bounds and hides its code from coverage: the same tests, interpreted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="this is the run without the compiler")
def test_numerics_interpreted() -> None:
    here = Path(__file__)
    others = sorted(str(path) for path in here.parent.glob("test_*.py") if path != here)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *others]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | {"NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(command, cwd=here.parents[2], env=environment, capture_output=True, text=True, timeout=1800)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
