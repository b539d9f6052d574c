"""The client against a real service, and against servers that misbehave."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from clickbridge import Client, Document, ServiceError
from clickbridge.errors import SettingError
from running import Running

IDS = ["bagel", "rome", "ny", "pizza"]


def test_the_whole_path(serve: Callable[..., Running]) -> None:
    live = serve("online:bm25")
    with Client(live.url) as client:
        assert client.health()["status"] == "ok"
        ranking = client.rank("ny pizza", [*IDS, Document("new", {"title": "NY pizza"})])
        assert ranking.doc_ids == live.rank("ny pizza", [*IDS, {"doc_id": "new", "title": "NY pizza"}])
        assert len(ranking) == 5
        assert ranking[0].rank == 1
        assert client.search("pizza", k=2)[0].title
        for _ in range(30):
            client.click(client.rank("ny pizza", IDS), "bagel", user="u1")
        assert client.rank("ny pizza", IDS).doc_ids[0] == "bagel"
        page = {"event_id": "e1", "query": "pizza", "results": IDS, "clicks": ["rome"]}
        assert client.feedback([page]) == (1, 0)
        assert client.feedback([page]) == (0, 1)
        assert client.undo("e1")
        assert not client.undo("e1")
        live.service.refresh_suggestions()
        assert client.suggest("ny") == ["ny pizza"]
        with pytest.raises(ServiceError) as caught:
            client.rank("pizza", IDS, model="nope")
        assert (caught.value.status, caught.value.code, caught.value.field) == (404, "unknown_model", "model")


def test_keys(serve: Callable[..., Running], tmp_path: Any) -> None:
    (tmp_path / "keys").write_text("0123456789abcdefghij rank\n")
    live = serve("bm25", key_file=str(tmp_path / "keys"))
    with Client(live.url, key="0123456789abcdefghij") as client:
        assert client.rank("pizza", IDS)
    with Client(live.url) as stranger, pytest.raises(ServiceError, match="valid key"):
        stranger.rank("pizza", IDS)


@contextmanager
def server(statuses: list[int]) -> Iterator[tuple[str, list[bytes]]]:
    """Answers with one status after the other; 0 hangs up."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            status = statuses.pop(0) if statuses else 200
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b'{"accepted": 1, "duplicates": 0}' if status == 200 else b'{"error": {"message": "no"}}')

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_address[1]}", bodies
    running.shutdown()
    thread.join()
    running.server_close()


def test_it_sends_again_what_may_be_sent_again() -> None:
    with server([503, 0, 429]) as (url, bodies), Client(url) as client:
        assert client.feedback([{"query": "a", "results": ["b"], "clicks": []}]) == (1, 0)
    assert len(bodies) == 4
    assert len(set(bodies)) == 1, "the same event id each time"


def test_it_gives_up() -> None:
    with server([503] * 9) as (url, bodies), Client(url, retries=1) as client:
        with pytest.raises(ServiceError, match="no"):
            client.feedback([])
        assert len(bodies) == 2
    with server([400]) as (url, bodies), Client(url) as client, pytest.raises(ServiceError):
        client.feedback([])
    assert len(bodies) == 1, "what is refused for good is not sent again"
    with Client("http://127.0.0.1:9", retries=0) as client, pytest.raises(ServiceError, match="no answer"):
        client.health()
    with pytest.raises(SettingError):
        Client("localhost:8765")
