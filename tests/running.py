"""A service on a real socket: uvicorn in a thread of the tests, and an HTTP client that speaks to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from clickbridge.serve.app import create_app
from clickbridge.serve.config import Config
from clickbridge.serve.service import Service


@dataclass
class Running:
    """A service that answers."""

    url: str
    service: Service
    http: httpx.Client

    def get(self, path: str, **params: Any) -> Any:
        return self.http.get(path, params=params)

    def post(self, path: str, body: Any = None, **more: Any) -> Any:
        return self.http.post(path, **({"content": body} if isinstance(body, bytes) else {"json": body}), **more)

    def rank(self, query: str, documents: list[Any], **more: Any) -> list[str]:
        answer = self.post("/rank", {"query": query, "documents": documents, **more})
        assert answer.status_code == 200, answer.text
        return [result["doc_id"] for result in answer.json()["results"]]

    def feedback(self, *events: dict[str, Any]) -> dict[str, int]:
        answer = self.post("/feedback", {"events": list(events)})
        assert answer.status_code == 200, answer.text
        found: dict[str, int] = answer.json()
        return found

    def ready(self) -> None:
        for _ in range(600):
            if self.get("/health").status_code == 200:
                return
            assert not self.service.failure, self.service.failure
            time.sleep(0.05)
        raise AssertionError("the service did not become ready")


@contextmanager
def running(config: Config) -> Iterator[Running]:
    app = create_app(config)
    inner = app
    while not hasattr(inner, "state"):
        inner = inner.app  # type: ignore[attr-defined]
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", server_header=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=url, timeout=30) as http:
        found = Running(url, inner.state.service, http)  # type: ignore[attr-defined]
        try:
            found.ready()
            yield found
        finally:
            server.should_exit = True
            thread.join()


def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about")
