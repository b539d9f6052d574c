"""Ctrl-C at a random moment of ingest, fit and update: one line, no traceback, nothing half-written, nothing lost."""

from __future__ import annotations

import signal

from campaigns.kills import strike
from campaigns.tally import Tally

SHORT, LONG = 6, 300


def run(count: int, seed: int = 0) -> Tally:
    return strike(count, seed, signal.SIGINT)
