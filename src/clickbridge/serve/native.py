"""The native endpoints. They parse bodies and write answers themselves, which takes a fraction of a millisecond."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from clickbridge.errors import ClickbridgeError
from clickbridge.log.clean import MAX_QUERY
from clickbridge.serve.answers import explanation
from clickbridge.serve.bodies import read_body, reply, taking
from clickbridge.serve.limits import MAX_ID, MAX_K
from clickbridge.serve.lists import rank_list, search_list
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
    readable,
)
from clickbridge.serve.served import Served
from clickbridge.serve.service import Service

LARGE = 20_000
"""With at least this many documents, a search runs in a separate thread, so that other requests do not wait for it."""
Q = Annotated[str, Query(max_length=MAX_QUERY, description="what was typed")]
K = Annotated[int, Query(ge=1, le=MAX_K, description="how many")]
Model = Annotated[str | None, Query(max_length=100, description="the first one by default")]
Terms = Annotated[str | None, Query(max_length=1000, description="field:value|value,field:value")]
User = Annotated[str | None, Query(max_length=MAX_ID)]
DocId = Annotated[str, Query(min_length=1, max_length=MAX_ID)]


def native_routes(service: Service) -> APIRouter:
    routes = APIRouter()
    for add in (_ranking, _neighbours, _models, _watching):
        add(routes, service)
    return routes


def _ranking(routes: APIRouter, service: Service) -> None:
    """Lists of documents for a query."""

    @routes.post("/rank", **taking(RankRequest | RankBatch, RankAnswer | BatchAnswer))
    async def rank(request: Request) -> Response:
        """Re-ranks documents for a query. With `{"requests": [...]}`, several lists at once."""
        service.check_ready()
        requests, batch = rank_requests(decode(await read_body(request)))
        answers = [rank_list(service, one) for one in requests]
        note(service, request, answers[0]["model"], [one.query for one in requests])
        return reply({"answers": answers} if batch else answers[0])

    @routes.get("/search", response_model=RankAnswer)
    async def search(
        request: Request, q: Q, k: K = 10, model: Model = None, filter: Terms = None, user: User = None
    ) -> Response:
        """Searches the whole collection for the best documents."""
        service.check_ready()
        large = len(service.live.get(model).fitted.catalogue) > LARGE
        query = readable(q)
        out = await aside(large, lambda: search_list(service, query, k, model, filter, user))
        note(service, request, out["model"], [query])
        return reply(out)


def _neighbours(routes: APIRouter, service: Service) -> None:
    """What is near to a query or a document, and why a document is."""
    live = service.live

    @routes.get("/suggest")
    async def suggest(q: Q, k: K = 10, model: Model = None) -> Response:
        """Completes a query: queries that begin with this text and were typed by enough people."""
        service.check_ready()
        served = live.get(model)
        rows = [{"query": text} for text in service.suggestions(served).complete(readable(q), k)]
        return reply({"model": served.name, "version": served.version, "results": rows})

    @routes.get("/similar/queries")
    async def similar_queries(q: Q, k: K = 10, model: Model = None) -> Response:
        """Similar queries that were typed by enough people."""
        service.check_ready()
        served = live.get(model)
        near = service.suggestions(served).similar(served.fitted, readable(q), k)
        return reply({"model": served.name, "version": served.version, "results": [
            {"query": text, "similarity": s} for text, s in near]})  # fmt: skip

    @routes.get("/similar/documents")
    async def similar_documents(doc_id: DocId, k: K = 10, model: Model = None) -> Response:
        """Similar documents."""
        service.check_ready()
        served = live.get(model)
        fitted = served.fitted
        near = fitted.similar_documents(doc_id, k)
        rows = [{"doc_id": h.doc_id, "similarity": h.score, "title": fitted.title(h.doc_id)} for h in near]
        return reply({"model": served.name, "version": served.version, "results": rows})

    @routes.get("/explain")
    async def explain(q: Q, doc_id: DocId, model: Model = None) -> Response:
        """Explains the score of a document: the words or other features it comes from."""
        service.check_ready()
        served = live.get(model)
        served.fitted.catalogue.number(doc_id)
        reasons = service.suggestions(served).hidden(explanation(served.fitted, readable(q), doc_id))
        return reply({"model": served.name, "version": served.version, **reasons})


def _models(routes: APIRouter, service: Service) -> None:
    """The loaded models."""

    @routes.get("/models")
    async def models() -> Response:
        """The loaded models."""
        return reply({"models": service.live.states()})

    @routes.post("/models/{name}/reload", response_model=ModelState)
    async def reload(name: str) -> Response:
        """Loads a model's folder again. If it fails verification, it is refused, and the old model stays."""
        return reply(await replaced(service, name, service.swap))

    @routes.post("/models/{name}/rollback", response_model=ModelState)
    async def rollback(name: str) -> Response:
        """Restores the model from before the last promotion. A second call reverses this."""
        return reply(await replaced(service, name, service.roll_back))


def _watching(routes: APIRouter, service: Service) -> None:
    """How the service is doing."""
    live = service.live

    @routes.get("/health", response_model=Health)
    async def health() -> Response:
        """Status 200 once all models are ready; 503 while they are being loaded."""
        ready = live.ready
        status = "ok" if ready else ("failed" if service.failure else "loading")
        return reply({"status": status, "models": live.states()}, 200 if ready else 503)

    @routes.get("/experiments")
    async def experiments() -> Response:
        """The current result of the experiment. Its p-value is valid no matter how often you look."""
        service.check_ready()
        found = service.experiment
        rows = [] if found is None else [await asyncio.to_thread(found.report, service.store)]
        return reply({"experiments": rows})

    @routes.get("/metrics")
    async def metrics() -> Response:
        """Metrics for Prometheus."""
        service.metrics.waiting.set(service.writer.waiting)
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def replaced(service: Service, name: str, how: Callable[[str], Served]) -> dict[str, Any]:
    """The model after loading its folder again. If the folder is refused, the old model stays."""
    service.check_ready()
    service.live.get(name)
    try:
        fresh = await asyncio.to_thread(how, name)
    except ClickbridgeError as error:
        raise Refused(409, "refused", f"the old model stays: {error}", "name") from None
    return {"name": name, "spec": fresh.spec, "version": fresh.version, "events": fresh.seq}


async def aside(slow: bool, work: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(work) if slow else work()


def note(service: Service, request: Request, model: str, queries: list[str]) -> None:
    """Adds to the log line. Queries are added only with `--log-queries`."""
    request.state.notes.update(model=model, lists=len(queries))
    if service.config.log_queries:
        request.state.notes["queries"] = queries
