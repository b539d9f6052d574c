"""Several worker processes behind one port, as the command line starts them."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx

from running import eventually

IDS = ["bagel", "rome", "ny", "pizza"]


def test_workers_share_the_store_and_the_counts(models: Callable[[str], Path], tmp_path: Path) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    line = ["serve", str(models("online:bm25")), "--port", str(port), "--workers", "2", "--quiet"]
    line += ["--store", f"sqlite:///{tmp_path}/events.db"]
    process = subprocess.Popen([sys.executable, "-m", "clickbridge", *line], stderr=subprocess.PIPE)
    url = f"http://127.0.0.1:{port}"

    def ask() -> list[str]:
        """On a connection of its own, so that either worker may answer."""
        answer = httpx.post(f"{url}/rank", json={"query": "ny pizza", "documents": IDS}, timeout=30)
        assert answer.status_code == 200, answer.text
        return [result["doc_id"] for result in answer.json()["results"]]

    def ready() -> bool:
        try:
            return all(httpx.get(f"{url}/health", timeout=30).status_code == 200 for _ in range(20))
        except httpx.TransportError:
            return False

    try:
        eventually(ready, seconds=120)
        for n in range(40):
            event = {"event_id": f"e{n}", "query": "ny pizza", "results": IDS[1:] + IDS[:1], "clicks": ["bagel"]}
            kept = httpx.post(f"{url}/feedback", json={"events": [event]}, timeout=30).json()
            assert kept == {"accepted": 1, "duplicates": 0}
        eventually(lambda: all(ask()[0] == "bagel" for _ in range(10)), seconds=60)
        counted = re.findall(r'clickbridge_events_total\{outcome="accepted"\} (\d+)', httpx.get(f"{url}/metrics").text)
        assert counted == ["40"], "the counts of all workers"
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=300)
    assert b"Traceback" not in said
