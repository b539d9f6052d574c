"""Feedback: what people clicked. Events are on disk before they are acknowledged."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response

from clickbridge.errors import InputError
from clickbridge.io.secret import Secret
from clickbridge.serve.bodies import read_body, reply, taking
from clickbridge.serve.events import Event, page_event, undo_event
from clickbridge.serve.protocols.metarank import feedback_values, is_metarank, take_events
from clickbridge.serve.refusals import Refused
from clickbridge.serve.schemas import EventIn, Feedback, FeedbackAnswer, Undo, checked, decode
from clickbridge.serve.service import Service
from clickbridge.serve.store import Shown


def feedback_routes(service: Service) -> APIRouter:
    routes = APIRouter()

    @routes.post("/feedback", **taking(Feedback, FeedbackAnswer))
    async def feedback(request: Request) -> Response:
        """Reports result pages and their clicks. The answer is sent once they are on disk and `online:` models have
        learned them."""
        service.check_ready()
        value = feedback_values(await read_body(request))
        if is_metarank(value):
            return await take_events(service, value)
        events = await feedback_events(service, checked(Feedback, value).events)
        kept = await service.keep(events)
        request.state.notes.update(accepted=kept.accepted, duplicates=kept.duplicates)
        return reply({"accepted": kept.accepted, "duplicates": kept.duplicates})

    @routes.post("/feedback/undo", **taking(Undo, FeedbackAnswer))
    async def undo(request: Request) -> Response:
        """Undoes an event. An `online:` model forgets it at once. Other models will not learn it, unless they already
        have."""
        service.check_ready()
        event_id = checked(Undo, decode(await read_body(request))).event_id
        kept = await service.keep([undo_event(event_id)])
        if not kept.accepted and not await asyncio.to_thread(service.store.knows, event_id):
            raise Refused(404, "unknown_event", f"no event {event_id!r} is kept", "event_id")
        return reply({"accepted": kept.accepted, "duplicates": kept.duplicates})

    return routes


async def feedback_events(service: Service, given: list[EventIn]) -> list[Event]:
    """Events in the form in which they are stored. If an event refers to an answer, its query and results come from
    there."""
    named = [e.query_id for e in given if e.query_id is not None and (e.query is None or e.results is None)]
    pages = await service.shown_pages([query_id for query_id in named if query_id is not None])
    return [_event(i, event, pages, service.store.secret) for i, event in enumerate(given)]


def _event(number: int, event: EventIn, pages: dict[str, Shown], secret: Secret) -> Event:
    where = f"events.{number}"
    query, results, page = event.query, event.results, event.query_id
    if query is None or results is None:
        if event.query_id is None:
            raise Refused(422, "invalid", "an event has a query_id, or query and results", where)
        shown = pages.get(event.query_id)
        if shown is None:
            message = "no answer of that query_id is kept: send query and results with the event"
            raise Refused(422, "unknown_query_id", message, f"{where}.query_id")
        query, results = query or shown.query, results or list(shown.results)
    record = {"query": query, "results": results, "clicks": event.clicks, "user": event.user, "time": event.time}
    try:
        return page_event(event.event_id, record, secret, page)
    except InputError as error:
        raise Refused(422, "invalid", str(error), where) from None
