"""For the search page: why a document was found, as sentences, and what was learned from clicks."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, Response

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.insight.reasons import Reason, reasons
from clickbridge.insight.synonyms import learn_synonyms
from clickbridge.insight.word_pairs import word_pairs
from clickbridge.log.personal import looks_personal
from clickbridge.models.display import Display
from clickbridge.models.fitted import Fitted
from clickbridge.models.known_words import language_of
from clickbridge.serve.bodies import reply
from clickbridge.serve.events import Event
from clickbridge.serve.native import DocId, Model, Q
from clickbridge.serve.schemas import readable
from clickbridge.serve.served import Served
from clickbridge.serve.service import Service
from clickbridge.types import Document

REASONS = 5
SHOWN = 25
LATEST = 20_000
"""The number of events that are read from the store: the latest ones."""


def learned_routes(service: Service) -> APIRouter:
    routes = APIRouter()
    live = service.live

    @routes.get("/why")
    async def why(q: Q, doc_id: DocId, model: Model = None) -> Response:
        """Why a document was found, as sentences, with the queries that this was learned from."""
        service.check_ready()
        served = live.get(model)
        shown = service.suggestions(served)
        told = await asyncio.to_thread(
            reasons, served.fitted, readable(q), doc_id, most=REASONS, may_show=shown.__contains__
        )
        return reply({"model": served.name, "version": served.version, "reasons": list(map(_as_json, told))})

    @routes.get("/learned")
    async def learned(model: Model = None) -> Response:
        """What was learned from clicks: pairs of words, new synonyms, and the queries with the most clicks."""
        service.check_ready()
        served = live.get(model)
        return reply(await asyncio.to_thread(what_was_learned, service, served))

    return routes


def _as_json(reason: Reason) -> dict[str, Any]:
    spans = [list(span) for span in reason.spans]
    return {"text": reason.text, "spans": spans, "share": reason.share, "bridges": list(reason.bridges)}


def what_was_learned(service: Service, served: Served) -> dict[str, Any]:
    least, last = service.config.min_users, service.store.last()
    events = latest_events(service, last)
    pairs = _pairs(served.fitted if not served.learns else _still(served), served.fitted.display, least)
    return {
        "model": served.name,
        "version": served.version,
        "spec": served.spec,
        "events": served.seq,
        "min_users": least,
        "pairs": [asdict(pair) for pair in pairs[:SHOWN]],
        "synonyms": [asdict(found) for found in new_synonyms(events, served.fitted, least)[:SHOWN]],
        "taught": most_taught(events, served.fitted, least)[:SHOWN],
    }


@lru_cache(maxsize=8)
def _pairs(fitted: Fitted, display: Display, min_users: int) -> list[Any]:
    """Word pairs of a model. A part of a model does not know who typed a query, so `display` of the whole model decides
    what may be shown."""
    return word_pairs(fitted._with(display=display), min_users=min_users)


def _still(served: Served) -> Fitted:
    """The part of an online model that clicks do not change, so that results about it can be cached."""
    inner = getattr(served.fitted, "inner", served.fitted)
    return inner if isinstance(inner, Fitted) else served.fitted


def latest_events(service: Service, last: int) -> list[Event]:
    """Pages with clicks that were not undone."""
    return [event for event in service.store.pages_after(max(last - LATEST, 0), last) if event.clicks]


def most_taught(events: Sequence[Event], fitted: Fitted, min_users: int) -> list[dict[str, Any]]:
    """The queries with the most clicks, without those that look personal or were typed by fewer than `min_users`
    people."""
    clicks: Counter[str] = Counter()
    people: dict[str, set[int]] = defaultdict(set)
    chosen: dict[str, Counter[str]] = defaultdict(Counter)
    for event in events:
        name = event.query or event.query_id or ""
        clicks[name] += len(event.clicks)
        people[name].add(event.user)
        chosen[name].update(event.clicks)
    out = []
    for name, count in clicks.most_common():
        known = len(people[name] - {0})
        if known >= min_users and not looks_personal(name):
            best = chosen[name].most_common(1)[0][0]
            out.append({"query": name, "clicks": count, "people": known, "title": fitted.title(best) or best})
    return out


def new_synonyms(events: Sequence[Event], fitted: Fitted, min_users: int) -> list[Any]:
    """Synonyms learned only from the clicks of this service, with titles as the text of the documents."""
    clicked = {doc_id for event in events for doc_id in event.clicks}
    documents = [Document(d, {"title": t}) for d in sorted(clicked) if (t := fitted.title(d))]
    if not documents:
        return []
    pages = [replace(e.impression, user=str(e.user) if e.user else None) for e in events]
    return learn_synonyms(ClickGraph.build(pages, documents), min_users=min_users, language=language_of(fitted))
