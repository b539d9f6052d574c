"""OpenSearch UBI: the stock JavaScript collector posts JSON arrays to `/ubi_queries` and `/ubi_events`."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from clickbridge.log.clean import RecordError
from clickbridge.log.ubi import read_ubi
from clickbridge.serve.bodies import read_body, reply, taking
from clickbridge.serve.limits import MAX_EVENTS
from clickbridge.serve.protocols.pages import Batch, keep_batch
from clickbridge.serve.refusals import Refused
from clickbridge.serve.schemas import FeedbackAnswer, decode
from clickbridge.serve.service import Service


def ubi_routes(service: Service) -> APIRouter:
    routes = APIRouter()

    @routes.post("/ubi_queries", **taking(list[dict[str, Any]], FeedbackAnswer))
    @routes.post("/ubi_events", **taking(list[dict[str, Any]], FeedbackAnswer))
    async def collect(request: Request) -> Response:
        """Takes queries and events of User Behavior Insights 1.3, in the form that its collector sends."""
        service.check_ready()
        body = decode(await read_body(request))
        records = body if isinstance(body, list) else [body]
        if len(records) > MAX_EVENTS:
            raise Refused(422, "invalid", f"a request has at most {MAX_EVENTS} records; got {len(records)}")
        batch = Batch("ubi")
        for number, record in enumerate(records):
            try:
                batch.add(record, read_ubi(record))
            except RecordError as error:
                raise Refused(422, "invalid", str(error), str(number)) from None
        accepted, duplicates = await keep_batch(service, batch)
        request.state.notes.update(records=len(records), accepted=accepted)
        return reply({"accepted": accepted, "duplicates": duplicates})

    return routes
