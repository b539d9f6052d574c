"""Starts the service under uvicorn, in this process or in several."""

from __future__ import annotations

import os
import tempfile

import uvicorn

from clickbridge.serve.access import Keys
from clickbridge.serve.config import Config
from clickbridge.serve.metrics import FOLDER
from clickbridge.serve.store import Store

GRACE = 10
"""Seconds that open requests have to finish when the service is stopped."""


def run(config: Config) -> None:
    """Runs the service until it is stopped. Invalid options are refused before the port is opened."""
    config.check()
    Keys(config.key_file)
    Store(config.store).close()
    config.to_environment()
    options = {
        "host": config.host, "port": config.port, "log_level": "warning", "access_log": False,
        "server_header": False, "timeout_graceful_shutdown": GRACE, "factory": True,
    }  # fmt: skip
    application = "clickbridge.serve.app:from_environment"
    if config.workers == 1:
        uvicorn.run(application, **options)  # type: ignore[arg-type]
        return
    with tempfile.TemporaryDirectory(prefix="clickbridge-metrics-") as folder:
        os.environ[FOLDER] = folder
        uvicorn.run(application, workers=config.workers, **options)  # type: ignore[arg-type]
