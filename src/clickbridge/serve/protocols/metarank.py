"""Metarank: `POST /rank/{model}`, and its events on `/feedback`: a single event, an array, or one event per line.

The `curl -d` of Metarank's documentation sends the content type of a form, so all content types are accepted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from clickbridge.io.json_text import parse_json
from clickbridge.log.clean import RecordError
from clickbridge.log.metarank import metarank_ranking, read_metarank
from clickbridge.log.searches import Search
from clickbridge.serve.answers import explanations, ranked, scores_or_lowest, texts_of
from clickbridge.serve.bodies import read_body, reply, taking
from clickbridge.serve.limits import MAX_DOCUMENTS, MAX_EVENTS
from clickbridge.serve.protocols.pages import Batch, keep_batch
from clickbridge.serve.refusals import Refused
from clickbridge.serve.schemas import decode
from clickbridge.serve.served import Served
from clickbridge.serve.service import Service
from clickbridge.types import Document


class MetarankItem(BaseModel):
    item: str
    score: float
    features: list[dict[str, Any]] | None = None


class MetarankAnswer(BaseModel):
    took: int
    items: list[MetarankItem]


def metarank_routes(service: Service) -> APIRouter:
    routes = APIRouter()

    @routes.post("/rank/{model}", **taking(dict[str, Any], MetarankAnswer))
    async def rank(request: Request, model: str, explain: bool = False) -> Response:
        """Re-ranks the items of a ranking event, and answers like Metarank."""
        service.check_ready()
        started, served = time.perf_counter(), service.live.get(model)
        body = decode(await read_body(request))
        try:
            search = metarank_ranking(body if isinstance(body, dict) else {})
        except RecordError as error:
            raise Refused(422, "invalid", str(error)) from None
        if len(search.results or ()) > MAX_DOCUMENTS:
            raise Refused(422, "invalid", f"a list has at most {MAX_DOCUMENTS} items", "items")
        items = _ranked(served, search, body, explain, service.user(search.user))
        batch = Batch("metarank")
        batch.add(body, search)
        for page in batch.pages.values():
            service.remember(page)
        service.note_query(served, search.query, bool(items))
        request.state.notes.update(model=served.name, documents=len(items))
        took = round((time.perf_counter() - started) * 1e3)
        return reply({"took": took, "items": items})

    return routes


def _ranked(served: Served, search: Search, body: Mapping[str, Any], explain: bool, user: int) -> list[dict[str, Any]]:
    fitted = served.fitted
    texts = {str(item["id"]): item.get("fields") for item in body["items"] if isinstance(item, dict)}
    documents = [Document(doc_id, _texts(texts.get(doc_id))) for doc_id in search.results or ()]
    ordered = scores_or_lowest(ranked(fitted, search.query, documents, user))
    items: list[dict[str, Any]] = [{"item": doc_id, "score": score} for doc_id, score in ordered]
    if explain:
        for item, reason in zip(items, explanations(fitted, search.query, [d for d, _ in ordered]), strict=True):
            pairs = (reason or {}).get("pairs", ())
            names = ((f"{p['query_feature']} {p['doc_feature']}", p["contribution"]) for p in pairs)
            item["features"] = [{"name": name, "value": value} for name, value in names]
    return items


def _texts(fields: Any) -> dict[str, str]:
    named = fields if isinstance(fields, list) else []
    pairs = ((f["name"], f.get("value")) for f in named if isinstance(f, dict) and isinstance(f.get("name"), str))
    return texts_of(dict(pairs))


# --- feedback --------------------------------------------------------------------------------------


def is_metarank(value: Any) -> bool:
    """Whether a body of `/feedback` is in Metarank's format and not in ours."""
    return isinstance(value, list) or (isinstance(value, dict) and "event" in value and "events" not in value)


def feedback_values(body: bytes) -> Any:
    """One JSON value, or one per line."""
    lines = [line for line in body.splitlines() if line.strip()]
    if len(lines) > 1 and all(line.lstrip().startswith(b"{") for line in lines):
        try:
            return [parse_json(line) for line in lines]
        except orjson.JSONDecodeError:
            pass  # a single value on several lines
    return decode(body) if lines else []


async def take_events(service: Service, value: Any) -> Response:
    """Stores Metarank's rankings, and learns the clicks on them."""
    started = time.perf_counter()
    records = value if isinstance(value, list) else [value]
    if len(records) > MAX_EVENTS:
        raise Refused(422, "invalid", f"a request has at most {MAX_EVENTS} events; got {len(records)}")
    batch = Batch("metarank")
    for number, record in enumerate(records):
        try:
            event = read_metarank(record)
        except RecordError as error:
            raise Refused(422, "invalid", str(error), str(number)) from None
        batch.add(record, None if isinstance(event, Document) else event)
    accepted, _ = await keep_batch(service, batch)
    took = round((time.perf_counter() - started) * 1e3)
    body = {"status": "ok", "accepted": batch.received, "updated": accepted, "tookMillis": took}
    return reply(body)
