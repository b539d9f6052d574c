"""The regular tasks of a running service: delete old events, and retrain."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import orjson

from clickbridge.errors import ClickbridgeError
from clickbridge.models.model_folder import save
from clickbridge.serve.config import VARIABLE, Config
from clickbridge.serve.gate import write_log
from clickbridge.serve.live import Live
from clickbridge.serve.metrics import Metrics
from clickbridge.serve.served import Served
from clickbridge.serve.store import Store

SWEEP = 60.0
"""Seconds between two searches for old events."""


class Upkeep:
    def __init__(self, config: Config, store: Store, live: Live, metrics: Metrics, stop: threading.Event) -> None:
        self.config, self.store, self.live, self.metrics, self._stop = config, store, live, metrics, stop
        self._swept = 0.0
        self._sweeping = threading.Lock()
        self._retrained = time.monotonic()

    def run(self) -> None:
        """Runs the tasks that are due. It is called several times per second."""
        now = time.monotonic()
        if now - self._swept >= SWEEP:
            self._swept = now
            self.sweep()
        if self.config.update_every and now - self._retrained >= self.config.update_every:
            self._retrained = now
            for name in list(self.live.models):
                self.retrain(name)

    # --- retention -------------------------------------------------------------------------------

    def sweep(self) -> int:
        """Deletes answers and events that are too old. Before that, `online:` models are saved with what these events
        taught them. Only one sweep runs at a time."""
        with self._sweeping:
            return self._sweep(time.time())

    def _sweep(self, now: float) -> int:
        self.store.purge_shown(now - max(self.config.click_window, SWEEP))
        if not self.config.keep:
            return 0
        upto = self.store.last_before(now - self.config.keep)
        if not upto:
            return 0
        for served in list(self.live.models.values()):
            if served.learns and served.folded < upto:
                self.save_learned(served)
        dropped = self.store.purge(now - self.config.keep, upto)
        if dropped:
            write_log({"at": round(now, 3), "events dropped": dropped, "kept from": upto + 1})
        return dropped

    def save_learned(self, served: Served) -> None:
        """Writes what an `online:` model has learned into its folder."""
        with self.live.paused():
            value, seq = served.folded_value(), served.seq
        save(value, served.path)
        served.folded = seq

    # --- retraining ------------------------------------------------------------------------------

    def retrain(self, name: str) -> dict[str, Any]:
        """Retrains a model in a separate process, so that requests do not wait. Then the new folder is loaded."""
        line = [sys.executable, "-P", "-m", "clickbridge.serve.promotion", name]
        environment = {**os.environ, VARIABLE: self.config.to_json()}
        pipe = subprocess.PIPE
        with subprocess.Popen(line, stdout=pipe, stderr=pipe, env=environment) as process:
            while process.poll() is None:
                if self._stop.wait(0.1):
                    process.terminate()  # safe at any time, since a MODEL is replaced in one step
            out, said = process.communicate()
        if process.returncode:
            lines = said.decode(errors="replace").strip().splitlines()
            raise ClickbridgeError(f"retraining {name} failed: {lines[-1] if lines else process.returncode}")
        verdict: dict[str, Any] = orjson.loads(out)
        self.metrics.promotions.labels(name, verdict["outcome"]).inc()
        write_log({"at": round(time.time(), 3), "model": name, "retrained": verdict})
        return verdict
