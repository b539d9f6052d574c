"""The short form of every campaign: seconds, with another seed each day it is asked for one (CAMPAIGN_SEED)."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

SEED = int(os.environ.get("CAMPAIGN_SEED", "0"))
IN_PROCESS = ("inputs", "flips", "faults")
FORKING = ("forged", "kills", "interrupts", "disks")


@pytest.mark.parametrize("name", IN_PROCESS)
def test_campaign(name: str) -> None:
    campaign = importlib.import_module(f"campaigns.{name}")
    tally = campaign.run(campaign.SHORT, SEED)
    assert tally.faults == []
    assert tally.tried >= campaign.SHORT


@pytest.mark.parametrize("name", FORKING)
def test_campaign_with_children(name: str) -> None:
    """In a process of its own: children of this one would have all that tests have loaded."""
    campaign = importlib.import_module(f"campaigns.{name}")
    line = [sys.executable, "-m", "campaigns", name, "--count", str(campaign.SHORT), "--seed", str(SEED)]
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join([str(tests), *(p for p in sys.path if p and p != str(tests))])
    done = subprocess.run(line, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize("name", ["sessions", "trec-session"])
def test_fuzz(name: str) -> None:
    pytest.importorskip("atheris")
    line = [sys.executable, "-m", "campaigns.fuzz", name, "300", str(SEED + 1)]
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join([str(tests), *(p for p in sys.path if p and p != str(tests))])
    done = subprocess.run(line, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
