"""Events of hosted search services, and records of an index over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clickbridge import read_log
from clickbridge.errors import InputError
from clickbridge.log.clean import RecordError
from clickbridge.log.hosted_search import read_typesense
from clickbridge.log.pull import Index, hidden, pull
from clickbridge.log.rejects import RejectLog
from clickbridge.types import Impression

AT, SECONDS = 1769853600000, 1769853600.0
ALGOLIA = [
    {"query": "NY Pizza", "queryID": "q1", "hits": [{"objectID": "a"}, {"objectID": "b"}], "nbHits": 2},
    {"events": [{"eventType": "click", "eventName": "x", "index": "i", "userToken": "u", "timestamp": AT,
                 "objectIDs": ["b"], "queryID": "q1", "positions": [2]},
                {"eventType": "view", "eventName": "x", "index": "i", "userToken": "u", "objectIDs": ["a"]}]},
]  # fmt: skip
MEILISEARCH = [
    {"query": "NY Pizza", "hits": [{"sku": 7}, {"sku": 8}], "metadata": {"queryUid": "q1", "primaryKey": "sku"}},
    {"eventType": "click", "eventName": "x", "indexUid": "i", "userId": "u", "queryUid": "q1", "objectId": "8",
     "position": 1},
]  # fmt: skip
TYPESENSE = [
    {"name": "clicks", "type": "click", "data": {"q": "NY Pizza", "doc_id": "b", "user_id": "u"}},
    {"name": "carts", "type": "conversion", "data": {"q": "bagel", "doc_ids": ["c", "d"]}},
]


@pytest.mark.parametrize(
    ("records", "pages"),
    [
        (ALGOLIA, [Impression("ny pizza", ["a", "b"], ["b"], None, "u", SECONDS)]),
        (MEILISEARCH, [Impression("ny pizza", ["7", "8"], ["8"], None, "u")]),
        (
            TYPESENSE,
            [Impression("ny pizza", None, ["b"], None, "u"), Impression("bagel", None, ["c"]),
             Impression("bagel", None, ["d"])],
        ),
    ],
    ids=["algolia", "meilisearch", "typesense"],
)  # fmt: skip
def test_events_and_their_searches(tmp_path: Path, records: list[Any], pages: list[Impression]) -> None:
    path = tmp_path / "log.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert list(read_log(str(path))) == pages


@pytest.mark.parametrize("records", [ALGOLIA, MEILISEARCH], ids=["algolia", "meilisearch"])
def test_events_that_say_nothing_about_a_result_are_left_out(tmp_path: Path, records: list[Any]) -> None:
    path = tmp_path / "log.ndjson"
    other = {**records[-1].get("events", records)[-1], "eventType": "hover"}
    path.write_text("".join(json.dumps(r) + "\n" for r in (*records, other)))
    log = read_log(str(path))
    assert [page.clicks for page in log] == [[records[-1].get("objectId") or "b"]]  # type: ignore[union-attr]
    assert log.rejects.count == 0


def test_a_click_without_its_search_is_a_reject(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    path.write_text(json.dumps(ALGOLIA[1]) + "\n")
    log = read_log(str(path), rejects=RejectLog(1.0))
    assert list(log) == []
    assert log.rejects.count == 1
    with pytest.raises(RecordError, match=r"data\.q is missing"):
        read_typesense({"name": "x", "data": {"doc_id": "b"}})


@pytest.mark.parametrize(
    ("format", "change", "reason"),
    [
        ("algolia", {"positions": 5}, "positions must be a list, got a number"),
        ("algolia", {"positions": {"b": 2}}, "positions must be a list, got an object"),
        ("algolia", {"positions": ["2"]}, "a position must be a whole number, got text"),
        ("algolia", {"events": 5}, "events must be a list, got a number"),
        ("algolia", {"events": [{"events": []}]}, "the name of an action must be text"),
        ("meilisearch", {"metadata": {"queryUid": "q1", "primaryKey": ["sku"]}}, "primaryKey must be text, got a list"),
    ],
)
def test_values_of_another_kind_are_rejects(tmp_path: Path, format: str, change: dict[str, Any], reason: str) -> None:
    event = {"eventType": "click", "queryID": "q1", "objectIDs": ["b"], "query": "q"}
    record = event | change if format == "algolia" else MEILISEARCH[0] | change
    (tmp_path / "log.ndjson").write_text(json.dumps(record) + "\n")
    log = read_log(str(tmp_path / "log.ndjson"), format=format, rejects=RejectLog(1.0))
    assert list(log) == []
    assert len(log.rejects.first) == 1
    assert log.rejects.first[0].reason.startswith(reason)


# --- an index over HTTP ------------------------------------------------------------------------------------


class Engine(ThreadingHTTPServer):
    """A small engine with points in time: a search sees what was there when its point was opened."""

    def __init__(self, kind: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.kind, self.documents = kind, list[tuple[str, dict[str, Any]]]()
        self.points: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        self.searches, self.fail_after = 0, 10**9
        self.password: str | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/ubi_events"


class Handler(BaseHTTPRequestHandler):
    server: Engine

    def log_message(self, *_: Any) -> None: ...

    def answer(self, code: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        engine, body = self.server, self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if engine.password and self.headers.get("Authorization") != engine.password:
            self.answer(401, {"error": "security_exception"})
        elif self.path == {"opensearch": "/ubi_events/_search/point_in_time?keep_alive=5m",
                           "elasticsearch": "/ubi_events/_pit?keep_alive=5m"}[engine.kind]:  # fmt: skip
            name = f"point{len(engine.points)}"
            engine.points[name] = sorted(engine.documents, key=lambda d: d[1]["timestamp"])
            self.answer(200, {"pit_id" if engine.kind == "opensearch" else "id": name})
        elif self.path == "/_search":
            self.search(json.loads(body))
        else:
            self.answer(400, {"error": "unknown"})

    def search(self, body: dict[str, Any]) -> None:
        engine = self.server
        engine.searches += 1
        if engine.searches > engine.fail_after:
            self.answer(503, {"error": "no shard available"})
            return
        assert [*body["sort"][0]] == ["timestamp"]
        assert [*body["sort"][1]] == ["_shard_doc"]
        after = body.get("search_after", ["", -1])
        hits = [
            {"_id": name, "_source": source, "sort": [source["timestamp"], place]}
            for place, (name, source) in enumerate(engine.points[body["pit"]["id"]])
            if [source["timestamp"], place] > after
        ]
        self.answer(200, {"pit_id": body["pit"]["id"], "hits": {"hits": hits[: body["size"]]}})

    def do_DELETE(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        (name,) = body["pit_id"] if self.server.kind == "opensearch" else [body["id"]]
        self.answer(200, {"closed": self.server.points.pop(name) is not None})


@pytest.fixture(params=["opensearch", "elasticsearch"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    server = Engine(request.param)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def event(number: int) -> tuple[str, dict[str, Any]]:
    """Two events share a second."""
    return f"id{number}", {"n": number, "timestamp": f"2026-01-31T10:00:{number // 2:02d}Z"}


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["n"] for line in path.read_text().splitlines()]


def test_page_after_page(engine: Engine, tmp_path: Path) -> None:
    engine.documents = [event(n) for n in range(23)]
    assert pull(engine.url, tmp_path / "log.ndjson", page=5) == 23
    assert numbers(tmp_path / "log.ndjson") == [*range(23)]
    assert not engine.points, "the point in time is closed"


def test_a_pull_that_breaks_off_goes_on(engine: Engine, tmp_path: Path) -> None:
    engine.documents = [event(n) for n in range(23)]
    engine.fail_after = 2
    with pytest.raises(InputError, match="answers 503"):
        pull(engine.url, tmp_path / "log.ndjson", page=5)
    assert numbers(tmp_path / "log.ndjson") == [*range(10)]
    with (tmp_path / "log.ndjson").open("a") as file:
        file.write('{"half a re')
    engine.fail_after = 10**9
    engine.documents.append(event(23))
    assert pull(engine.url, tmp_path / "log.ndjson", page=5) == 14
    assert numbers(tmp_path / "log.ndjson") == [*range(24)]
    engine.documents.append(("late", {"n": 24, "timestamp": event(23)[1]["timestamp"]}))
    assert pull(engine.url, tmp_path / "log.ndjson", page=5) == 1, "another of the same second"
    assert pull(engine.url, tmp_path / "log.ndjson", page=5) == 0


def test_what_is_refused(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(InputError, match="is not a pull"):
        pull(engine.url, tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "mine"
    for url in ("ftp://x/y", "https://host", "https://host/a/b"):
        with pytest.raises(InputError, match="an index is given as"):
            Index(url)
    engine.documents = [event(0)]
    pull(engine.url, tmp_path / "log")
    with pytest.raises(InputError, match="was pulled from"):
        pull(engine.url + "_other", tmp_path / "log")
    (tmp_path / "log.state").write_text("{}")
    with pytest.raises(InputError, match="is damaged"):
        pull(engine.url, tmp_path / "log")


def test_a_password_is_sent_and_not_shown(engine: Engine, tmp_path: Path) -> None:
    engine.password = "Basic bWU6c2VjcmV0"
    with pytest.raises(InputError, match="answers 401"):
        pull(engine.url, tmp_path / "a")
    engine.documents = [event(0)]
    url = engine.url.replace("http://", "http://me:secret@")
    assert pull(url, tmp_path / "b") == 1
    assert "secret" not in (tmp_path / "b.state").read_text()
    assert "secret" not in hidden(url)
