"""The example of docs/service.md, against a service and a server that answers as OpenSearch documents its search."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.serve.config import Config
from running import running

PAGE = Path(__file__).resolve().parents[2] / "docs" / "service.md"
HITS = [
    ("rome", "Rome", "Pizza al taglio"),
    ("new", "NY pizza", "By the slice"),
    ("ny", "New York City", "The big apple"),
]


class OpenSearch(BaseHTTPRequestHandler):
    """`POST /pages/_search`, with the answer's documented fields."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/pages/_search"
        assert asked["query"]["match"]["title"] == "ny pizza"
        found = [
            {"_index": "pages", "_id": i, "_score": 1.0, "_source": {"title": title, "body": body}}
            for i, title, body in HITS[: asked["size"]]
        ]
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        total = {"value": len(found), "relation": "eq"}
        hits = {"total": total, "max_score": 1.0, "hits": found}
        answer = json.dumps({"took": 3, "timed_out": False, "_shards": shards, "hits": hits}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def opensearch() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), OpenSearch)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_example_reranks_an_answer_of_opensearch(small_graph: ClickGraph, tmp_path: Path, opensearch: str) -> None:
    found = re.search(r"```python opensearch\n(.*?)```", PAGE.read_text(encoding="utf8"), re.DOTALL)
    assert found is not None
    assert len([line for line in found[1].splitlines() if line.strip()]) <= 15
    build_model("bm25+pls").fit(small_graph).save(tmp_path / "model")
    config = Config(models={"m": str(tmp_path / "model")}, store=f"sqlite:///{tmp_path}/e.db", log_requests=False)
    with running(config) as live:
        code = found[1].replace("http://localhost:8765", live.url).replace("http://localhost:9200", opensearch)
        names: dict[str, Any] = {}
        exec(compile(code, PAGE.name, "exec"), names)
        assert [hit["_id"] for hit in names["page"]] == live.rank("ny pizza", names_of(names))
        assert names["page"][0]["_id"] == "new", "a document that the model does not know, by its text"
        assert live.service.store.after(0)[0].clicks == ("new",)
        names["client"].close()


def names_of(names: dict[str, Any]) -> list[Any]:
    return [{"doc_id": i, **hit["_source"]} for i, hit in names["hits"].items()]
