"""The native endpoints. Bodies are read and answers written by hand: the work is a fraction of a millisecond."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from clickbridge.errors import ClickbridgeError
from clickbridge.log.clean import MAX_QUERY
from clickbridge.serve.answers import answer, documents_of, explained, explanation, found, new_query_id, ranked
from clickbridge.serve.bodies import read_body, reply, taking
from clickbridge.serve.limits import MAX_ID, MAX_K
from clickbridge.serve.refusals import Refused
from clickbridge.serve.schemas import (
    BatchAnswer,
    Health,
    ModelState,
    RankAnswer,
    RankBatch,
    RankRequest,
    decode,
    rank_requests,
)
from clickbridge.serve.served import Served
from clickbridge.serve.service import Service
from clickbridge.serve.store import Shown

LARGE = 20_000
"""From so many documents on, a search runs in a thread of its own, so that other requests need not wait for it."""
Q = Annotated[str, Query(max_length=MAX_QUERY, description="what was typed")]
K = Annotated[int, Query(ge=1, le=MAX_K, description="how many")]
Model = Annotated[str | None, Query(max_length=100, description="the first one by default")]
User = Annotated[str | None, Query(max_length=MAX_ID)]
DocId = Annotated[str, Query(min_length=1, max_length=MAX_ID)]


def native_routes(service: Service) -> APIRouter:
    routes = APIRouter()
    live = service.live

    @routes.post("/rank", **taking(RankRequest | RankBatch, RankAnswer | BatchAnswer))
    async def rank(request: Request) -> Response:
        """Puts documents in order for a query; `{"requests": [...]}` does several lists at once."""
        service.check_ready()
        requests, batch = rank_requests(decode(await read_body(request)))
        answers = [rank_one(service, one) for one in requests]
        request.state.notes.update(model=answers[0]["model"], lists=len(answers))
        if service.config.log_queries:
            request.state.notes["queries"] = [one.query for one in requests]
        return reply({"answers": answers} if batch else answers[0])

    @routes.get("/search", response_model=RankAnswer)
    async def search(request: Request, q: Q, k: K = 10, model: Model = None, user: User = None) -> Response:
        """The best documents of the whole collection."""
        service.check_ready()
        started, served = time.perf_counter(), live.get(model)
        fitted, query = served.fitted, q
        hits = await aside(len(fitted.catalogue) > LARGE, lambda: found(fitted, query, k))
        out = answer(served, new_query_id(), started, hits)
        for result in out["results"]:
            result["title"] = fitted.title(result["doc_id"])
            result["snippet"] = ""
        service.note_query(served, query, any(s is not None for _, s in hits))
        show(service, out, query)
        request.state.notes.update(model=served.name)
        if service.config.log_queries:
            request.state.notes["queries"] = [query]
        return reply(out)

    @routes.get("/similar/queries")
    async def similar_queries(q: Q, k: K = 10, model: Model = None) -> Response:
        """Queries of the log that are like this one."""
        service.check_ready()
        served = live.get(model)
        near = served.fitted.similar_queries(q, k)
        return reply({"model": served.name, "version": served.version, "results": [
            {"query": text, "similarity": s} for text, s in near]})  # fmt: skip

    @routes.get("/similar/documents")
    async def similar_documents(doc_id: DocId, k: K = 10, model: Model = None) -> Response:
        """Documents that are like this one."""
        service.check_ready()
        served = live.get(model)
        fitted = served.fitted
        near = fitted.similar_documents(doc_id, k)
        rows = [{"doc_id": h.doc_id, "similarity": h.score, "title": fitted.title(h.doc_id)} for h in near]
        return reply({"model": served.name, "version": served.version, "results": rows})

    @routes.get("/explain")
    async def explain(q: Q, doc_id: DocId, model: Model = None) -> Response:
        """Which features carried the score of a document."""
        service.check_ready()
        served = live.get(model)
        served.fitted.catalogue.number(doc_id)
        return reply({"model": served.name, "version": served.version, **explanation(served.fitted, q, doc_id)})

    @routes.get("/health", response_model=Health)
    async def health() -> Response:
        """200 once every model answers; 503 while they are loaded."""
        ready = live.ready
        status = "ok" if ready else ("failed" if service.failure else "loading")
        return reply({"status": status, "models": live.states()}, 200 if ready else 503)

    @routes.get("/models")
    async def models() -> Response:
        """The models that answer."""
        return reply({"models": live.states()})

    @routes.post("/models/{name}/reload", response_model=ModelState)
    async def reload(name: str) -> Response:
        """Takes in what a model's folder holds now. What does not verify is refused, and the old model stays."""
        return reply(await replaced(service, name, service.swap))

    @routes.post("/models/{name}/rollback", response_model=ModelState)
    async def rollback(name: str) -> Response:
        """Puts the model in place that answered before the last promotion. A second call takes it back."""
        return reply(await replaced(service, name, service.roll_back))

    @routes.get("/metrics")
    async def metrics() -> Response:
        """For Prometheus."""
        service.metrics.waiting.set(service.writer.waiting)
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return routes


async def replaced(service: Service, name: str, how: Callable[[str], Served]) -> dict[str, Any]:
    """The model that answers after a swap; where it is refused, the old one stays."""
    service.check_ready()
    service.live.get(name)
    try:
        fresh = await asyncio.to_thread(how, name)
    except ClickbridgeError as error:
        raise Refused(409, "refused", f"the old model stays: {error}", "name") from None
    return {"name": name, "spec": fresh.spec, "version": fresh.version, "events": fresh.seq}


async def aside(slow: bool, work: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(work) if slow else work()


def rank_one(service: Service, request: RankRequest) -> dict[str, Any]:
    started, served = time.perf_counter(), service.live.get(request.model)
    fitted, documents = served.fitted, documents_of(request)
    ordered = ranked(fitted, request.query, documents, service.user(request.user))
    out = answer(served, new_query_id(), started, ordered[: request.k])
    if request.explain:
        explained(fitted, request.query, out["results"])
    numbers = fitted.catalogue.numbers
    known = sum(doc_id in numbers for doc_id, _ in ordered)
    drift = service.drift(served)
    drift.documents(known, len(ordered) - known)
    service.note_query(served, request.query, bool(ordered) and ordered[0][1] is not None)
    show(service, out, request.query)
    return out


def show(service: Service, out: dict[str, Any], query: str) -> None:
    """Keeps the answer, so that a click may name it by its id."""
    service.remember(Shown(out["query_id"], query, tuple(r["doc_id"] for r in out["results"])))
