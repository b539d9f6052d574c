"""The native endpoints: what they answer, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clickbridge
from clickbridge.serve.config import Config
from clickbridge.serve.limits import MAX_BODY, MAX_DOCUMENTS, MAX_EVENTS
from running import Running, running

IDS = ["bagel", "rome", "ny", "pizza", "blank"]
PAGE = {"event_id": "e1", "query": "ny pizza", "results": IDS, "clicks": ["ny"]}


@pytest.fixture
def one(serve: Callable[..., Running]) -> Running:
    return serve("bm25+pls")


@pytest.mark.parametrize("spec", ["bm25", "bm25+pls", "online:bm25", "rrf:bm25+pls"])
def test_rank_gives_the_models_order(serve: Callable[..., Running], models: Callable[[str], Path], spec: str) -> None:
    model = clickbridge.load(models(spec))
    found = serve(spec).post("/rank", {"query": "ny pizza", "documents": IDS}).json()
    ranking = model.rerank("ny pizza", IDS)
    assert [r["doc_id"] for r in found["results"]] == ranking.doc_ids
    scores = [r["score"] for r in found["results"]]
    assert [s for s in scores if s is not None] == [s for s in ranking.scores if s > -float("inf")]
    assert [r["rank"] for r in found["results"]] == [1, 2, 3, 4, 5]
    assert found["model"] == models(spec).name
    assert len(found["version"]) == 12


def test_rank_scores_what_it_does_not_know_by_its_text(one: Running) -> None:
    documents = ["bagel", {"doc_id": "new", "title": "Pizza", "body": "New York pizza"}, "nobody", {"doc_id": "empty"}]
    results = one.post("/rank", {"query": "ny pizza", "documents": documents}).json()["results"]
    assert results[0]["doc_id"] == "new"
    assert results[0]["score"] > 0
    assert {r["doc_id"]: r["score"] for r in results}["nobody"] is None


def test_a_known_document_is_scored_as_the_model_knows_it(one: Running) -> None:
    plain = one.post("/rank", {"query": "pizza", "documents": ["rome", "ny"]}).json()["results"]
    given = [{"doc_id": "rome", "title": "pizza pizza pizza"}, "ny"]
    assert one.post("/rank", {"query": "pizza", "documents": given}).json()["results"] == plain


def test_batches_k_and_repeated_ids(one: Running) -> None:
    asked = [{"query": q, "documents": ["ny", "pizza", "ny"]} for q in ("big apple", "pizza")]
    answers = one.post("/rank", {"requests": asked}).json()["answers"]
    assert [[r["doc_id"] for r in a["results"]] for a in answers] == [["ny", "pizza"], ["pizza", "ny"]]
    assert one.rank("pizza", IDS, k=2) == one.rank("pizza", IDS)[:2]
    assert one.rank("pizza", [7, "pizza"]) == ["pizza", "7"]


def test_explain(one: Running) -> None:
    results = one.post("/rank", {"query": "pizza", "documents": ["pizza", "nobody"], "explain": True}).json()["results"]
    assert results[0]["explanation"]["pairs"]
    assert results[1]["explanation"] is None
    assert one.get("/explain", q="pizza", doc_id="pizza").json()["pairs"]
    assert one.get("/explain", q="pizza", doc_id="nobody").status_code == 404


def test_search_and_similar(one: Running) -> None:
    found = one.get("/search", q="pizza by the slice", k=2).json()
    assert found["results"][0] | {"score": 0} == {
        "doc_id": "pizza", "score": 0, "rank": 1, "title": "Pizza", "snippet": found["results"][0]["snippet"],
    }  # fmt: skip
    assert len(found["results"]) == 2
    assert one.get("/similar/documents", doc_id="pizza", k=1).json()["results"][0]["doc_id"] in IDS
    assert one.get("/similar/documents", doc_id="nobody").json()["error"]["code"] == "unknown_document"


def test_several_models_by_name(serve: Callable[..., Running]) -> None:
    two = serve("bm25", "online:bm25")
    assert [m["name"] for m in two.get("/models").json()["models"]] == ["bm25", "online-bm25"]
    answer = two.post("/rank", {"query": "pizza", "documents": IDS, "model": "online-bm25"}).json()
    assert answer["model"] == "online-bm25"
    missing = two.post("/rank", {"query": "pizza", "documents": IDS, "model": "nope"})
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "unknown_model")


# --- feedback --------------------------------------------------------------------------------------


def test_feedback_counts_each_event_once(one: Running) -> None:
    assert one.feedback(PAGE) == {"accepted": 1, "duplicates": 0}
    assert one.feedback(PAGE, PAGE | {"event_id": "e2"}) == {"accepted": 1, "duplicates": 1}
    twice = PAGE | {"event_id": "e3"}
    assert one.feedback(twice, twice | {"clicks": []}) == {"accepted": 1, "duplicates": 1}
    assert one.get("/health").json()["models"][0]["events"] == 3


def test_an_online_model_learns_at_once_and_forgets_at_once(serve: Callable[..., Running]) -> None:
    live = serve("online:bm25")
    before = live.rank("ny pizza", IDS)
    for n in range(30):
        live.feedback({"event_id": f"e{n}", "query": "NY  pizza", "results": before, "clicks": ["bagel"]})
    assert live.rank("ny pizza", IDS)[0] == "bagel"
    for n in range(30):
        assert live.post("/feedback/undo", {"event_id": f"e{n}"}).json() == {"accepted": 1, "duplicates": 0}
    assert live.rank("ny pizza", IDS) == before
    assert live.post("/feedback/undo", {"event_id": "e0"}).json() == {"accepted": 0, "duplicates": 1}
    assert live.post("/feedback/undo", {"event_id": "never"}).status_code == 404


def test_a_click_names_the_answer_it_is_on(serve: Callable[..., Running]) -> None:
    live = serve("online:bm25")
    for n in range(30):
        answer = live.post("/rank", {"query": "ny pizza", "documents": IDS}).json()
        live.feedback({"event_id": f"e{n}", "query_id": answer["query_id"], "clicks": ["bagel"]})
    assert live.rank("ny pizza", IDS)[0] == "bagel"
    refused = live.post("/feedback", {"events": [{"event_id": "x", "query_id": "nope", "clicks": []}]})
    assert refused.json()["error"]["code"] == "unknown_query_id"
    assert refused.json()["error"]["field"] == "events.0.query_id"


def test_events_that_wait_have_a_limit(serve: Callable[..., Running]) -> None:
    full = serve("bm25", queue=3)
    refused = full.post("/feedback", {"events": [PAGE | {"event_id": f"e{n}"} for n in range(4)]})
    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) >= 1
    assert refused.json()["error"]["code"] == "busy"
    assert full.feedback(*(PAGE | {"event_id": f"e{n}"} for n in range(3)))["accepted"] == 3


# --- refusals --------------------------------------------------------------------------------------

BAD: list[bytes] = [
    b"", b"{", b"[]", b"null", b"5", b'{"query": 5}', b'{"query": "a", "documents": "x"}', b"\xff\xfe", b"[" * 20000,
    b'{"query":"a","documents":[1,NaN]}', b'{"query":"a","documents":[true]}', b'{"query":"a","documents":[""]}',
    b'{"query":"a","documents":["a b"]}', b'{"query":"a","documents":["x"],"k":0}',
    b'{"requests": []}', b'{"requests": [{"query": "a"}]}', b'{"events": [{"event_id": "a b", "clicks": []}]}',
    b'{"events": [{"event_id": "a", "clicks": []}]}', b'{"events": [{"event_id": "a"}]}',
    b'{"events": [{"event_id": "a", "query": "q", "results": ["1"], "clicks": ["1"], "time": "x"}]}',
    b'{"events": [{"event_id": "a", "query": " ", "results": ["1"], "clicks": ["1"]}]}',
]  # fmt: skip


@pytest.fixture(scope="module")
def shared(models: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("shared")
    config = Config(models={"m": str(models("bm25"))}, store=f"sqlite:///{folder}/events.db", log_requests=False)
    with running(config) as found:
        yield found


@pytest.mark.parametrize("path", ["/rank", "/feedback", "/feedback/undo"])
@pytest.mark.parametrize("body", BAD, ids=lambda b: b[:40].decode("latin1"))
def test_malformed_bodies_are_refused_in_one_shape(shared: Running, path: str, body: bytes) -> None:
    answer = shared.post(path, body)
    if path == "/feedback" and body in (b"", b"[]"):
        return  # an empty batch of events in another protocol's shape
    assert 400 <= answer.status_code < 500
    error = answer.json()
    assert {*error} == {"error", "request_id"}
    assert error["error"]["code"]
    assert error["error"]["message"]
    assert answer.headers["x-request-id"] == error["request_id"]


def test_limits(shared: Running) -> None:
    assert shared.post("/rank", b'{"query":"' + b"x" * (MAX_BODY + 1) + b'"}').status_code == 413
    many = {"query": "a", "documents": [str(i) for i in range(MAX_DOCUMENTS + 1)]}
    assert shared.post("/rank", many).json()["error"]["field"] == "documents"
    events = [PAGE | {"event_id": f"l{n}"} for n in range(MAX_EVENTS + 1)]
    assert shared.post("/feedback", {"events": events}).json()["error"]["field"] == "events"
    assert shared.get("/search", q="x" * 5000).json()["error"]["field"] == "q"
    assert shared.get("/search", q="x", k=100_000).json()["error"]["field"] == "k"
    assert shared.get("/search").json()["error"]["field"] == "q"


def test_unknown_paths_and_methods(shared: Running) -> None:
    assert shared.get("/nope").json()["error"]["code"] == "not_found"
    assert shared.get("/rank").json()["error"]["code"] == "method_not_allowed"


def test_every_answer_has_security_headers_and_a_request_id(shared: Running) -> None:
    for answer in (shared.get("/health"), shared.get("/nope"), shared.get("/search", q="pizza")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "default-src 'self'" in answer.headers["content-security-policy"]
    given = shared.http.get("/health", headers={"X-Request-ID": "mine-7"})
    assert given.headers["x-request-id"] == "mine-7"
    forged = shared.http.get("/health", headers={"X-Request-ID": "a b"})
    assert forged.headers["x-request-id"] != "a b"


def test_docs_openapi_and_metrics(shared: Running) -> None:
    schema = shared.get("/openapi.json").json()
    assert {"/rank", "/search", "/feedback", "/health"} <= set(schema["paths"])
    page = shared.get("/docs").text
    assert "POST /rank" in page
    assert "http://" not in page
    assert "https://" not in page
    shared.rank("pizza unheard", ["pizza", "nobody"])
    text = shared.get("/metrics").text
    assert 'clickbridge_query_words_total{known="no",model="m"}' in text
    assert 'clickbridge_documents_total{known="no",model="m"}' in text
    assert 'clickbridge_requests_total{route="/rank",status="200"}' in text


def test_control_characters_of_a_query_are_blanks(shared: Running) -> None:
    assert shared.rank("ny\x1fpizza\x00", IDS) == shared.rank("ny pizza", IDS)
