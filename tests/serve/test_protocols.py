"""Other systems' protocols, through their own clients where there are some."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cohere
import httpx
import numpy as np
import openai
import pytest

import clickbridge
from clickbridge.serve.config import Config
from clickbridge.types import Document
from conftest import skip_or_fail
from running import Running, running

TEXTS = ["Boiled, then baked", "New York pizza by the slice", "A city in Italy"]
IDS = ["bagel", "rome", "ny", "pizza"]


@pytest.fixture(scope="module")
def live(models: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    store = f"sqlite:///{tmp_path_factory.mktemp('protocols')}/events.db"
    folders = {"both": str(models("bm25+pls")), "pls": str(models("pls")), "live": str(models("online:bm25"))}
    with running(Config(models=folders, store=store, log_requests=False)) as found:
        yield found


# --- rerank ----------------------------------------------------------------------------------------


def test_cohere_v2(live: Running) -> None:
    with cohere.ClientV2("no-key", base_url=live.url) as client:
        answer = client.rerank(model="rerank-v3.5", query="ny pizza", documents=TEXTS, top_n=2)
    assert answer.results[0].index == 1
    assert len(answer.results) == 2
    assert answer.results[0].relevance_score > answer.results[1].relevance_score
    assert answer.id


def test_cohere_v1_with_documents(live: Running) -> None:
    known = {"id": "pizza", "text": "nothing of the kind"}
    documents = [{"text": TEXTS[0]}, known, {"title": "Rome", "body": "eternal"}]
    with cohere.Client("no-key", base_url=live.url) as client:
        answer = client.rerank(model="both", query="pizza slice", documents=documents, return_documents=True)
    best = answer.results[0]
    assert best.index == 1, "a known id is scored as the model knows it"
    assert best.document is not None
    assert best.document.text == "nothing of the kind"
    assert sorted(r.index for r in answer.results) == [0, 1, 2]


def test_jina(live: Running) -> None:
    body = {"query": "ny pizza", "documents": [*TEXTS, {"text": TEXTS[1]}], "return_documents": True}
    answer = live.post("/v1/rerank", body).json()
    assert {r["index"] for r in answer["results"][:2]} == {1, 3}
    assert answer["results"][0]["document"]["text"] == TEXTS[1]
    assert answer["usage"]["total_tokens"] > 0
    assert answer["model"] == "both"


def test_a_text_scores_as_a_document_of_that_text(live: Running, models: Callable[[str], Path]) -> None:
    fitted = clickbridge.load(models("bm25+pls")).fitted
    field = next(iter(fitted.text_fields))
    expected = fitted.score_documents("ny pizza", [Document("new", dict.fromkeys(fitted.text_fields, TEXTS[1]))])
    answer = live.post("/v2/rerank", {"model": "both", "query": "ny pizza", "documents": TEXTS}).json()
    assert field in ("title", "body")
    assert answer["results"][0]["relevance_score"] == pytest.approx(expected[0])


def test_rerank_refuses(live: Running) -> None:
    for body in ({"query": "a", "documents": []}, {"query": "a", "documents": [5]}, {"documents": ["a"]}):
        answer = live.post("/v2/rerank", body)
        assert answer.status_code == 422
        assert answer.json()["error"]["field"]


# --- embeddings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_openai(live: Running, models: Callable[[str], Path], encoding: Any) -> None:
    with openai.OpenAI(api_key="no-key", base_url=f"{live.url}/v1") as client:
        asked = client.embeddings.create(model="pls:query", input="ny pizza", encoding_format=encoding)
        given = client.embeddings.create(model="pls:document", input=TEXTS, encoding_format=encoding)
    query, documents = (np.array([_vector(d.embedding) for d in answer.data]) for answer in (asked, given))
    fitted = clickbridge.load(models("pls")).fitted
    expected = fitted.score_documents("ny pizza", [_text(i, t, fitted) for i, t in enumerate(TEXTS)])
    scored = np.isfinite(expected)
    np.testing.assert_allclose((documents @ query[0])[scored], expected[scored], rtol=1e-5)
    assert [d.index for d in given.data] == [0, 1, 2]


def _vector(embedding: Any) -> Any:
    return np.frombuffer(base64.b64decode(embedding), np.float32) if isinstance(embedding, str) else embedding


def _text(number: int, text: str, fitted: Any) -> Document:
    return Document(f"new{number}", dict.fromkeys(fitted.text_fields, text))


def test_embeddings_refuse(live: Running) -> None:
    with openai.OpenAI(api_key="no-key", base_url=f"{live.url}/v1", max_retries=0) as client:
        with pytest.raises(openai.UnprocessableEntityError):
            client.embeddings.create(model="live:query", input="pizza")
        with pytest.raises(openai.UnprocessableEntityError):
            client.embeddings.create(model="pls:query", input=[[1, 2, 3]])  # type: ignore[list-item]


# --- Metarank --------------------------------------------------------------------------------------

RANKING = {
    "event": "ranking", "id": "rank-1", "timestamp": "1699999999999", "user": "u", "session": "s",
    "fields": [{"name": "query", "value": "ny pizza"}],
    "items": [{"id": d, "fields": [{"name": "relevancy", "value": 1.0}]} for d in IDS],
}  # fmt: skip


def curl(url: str, body: str, *more: str) -> Any:
    """As Metarank's documentation has it: `curl -d`, with a form's content type."""
    if shutil.which("curl") is None:
        return httpx.post(url, content=body, headers={"Content-Type": "application/x-www-form-urlencoded"}).json()
    done = subprocess.run(["curl", "-s", "-d", body, *more, url], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def interaction(number: int, item: str, **more: Any) -> dict[str, Any]:
    event = {"event": "interaction", "id": f"i{number}", "timestamp": "1699999999999", "type": "click", "item": item}
    return {**event, "user": "u", "session": "s", "ranking": "rank-1", **more}


def test_metarank_ranks_and_learns(live: Running) -> None:
    before = curl(f"{live.url}/rank/live", json.dumps({k: v for k, v in RANKING.items() if k != "event"}))
    assert sorted(item["item"] for item in before["items"]) == sorted(IDS)
    assert [item["score"] for item in before["items"]] == sorted((i["score"] for i in before["items"]), reverse=True)
    assert "took" in before
    for start in range(0, 40, 10):
        lines = "\n".join(json.dumps(interaction(n, "bagel")) for n in range(start, start + 10))
        answer = curl(f"{live.url}/feedback", lines, "-H", "Content-Type: application/x-ndjson")
        assert answer | {"tookMillis": 0} == {"status": "ok", "accepted": 10, "updated": 10, "tookMillis": 0}
    again = curl(f"{live.url}/feedback", json.dumps(interaction(0, "bagel")))
    assert (again["accepted"], again["updated"]) == (1, 0), "the same id is the same event"
    after = curl(f"{live.url}/rank/live?explain=true", json.dumps(RANKING))
    assert after["items"][0]["item"] == "bagel"
    assert all("features" in item for item in after["items"])


def test_metarank_feedback_in_an_array_with_its_ranking(live: Running) -> None:
    ranking = RANKING | {"id": "rank-2"}
    item = {"event": "item", "id": "x", "timestamp": "1699999999999", "item": "bagel", "fields": []}
    events = [ranking, interaction(100, "ny", ranking="rank-2"), item, interaction(101, "ny", ranking="unknown")]
    answer = curl(f"{live.url}/feedback", json.dumps(events))
    assert (answer["accepted"], answer["updated"]) == (4, 1)


def test_metarank_refuses(live: Running) -> None:
    assert live.post("/rank/nope", RANKING).status_code == 404
    assert live.post("/rank/live", {"id": "1"}).status_code == 422
    assert live.post("/feedback", [{"event": "what"}]).status_code == 422


# --- UBI -------------------------------------------------------------------------------------------

QUERY = {"application": "shop", "query_id": "q1", "client_id": "c1", "user_query": "NY Pizza", "query_attributes": {},
         "timestamp": "2026-01-01T10:00:00.000Z", "object_id_field": "id", "query_response_id": "r1",
         "query_response_hit_ids": IDS}  # fmt: skip


def click(second: int, **more: Any) -> dict[str, Any]:
    event = {"application": "shop", "action_name": "click", "query_id": "q1", "client_id": "c1", "message_type": "INFO"}
    thing = {"object": {"object_id": "bagel", "object_id_field": "id"}, "position": {"ordinal": 1}}
    return {**event, "timestamp": f"2026-01-01T10:00:{second:02d}.000Z", "event_attributes": thing, **more}


def test_ubi(live: Running) -> None:
    assert live.post("/ubi_queries", [QUERY]).status_code == 200
    answer = live.post("/ubi_events", [click(n) for n in range(40)])
    assert answer.json() == {"accepted": 40, "duplicates": 0}
    assert live.post("/ubi_events", [click(3)]).json() == {"accepted": 0, "duplicates": 1}
    impression = click(50, action_name="impression")
    by_place = click(51, event_attributes={"position": {"ordinal": 2}})
    alone = click(52, query_id="unknown", user_query="ny pizza")
    lost = click(53, query_id="unknown")
    assert live.post("/ubi_events", [impression, by_place, alone, lost]).json()["accepted"] == 2
    last = live.service.store.after(live.service.store.last() - 2)
    assert [event.clicks for event in last] == [("rome",), ("bagel",)]
    assert last[0].results == tuple(IDS)
    assert last[1].results is None


def test_ubi_refuses(live: Running) -> None:
    assert live.post("/ubi_events", [{"action_name": "click"}]).status_code == 422
    assert live.post("/ubi_queries", {"no": "query"}).status_code == 422


@pytest.mark.browser
def test_a_page_posts_as_the_collector_does(serve: Callable[..., Running], tmp_path: Path) -> None:
    """A real browser, another origin, JSON arrays: the preflight must pass, and the click arrive."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((found for name in names if (found := shutil.which(name))), None)
    if browser is None:
        skip_or_fail("no Chromium on the PATH")
    assert browser is not None
    live = serve("online:bm25", cors=("null",))
    page = tmp_path / "page.html"
    head = "{method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(records)}"
    post = f"(path, records) => fetch(URL + path, {head})"
    page.write_text(f"""<script>const URL = {json.dumps(live.url)}; const post = {post};
        post('/ubi_queries', [{json.dumps(QUERY)}]).then(() => post('/ubi_events', [{json.dumps(click(1))}]))
            .then(answer => answer.text()).then(text => document.title = text)</script>""")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
    line = [browser, *options, f"file://{page}"]
    dumped = subprocess.run(line, capture_output=True, text=True, check=True, timeout=600).stdout
    assert re.search(r'"accepted":\s*1', dumped), dumped
    assert live.service.store.after(0)[0].clicks == ("bagel",)
